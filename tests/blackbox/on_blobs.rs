//! The runs on a blob service, whoever serves it: the target says which seeds, and where.
#![allow(unreachable_pub, reason = "it is a module of several test targets")]

use std::net::SocketAddr;

use leasehold::azure_blob::{AzureBlobStore, Credential};

use crate::blackbox::{self, Assignment, BadHabit, Ground, Limits, Plan, Verdict};
use crate::support::azurite::KEY;
use crate::support::faults::Answer;
use crate::support::worker::role;
use crate::{LONGER, ORDINARY, on_ground};

/// The shortest terms that the service has.
const LIMITS: Limits = Limits { ttl_ms: &[15_000, 16_000], poll_ms: 250, windows: 44, least_grants: 6 };

/// `place` is the path of a container: the account and a name.
pub fn ground(name: &'static str, upstream: SocketAddr, place: String, target: &'static str) -> Ground {
    let out_of_order = Answer::of_blob_service(503, "ServerBusy");
    Ground { name, upstream, place, limits: LIMITS, out_of_order, target }
}

/// As many as two cores carry.
const AT_ONCE: usize = 4;

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    blackbox::assert_clean(&run_seeds(&blackbox::seeds(ORDINARY)));
}

/// The control: without it, the other runs might see nothing at all.
#[test]
fn workers_that_never_look_whether_they_hold_are_seen_to_overlap() {
    let verdicts = on_ground("control", |ground| {
        run_all(
            ground,
            vec![plan(ground, 1).of("workers_that_never_look", "NeverLooks").with_habit(BadHabit::NeverLooks)],
        )
    });
    blackbox::assert_overlaps_are_seen(&verdicts[0]);
}

#[test]
#[ignore = "the longer matrix: ten minutes"]
fn nothing_is_violated_in_the_longer_matrix() {
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(LONGER), AT_ONCE, run_seeds));
}

/// On a ground that no batch before has used.
fn run_seeds(seeds: &[u64]) -> Vec<Verdict> {
    on_ground(&format!("seed-{}", seeds[0]), |ground| {
        run_all(ground, seeds.iter().map(|seed| plan(ground, *seed)).collect())
    })
}

fn plan(ground: &Ground, seed: u64) -> Plan {
    Plan::new(seed, &ground.limits, &ground.out_of_order)
}

/// Each in a container of its own.
fn run_all(ground: &Ground, plans: Vec<Plan>) -> Vec<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for run in 0..plans.len() {
            let url = format!("http://{}{}-{run}", ground.upstream, ground.place);
            let builder = AzureBlobStore::builder(url, credential(&ground.place)).create_container();
            builder.open().await.expect("the service answers");
        }
    });
    blackbox::run_all(ground, plans)
}

/// What a worker process runs; nothing in another one.
pub fn work_if_worker() {
    if role().is_none() {
        return;
    }
    let assignment = Assignment::of_this_process();
    let url = format!("http://{}{}", assignment.proxy, assignment.place);
    let store = AzureBlobStore::builder(url, credential(&assignment.place)).unverified().unwrap();
    blackbox::work(&assignment, store);
}

/// Of the account that the path begins with.
fn credential(place: &str) -> Credential {
    let account = place.split('/').nth(1).expect("/ACCOUNT/CONTAINER");
    Credential::shared_key(account, KEY)
}
