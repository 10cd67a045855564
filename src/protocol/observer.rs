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
    /// Whether somebody held it. The service's own tag does not move when a lease ends, and then a closed record is
    /// one that opens.
    held: bool,
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
        let held = record.is_some_and(|record| record.grant.is_some());
        if self.seen.as_ref().is_some_and(|seen| same_write(&seen.version, version) && seen.held == held) {
            return;
        }
        let since = match &self.seen {
            Some(seen) if Broken::CountNotRestarted.on() => seen.since,
            _ => *now,
        };
        let (watch, until_ms) = match record {
            // Nor does it move when the holder renews, so watching a holder by it tells nothing.
            Some(_) if held && version.as_tag().is_some() => (None, None),
            record => record.map_or((None, None), end_of),
        };
        self.seen = Some(Seen {
            version: version.clone(),
            held,
            since,
            watch: watch.map(|ms| clocks.watch(ms)),
            until: until_ms.map(|ms| clocks.units(ms)),
        });
    }

    fn opened(&self, now: &Stamp, store_time: Option<&StoreTime>, clocks: &Clocks) -> Judgement {
        let Some(seen) = &self.seen else { return Judgement::NotYet(Progress::default()) };
        let early = u64::from(Broken::TakerOneTickEarly.on());
        let seen_for = if Broken::TakerTrustsWallClock.on() {
            now.wall_since(&seen.since)
        } else {
            now.shortest_since(&seen.since)
        };
        let watched = seen.watch.is_some_and(|watch| seen_for >= watch.saturating_sub(early));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rules::Ratio;
    use crate::types::{Closed, Grant};

    const CLOCKS: Clocks = Clocks {
        rho: Ratio { num: 1, den: 100 },
        kappa: 10,
        date_grain: 10,
        milli: 1,
        widest: 1000,
        oldest: 1000,
        floor_ms: (0, 0),
    };

    fn at(t: u64) -> Stamp {
        Stamp { boot: t, mono: t, raw: t, real: t }
    }

    fn held(version: u64) -> Record {
        let grant = Some(Grant::from_bits(1));
        Record { token: 7, grant, version: Some(version), ttl_ms: Some(100), ..Record::default() }
    }

    fn judged(observer: &mut Observer, record: &Record, t: u64) -> Option<Expect> {
        match observer.judge(&View::of(record.clone()), &at(t), None, &CLOCKS) {
            Judgement::Claimable(expect) => Some(expect),
            _ => None,
        }
    }

    #[test]
    fn a_write_is_taken_for_dead_after_its_term_on_the_slowest_clock_and_not_before() {
        let (mut observer, record) = (Observer::default(), held(1));
        assert_eq!(judged(&mut observer, &record, 0), None);
        assert_eq!(judged(&mut observer, &record, 100), None);
        assert_eq!(judged(&mut observer, &record, 101), Some(Expect::Expired(Version::of(&record))));
    }

    #[test]
    fn a_new_write_restarts_the_count_and_is_the_one_that_is_claimed() {
        let mut observer = Observer::default();
        assert_eq!(judged(&mut observer, &held(1), 0), None);
        assert_eq!(judged(&mut observer, &held(2), 90), None);
        assert_eq!(judged(&mut observer, &held(2), 190), None);
        assert_eq!(judged(&mut observer, &held(2), 191), Some(Expect::Expired(Version::of(&held(2)))));
    }

    #[test]
    fn a_holder_named_by_a_tag_is_never_taken_for_dead_by_watching_and_a_closed_record_opens() {
        let tagged = |record: Record| View { standing: Standing::Held(Version::of_tag("7")), record: Some(record) };
        let mut observer = Observer::default();
        for t in [0, 101, 5000] {
            let judged = observer.judge(&tagged(held(1)), &at(t), None, &CLOCKS);
            assert!(matches!(judged, Judgement::NotYet(Progress { of: None, .. })), "{judged:?}");
        }
        let closed = Some(Closed { for_ms: Some(100), until_ms: None, by: Some(7) });
        let closed = tagged(Record { grant: None, closed, ..held(1) });
        let mut observer = Observer::default();
        assert!(matches!(observer.judge(&closed, &at(0), None, &CLOCKS), Judgement::NotYet(_)));
        assert!(matches!(observer.judge(&closed, &at(101), None, &CLOCKS), Judgement::Claimable(_)));
    }

    #[test]
    fn a_record_that_was_closed_under_a_lease_opens_after_the_lease_has_ended_although_its_tag_has_not_moved() {
        let closed = Some(Closed { for_ms: Some(100), until_ms: None, by: Some(7) });
        let shown = |grant| {
            let record = Record { grant, closed, ..held(1) };
            View { standing: Standing::Held(Version::of_tag("7")), record: Some(record) }
        };
        let mut observer = Observer::default();
        let mut judged = |grant, t| observer.judge(&shown(grant), &at(t), None, &CLOCKS);
        assert!(matches!(judged(Some(Grant::from_bits(1)), 0), Judgement::NotYet(Progress { of: None, .. })));
        assert!(matches!(judged(None, 50), Judgement::NotYet(Progress { of: Some(101), .. })));
        assert!(matches!(judged(None, 150), Judgement::NotYet(_)), "counted from when nobody held it");
        assert!(matches!(judged(None, 151), Judgement::Claimable(_)));
    }

    #[test]
    fn a_record_closed_by_another_token_is_another_write() {
        let closed = Some(Closed { for_ms: Some(100), until_ms: None, by: Some(7) });
        let first = Record { grant: None, closed, ..held(1) };
        let second = Record { token: 8, ..first.clone() };
        let mut observer = Observer::default();
        assert_eq!(judged(&mut observer, &first, 0), None);
        assert_eq!(judged(&mut observer, &second, 101), None);
        assert_eq!(judged(&mut observer, &second, 202), Some(Expect::Expired(Version::of(&second))));
    }
}
