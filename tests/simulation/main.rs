//! The real client over a simulated store, network and machines, on one thread and one seed for everything.
//!
//! Each seed draws its clients, its workers and a subset of the faults. What must hold is held against true time at
//! every event. `LEASEHOLD_SEED=n` replays one seed with its trace, `LEASEHOLD_SEEDS=n` runs so many.
//!
//! What is not simulated: a freeze of all clocks of a machine that holds a lease (P3 excludes it; only claims of
//! manual clients and idle machines freeze), `force` and deletion by hand (they void P3 for a term), a clock that
//! moves between two lines of code, and thread mode.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod chance;
mod checks;
mod controls;
mod machine;
mod plan;
mod regressions;
mod run;
mod store;
mod worker;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use checks::Counts;
use leasehold::protocol::broken::switch::Guard;
use run::{Report, SIMULATING, simulate};

/// The seeds of the ordinary run.
const SEEDS: u64 = 3_000;
/// After so many violations no more are looked for.
const ENOUGH: u64 = 20;

#[test]
fn nothing_is_violated_whatever_goes_wrong() {
    let _whole = Guard::nothing_broken();
    if let Some(seed) = number_in("LEASEHOLD_SEED") {
        let report = on_a_thread(seed, true);
        println!("{report}\n{:?}", report.counts);
        assert_eq!(report.violation, None);
        return;
    }
    explore(number_in("LEASEHOLD_SEEDS").unwrap_or(SEEDS));
}

#[test]
#[ignore = "long: LEASEHOLD_SEEDS of them, by default 200,000"]
fn nothing_is_violated_in_a_long_run() {
    let _whole = Guard::nothing_broken();
    explore(number_in("LEASEHOLD_SEEDS").unwrap_or(200_000));
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    let _whole = Guard::nothing_broken();
    let hashes = |seed| on_a_thread(seed, false).hash;
    let first: Vec<u64> = (0..40).map(hashes).collect();
    let second: Vec<u64> = (0..40).map(hashes).collect();
    assert_eq!(first, second);
    let mut different = first.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), first.len(), "each seed is a run of its own");
}

/// Runs so many seeds; the first violation fails and says how to see it again.
fn explore(seeds: u64) {
    let (found, counts) = search(0..seeds, ENOUGH);
    println!("{seeds} seeds: {counts:?}");
    if let Some(report) = found.first() {
        let seed = report.seed;
        println!("{}", on_a_thread(seed, true));
        for report in &found {
            println!("seed {}: {}", report.seed, report.violation.as_deref().unwrap_or_default());
        }
        panic!(
            "seed {seed}: {}\nreplay: LEASEHOLD_SEED={seed} cargo test --features testing,serde,__broken --test \
             simulation nothing_is_violated_whatever -- --nocapture",
            report.violation.as_deref().unwrap_or_default()
        );
    }
    let Counts { grants, takeovers, resumed, lost, cancelled, stale_refused, burns, .. } = counts;
    let happened = [grants, takeovers, resumed, lost, cancelled, stale_refused, burns];
    assert!(happened.iter().all(|count| *count > 0), "a run in which something never happens shows nothing");
}

/// Runs seeds on all cores until `most` of them have violated something. Sorted by seed.
fn search(seeds: std::ops::Range<u64>, most: u64) -> (Vec<Report>, Counts) {
    let (next, found, counts) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()), Mutex::new(Counts::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || found.lock().unwrap().len() as u64 >= most {
                return;
            }
            let report = simulate(seed, false);
            counts.lock().unwrap().add(&report.counts);
            if report.violation.is_some() {
                found.lock().unwrap().push(report);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            std::thread::Builder::new().name(SIMULATING.into()).spawn_scoped(scope, work).unwrap();
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|report| report.seed);
    (found, counts.into_inner().unwrap())
}

fn on_a_thread(seed: u64, verbose: bool) -> Report {
    let thread = std::thread::Builder::new().name(SIMULATING.into()).spawn(move || simulate(seed, verbose));
    thread.unwrap().join().unwrap()
}

fn number_in(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number of seeds"))
}
