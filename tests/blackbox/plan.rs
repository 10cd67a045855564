//! What a seed means: who works how, which faults there are, and when.

use std::time::Duration;

use leasehold::protocol::broken::Broken;
use serde::{Deserialize, Serialize};

use super::assignment::BadHabit;
use super::fake_clock::FakeClock;
use crate::support::faults::{Answer, Fault};

#[path = "../simulation/chance.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod chance;

pub use self::chance::Chance;

/// The two leases of a run.
pub const COUNTER: &str = "counter";
pub const LEADER: &str = "leader";
pub const LEASES: [&str; 2] = [COUNTER, LEADER];

/// The semaphore beside them, and the leases of its permits.
pub const SEMAPHORE: &str = "slots";
pub const PERMITS: [&str; 2] = ["slots/0", "slots/1"];

/// What a service allows.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The terms to choose from, in milliseconds.
    pub ttl_ms: &'static [u64],
    /// How often a waiter asks, in milliseconds.
    pub poll_ms: u64,
    /// In how many windows requests meet faults: eleven kinds take turns.
    pub windows: u64,
    /// Grants that a run needs to count.
    pub least_grants: usize,
}

/// A run, before it begins.
#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    /// What is different about it from what the seed says; part of the names of its files.
    pub kind: String,
    /// The test that runs it.
    pub test: &'static str,
    pub workers: usize,
    pub roles: Vec<Role>,
    pub options: Options,
    /// How long it goes on.
    pub length: Duration,
    /// When the last fault is over.
    pub heal: Duration,
    pub windows: Vec<Window>,
    pub blows: Vec<Blow>,
    /// The clock of each worker; none: the machine's own.
    pub clocks: Vec<FakeClock>,
    /// The rule that the workers break.
    pub broken: Option<String>,
    /// What they do that users must not.
    pub bad_habit: Option<BadHabit>,
}

/// What the workers' clients are built with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    pub ttl_ms: u64,
    pub margin_ms: u64,
    pub poll_ms: u64,
    pub thread: bool,
    pub observed_only: bool,
}

/// What a worker does beside what all do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Role {
    /// It gets the leader's lease by the recipe of an election.
    pub elects: bool,
    /// It competes for the semaphore's permits.
    pub takes_permits: bool,
}

/// A span in which a share of a worker's requests meets a fault.
#[derive(Clone)]
pub struct Window {
    pub worker: usize,
    pub from: Duration,
    pub to: Duration,
    pub share: f64,
    pub fault: Fault,
    /// When what is held goes on.
    pub release: Duration,
}

/// A fault of a process, or of its whole network.
#[derive(Clone)]
pub struct Blow {
    pub at: Duration,
    pub ends: Duration,
    pub at_whom: Target,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// kill -9; another process takes its place at the end.
    Kill,
    /// SIGSTOP, and SIGCONT at the end.
    Freeze,
    /// Its connections are dropped, and new ones refused.
    Partition,
}

impl What {
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "killed",
            Self::Freeze => "frozen",
            Self::Partition => "partitioned",
        }
    }
}

#[derive(Clone, Copy)]
pub enum Target {
    /// Whoever holds this lease then.
    Holder(&'static str),
    Worker(usize),
    /// All: the service is away.
    Everybody,
}

impl Plan {
    pub fn new(seed: u64, limits: &Limits, out_of_order: &Answer) -> Self {
        let chance = Chance::new(seed, 1);
        let ttl_ms = chance.of(limits.ttl_ms);
        let length = Duration::from_secs(60);
        let heal = length - Duration::from_millis(ttl_ms * 3 / 2 + 5000);
        let options = Options {
            ttl_ms,
            margin_ms: ttl_ms / 10,
            poll_ms: limits.poll_ms,
            thread: chance.per_mille(300),
            observed_only: chance.per_mille(300),
        };
        let workers = 4;
        let ttl = Duration::from_millis(ttl_ms);
        Self {
            seed,
            kind: "usual".into(),
            test: "nothing_is_violated_whatever",
            workers,
            roles: roles(&Chance::new(seed, 4), workers),
            options,
            length,
            heal,
            windows: windows(&Chance::new(seed, 2), limits, workers, (heal, ttl), out_of_order),
            blows: blows(&Chance::new(seed, 3), workers, heal, ttl),
            clocks: Vec::new(),
            broken: None,
            bad_habit: None,
        }
    }

    /// As part of another test, and of a kind of its own.
    pub fn of(self, test: &'static str, kind: &str) -> Self {
        Self { test, kind: kind.into(), ..self }
    }

    /// With workers that break this rule: the run is a control.
    pub fn breaking(self, rule: Broken) -> Self {
        Self { broken: Some(format!("{rule:?}")), ..self }
    }

    /// With workers that have this habit: the run is a control.
    pub fn with_habit(self, habit: BadHabit) -> Self {
        Self { bad_habit: Some(habit), ..self }
    }

    /// Whether its workers are meant to be caught.
    pub fn is_control(&self) -> bool {
        self.broken.is_some() || self.bad_habit.is_some()
    }

    /// With takeovers by observation alone, or not.
    pub fn observed_only(mut self, observed_only: bool) -> Self {
        self.options.observed_only = observed_only;
        self
    }

    /// With a clock for each worker.
    pub fn with_clocks(self, clocks: &[FakeClock]) -> Self {
        Self { clocks: clocks.to_vec(), ..self }
    }
}

/// Half of the workers elect, and all but one take permits, of which one more than there are can be wanted at once.
fn roles(chance: &Chance, workers: usize) -> Vec<Role> {
    let (first, idle) =
        (chance.between(0, workers as u64 - 1) as usize, chance.between(0, workers as u64 - 1) as usize);
    let role = |worker| Role { elects: (worker + first) % workers < workers / 2, takes_permits: worker != idle };
    (0..workers).map(role).collect()
}

fn windows(
    chance: &Chance,
    limits: &Limits,
    workers: usize,
    (heal, ttl): (Duration, Duration),
    out_of_order: &Answer,
) -> Vec<Window> {
    let last = heal.as_millis() as u64 - 4000;
    let make = |number: u64| {
        let held = Duration::from_millis(chance.between(200, ttl.as_millis() as u64 * 2));
        let faults = [
            Fault::LoseAnswer,
            Fault::HoldRequestFor(held),
            Fault::Duplicate,
            Fault::LoseRequest,
            Fault::Stall,
            Fault::Truncate,
            Fault::Answer(out_of_order.clone()),
            Fault::AnswerAfterApply(out_of_order.clone()),
            Fault::HoldAnswerFor(held),
            Fault::ResetAndHold,
            Fault::LateDuplicate,
        ];
        let from = Duration::from_millis(chance.between(1500, last));
        let to = from + Duration::from_millis(chance.between(1000, 4000));
        Window {
            worker: chance.between(0, workers as u64 - 1) as usize,
            from,
            to,
            share: chance.between(4, 10) as f64 / 10.0,
            fault: faults[number as usize % faults.len()].clone(),
            release: (to + held).min(heal),
        }
    };
    (0..limits.windows).map(make).collect()
}

/// They may overlap at different workers, because terms can be as long as half of a run.
fn blows(chance: &Chance, workers: usize, heal: Duration, ttl: Duration) -> Vec<Blow> {
    let mut blows = Vec::new();
    let mut at = Duration::from_millis(chance.between(2500, 3500));
    // The first three are of each kind, and longer than a term; the first one hits somebody who holds for long.
    let first = chance.of(&[[What::Kill, What::Freeze, What::Partition], [What::Freeze, What::Partition, What::Kill]]);
    loop {
        let number = blows.len();
        let any = || chance.of(&[What::Kill, What::Freeze, What::Freeze, What::Partition]);
        let what = first.get(number).copied().unwrap_or_else(any);
        let lasts = match what {
            What::Kill => Duration::from_millis(chance.between(100, 2000)),
            _ if number < first.len() => ttl.mul_f64(1.2),
            _ => ttl.mul_f64(chance.between(3, 16) as f64 / 10.0),
        };
        if number >= first.len() && at + lasts > heal {
            return blows;
        }
        let at_whom = match chance.between(0, 9) {
            _ if number == 0 => Target::Holder(LEADER),
            0..=4 => Target::Holder(COUNTER),
            5..=6 => Target::Holder(LEADER),
            7 if what == What::Partition && number >= first.len() => Target::Everybody,
            _ => Target::Worker(chance.between(0, workers as u64 - 1) as usize),
        };
        blows.push(Blow { at, ends: at + lasts, at_whom, what });
        at += lasts.min(Duration::from_secs(4)) + Duration::from_millis(chance.between(500, 2500));
    }
}
