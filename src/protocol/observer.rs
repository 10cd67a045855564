//! When a rival's write may be taken for dead.

use super::broken::Broken;
use super::rules::Clocks;
use super::store_time::StoreTime;
use crate::types::{Expect, Record, Stamp, Standing, Version, View};

/// Watches the record of one name for one contender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observer {
    seen: Option<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    version: Version,
    /// The receipt of the first answer that showed this write.
    since: Stamp,
    /// How long it must have been watched; `None`: watching never opens it.
    watch: Option<u64>,
    /// After this moment of the store's clock it is over.
    until: Option<u64>,
}

/// What a contender may do about a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Claim with this expectation.
    Claimable(Expect),
    /// Not yet.
    NotYet(Progress),
    /// Never: it must not be touched.
    Unreadable,
}

/// How far the watching has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// For how long the same write has been seen.
    pub seen_for: u64,
    /// How long it must be seen, if watching can open it at all.
    pub of: Option<u64>,
}

impl Progress {
    /// What is left to watch.
    pub fn left(&self) -> Option<u64> {
        self.of.map(|of| of.saturating_sub(self.seen_for))
    }
}

impl Observer {
    /// Takes in what an answer showed that was received at `now`, and judges it.
    ///
    /// `store_time` is given where `expires_at` is believed.
    pub fn judge(&mut self, view: &View, now: &Stamp, store_time: Option<&StoreTime>, clocks: &Clocks) -> Judgement {
        match &view.standing {
            Standing::Unreadable(_) => Judgement::Unreadable,
            Standing::Vacant => {
                self.seen = None;
                Judgement::Claimable(Expect::Vacant)
            }
            Standing::Expired(version) => Judgement::Claimable(Expect::Expired(version.clone())),
            Standing::Held(version) => {
                self.watch(version, view.record.as_ref(), now, clocks);
                self.opened(now, store_time, clocks)
            }
        }
    }

    /// How far the watching has come.
    pub fn progress(&self, now: &Stamp) -> Progress {
        self.seen.as_ref().map_or_else(Progress::default, |seen| Progress {
            seen_for: now.shortest_since(&seen.since),
            of: seen.watch,
        })
    }

    fn watch(&mut self, version: &Version, record: Option<&Record>, now: &Stamp, clocks: &Clocks) {
        if self.seen.as_ref().is_some_and(|seen| same_write(&seen.version, version)) {
            return;
        }
        let since = match &self.seen {
            Some(seen) if Broken::CountNotRestarted.on() => seen.since,
            _ => *now,
        };
        let (watch, until_ms) = record.map_or((None, None), end_of);
        self.seen = Some(Seen {
            version: version.clone(),
            since,
            watch: watch.map(|ms| clocks.watch(ms)),
            until: until_ms.map(|ms| clocks.units(ms)),
        });
    }

    fn opened(&self, now: &Stamp, store_time: Option<&StoreTime>, clocks: &Clocks) -> Judgement {
        let Some(seen) = &self.seen else { return Judgement::NotYet(Progress::default()) };
        let early = u64::from(Broken::TakerOneTickEarly.on());
        let watched = seen.watch.is_some_and(|watch| now.shortest_since(&seen.since) >= watch.saturating_sub(early));
        let over = match (seen.until, store_time.and_then(|time| time.interval(now, clocks))) {
            (Some(until), Some((early, _))) => early > until,
            _ => false,
        };
        if watched || over {
            Judgement::Claimable(Expect::Expired(seen.version.clone()))
        } else {
            Judgement::NotYet(self.progress(now))
        }
    }
}

/// How long a held or closed record must be watched in milliseconds, and when the store's clock ends it.
fn end_of(record: &Record) -> (Option<u64>, Option<u64>) {
    match (record.grant, record.closed) {
        (None, Some(closed)) => (closed.for_ms, closed.until_ms),
        _ => (record.ttl_ms, record.expires_at_ms),
    }
}

fn same_write(a: &Version, b: &Version) -> bool {
    match (a.as_write(), b.as_write()) {
        (Some((_, None, a)), Some((_, None, b))) if Broken::ClosedIdentityWithoutToken.on() => a == b,
        (Some((_, _, a)), Some((_, _, b))) if Broken::TakeoverByCounterOnly.on() => a == b,
        _ => a == b,
    }
}
