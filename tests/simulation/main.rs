//! The real client over a simulated store, network and machines, on one thread and one seed for everything.
//!
//! Each seed draws its clients, its workers and a subset of the faults. What must hold is held against true time at
//! every event. `LEASEHOLD_SEED=n` replays one seed with its trace, `LEASEHOLD_SEEDS=n` runs so many, from
//! `LEASEHOLD_FROM` on.
//!
//! Some seeds draw a recipe besides (`recipes`): elections, semaphores, several names, schedules, and stepping down.
//!
//! What is not simulated: a freeze of all clocks of a machine that holds a lease (P3 excludes it; only claims of
//! manual clients and idle machines freeze), `force` and deletion by hand (they void P3 for a term), a clock that
//! moves between two lines of code, and thread mode.
//!
//! `tests/simulation_azure` is the same over the Azure Blob store: it shares all but `setting`, `store`, `operator`,
//! `controls` and `regressions`.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod chance;
mod checks;
mod closings;
mod controls;
mod machine;
mod operator;
mod outcomes;
mod plan;
mod recipes;
mod regressions;
mod run;
mod seeds;
mod setting;
mod store;
mod worker;
mod world;

use leasehold::protocol::broken::switch::Guard;
use seeds::{Exploration, seeds_or, the_same_again};

/// The seeds of the ordinary run.
const SEEDS: u64 = 3_000;

const EXPLORATION: Exploration = Exploration {
    replay: "cargo test --features testing,serde,__broken --test simulation nothing_is_violated_whatever -- --nocapture",
    must_happen: &[
        "grants",
        "takeovers",
        "resumed",
        "lost",
        "acquire cancelled",
        "try cancelled",
        "within cancelled",
        "resume cancelled",
        "run cancelled",
        "renew cancelled",
        "ensure cancelled",
        "set_data cancelled",
        "release cancelled",
        "close cancelled",
        "handover cancelled",
        "once cancelled",
        "inspect cancelled",
        "revoke cancelled",
        "ask cancelled",
        "stale writes refused",
        "burns",
        "records closed",
        "closed records opened",
        "closings not known",
        "outcomes told again",
        "led",
        "led again after a loss",
        "leaders seen",
        "stepped down",
        "gone when asked",
        "still held",
        "permits",
        "all permits, and not one more",
        "all taken",
        "turns",
        "ticks after all faults",
        "campaign cancelled",
        "election cancelled",
        "until asked cancelled",
        "observe cancelled",
        "step-down cancelled",
        "semaphore cancelled",
        "all cancelled",
        "all run cancelled",
        "turn cancelled",
        "turn run cancelled",
    ],
};

#[test]
fn nothing_is_violated_whatever_goes_wrong() {
    let _whole = Guard::nothing_broken();
    EXPLORATION.run(seeds_or(SEEDS));
}

#[test]
#[ignore = "long: LEASEHOLD_SEEDS of them, by default 200,000"]
fn nothing_is_violated_in_a_long_run() {
    let _whole = Guard::nothing_broken();
    EXPLORATION.run(seeds_or(200_000));
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    let _whole = Guard::nothing_broken();
    the_same_again(0..40);
}
