//! Runs holders request by request, in every order or in orders drawn by chance, and judges each run.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::holder::{Holder, Outcome, Told};
use super::object::{Fate, Flaw, Kind, Object};

/// What is run.
pub struct Setup {
    pub flaw: Flaw,
    pub holders: fn() -> Vec<Holder>,
    /// How many requests may meet another fate than an answer.
    pub faults: usize,
    /// Whether that fate is a client that repeats by itself. It does not keep to the contract: what it tells of a
    /// refused write is not to be relied on, and everything else is.
    pub repeats: bool,
}

/// What was found in all runs.
#[derive(Debug)]
pub struct Found {
    pub runs: u64,
    /// The first violation, with its run.
    pub violation: Option<String>,
}

/// Who decides.
trait Choices {
    /// One of so many.
    fn choose(&mut self, of: usize) -> usize;
}

/// Every run there is, as far as the first violation that says this.
pub fn every_order(setup: &Setup, says: &str) -> Found {
    let mut every = Every::default();
    let mut runs = 0;
    loop {
        let violation = run(setup, &mut every).filter(|what| what.contains(says));
        runs += 1;
        if violation.is_some() || !every.next() {
            return Found { runs, violation };
        }
    }
}

/// So many runs, drawn by chance from a fixed seed.
pub fn drawn_orders(setup: &Setup, runs: u64) -> Found {
    let violation = (1..=runs).find_map(|seed| run(setup, &mut Drawn(seed)).map(|what| format!("seed {seed}: {what}")));
    Found { runs, violation }
}

/// The choices of a run, and how many there were at each.
#[derive(Default)]
struct Every {
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices for Every {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, of));
        }
        let (choice, as_before) = self.taken[self.at];
        assert_eq!(as_before, of, "a run with the same choices goes the same way");
        self.at += 1;
        choice
    }
}

impl Every {
    /// The next run: the last choice that has another one is made otherwise.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, of)) = self.taken.pop() {
            if choice + 1 < of {
                self.taken.push((choice + 1, of));
                return true;
            }
        }
        false
    }
}

struct Drawn(u64);

impl Choices for Drawn {
    /// SplitMix64.
    fn choose(&mut self, of: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % of as u64) as usize
    }
}

/// A holder at work, and the request that it waits with.
struct Task {
    name: u64,
    work: Pin<Box<dyn Future<Output = ()>>>,
    waiting: Option<Kind>,
}

impl Task {
    /// One request: a holder's future waits before each.
    fn step(&mut self, object: &Object) {
        let done = self.work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let waiting = object.waiting();
        self.waiting = if done { None } else { waiting };
    }
}

/// What happens in a run. Written out only of those that are shown: there are very many.
#[derive(Debug)]
#[allow(dead_code, reason = "to be read in a message")]
enum Step {
    Request(u64, Kind, Fate),
    /// A late copy.
    Arrives,
}

/// The violation of one run, with what happened in it.
fn run(setup: &Setup, choices: &mut dyn Choices) -> Option<String> {
    let object = Arc::new(Object::with(setup.flaw));
    let told = Told::default();
    let start = |holder: Holder| {
        let (name, told) = (holder.token, Arc::clone(&told));
        let mut task = Task { name, work: Box::pin(holder.work(Arc::clone(&object), told)), waiting: None };
        task.step(&object);
        task
    };
    let mut tasks: Vec<Task> = (setup.holders)().into_iter().map(start).collect();
    let mut faults = setup.faults;
    let mut trace = Vec::new();
    loop {
        tasks.retain(|task| task.waiting.is_some());
        let actors = tasks.len() + object.late();
        if actors == 0 {
            break;
        }
        let actor = choices.choose(actors);
        let Some(task) = tasks.get_mut(actor) else {
            trace.push(Step::Arrives);
            object.land(actor - tasks.len());
            continue;
        };
        let kind = task.waiting.expect("only those that wait are kept");
        let fates = match kind {
            Kind::Read => Fate::OF_READS,
            Kind::Write if setup.repeats => Fate::OF_REPEATED_WRITES,
            Kind::Write => Fate::OF_WRITES,
        };
        let fate = if faults > 0 { fates[choices.choose(fates.len())] } else { Fate::Answered };
        faults -= usize::from(fate != Fate::Answered);
        trace.push(Step::Request(task.name, kind, fate));
        object.admit(fate);
        task.step(&object);
    }
    let told = told.lock().unwrap().clone();
    let what = judge(setup, &object, &told)?;
    let lines: Vec<_> = trace.iter().map(|step| format!("  {step:?}\n")).collect();
    Some(format!("{what}\n{}  told {told:?}", lines.concat()))
}

/// What must be true of every run.
fn judge(setup: &Setup, object: &Object, told: &[(String, Outcome)]) -> Option<String> {
    let log = object.log();
    if let Some(pair) = log.windows(2).find(|pair| pair[0].token > pair[1].token) {
        return Some(format!("I7: token {} was accepted after {}", pair[1].token, pair[0].token));
    }
    let mut stored = BTreeMap::new();
    for write in log.iter().filter(|write| write.before != write.after) {
        let Some(items) = write.after.strip_prefix(&write.before) else {
            return Some(format!("{:?} was written over {:?} unseen", write.after, write.before));
        };
        *stored.entry(items.trim_end_matches(';').to_owned()).or_insert(0) += 1;
    }
    for (item, outcome) in told {
        let times = stored.get(item).copied().unwrap_or(0);
        let true_of = match outcome {
            Outcome::Stored => times == 1,
            Outcome::Not if !setup.repeats => times == 0,
            Outcome::Not | Outcome::Perhaps => times <= 1,
        };
        if !true_of {
            return Some(format!("{item} was told {outcome:?}, and stored {times} times"));
        }
    }
    // Without faults the newest holder gets its way.
    let newest = (setup.holders)().into_iter().max_by_key(|holder| holder.token)?;
    let done = |item: &&str| told.iter().any(|(told, outcome)| told == item && *outcome == Outcome::Stored);
    let alone = (setup.holders)().iter().filter(|holder| holder.token == newest.token).count() == 1;
    if setup.faults == 0 && alone && !newest.items.iter().all(done) {
        return Some(format!("the newest holder could not write: {told:?}"));
    }
    None
}

/// For single cases: drives one future on an object whose requests are all answered.
pub fn now<T>(object: &Object, work: impl Future<Output = T>) -> T {
    now_with(object, &mut [Fate::Answered].into_iter().cycle(), work).expect("there is always a next fate")
}

/// The same, with the fates of its requests in their order. `None`: it was dropped at the request that has none.
pub fn now_with<T>(object: &Object, fates: &mut dyn Iterator<Item = Fate>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(done);
        }
        object.waiting();
        object.admit(fates.next()?);
    }
}
