//! What runs on DynamoDB have in common, whoever serves it.
#![allow(dead_code, unreachable_pub, reason = "it is a module of several test targets")]

use std::net::SocketAddr;

use leasehold::dynamodb::{DynamoDbStore, create_table};

use crate::blackbox::{self, Assignment, Ground, Limits, Plan, Verdict};
use crate::support::emulator::{Emulator, client, retrying_client};
use crate::support::faults::Answer;
use crate::support::worker::role;

/// Of the emulator in the test process.
const EMULATOR: Limits = Limits { ttl_ms: &[2000, 3000, 4000], poll_ms: 250, windows: 22, least_grants: 20 };

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

/// Runs them at once, on an emulator of their own in this process.
pub fn run_on_emulator(target: &'static str, plans: impl FnOnce(&Ground) -> Vec<Plan>) -> Vec<Verdict> {
    let emulator = Emulator::start();
    let ground = ground("dynamodb", emulator.addr(), "leases", EMULATOR, target);
    let plans = plans(&ground);
    tables(&ground, plans.len());
    blackbox::run_all(&ground, plans)
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
