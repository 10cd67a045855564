//! Runs many seeds, and says what they found.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::protocol::broken::Broken;

use super::checks::Counts;
use super::plan::Plan;
use super::recipes::Wrong;
use super::run::{Report, SIMULATING, simulate, simulate_plan};

/// After so many violations no more are looked for.
const ENOUGH: u64 = 20;
/// The seeds within which a broken rule has to be noticed.
const WITHIN: u64 = 2_000;
/// A broken rule is noticed when one seed has found it; `LEASEHOLD_CONTROL_SAMPLE` wants more, for a median.
const SAMPLE: u64 = 1;

/// What is explored, and how a seed of it is seen again.
pub struct Exploration {
    /// The command that replays, without the seed.
    pub replay: &'static str,
    /// What has to have happened.
    pub must_happen: &'static [&'static str],
}

/// What the simulation says of a broken rule.
pub enum Control {
    /// It is noticed.
    Caught,
    /// It is not, for this reason.
    Blind(&'static str),
}

impl Exploration {
    /// Runs these seeds, or the one of `LEASEHOLD_SEED`. The first violation fails and says how to see it again.
    pub fn run(&self, seeds: Range<u64>) {
        match number_in("LEASEHOLD_SEED") {
            Some(seed) => {
                let report = on_a_thread(seed, true);
                println!("{report}\n{:?}", report.counts);
                assert_eq!(report.violation, None);
            }
            None => self.explore(seeds),
        }
    }

    fn explore(&self, seeds: Range<u64>) {
        let (found, counts) = search(seeds.clone(), ENOUGH);
        println!("seeds {} to {}: {counts:?}", seeds.start, seeds.end);
        if let Some(report) = found.first() {
            let seed = report.seed;
            println!("{}", on_a_thread(seed, true));
            for report in &found {
                println!("seed {}: {}", report.seed, report.violation.as_deref().unwrap_or_default());
            }
            let violation = report.violation.as_deref().unwrap_or_default();
            panic!("seed {seed}: {violation}\nreplay: LEASEHOLD_SEED={seed} {}", self.replay);
        }
        let never: Vec<_> = self.must_happen.iter().filter(|what| counts.of(what) == 0).collect();
        assert!(never.is_empty(), "a run in which these never happen shows nothing: {never:?}");
    }
}

/// The range of a run: as many seeds as `LEASEHOLD_SEEDS` says, from `LEASEHOLD_FROM` on.
pub fn seeds_or(otherwise: u64) -> Range<u64> {
    let from = number_in("LEASEHOLD_FROM").unwrap_or(0);
    from..from + number_in("LEASEHOLD_SEEDS").unwrap_or(otherwise)
}

/// Runs so many seeds twice.
pub fn the_same_again(seeds: Range<u64>) {
    let hashes = || seeds.clone().map(|seed| on_a_thread(seed, false).hash).collect::<Vec<_>>();
    let (first, second) = (hashes(), hashes());
    assert_eq!(first, second);
    let mut different = first.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), first.len(), "each seed is a run of its own");
}

/// Breaks each of these rules, unless it is out of sight, and sees that it is noticed.
pub fn break_each(rules: impl IntoIterator<Item = Broken>, control: fn(Broken) -> Control) {
    let within = number_in("LEASEHOLD_CONTROL_SEEDS").unwrap_or(WITHIN);
    let mut missed = Vec::new();
    let only = std::env::var("LEASEHOLD_CONTROL").ok();
    let wanted = |broken: &Broken| only.as_ref().is_none_or(|only| *only == format!("{broken:?}"));
    let rules: Vec<_> = rules.into_iter().filter(wanted).collect();
    assert!(!rules.is_empty(), "there is no rule {only:?}");
    for broken in rules {
        match control(broken) {
            Control::Blind(reason) => println!("{broken:?}: out of sight: {reason}"),
            Control::Caught => {
                let (seeds, line) = notice(broken, within);
                println!("{broken:?}: {line}");
                missed.extend(seeds.is_empty().then_some(broken));
            }
        }
    }
    assert!(missed.is_empty(), "not noticed within {within} seeds: {missed:?}");
}

/// Has the workers use each recipe wrongly, and sees that the check which is there for it notices. Some of it is nothing
/// wrong on some stores.
pub fn misuse_each(but: &[Wrong]) {
    let mut missed = Vec::new();
    for (wrong, recipe, says) in Wrong::ALL.into_iter().filter(|(wrong, ..)| !but.contains(wrong)) {
        let plan = move |seed| Plan { wrong: Some(wrong), ..Plan::of(seed).with(Some(recipe)) };
        let found = (0..WITHIN / 10).find_map(|seed| {
            let violation = on_a_thread_of_its_own(move || simulate_plan(plan(seed), false)).violation;
            violation.filter(|what| what.contains(says)).map(|what| (seed, what))
        });
        println!("{wrong:?}: {found:?}");
        missed.extend(found.is_none().then_some(wrong));
    }
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

/// The seeds that notice it, and what is to be said of them.
fn notice(broken: Broken, within: u64) -> (Vec<u64>, String) {
    let _broken = broken.switch_on();
    let (found, _) = search(0..within, number_in("LEASEHOLD_CONTROL_SAMPLE").unwrap_or(SAMPLE));
    let seeds: Vec<u64> = found.iter().map(|report| report.seed).collect();
    let Some(first) = found.first() else { return (seeds, format!("not noticed within {within} seeds")) };
    let mut gaps: Vec<u64> =
        seeds.iter().scan(0, |last, seed| Some(seed + 1 - std::mem::replace(last, seed + 1))).collect();
    gaps.sort_unstable();
    let (median, what) = (gaps[gaps.len() / 2], first.violation.as_deref().unwrap_or_default());
    let rarity = if gaps.len() > 1 { format!("one seed in {median}, ") } else { String::new() };
    (seeds, format!("{rarity}first {}: {what}", first.seed))
}

/// Runs seeds on all cores until `most` of them have violated something. Sorted by seed.
fn search(seeds: Range<u64>, most: u64) -> (Vec<Report>, Counts) {
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
    on_a_thread_of_its_own(move || simulate(seed, verbose))
}

fn on_a_thread_of_its_own(run: impl FnOnce() -> Report + Send + 'static) -> Report {
    std::thread::Builder::new().name(SIMULATING.into()).spawn(run).unwrap().join().unwrap()
}

fn number_in(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number"))
}
