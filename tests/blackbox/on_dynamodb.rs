//! What runs on DynamoDB have in common, whoever serves it.
#![allow(unreachable_pub, reason = "it is a module of several test targets")]

use std::net::SocketAddr;

use leasehold::dynamodb::{DynamoDbStore, create_table};

use crate::blackbox::{self, Assignment, Ground, Limits, Plan};
use crate::support::emulator::{client, retrying_client};
use crate::support::faults::Answer;
use crate::support::worker::role;

pub fn ground(name: &'static str, upstream: SocketAddr, place: &str, limits: Limits, target: &'static str) -> Ground {
    let (place, out_of_order) = (place.to_owned(), Answer::internal_error());
    Ground { name, upstream, place, limits, out_of_order, target }
}

pub fn plan(ground: &Ground, seed: u64) -> Plan {
    Plan::new(seed, &ground.limits, &ground.out_of_order)
}

/// Creates a table for each run.
pub fn tables(ground: &Ground, runs: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(ground.upstream);
        for run in 0..runs {
            create_table(&client, format!("{}-{run}", ground.place)).await.unwrap();
        }
    });
}

/// What a worker process runs; nothing in another one.
pub fn work_if_worker() {
    if role().is_none() {
        return;
    }
    let assignment = Assignment::of_this_process();
    let client = retrying_client(assignment.proxy.parse().unwrap());
    let store = DynamoDbStore::builder(client, &assignment.place).unverified().unwrap();
    blackbox::work(&assignment, store);
}
