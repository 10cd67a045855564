//! The real client and the real Azure Blob store over the strict service, with faults on single requests, on one
//! thread and one seed for everything.
//!
//! A verb of this store is several requests, so what `tests/simulation` does to a verb happens here to each request:
//! it is lost between the lease and the record, applied terms later, or a second time. Clients, machines, workers and
//! the search for seeds are those of `tests/simulation`; the service, what is seen of it, and the operator are here.
//! `LEASEHOLD_SEED=n` replays one seed with its trace, `LEASEHOLD_SEEDS=n` runs so many, from `LEASEHOLD_FROM` on.
//!
//! What is not simulated: a freeze of all clocks of a machine that holds a lease (P3 excludes it, and no date bounds
//! it here, because the service judges), a service whose own clock is not true time, containers that go away, and
//! thread mode.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../simulation/chance.rs"]
mod chance;
#[path = "../simulation/checks.rs"]
mod checks;
#[path = "../simulation/closings.rs"]
mod closings;
mod controls;
#[path = "../simulation/machine.rs"]
mod machine;
mod observed;
mod operator;
#[path = "../simulation/outcomes.rs"]
mod outcomes;
#[path = "../simulation/plan.rs"]
mod plan;
#[path = "../simulation/recipes/mod.rs"]
mod recipes;
mod regressions;
#[path = "../simulation/run.rs"]
mod run;
#[path = "../simulation/seeds.rs"]
mod seeds;
mod setting;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod way;
#[path = "../simulation/worker.rs"]
mod worker;
#[path = "../simulation/world.rs"]
mod world;

use leasehold::protocol::broken::switch::Guard;
use seeds::{Exploration, seeds_or, the_same_again};

/// The seeds of the ordinary run.
const SEEDS: u64 = 1_000;

const EXPLORATION: Exploration = Exploration {
    replay: "cargo test --features testing,serde,__broken,azure-blob --test simulation_azure \
             nothing_is_violated_whatever -- --nocapture",
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
        "set_data cancelled",
        "release cancelled",
        "close cancelled",
        "once cancelled",
        "inspect cancelled",
        "revoke cancelled",
        "ask cancelled",
        "stale writes refused",
        "burns",
        "breaks",
        "forced",
        "deleted",
        "listed",
        "late copies applied",
        "second copies applied",
        "records closed",
        "closed records opened",
        "closings not known",
        "outcomes told again",
        "led",
        "led again after a loss",
        "leaders seen",
        "gone when asked",
        "permits",
        "all taken",
        "turns",
        "ticks after all faults",
        "election cancelled",
        "observe cancelled",
        "semaphore cancelled",
    ],
};

#[test]
fn nothing_is_violated_whatever_becomes_of_single_requests() {
    let _whole = Guard::nothing_broken();
    EXPLORATION.run(seeds_or(SEEDS));
}

#[test]
#[ignore = "long: LEASEHOLD_SEEDS of them, by default 100,000, from LEASEHOLD_FROM on"]
fn nothing_is_violated_in_a_long_run() {
    let _whole = Guard::nothing_broken();
    EXPLORATION.run(seeds_or(100_000));
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    let _whole = Guard::nothing_broken();
    the_same_again(0..40);
}
