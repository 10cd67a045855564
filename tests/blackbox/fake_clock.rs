//! Clocks of workers that libfaketime changes, and what shows that it did; the harness's own is out of its reach.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use leasehold::{Clock, Stamp, SystemClock};

use super::journal::{Entry, Pen, Said};

/// Where Debian and its children keep it.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// How often a worker tells what its clocks say.
const READS: Duration = Duration::from_millis(250);
/// In the order of [`Said::Clocks`]. The last one is the only one that can be set.
const NAMES: [&str; 4] = ["boot", "mono", "raw", "real"];
const REAL: usize = 3;
/// A clock that is not faked may be slewed by less.
const SLEWED: f64 = 0.001;
/// A wall clock with a rate has gone on from the start of its process to the first reading.
const STARTS_WITHIN_S: f64 = 60.0;

/// How libfaketime changes a process's clocks.
#[derive(Clone, Copy, Debug)]
pub struct FakeClock {
    offset_s: i64,
    rate: f64,
    /// Only the wall clock; else the clocks that cannot be set as well.
    wall_only: bool,
}

impl FakeClock {
    /// All clocks go at this rate.
    pub const fn rate(rate: f64) -> Self {
        Self { offset_s: 0, rate, wall_only: false }
    }

    /// The wall clock is off by so many seconds and goes at this rate.
    pub const fn wall(offset_s: i64, rate: f64) -> Self {
        Self { offset_s, rate, wall_only: true }
    }

    /// What a process needs in its environment.
    ///
    /// # Panics
    /// Where libfaketime is not installed: a run that needs it fails.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let library = PLACES.iter().map(PathBuf::from).find(|place| place.exists());
        let library = library.expect("libfaketime is not installed: apt-get install faketime");
        let spec = format!("{:+} x{:?}", self.offset_s, self.rate);
        let mut variables = vec![("LD_PRELOAD", library.display().to_string()), ("FAKETIME", spec)];
        if self.wall_only {
            variables.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()));
        }
        variables
    }

    fn rate_of(&self, clock: usize) -> f64 {
        if self.wall_only && clock != REAL { 1.0 } else { self.rate }
    }
}

/// Tells what the library's own clock reads, on and on.
pub fn tell(pen: &Pen) {
    loop {
        pen.says("reads", 0);
        let Stamp { boot, mono, raw, real } = SystemClock.stamp();
        pen.says("clocks", format!("{boot} {mono} {raw} {real}"));
        std::thread::sleep(READS);
    }
}

/// What was read between two stamps of the harness.
struct Reading {
    after: f64,
    before: f64,
    clocks: [u64; 4],
}

/// What the clocks of a run have done.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// A line for each worker.
    pub seen: Vec<String>,
    /// Where they are not seen to be as planned.
    pub unproven: Vec<String>,
}

/// Each worker's clocks must be seen to go as planned in one of its processes, and otherwise in none. `epoch` is the
/// harness's wall clock at the time 0 of the entries.
pub fn check(clocks: &[FakeClock], entries: &[Entry], epoch: Duration) -> Clocks {
    let mut result = Clocks::default();
    for (worker, planned) in clocks.iter().enumerate() {
        let lives: Vec<_> = readings(entries, worker).into_values().filter(|life| life.len() > 1).collect();
        let mut seen = Vec::new();
        for (clock, name) in NAMES.iter().enumerate() {
            let rate = planned.rate_of(clock);
            let off = if rate == 1.0 { SLEWED } else { (rate - 1.0).abs() / 2.0 };
            let (low, high) = (rate - off, rate + off);
            let bounds: Vec<_> = lives.iter().map(|life| rate_bounds(life, clock)).collect();
            let narrowest = bounds.iter().min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
            let Some((least, most)) = narrowest else {
                result.unproven.push(format!("the clocks of worker {worker} were not read"));
                break;
            };
            seen.push(format!("{name} x{least:.5}-{most:.5}"));
            let proven = bounds.iter().any(|(least, most)| low <= *least && *most <= high);
            let refuted = bounds.iter().any(|(least, most)| *least > high || *most < low);
            if !proven || refuted {
                let what = format!("its {name} goes at {least:.5} to {most:.5}, not {rate}");
                result.unproven.push(format!("the clocks of worker {worker} are not faked as planned: {what}"));
            }
        }
        let off = |life: &Vec<Reading>| life[0].clocks[REAL] as f64 / 1e9 - (epoch.as_secs_f64() + life[0].before);
        for off in lives.iter().map(off).filter(|off| (off - planned.offset_s as f64).abs() > STARTS_WITHIN_S) {
            let what = format!("its wall clock is off by {off:.0} s, not {}", planned.offset_s);
            result.unproven.push(format!("the clocks of worker {worker} are not faked as planned: {what}"));
        }
        let off = lives.first().map_or("?".into(), |life| format!("{:.0}", off(life)));
        result.seen.push(format!("worker {worker}: {}, at first off by {off} s", seen.join(", ")));
    }
    result
}

/// By the processes in that worker's place.
fn readings(entries: &[Entry], worker: usize) -> BTreeMap<usize, Vec<Reading>> {
    let mut lives: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut after = 0.0;
    for entry in entries.iter().filter(|entry| entry.worker == worker) {
        match &entry.said {
            Said::Reads => after = entry.at.as_secs_f64(),
            Said::Clocks(clocks) => {
                let reading = Reading { after, before: entry.at.as_secs_f64(), clocks: *clocks };
                lives.entry(entry.life).or_default().push(reading);
            }
            _ => {}
        }
    }
    lives
}

/// Between what the rate of a clock must have been: what lies between two readings is between two spans of the harness.
fn rate_bounds(life: &[Reading], clock: usize) -> (f64, f64) {
    let mut bounds = (0.0_f64, f64::INFINITY);
    for (number, then) in life.iter().enumerate() {
        for first in &life[..number] {
            let gone = then.clocks[clock].saturating_sub(first.clocks[clock]) as f64 / 1e9;
            let (longest, shortest) = (then.before - first.after, then.after - first.before);
            bounds.0 = bounds.0.max(gone / longest);
            if shortest > 0.0 {
                bounds.1 = bounds.1.min(gone / shortest);
            }
        }
    }
    bounds
}
