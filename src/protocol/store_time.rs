//! What a client knows of the store's clock: an interval, from the `Date` of its own requests' answers.

use super::broken::Broken;
use super::rules::Clocks;
use crate::types::{Sample, Stamp};

/// The samples that still say something: the newest, and those that give the lowest late and highest early end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StoreTime {
    newest: Option<Sample>,
    latest_early: Option<Sample>,
    earliest_late: Option<Sample>,
}

impl StoreTime {
    /// Takes in one more answer.
    pub fn learn(&mut self, sample: Sample, now: &Stamp, clocks: &Clocks) {
        let candidates = [self.latest_early, self.earliest_late, Some(sample)];
        let fresh = candidates.into_iter().flatten().filter(|s| now.steady_since(&s.received) <= clocks.oldest);
        let by_early = fresh.clone().max_by_key(|s| early_end(s, now, clocks));
        let by_late = fresh.min_by_key(|s| late_end(s, now, clocks));
        *self = Self { newest: Some(sample), latest_early: by_early, earliest_late: by_late };
        // A clock of ours, or of the store's, has jumped: what came before says nothing any more.
        if self.early(now, clocks) > self.late(now, clocks) {
            *self = Self { newest: Some(sample), latest_early: Some(sample), earliest_late: Some(sample) };
        }
    }

    /// The store's clock says no more than this now.
    pub fn late(&self, now: &Stamp, clocks: &Clocks) -> Option<u64> {
        self.samples(now, clocks).map(|s| late_end(&s, now, clocks)).min()
    }

    /// The store's clock says no less than this now.
    pub fn early(&self, now: &Stamp, clocks: &Clocks) -> Option<u64> {
        self.samples(now, clocks).map(|s| early_end(&s, now, clocks)).max()
    }

    /// Both ends, if there is a sample and they are near enough to each other to be of use.
    pub fn interval(&self, now: &Stamp, clocks: &Clocks) -> Option<(u64, u64)> {
        let (early, late) = (self.early(now, clocks)?, self.late(now, clocks)?);
        (early <= late && late - early <= clocks.widest).then_some((early, late))
    }

    fn samples(&self, now: &Stamp, clocks: &Clocks) -> impl Iterator<Item = Sample> {
        let (now, oldest) = (*now, clocks.oldest);
        [self.newest, self.latest_early, self.earliest_late]
            .into_iter()
            .flatten()
            .filter(move |s| now.steady_since(&s.received) <= oldest)
    }
}

/// The latest that the store's clock can say now, by one sample.
pub fn late_end(sample: &Sample, now: &Stamp, clocks: &Clocks) -> u64 {
    let kappa = if Broken::KappaZero.on() { 0 } else { clocks.kappa };
    let elapsed = now.longest_since(&sample.sent);
    let stretched =
        if Broken::LateEndTooEarly.on() { clocks.rho.slower(elapsed) } else { clocks.rho.stretched(elapsed) };
    sample.date.saturating_add(clocks.date_grain).saturating_add(kappa).saturating_add(stretched)
}

/// The earliest that the store's clock can say now, by one sample.
pub fn early_end(sample: &Sample, now: &Stamp, clocks: &Clocks) -> u64 {
    let kappa = if Broken::KappaZero.on() { 0 } else { clocks.kappa };
    let elapsed = clocks.rho.slower(now.shortest_since(&sample.received));
    sample.date.saturating_sub(kappa).saturating_add(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rules::Ratio;

    const S: u64 = 1_000;
    const CLOCKS: Clocks = Clocks {
        rho: Ratio { num: 1, den: 100 },
        kappa: S,
        date_grain: S,
        milli: 1,
        widest: 30 * S,
        oldest: 600 * S,
        floor_ms: (0, u64::MAX),
    };

    fn at(t: u64) -> Stamp {
        Stamp { boot: t, mono: t, raw: t, real: t }
    }

    fn sample(date: u64, sent: u64, received: u64) -> Sample {
        Sample { date, sent: at(sent), received: at(received) }
    }

    #[test]
    fn the_interval_holds_the_resolution_the_fleets_skew_and_the_round_trip() {
        let mut time = StoreTime::default();
        time.learn(sample(50 * S, 0, 100), &at(100), &CLOCKS);
        assert_eq!(time.early(&at(100), &CLOCKS), Some(49 * S));
        assert_eq!(time.late(&at(100), &CLOCKS), Some(52 * S + 102));
    }

    #[test]
    fn the_best_ends_of_all_samples_count() {
        let mut time = StoreTime::default();
        time.learn(sample(50 * S, 0, 0), &at(0), &CLOCKS);
        time.learn(sample(50 * S, 900, 900), &at(900), &CLOCKS);
        // The first says: early 49,891. The second says: late 52,000.
        assert_eq!(time.early(&at(900), &CLOCKS), Some(49 * S + 891));
        assert_eq!(time.late(&at(900), &CLOCKS), Some(52 * S));
    }

    #[test]
    fn after_a_freeze_of_all_clocks_only_the_newest_sample_counts() {
        let mut time = StoreTime::default();
        time.learn(sample(50 * S, 0, 0), &at(0), &CLOCKS);
        time.learn(sample(90 * S, 10, 10), &at(10), &CLOCKS);
        assert_eq!(time.early(&at(10), &CLOCKS), Some(89 * S));
        assert_eq!(time.late(&at(10), &CLOCKS), Some(92 * S));
    }

    #[test]
    fn old_samples_are_dropped_and_wide_intervals_not_used() {
        let mut time = StoreTime::default();
        time.learn(sample(50 * S, 0, 0), &at(0), &CLOCKS);
        assert!(time.interval(&at(599 * S), &CLOCKS).is_some());
        assert_eq!(time.interval(&at(601 * S), &CLOCKS), None);
        let mut wide = StoreTime::default();
        wide.learn(sample(50 * S, 0, 40 * S), &at(40 * S), &CLOCKS);
        assert_eq!(wide.interval(&at(40 * S), &CLOCKS), None);
    }
}
