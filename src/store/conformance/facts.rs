//! What the suite has to know of a store before it can ask the right questions.

use std::sync::Arc;
use std::time::Duration;

use super::Stop;
use super::bench::{Bench, record_of};
use crate::store::Store;
use crate::time::{Clock, SystemClock};
use crate::types::{Description, ExpiryJudge, Standing};

/// Short enough to wait for, long enough for a slow machine to answer within.
const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(600);
/// How many answers must fit into a short term.
const ANSWERS_IN_A_TERM: u32 = 25;

#[derive(Clone)]
pub(super) struct Facts {
    pub(super) about: Description,
    /// A term that does not end while a case runs.
    pub(super) long_ms: u64,
    /// A term that a case can wait for.
    pub(super) short_ms: u64,
    /// Whether it keeps moments of its clock. A store without one is never sent any.
    pub(super) keeps_moments: bool,
    /// Whether it keeps the end of a term on its clock. A service that counts the term itself has no use for it.
    pub(super) keeps_ends: bool,
    /// Whether it names a write by token, grant and version; else by a tag, and then it may keep no version.
    pub(super) names_writes: bool,
    /// Whether it keeps the member list that it is given. A majority keeps its own.
    pub(super) keeps_sets: bool,
    /// How many records the listing writes.
    pub(super) crowd: usize,
}

impl Facts {
    /// Makes a first claim and looks at it.
    pub(super) async fn learn(store: &Arc<dyn Store>, space: &str, crowd: usize) -> Result<Self, Stop> {
        let about = store.describe();
        let mut facts = Self::assumed(about, crowd);
        let bench = Bench::new(Arc::clone(store), format!("{space}first/"), Arc::new(facts.clone()));
        let mut claim = bench.claim("a", 7);
        claim.expires_at_ms = Some(1_900_000_000_123);
        let sent = SystemClock.stamp();
        bench.granted(&claim).await?;
        let view = bench.read(&claim.name).await?;
        let round_trip = Duration::from_nanos(SystemClock.stamp().steady_since(&sent) / 2);
        let version = match (&view.record, view.standing) {
            (Some(_), Standing::Held(version) | Standing::Expired(version)) => version,
            (record, standing) => {
                return Err(Stop::Failed(format!("claimed, then read as {standing:?} with {record:?}")));
            }
        };
        facts.names_writes = version.as_write().is_some();
        facts.keeps_sets = version.as_members().is_none();
        let kept = view.record.and_then(|record| record.expires_at_ms).is_some();
        facts.keeps_moments = facts.about.has_store_time || kept;
        facts.keeps_ends = kept || (facts.about.has_store_time && !facts.has_native_leases());
        facts.short_ms = facts.grained(facts.short_ms.max(millis(round_trip * ANSWERS_IN_A_TERM)));
        let bench = Bench::new(Arc::clone(store), format!("{space}first/"), Arc::new(facts.clone()));
        claim.expires_at_ms = claim.expires_at_ms.filter(|_| facts.keeps_ends);
        bench.shows(&claim.name, Some(&record_of(&claim))).await?;
        Ok(facts)
    }

    pub(super) fn judges(&self) -> bool {
        self.about.judge == ExpiryJudge::Store
    }

    /// Whether the service itself keeps the lease, under an id that others cannot change but can only break: an ask
    /// is a revocation there, a revocation leaves the grant's id in place, and a broken lease ends as a free record.
    /// (It names its writes by tags, which a renewal does not move. A majority names them by what its members do.)
    pub(super) fn has_native_leases(&self) -> bool {
        self.judges() && !self.names_writes && self.keeps_sets
    }

    /// How long one case may take.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(180) + 20 * Duration::from_millis(self.short_ms)
    }

    fn assumed(about: Description, crowd: usize) -> Self {
        let (shortest, longest) = (millis(*about.ttl.start()), millis(*about.ttl.end()));
        let mut facts = Self {
            about,
            long_ms: millis(LONG).clamp(shortest, longest),
            short_ms: shortest.max(millis(SHORT)),
            keeps_moments: true,
            keeps_ends: true,
            names_writes: true,
            keeps_sets: true,
            crowd,
        };
        facts.short_ms = facts.grained(facts.short_ms);
        facts
    }

    fn grained(&self, ms: u64) -> u64 {
        let grain = millis(self.about.grain).max(1);
        ms.div_ceil(grain) * grain
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
