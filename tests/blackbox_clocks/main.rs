//! Black box runs of workers whose clocks libfaketime changes, on a DynamoDB emulator in the test process; see
//! `tests/blackbox`. It has to be installed: `apt-get install faketime`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_dynamodb.rs"]
mod on_dynamodb;
#[path = "../support/mod.rs"]
mod support;

use std::sync::LazyLock;

use blackbox::{FakeClock, Ground, Plan, Verdict};
use leasehold::protocol::broken::Broken;
use on_dynamodb::{plan, run_on_emulator};

/// Rates that differ by less than a hundredth, which is what is assumed of clocks.
const RATES: [FakeClock; 4] =
    [FakeClock::rate(1.004), FakeClock::rate(0.996), FakeClock::rate(1.002), FakeClock::rate(0.998)];
/// Nothing is assumed of wall clocks.
const WALLS: [FakeClock; 4] = [
    FakeClock::wall(-HOUR, 1.0),
    FakeClock::wall(2 * HOUR, 3.0),
    FakeClock::wall(0, 0.2),
    FakeClock::wall(-30 * 24 * HOUR, 1.0),
];
const HOUR: i64 = 60 * 60;
/// Two of four, so slow that a renewal comes after the term, which others measure rightly.
const QUARTER_SPEED: [FakeClock; 2] = [FakeClock::rate(0.25); 2];

/// What all tests here look at: the runs go on at the same time, in the minute that one lasts.
struct Runs {
    rates: Vec<Verdict>,
    walls: Vec<Verdict>,
    slow: Verdict,
    trusting: Verdict,
}

static RUNS: LazyLock<Runs> = LazyLock::new(|| {
    let seeds = blackbox::seeds(201..=201);
    let (first, others) = seeds.split_first().expect("a seed");
    let mut verdicts =
        run(|ground| vec![rates(ground, *first), walls(ground, *first), quarter_speed(ground), trusting(ground)]);
    let (trusting, slow) = (verdicts.pop().expect("the last of four"), verdicts.pop().expect("the third of four"));
    verdicts.extend(others.iter().flat_map(|seed| run(|ground| vec![rates(ground, *seed), walls(ground, *seed)])));
    let (rates, walls) = verdicts.into_iter().partition(|verdict| verdict.name.ends_with("rates"));
    Runs { rates, walls, slow, trusting }
});

#[test]
fn nothing_is_violated_with_clocks_that_go_fast_and_slow_within_what_is_assumed() {
    blackbox::assert_clean(&RUNS.rates);
}

#[test]
fn nothing_is_violated_with_wall_clocks_that_are_off_by_hours_and_run_wild() {
    blackbox::assert_clean(&RUNS.walls);
}

/// A control. The harness's own clock is not among the slow ones, so it sees what follows.
#[test]
fn holders_whose_clocks_go_at_a_quarter_of_the_speed_are_seen_to_overlap() {
    let slow = &RUNS.slow;
    assert!(slow.violates("overlap") > 0 && slow.violates("inside the margin") > 0, "{slow}");
    assert!(slow.clocks.unproven.is_empty(), "{slow}");
}

/// The other control: where wall clocks are trusted, it shows.
#[test]
fn workers_that_count_a_term_by_a_wall_clock_are_seen_to_take_over_and_open_early() {
    let trusting = &RUNS.trusting;
    assert!(trusting.violates("overlap") > 0 || trusting.violates("opened early") > 0, "{trusting}");
    assert!(trusting.clocks.unproven.is_empty(), "{trusting}");
}

#[test]
#[ignore = "the longer matrix: eight minutes"]
fn nothing_is_violated_in_the_longer_matrix() {
    let run = |seeds: &[u64]| {
        run(|ground| seeds.iter().flat_map(|seed| [rates(ground, *seed), walls(ground, *seed)]).collect())
    };
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(202..=217), 2, run));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_dynamodb::work_if_worker();
}

fn run(plans: impl FnOnce(&Ground) -> Vec<Plan>) -> Vec<Verdict> {
    run_on_emulator("blackbox_clocks", plans)
}

fn rates(ground: &Ground, seed: u64) -> Plan {
    plan(ground, seed).of("nothing_is_violated_with_clocks", "rates").with_clocks(&RATES)
}

fn walls(ground: &Ground, seed: u64) -> Plan {
    plan(ground, seed).of("nothing_is_violated_with_wall_clocks", "walls").with_clocks(&WALLS)
}

fn quarter_speed(ground: &Ground) -> Plan {
    plan(ground, 214).of("holders_whose_clocks_go_at_a_quarter", "quarter-speed").with_clocks(&QUARTER_SPEED)
}

fn trusting(ground: &Ground) -> Plan {
    let plan = plan(ground, 214).of("workers_that_count_a_term_by_a_wall_clock", "TakerTrustsWallClock");
    plan.breaking(Broken::TakerTrustsWallClock).with_clocks(&WALLS)
}
