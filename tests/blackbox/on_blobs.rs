//! What runs on a blob service have in common, whoever serves it.
#![allow(unreachable_pub, reason = "it is a module of several test targets")]

use std::net::SocketAddr;

use leasehold::azure_blob::{AzureBlobStore, Credential};

use crate::blackbox::{self, Assignment, BadHabit, Ground, Limits, Plan, Verdict};
use crate::support::azurite::KEY;
use crate::support::faults::Answer;
use crate::support::worker::role;

/// The shortest terms that the service has.
const LIMITS: Limits = Limits { ttl_ms: &[15_000, 16_000], poll_ms: 250, windows: 44, least_grants: 6 };

/// `place` is the path of a container: the account and a name.
pub fn ground(name: &'static str, upstream: SocketAddr, place: String, target: &'static str) -> Ground {
    let out_of_order = Answer::of_blob_service(503, "ServerBusy");
    Ground { name, upstream, place, limits: LIMITS, out_of_order, target }
}

pub fn plan(ground: &Ground, seed: u64) -> Plan {
    Plan::new(seed, &ground.limits, &ground.out_of_order)
}

/// Each in a container of its own.
pub fn run_all(ground: &Ground, plans: Vec<Plan>) -> Vec<Verdict> {
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

/// The control: without it, the other runs might see nothing at all.
pub fn shows_that_overlaps_are_seen(ground: &Ground) {
    let plan = plan(ground, 1).of("workers_that_never_look", "NeverLooks").with_habit(BadHabit::NeverLooks);
    let verdicts = run_all(ground, vec![plan]);
    assert!(verdicts[0].violates("overlap") > 0, "{}", verdicts[0]);
    assert!(verdicts[0].stale_refused > 0, "{}", verdicts[0]);
    assert_eq!(verdicts[0].fenced.1, 0, "the fence holds all the same: {}", verdicts[0]);
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
