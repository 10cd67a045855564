//! Readings of the local clocks, and of the store's.

/// One reading of all local clocks, in nanoseconds since each clock's own start.
///
/// The four stop and jump at different moments, and the difference is what tells a frozen process that it was
/// frozen. `real` is the wall clock since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// `CLOCK_BOOTTIME`: goes on while the machine sleeps.
    pub boot: u64,
    /// `CLOCK_MONOTONIC`: slewed by NTP, stops while the machine sleeps.
    pub mono: u64,
    /// `CLOCK_MONOTONIC_RAW`: not slewed.
    pub raw: u64,
    /// `CLOCK_REALTIME`: may jump either way.
    pub real: u64,
}

impl Stamp {
    /// Nanoseconds since `earlier` on the fastest clock that cannot be set: what ends a holder's term.
    pub fn steady_since(&self, earlier: &Stamp) -> u64 {
        let boot = self.boot.saturating_sub(earlier.boot);
        let mono = self.mono.saturating_sub(earlier.mono);
        let raw = self.raw.saturating_sub(earlier.raw);
        boot.max(mono).max(raw)
    }

    /// Nanoseconds since `earlier` on the wall clock, 0 after a step backward.
    pub fn wall_since(&self, earlier: &Stamp) -> u64 {
        self.real.saturating_sub(earlier.real)
    }

    /// Nanoseconds since `earlier` on the fastest clock of all, the wall clock included.
    pub fn longest_since(&self, earlier: &Stamp) -> u64 {
        self.steady_since(earlier).max(self.wall_since(earlier))
    }

    /// Nanoseconds since `earlier` on the slower of boot and raw: what a rival has certainly waited.
    pub fn shortest_since(&self, earlier: &Stamp) -> u64 {
        let boot = self.boot.saturating_sub(earlier.boot);
        let raw = self.raw.saturating_sub(earlier.raw);
        boot.min(raw)
    }
}

/// One reading of the store's clock: the `Date` of an answer, and when its request left and it came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// The store's time in nanoseconds since 1970, truncated to its resolution.
    pub date: u64,
    /// Before the first byte of the request was sent.
    pub sent: Stamp,
    /// After the answer was received.
    pub received: Stamp,
}
