//! Black box runs on Azurite; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{Assignment, BadHabit, Ground, Limits, Plan};
use leasehold::azure_blob::{AzureBlobStore, Credential};
use support::azurite::{ACCOUNT, KEY, container};
use support::faults::Answer;

/// The shortest terms that the service has, and one more.
const LIMITS: Limits = Limits { ttl_ms: &[15_000, 16_000], windows: 44, least_grants: 6 };
const REPLAY: &str = "LEASEHOLD_BLACKBOX_SEEDS={seed} cargo test --features $STORES --test blackbox_azurite nothing_is_violated -- --nocapture";

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    let ground = ground("blackbox");
    let plans: Vec<_> = blackbox::seeds(1..=4).into_iter().map(|seed| plan(&ground, seed)).collect();
    containers(&ground, plans.len());
    blackbox::assert_clean(&blackbox::run_all(&ground, plans));
}

#[test]
fn workers_that_never_look_whether_they_hold_are_seen_to_overlap() {
    let ground = ground("blackbox-control");
    let plans = vec![plan(&ground, 1).with_habit(BadHabit::NeverLooks)];
    containers(&ground, plans.len());
    let verdicts = blackbox::run_all(&ground, plans);
    assert!(verdicts[0].violates("overlap") > 0, "{}", verdicts[0]);
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    if support::worker::role().is_none() {
        return;
    }
    let assignment = Assignment::of_this_process();
    let url = format!("http://{}{}", assignment.proxy, assignment.place);
    let store = AzureBlobStore::builder(url, credential()).unverified().unwrap();
    blackbox::work(&assignment, store);
}

fn plan(ground: &Ground, seed: u64) -> Plan {
    Plan::new(seed, &ground.limits, &ground.out_of_order)
}

fn ground(name: &str) -> Ground {
    let url = container(name);
    let (addr, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("http://ADDRESS/PATH");
    Ground {
        name: "azurite",
        upstream: addr.parse().expect("an address and a port"),
        place: format!("/{path}"),
        limits: LIMITS,
        out_of_order: Answer::of_blob_service(503, "ServerBusy"),
        replay: REPLAY,
    }
}

/// One for each run.
fn containers(ground: &Ground, runs: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for run in 0..runs {
            let url = format!("http://{}{}-{run}", ground.upstream, ground.place);
            AzureBlobStore::builder(url, credential()).create_container().open().await.expect("Azurite answers");
        }
    });
}

fn credential() -> Credential {
    Credential::shared_key(ACCOUNT, KEY)
}
