//! Black box runs on a DynamoDB emulator in the test process; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_dynamodb.rs"]
mod on_dynamodb;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{BadHabit, Ground, Plan, Verdict};
use leasehold::protocol::broken::Broken;
use on_dynamodb::{plan, run_on_emulator};

/// As many as two cores carry.
const AT_ONCE: usize = 4;

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    blackbox::assert_clean(&run_seeds(&blackbox::seeds(1..=4)));
}

/// The controls: without them, the runs above might see nothing at all. Two, because the runs above go on at the same time.
#[test]
fn holders_at_the_same_time_and_writes_past_the_fence_are_seen() {
    let test = "holders_at_the_same_time";
    let verdicts = run_all(|ground| {
        let unfenced = plan(ground, 2).of(test, "CountNotRestarted-NoFence").breaking(Broken::CountNotRestarted);
        let never_looks = plan(ground, 2).of(test, "NeverLooks").with_habit(BadHabit::NeverLooks);
        vec![unfenced.with_habit(BadHabit::NoFence).observed_only(true), never_looks]
    });
    let [unfenced, never_looks] = &verdicts[..] else { panic!("two runs") };
    assert!(unfenced.violates("overlap") > 0 && unfenced.violates("inside the margin") > 0, "{unfenced}");
    assert!(unfenced.fenced.1 > 0 && unfenced.violates("stale write accepted") > 0, "{unfenced}");
    blackbox::assert_overlaps_are_seen(never_looks);
    blackbox::assert_crowds_are_seen(never_looks);
}

#[test]
#[ignore = "the longer matrix: half an hour"]
fn nothing_is_violated_in_the_longer_matrix() {
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(101..=196), AT_ONCE, run_seeds));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_dynamodb::work_if_worker();
}

fn run_seeds(seeds: &[u64]) -> Vec<Verdict> {
    run_all(|ground| seeds.iter().map(|seed| plan(ground, *seed)).collect())
}

fn run_all(plans: impl FnOnce(&Ground) -> Vec<Plan>) -> Vec<Verdict> {
    run_on_emulator("blackbox_dynamodb", plans)
}
