//! The end of a term on the store's clock: how it is computed, and how its answer is checked.
//!
//! I3: it is from the late end of what is known of that clock, and counts only if the answer's own date fits.

use super::broken::Broken;
use super::rules::Rules;
use super::store_time::StoreTime;
use crate::types::{Sample, Stamp};

/// What a claim or renewal with `expires_at` was computed from, to check its answer by.
pub struct Computed<'a> {
    /// The first send of the body.
    pub first_sent: &'a Stamp,
    /// The store's clock as it was known then.
    pub basis: &'a StoreTime,
}

impl Computed<'_> {
    /// Whether the answer's date fits the interval that `expires_at` was computed from: bounds a freeze of all
    /// clocks between the two.
    pub fn agrees_with(&self, sample: Option<Sample>, now: &Stamp, rules: &Rules) -> bool {
        if Broken::NoDateCheck.on() {
            return true;
        }
        let clocks = &rules.clocks;
        let Some(sample) = sample else { return false };
        let late = self.basis.late(now, clocks).unwrap_or(0);
        let early = self.basis.early(self.first_sent, clocks).unwrap_or(u64::MAX);
        // With manual renewal the cap takes the place of the first half.
        let not_later = rules.manual || sample.date.saturating_sub(clocks.kappa) <= late;
        let not_earlier = sample.date.saturating_add(clocks.date_grain).saturating_add(clocks.kappa) >= early;
        not_later && not_earlier
    }
}

/// The end of a term that starts now, on the store's clock; `None` where that is not used or not known.
pub fn expires_at(now: &Stamp, time: &StoreTime, rules: &Rules) -> Option<u64> {
    if !rules.use_store_time {
        return None;
    }
    let (early, late) = time.interval(now, &rules.clocks)?;
    let from = if Broken::ExpiresAtFromEarlyEnd.on() { early } else { late };
    // Rounded up to what the record can say.
    let ms = rules.clocks.millis_up(from.saturating_add(rules.ttl));
    Some(rules.clocks.units(ms))
}
