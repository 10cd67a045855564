//! Black box: real worker processes on a real service, each behind a fault proxy of its own, judged from outside.
//!
//! A run has a seed. It decides the plan: which faults, when, at whom. Real processes on real sockets are not
//! deterministic, so the seed replays the plan and not the run.
//!
//! - `plan`: what a seed means.
//! - `journal`: what the workers say, stamped by the harness's clock.
//! - `worker`, `assignment`, `counters`: what a worker process does, and the resources that it writes to.
//! - `crew`, `stage`: the processes and their proxies, and the plan as it is carried out.
//! - `fake_clock`: clocks that libfaketime changes, and whether it did.
//! - `holds`, `forces`, `rules`: what the journal says that was held, and what must not be.
//! - `judge`: what came of a run, and what it needs to count.
//! - `report`, `timeline`: what people read.

#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]
#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test target uses its own part")]

mod assignment;
mod counters;
mod crew;
mod fake_clock;
mod forces;
mod holds;
mod journal;
mod judge;
mod judge_tests;
mod plan;
mod report;
mod rules;
mod stage;
mod timeline;
mod worker;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use self::assignment::{Assignment, BadHabit};
pub use self::fake_clock::FakeClock;
use self::judge::Acts;
pub use self::judge::Verdict;
use self::plan::{LEASES, SEMAPHORE};
pub use self::plan::{Limits, Plan};
pub use self::worker::work;
use crate::support::faults::Answer;

/// A service, and how its runs differ from those of others.
#[derive(Clone)]
pub struct Ground {
    /// In the names of files and reports.
    pub name: &'static str,
    /// Where the proxies forward to.
    pub upstream: SocketAddr,
    /// The path that follows a proxy's address, if any, and the table or container.
    pub place: String,
    pub limits: Limits,
    /// What a service says that is out of order.
    pub out_of_order: Answer,
    /// The test target.
    pub target: &'static str,
}

/// Runs all plans at once, writes their pictures, prints their reports, and returns their verdicts in that order.
pub fn run_all(ground: &Ground, plans: Vec<Plan>) -> Vec<Verdict> {
    let runs = plans.into_iter().enumerate().map(|(number, plan)| {
        let ground = ground.clone();
        std::thread::spawn(move || run_until_it_counts(&ground, &plan, number))
    });
    let runs: Vec<_> = runs.collect();
    let verdicts: Vec<_> = runs.into_iter().map(|run| run.join().expect("the run ends by itself")).collect();
    for verdict in &verdicts {
        println!("{verdict}");
    }
    verdicts
}

/// A run that is void says nothing, so it is run once more. Twice void is a failure, as a violation is at once.
fn run_until_it_counts(ground: &Ground, plan: &Plan, number: usize) -> Verdict {
    let first = stage::run(ground, plan, number);
    if plan.is_control() || first.void.is_empty() || !first.violations.is_empty() {
        return first;
    }
    println!("void, so it is run once more: {first}");
    stage::run(ground, plan, number)
}

/// Runs them in batches, because one machine carries only so many at once.
pub fn run_in_batches(seeds: &[u64], at_once: usize, run: impl Fn(&[u64]) -> Vec<Verdict>) -> Vec<Verdict> {
    let batches = seeds.chunks(at_once).enumerate();
    let verdicts = batches.flat_map(|(number, seeds)| {
        println!("=== batch {number}: {seeds:?}");
        run(seeds)
    });
    verdicts.collect()
}

/// So many runs have to have had everything that workers do.
const SEVERAL: usize = 3;

/// Fails if any of them violates something or does not count, or if several of them have never closed, never elected, or
/// never handed over, resumed, revoked, forced or asked.
pub fn assert_clean(verdicts: &[Verdict]) {
    println!("{}", report::table(verdicts));
    let bad: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_clean()).map(Verdict::summary).collect();
    assert!(bad.is_empty(), "{} of {} runs:\n{}", bad.len(), verdicts.len(), bad.join("\n"));
    let Acts { closed, handed, resumed, revoked, asked, forced, elected, .. } =
        Acts::sum(verdicts.iter().map(|verdict| verdict.acts));
    // With long terms there are a few of each in a run, so of the rarer ones any will do.
    let acts = [closed, elected, handed + resumed + revoked + asked + forced];
    assert!(verdicts.len() < SEVERAL || !acts.contains(&0), "closed, elected, and what else was done: {acts:?}");
}

/// Fails if this run, of workers that never look whether they hold, was not seen to violate what it must. The fence holds all
/// the same.
pub fn assert_overlaps_are_seen(verdict: &Verdict) {
    let overlaps: usize = LEASES.iter().map(|lease| verdict.violates(&format!("overlap: {lease} "))).sum();
    assert!(overlaps > 0 && verdict.stale_refused > 0, "{verdict}");
    let past_the_fence = (verdict.fenced.1, verdict.violates("stale write accepted"), verdict.violates("log of"));
    assert_eq!(past_the_fence, (0, 0, 0), "the fence holds all the same: {verdict}");
}

/// The same of the semaphore. Where terms are long it can be missed, because a hold then is as long as the run.
pub fn assert_crowds_are_seen(verdict: &Verdict) {
    let overlaps = verdict.violates(&format!("overlap: {SEMAPHORE}/"));
    assert!(overlaps > 0 && verdict.violates("more than 2 at once") > 0, "{verdict}");
}

/// Of these seeds, or of those that the environment names: `LEASEHOLD_BLACKBOX_SEEDS=7,8` or `1-24`.
pub fn seeds(usual: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    let Ok(named) = std::env::var("LEASEHOLD_BLACKBOX_SEEDS") else { return usual.collect() };
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or_else(|_| panic!("no seeds: {named} (7,8 or 1-24)"));
    let ranges = named.split(',').map(|part| match part.split_once('-') {
        Some((from, to)) => number(from)..=number(to),
        None => number(part)..=number(part),
    });
    ranges.flatten().collect()
}

/// Where the pictures and logs of runs are kept.
fn output() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("blackbox");
    std::fs::create_dir_all(&folder).expect("the target directory is ours");
    folder
}
