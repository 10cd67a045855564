//! Leases in this process's memory: for tests, examples and single processes.

mod faults;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use self::faults::Faults;
use crate::protocol::record::{self, Outcome, Stored};
use crate::store::Store;
use crate::time::{Clock, SystemClock};
use crate::types::{
    Answer, Ask, Asked, Claim, Claimed, Description, ExpiryJudge, ListPage, Listed, Name, Page, Record, Renew, Renewed,
    Revoke, Revoked, Stamp, Standing, Timed, Vacate, Vacated, Version, View,
};

const PAGE: usize = 1000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Leases in this process's memory. Clones share the same records.
///
/// It judges expiry itself, by its own clock, and gives no store time: tokens count up from 1. All is gone when
/// the last clone is dropped, so it coordinates nothing beyond one process.
///
/// With the feature `testing` it can be made to fail, to lose answers and to be taken over by a rival.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    records: Mutex<BTreeMap<Name, Entry>>,
    clock: Arc<dyn Clock>,
    judge: ExpiryJudge,
    has_store_time: bool,
    identity: String,
    faults: Faults,
}

struct Entry {
    stored: Stored,
    written: Stamp,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::build(Arc::new(SystemClock), ExpiryJudge::Store, false)
    }

    /// An empty store on a clock of the caller's.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_clock(clock: impl Clock) -> Self {
        Self::build(Arc::new(clock), ExpiryJudge::Store, false)
    }

    /// An empty store that behaves like a cloud table: its clients judge expiry, and its answers carry the time of
    /// `clock` in whole seconds.
    #[cfg(any(test, feature = "testing", feature = "conformance"))]
    pub fn like_a_table(clock: impl Clock) -> Self {
        Self::build(Arc::new(clock), ExpiryJudge::Client, true)
    }

    /// An empty store whose clients judge expiry and have no store time.
    #[cfg(any(test, feature = "testing", feature = "conformance"))]
    pub fn judged_by_clients(clock: impl Clock) -> Self {
        Self::build(Arc::new(clock), ExpiryJudge::Client, false)
    }

    fn build(clock: Arc<dyn Clock>, judge: ExpiryJudge, has_store_time: bool) -> Self {
        let identity = format!("memory:{:032x}", clock.random());
        let (records, faults) = (Mutex::default(), Faults::default());
        Self { shared: Arc::new(Shared { records, clock, judge, has_store_time, identity, faults }) }
    }

    /// Runs one verb on one record, writes what it leaves, and lets `answer` look at what was there.
    fn apply<T>(
        &self,
        name: &Name,
        verb: impl FnOnce(&Stored) -> Outcome,
        answer: impl FnOnce(&Outcome, &Stored, &dyn Fn() -> View) -> T,
    ) -> Timed<T> {
        let now = self.shared.clock.stamp();
        let mut records = self.shared.lock();
        let absent = Entry { stored: Stored::Absent, written: now };
        let entry = records.get(name).unwrap_or(&absent);
        let outcome = verb(&entry.stored);
        let answer = answer(&outcome, &entry.stored, &|| self.shared.view(entry, &now));
        if let Outcome::Write(record) = outcome {
            let written = if same_term(&entry.stored, &record) { entry.written } else { now };
            records.insert(name.clone(), Entry { stored: Stored::Record(record), written });
        }
        Timed::dated(answer, self.shared.date(&now))
    }

    fn view(&self, name: &Name) -> View {
        let now = self.shared.clock.stamp();
        self.shared.lock().get(name).map_or_else(View::absent, |entry| self.shared.view(entry, &now))
    }

    fn renew_one(&self, renew: &Renew) -> Timed<Renewed> {
        self.apply(
            &renew.name,
            |stored| record::renew(stored, renew),
            |outcome, _, view| match outcome {
                Outcome::Refuse => Renewed::Refused(view()),
                Outcome::Write(record) => Renewed::Renewed(record.asked.clone()),
                Outcome::Already => Renewed::Renewed(None),
            },
        )
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn describe(&self) -> Description {
        Description {
            judge: self.shared.judge,
            has_store_time: self.shared.has_store_time,
            renew_batch: 100,
            ..Description::new("memory", self.shared.identity.clone())
        }
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        let lost = self.shared.faults.before().await?;
        lost.after(self.apply(
            &claim.name,
            |stored| record::claim(stored, claim),
            |outcome, _, view| match outcome {
                Outcome::Refuse => Claimed::Refused(view()),
                _ => Claimed::Granted,
            },
        ))
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let mut answers = Vec::with_capacity(renewals.len());
        for renew in renewals {
            answers.push(match self.shared.faults.before().await {
                Ok(lost) => lost.after(self.renew_one(renew)),
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        let lost = self.shared.faults.before().await?;
        lost.after(self.apply(
            &vacate.name,
            |stored| record::vacate(stored, vacate),
            |outcome, _, view| match outcome {
                Outcome::Refuse => Vacated::Refused(view()),
                _ => Vacated::Vacated,
            },
        ))
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        let lost = self.shared.faults.before().await?;
        lost.after(self.apply(
            &revoke.name,
            |stored| record::revoke(stored, revoke),
            |outcome, stored, _| match outcome {
                Outcome::Refuse => record::revoke_refused(stored, revoke),
                _ => Revoked::Revoked,
            },
        ))
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let lost = self.shared.faults.before().await?;
        lost.after(self.apply(
            &ask.name,
            |stored| record::ask(stored, ask),
            |outcome, _, view| match outcome {
                Outcome::Refuse => Asked::Refused(view()),
                _ => Asked::Asked,
            },
        ))
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let lost = self.shared.faults.before().await?;
        lost.after(Timed::dated(self.view(name), self.shared.date(&self.shared.clock.stamp())))
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        let lost = self.shared.faults.before().await?;
        let now = self.shared.clock.stamp();
        lost.after(Timed::dated(self.shared.page(prefix, page.as_ref(), &now), self.shared.date(&now)))
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.shared.lock().len()).finish()
    }
}

/// Whether a write leaves the term running, as an ask and a revocation do: they change neither token nor version.
fn same_term(before: &Stored, after: &Record) -> bool {
    matches!(before, Stored::Record(before) if before.grant.is_some()
        && after.grant.is_some()
        && (before.token, before.version) == (after.token, after.version))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Entry>> {
        // A panic between two statements leaves the map whole.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn date(&self, now: &Stamp) -> Option<u64> {
        // As an HTTP Date: whole seconds.
        self.has_store_time.then(|| now.real / (1000 * NANOS_PER_MILLI) * 1000)
    }

    fn view(&self, entry: &Entry, now: &Stamp) -> View {
        let view = entry.stored.view();
        match (self.judge, view.standing, view.record) {
            (ExpiryJudge::Store, Standing::Held(version), Some(record)) => {
                let standing = Self::judged(version, &record, now.shortest_since(&entry.written));
                View { standing, record: Some(record) }
            }
            (_, standing, record) => View { standing, record },
        }
    }

    fn judged(version: Version, record: &Record, age: u64) -> Standing {
        let term = match record.grant {
            Some(_) => record.ttl_ms,
            None => record.closed.and_then(|closed| closed.for_ms),
        };
        match term {
            Some(ms) if age >= ms.saturating_mul(NANOS_PER_MILLI) => Standing::Expired(version),
            _ => Standing::Held(version),
        }
    }

    fn page(&self, prefix: &str, page: Option<&Page>, now: &Stamp) -> ListPage {
        let records = self.lock();
        let after = page.map_or("", |page| page.0.as_str());
        let mut found = records.iter().filter(|(name, _)| name.as_str().starts_with(prefix) && name.as_str() > after);
        let (mut leases, mut skipped, mut last) = (Vec::new(), 0, None);
        for (name, entry) in found.by_ref().take(PAGE) {
            last = Some(name);
            match &entry.stored {
                Stored::Unreadable(_) => skipped += 1,
                _ => leases.push(Listed { name: name.clone(), view: self.view(entry, now) }),
            }
        }
        let more = found.next().is_some();
        let next = last.filter(|_| more).map(|last| Page(last.as_str().to_owned()));
        ListPage { leases, skipped, next }
    }
}
