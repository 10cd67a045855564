//! Black box runs on a DynamoDB emulator in the test process; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{Assignment, Ground, Limits, Plan};
use leasehold::protocol::broken::Broken;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use support::emulator::{self, Emulator};
use support::faults::Answer;

const LIMITS: Limits = Limits { ttl_ms: &[2000, 3000, 4000], least_grants: 30 };
const REPLAY: &str = "LEASEHOLD_BLACKBOX_SEEDS={seed} cargo test --features $STORES --test blackbox_dynamodb nothing_is_violated -- --nocapture";

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    let emulator = Emulator::start();
    let ground = ground(&emulator);
    let plans: Vec<_> = blackbox::seeds(1..=4).into_iter().map(|seed| plan(&ground, seed)).collect();
    tables(&emulator, &ground, plans.len());
    blackbox::assert_clean(&blackbox::run_all(&ground, plans));
}

#[test]
fn explore() {
    let emulator = Emulator::start();
    let ground = ground(&emulator);
    let plan = |seed| plan(&ground, seed);
    let plans = vec![
        plan(1).breaking(Broken::RenewalKeepsOldExpiresAt).observed_only(false),
        plan(2).breaking(Broken::CountNotRestarted).observed_only(true).with_habit(blackbox::BadHabit::NoFence),
        plan(2).with_habit(blackbox::BadHabit::NeverLooks),
        plan(2).breaking(Broken::TermCountedFromAnswer),
        plan(3).breaking(Broken::KappaZero).observed_only(false),
        plan(3).breaking(Broken::LateEndTooEarly).observed_only(false),
    ];
    tables(&emulator, &ground, plans.len());
    blackbox::run_all(&ground, plans);
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    if support::worker::role().is_none() {
        return;
    }
    let assignment = Assignment::of_this_process();
    let client = emulator::retrying_client(assignment.proxy.parse().unwrap());
    let store = DynamoDbStore::builder(client, &assignment.place).unverified().unwrap();
    blackbox::work(&assignment, store);
}

fn plan(ground: &Ground, seed: u64) -> Plan {
    Plan::new(seed, &ground.limits, &ground.out_of_order)
}

fn ground(emulator: &Emulator) -> Ground {
    Ground {
        name: "dynamodb",
        upstream: emulator.addr(),
        place: "leases".into(),
        limits: LIMITS,
        out_of_order: Answer::internal_error(),
        replay: REPLAY,
    }
}

/// One for each run.
fn tables(emulator: &Emulator, ground: &Ground, runs: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = emulator.client();
        for run in 0..runs {
            create_table(&client, format!("{}-{run}", ground.place)).await.unwrap();
        }
    });
}
