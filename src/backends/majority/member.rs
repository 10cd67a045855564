//! One member: the way to it, its clock, and whether it counts.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Team;
use super::error::{Failures, RESERVED, misconfigured};
use super::round::Round;
use crate::protocol::expiry::Computed;
use crate::protocol::majority::roster::{Checked, Fitness, Mark, fitness, pinned};
use crate::protocol::majority::{self, quorum};
use crate::protocol::rules::Rules;
use crate::protocol::store_time::StoreTime;
use crate::store::Store;
use crate::time;
use crate::types::{
    Answer, Applied, Description, ExpiryJudge, Name, Sample, Stamp, StoreError, StoreErrorKind, Version,
};

/// A member that does not count is looked at again after so long.
const AGAIN_NS: u64 = 10_000_000_000;

pub(super) struct Member {
    pub(super) store: Arc<dyn Store>,
    pub(super) about: Description,
    /// Whether moments of its clock are believed.
    trusts_time: bool,
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    time: Mutex<StoreTime>,
    /// When its mark was asked for last, and what it was then.
    checked: Mutex<Option<Checked>>,
}

/// A member's answer, with what its date says.
pub(super) struct Heard<T> {
    pub(super) value: T,
    pub(super) sample: Option<Sample>,
    pub(super) received: Stamp,
}

impl Member {
    pub(super) fn new(store: Arc<dyn Store>, observed_only: bool) -> Self {
        let about = store.describe();
        let trusts_time = about.has_store_time && !observed_only;
        Self { store, about, trusts_time, known: Arc::default() }
    }

    /// The same member over other connections.
    pub(super) fn over(&self, store: Option<Arc<dyn Store>>) -> Self {
        Self {
            store: store.unwrap_or_else(|| Arc::clone(&self.store)),
            about: self.about.clone(),
            trusts_time: self.trusts_time,
            known: Arc::clone(&self.known),
        }
    }

    /// What is known of its clock.
    pub(super) fn time(&self) -> StoreTime {
        *lock(&self.known.time)
    }

    /// The same, where moments of it are believed.
    pub(super) fn trusted_time(&self) -> Option<StoreTime> {
        self.trusts_time.then(|| self.time())
    }

    /// Whether the ends of terms are written there.
    pub(super) fn keeps_ends(&self) -> bool {
        self.trusts_time && self.about.judge == ExpiryJudge::Client
    }

    /// Whether a grant and its record are one write: not where the service keeps the lease itself, in whole seconds.
    pub(super) fn writes_at_once(&self) -> bool {
        self.about.judge == ExpiryJudge::Client || self.about.grain < Duration::from_secs(1)
    }

    fn checked(&self) -> MutexGuard<'_, Option<Checked>> {
        lock(&self.known.checked)
    }
}

impl Team {
    /// One request to one member, bounded; its date is learnt.
    pub(super) async fn ask_member<T>(
        &self,
        member: usize,
        limit: Duration,
        request: impl Future<Output = Answer<T>>,
    ) -> Result<Heard<T>, StoreError> {
        let sent = self.clock.stamp();
        let answer = time::within(&*self.clock, limit, request).await.unwrap_or_else(|| Err(no_answer()));
        let received = self.clock.stamp();
        let date_ms = match &answer {
            Ok(answer) => answer.date_ms,
            Err(error) => error.date_ms,
        };
        let sample = date_ms.map(|ms| Sample { date: self.clocks.units(ms), sent, received });
        if let Some(sample) = sample {
            lock(&self.members[member].known.time).learn(sample, &received, &self.clocks);
        }
        answer.map(|answer| Heard { value: answer.value, sample, received })
    }

    /// A body that carried the end of a term on the member's clock counts only if its answer's date fits what that was
    /// computed from.
    pub(super) fn agrees(
        &self,
        expires_at_ms: Option<u64>,
        sent: Option<&(Stamp, StoreTime)>,
        sample: Option<Sample>,
        received: &Stamp,
        rules: &Rules,
    ) -> bool {
        let agree = |(first_sent, basis): &(Stamp, StoreTime)| {
            Computed { first_sent, basis }.agrees_with(sample, received, rules)
        };
        expires_at_ms.is_none() || sent.is_some_and(agree)
    }

    /// The rules for a lease of this term at a member.
    pub(super) fn member_rules(&self, member: usize, ttl_ms: u64) -> Rules {
        majority::rules(self.clocks, ttl_ms, self.members[member].keeps_ends())
    }

    /// The member's late end now in the records' milliseconds, where moments of its clock are believed.
    pub(super) fn late_ms(&self, member: usize) -> Option<u64> {
        let late = self.members[member].trusted_time()?.interval(&self.clock.stamp(), &self.clocks)?.1;
        Some(self.clocks.millis_up(late))
    }

    /// Whether a member counts: by its mark, read at most `max_age` ago.
    pub(super) async fn is_fit(
        &self,
        member: usize,
        max_age: Option<u64>,
        limit: Duration,
    ) -> Result<Fitness, StoreError> {
        if let Some(fitness) = self.known_fitness(member, max_age) {
            return Ok(fitness);
        }
        let Some(roster) = self.roster() else { return Err(no_roster()) };
        let sent = self.clock.stamp();
        let mark = self.read_mark(member, limit).await?;
        let found = fitness(mark.as_ref(), &roster, member);
        if found != Fitness::Fit {
            let store = self.members[member].about.identity.as_str();
            tracing::warn!(store, outcome = ?found, "a member of the majority does not count");
        }
        *self.members[member].checked() = Some(Checked { since: sent, fitness: found });
        Ok(found)
    }

    fn known_fitness(&self, member: usize, max_age: Option<u64>) -> Option<Fitness> {
        let checked = (*self.members[member].checked())?;
        checked.known(&self.clock.stamp(), max_age, AGAIN_NS)
    }

    /// The same as an error for one that does not count.
    pub(super) async fn ensure_fit(
        &self,
        member: usize,
        max_age: Option<u64>,
        limit: Duration,
    ) -> Result<(), StoreError> {
        match self.is_fit(member, max_age, limit).await? {
            Fitness::Fit => Ok(()),
            Fitness::Unmarked => Err(misconfigured(
                "it has no mark of this majority: it was wiped or rebuilt, or never set up; see MajorityStore::set_up",
            )),
            Fitness::Foreign => Err(misconfigured(
                "it has the mark of another majority, or of another set-up: see MajorityStore::set_up",
            )),
        }
    }

    pub(super) async fn read_mark(&self, member: usize, limit: Duration) -> Result<Option<Mark>, StoreError> {
        let store = &self.members[member].store;
        let name = reserved();
        let heard = self.ask_member(member, limit, store.read(&name)).await?;
        Ok(Mark::of(&heard.value))
    }

    pub(super) fn roster(&self) -> Option<Vec<u128>> {
        lock(&self.known.roster).clone()
    }

    /// The first call finds out what the members' incarnations are, by what a majority of them shows. They are pinned
    /// from then on.
    pub(super) async fn ensure_pinned(self: &Arc<Self>, limit: Duration) -> Result<(), StoreError> {
        if self.roster().is_some() {
            return Ok(());
        }
        let mut marks = vec![None; self.size()];
        let (mut answered, mut failures) = (0, Failures::default());
        let reads = (0..self.size()).map(|member| {
            let team = Arc::clone(self);
            (member, async move { team.read_mark(member, limit).await })
        });
        let mut round = Round::begin(self.goes_on(), reads);
        while let Some((member, mark)) = round.next().await {
            match mark {
                Ok(mark) => (marks[member], answered) = (mark, answered + 1),
                Err(error) => failures.add(member, error),
            }
            if let Some(roster) = pinned(&marks) {
                lock(&self.known.roster).get_or_insert(roster);
                return Ok(());
            }
        }
        if answered < quorum(self.size()) {
            return Err(failures.too_few(self, Applied::No));
        }
        Err(misconfigured(
            "no majority of the members shows that they were set up together: have their administrator call \
             MajorityStore::set_up once, with the same list of members",
        ))
    }

    /// Whether requests may go on in tasks after their call.
    pub(super) fn goes_on(&self) -> bool {
        self.wait_for_all.is_none()
    }
}

/// The name of the mark.
pub(super) fn reserved() -> Name {
    Name::new(RESERVED).expect("a good name")
}

/// By which write a member's record is known, where its clients watch it.
pub(super) fn is_watched(version: &Version) -> bool {
    version.as_write().is_some()
}

fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::TimedOut, Applied::Unknown, "no answer in time")
}

fn no_roster() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Applied::No, "the members' marks are not known yet")
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
