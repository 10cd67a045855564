//! One suite for every store: all that the protocol demands of a [`Store`], by one call.
//!
//! ```
//! use leasehold::MemoryStore;
//! use leasehold::store::conformance::{self, Options};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! conformance::run(MemoryStore::new(), Options::default()).await.assert_passed();
//! # });
//! ```
//!
//! A run works under names that nobody else has, so it can share a store with others. It writes some hundreds of
//! small records (see [`Options::crowd`]) and leaves them there: no verb deletes. It goes by the real clock: do not
//! pause tokio's. What a store is asked follows from its [`Description`](crate::Description); what does not
//! apply to it is reported as such, never as passed.

mod bench;
mod bodies;
mod claims;
mod counter;
mod facts;
mod listing;
mod operators;
mod race;
mod reading;
mod renewals;
mod report;
mod vacating;
mod waiting;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::report::{CaseReport, Report, Verdict};

use self::bench::Bench;
use self::facts::Facts;
use super::Store;
use crate::time::{Clock, SystemClock, within};

/// How the suite is run.
#[derive(Clone, Debug)]
pub struct Options {
    at_once: usize,
    crowd: usize,
    only: Option<String>,
    wait: bool,
    excuses: Vec<(String, String)>,
}

impl Default for Options {
    /// All cases, eight at once besides those that wait, and a crowd of 60.
    fn default() -> Self {
        Self { at_once: 8, crowd: 60, only: None, wait: true, excuses: Vec::new() }
    }
}

impl Options {
    /// How many cases run at the same time, besides those that wait for a term to end. At least 1.
    pub fn at_once(mut self, cases: usize) -> Self {
        self.at_once = cases.max(1);
        self
    }

    /// How many records the case about pages writes. A store that shows as many in one page makes it not
    /// applicable: choose more than one page holds.
    pub fn crowd(mut self, records: usize) -> Self {
        self.crowd = records;
        self
    }

    /// Only the cases whose names contain this text; the rest is reported as left out, so the report has not
    /// passed. For work on one rule.
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only = Some(text.into());
        self
    }

    /// Leaves out the cases that wait for a term to end, so the report has not passed. For a quick look.
    pub fn without_waiting(mut self) -> Self {
        self.wait = false;
        self
    }

    /// Declares that the case of exactly this name does not apply to the store, and why: the report says so. A
    /// name that no case has is reported as a failure.
    pub fn excuse(mut self, case: impl Into<String>, why: impl Into<String>) -> Self {
        self.excuses.push((case.into(), why.into()));
        self
    }

    fn verdict_before(&self, case: &Case) -> Option<Verdict> {
        let name = case.sentence();
        if let Some((_, why)) = self.excuses.iter().find(|(excused, _)| *excused == name) {
            return Some(Verdict::NotApplicable(why.clone()));
        }
        if self.only.as_ref().is_some_and(|text| !name.contains(text.as_str())) {
            return Some(Verdict::LeftOut("by Options::only".into()));
        }
        (case.waits && !self.wait).then(|| Verdict::LeftOut("by Options::without_waiting".into()))
    }
}

/// Runs every case on a store and reports each.
///
/// Fails nothing itself: call [`Report::assert_passed`]. A case that panics or does not end in time is reported
/// as failed.
///
/// # Cancel safety
/// Dropping the future ends the cases. What they have written stays.
pub async fn run(store: impl Store, options: Options) -> Report {
    let store: Arc<dyn Store> = Arc::new(store);
    let space = format!("leasehold-conformance/{:08x}/", SystemClock.random() as u32);
    let about = store.describe();
    let cases = all();
    let mut report = Report::new(format!("{} ({})", about.kind, about.identity), space.clone());
    for (excused, _) in options.excuses.iter().filter(|(excused, _)| !cases.iter().any(|c| c.sentence() == *excused)) {
        report.add(excused.clone(), Verdict::Failed("Options::excuse names a case that does not exist".into()));
    }
    match learn(&store, &space, options.crowd).await {
        Ok(facts) => {
            report.add(FIRST, Verdict::Passed);
            for (case, verdict) in cases.iter().zip(run_all(&cases, &store, &space, &Arc::new(facts), &options).await) {
                report.add(case.sentence(), verdict);
            }
        }
        Err(stop) => {
            report.add(FIRST, stop.into());
            let void = || Verdict::Void("not run: the first claim failed".into());
            cases.iter().for_each(|case| report.add(case.sentence(), void()));
        }
    }
    report
}

const FIRST: &str = "a first claim is granted and a read shows it";

const FIRST_LIMIT: Duration = Duration::from_secs(60);

type Running = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// One case: its function's name is the sentence that it shows.
struct Case {
    name: &'static str,
    waits: bool,
    check: fn(Bench) -> Running,
}

/// What a case found.
type Checked = Result<(), Stop>;

/// Why a case has not passed.
#[derive(Debug)]
enum Stop {
    Failed(String),
    Void(String),
    NotApplicable(String),
}

impl Case {
    fn sentence(&self) -> String {
        self.name.replace('_', " ")
    }
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(why) => Self::Failed(why),
            Stop::Void(why) => Self::Void(why),
            Stop::NotApplicable(why) => Self::NotApplicable(why),
        }
    }
}

macro_rules! cases {
    (waits: $waits:literal, $($name:ident),* $(,)?) => {
        vec![$(Case { name: stringify!($name), waits: $waits, check: |bench| Box::pin($name(bench)) }),*]
    };
}
/// Fails the case unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::store::conformance::Stop::Failed(format!($($why)+)));
        }
    };
}
use {cases, ensure};

fn all() -> Vec<Case> {
    let rooms = [
        claims::cases(),
        renewals::cases(),
        vacating::cases(),
        operators::cases(),
        reading::cases(),
        listing::cases(),
        waiting::cases(),
        race::cases(),
        counter::cases(),
    ];
    rooms.into_iter().flatten().collect()
}

/// In a task of its own, so that a store that panics is reported like any other.
async fn learn(store: &Arc<dyn Store>, space: &str, crowd: usize) -> Result<Facts, Stop> {
    let mut alone = JoinSet::new();
    let (store, space) = (Arc::clone(store), space.to_owned());
    alone.spawn(async move { Facts::learn(&store, &space, crowd).await });
    match within(&SystemClock, FIRST_LIMIT, alone.join_next()).await {
        Some(Some(Ok(learnt))) => learnt,
        Some(Some(Err(error))) => Err(Stop::Failed(format!("it panicked: {error}"))),
        _ => Err(Stop::Failed(format!("it did not end within {FIRST_LIMIT:?}"))),
    }
}

async fn run_all(
    cases: &[Case],
    store: &Arc<dyn Store>,
    space: &str,
    facts: &Arc<Facts>,
    options: &Options,
) -> Vec<Verdict> {
    let permits = Arc::new(Semaphore::new(options.at_once));
    let mut verdicts: Vec<_> = cases.iter().map(|case| options.verdict_before(case)).collect();
    let mut running = JoinSet::new();
    let mut of_task = std::collections::HashMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(index, _)| verdicts[*index].is_none()) {
        let bench = Bench::new(Arc::clone(store), format!("{space}{index:03}/"), Arc::clone(facts));
        // A waiting case hardly loads the store, and must not keep the others from running meanwhile.
        let permits = (!case.waits).then(|| Arc::clone(&permits));
        let task = running.spawn(run_one((case.check)(bench), facts.limit(), permits));
        of_task.insert(task.id(), index);
    }
    while let Some(done) = running.join_next_with_id().await {
        let (id, verdict) = done.unwrap_or_else(|error| (error.id(), Verdict::Failed(format!("it panicked: {error}"))));
        if let Some(index) = of_task.get(&id) {
            verdicts[*index] = Some(verdict);
        }
    }
    verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(|| Verdict::Void("not run".into()))).collect()
}

async fn run_one(check: Running, limit: Duration, permits: Option<Arc<Semaphore>>) -> Verdict {
    let _permit = match &permits {
        Some(permits) => permits.acquire().await.ok(),
        None => None,
    };
    match within(&SystemClock, limit, check).await {
        Some(Ok(())) => Verdict::Passed,
        Some(Err(stop)) => stop.into(),
        None => Verdict::Failed(format!("it did not end within {limit:?}")),
    }
}
