//! Every constant of the protocol, in one unit of local time (nanoseconds; ticks in the model).

use super::broken::Broken;

/// 2025-01-01 and 2100-01-01 in milliseconds: a store's time outside is no floor for tokens.
const FLOOR_MS: (u64, u64) = (1_735_689_600_000, 4_102_444_800_000);

/// The constants of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// What is assumed of clocks.
    pub clocks: Clocks,
    /// The term.
    pub ttl: u64,
    /// From the stop signal to the first moment that a rival may hold.
    pub margin: u64,
    /// The time-out of one request.
    pub attempt: u64,
    /// From the send of one renewal to that of the next.
    pub renew_every: u64,
    /// Between two reads of a waiter.
    pub poll: u64,
    /// Whether `expires_at` is written.
    pub use_store_time: bool,
    /// Whether moments of the store's clock in a record are believed: the end of a term, or of a closing.
    pub trusts_store_time: bool,
    /// Whether the answers carry the store's time (then it is the floor of tokens).
    pub has_store_time: bool,
    /// Whether nothing renews in the background, so that a freeze can fall anywhere.
    pub manual: bool,
    /// Whether the service counts the term itself in whole seconds (Azure Blob).
    pub native: bool,
    /// Whether every renewal carries the newest payload.
    pub data_in_every_renewal: bool,
    /// How many requests a single try spends on failures that may pass.
    pub tries: u8,
}

/// What is assumed of clocks, one for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clocks {
    /// How far the rates of two clocks may differ.
    pub rho: Ratio,
    /// By how much two machines of the store's fleet may differ, with rounding.
    pub kappa: u64,
    /// The resolution of the store's time.
    pub date_grain: u64,
    /// How many units one millisecond of a record has.
    pub milli: u64,
    /// An interval of the store's time that is wider than this is not used.
    pub widest: u64,
    /// A sample that is older than this is dropped.
    pub oldest: u64,
    /// The milliseconds between which the store's time may serve as the floor of a token.
    pub floor_ms: (u64, u64),
}

/// A fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    /// Above the line.
    pub num: u64,
    /// Below it.
    pub den: u64,
}

impl Rules {
    /// How long a holder may believe, counted from the first send of the newest body known to be stored.
    pub fn term(&self) -> u64 {
        self.usable().saturating_sub(self.margin)
    }

    /// The term before the margin is taken off.
    pub fn usable(&self) -> u64 {
        let rho = self.clocks.rho;
        if Broken::TermWithoutRho.on() {
            self.ttl
        } else if self.native {
            // The service counts whole seconds, on a clock that may be fast by rho as ours may be slow.
            let twice = Ratio { num: rho.num * 2, den: rho.den };
            twice.slower(self.ttl).saturating_sub(self.clocks.date_grain)
        } else {
            rho.slower(self.ttl)
        }
    }

    /// The term in the record's milliseconds.
    pub fn ttl_ms(&self) -> u64 {
        self.ttl / self.clocks.milli
    }

    /// The least that must be left of a term when it is handed to the caller.
    pub fn least_left(&self) -> u64 {
        self.attempt.saturating_mul(2).saturating_add(self.margin)
    }
}

impl Rules {
    /// How long to wait after so many failures in a row: doubling from a sixteenth of an attempt up to one
    /// attempt, spread over the upper half by `jitter` (0 to 1000) so that clients do not come back together.
    pub fn pause(&self, failures: u8, jitter: u16) -> u64 {
        spread(self.doubled(failures), jitter)
    }

    /// How long a holder waits after so many failed renewals in a row, with so much left: at most a quarter of it.
    ///
    /// So a lease in danger, and only that one, tries more and more often: where half of all requests are
    /// throttled, one of many leases meets with any small number of failures in a row.
    pub fn renewal_pause(&self, failures: u8, left: u64, jitter: u16) -> u64 {
        spread(self.doubled(failures).min((left / 4).max(self.shortest_pause())), jitter)
    }

    fn doubled(&self, failures: u8) -> u64 {
        let doubled = self.shortest_pause().saturating_mul(1 << failures.saturating_sub(1).min(6));
        doubled.min(self.attempt.max(1))
    }

    /// The first pause after a failure.
    pub fn shortest_pause(&self) -> u64 {
        (self.attempt / 16).max(1)
    }

    /// When the first renewal is due, spread over the upper half, so that leases taken together part.
    pub fn first_renewal(&self, jitter: u16) -> u64 {
        spread(self.renew_every, jitter)
    }

    /// A waiter's pause between two reads, spread over the upper half.
    pub fn poll_pause(&self, jitter: u16) -> u64 {
        spread(self.poll, jitter)
    }
}

impl Clocks {
    /// What is assumed of machines, in nanoseconds: rates within so many per cent.
    pub fn of_machines(rho_percent: u64) -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            rho: Ratio { num: rho_percent, den: 100 },
            kappa: SECOND,
            date_grain: SECOND,
            milli: SECOND / 1000,
            widest: if rho_percent > 1 { 180 * SECOND } else { 30 * SECOND },
            oldest: 600 * SECOND,
            floor_ms: FLOOR_MS,
        }
    }

    /// How long a taker must have watched one write of this term.
    pub fn watch(&self, ttl_ms: u64) -> u64 {
        let ttl = ttl_ms.saturating_mul(self.milli);
        ttl.saturating_add(if Broken::WatchWithoutRho.on() { 0 } else { self.rho.part_up(ttl) })
    }

    /// Milliseconds of a record, as units.
    pub fn units(&self, ms: u64) -> u64 {
        ms.saturating_mul(self.milli)
    }

    /// Units as milliseconds of a record, rounded up.
    pub fn millis_up(&self, units: u64) -> u64 {
        units.div_ceil(self.milli)
    }
}

impl Ratio {
    /// `x (1 - ratio)`, rounded down.
    pub fn slower(self, x: u64) -> u64 {
        x - self.part_up(x).min(x)
    }

    /// `x / (1 - ratio)`, rounded up.
    pub fn stretched(self, x: u64) -> u64 {
        narrow((u128::from(x) * u128::from(self.den)).div_ceil(u128::from(self.den - self.num)))
    }

    /// `x ratio`, rounded up.
    pub fn part_up(self, x: u64) -> u64 {
        narrow((u128::from(x) * u128::from(self.num)).div_ceil(u128::from(self.den)))
    }
}

fn spread(whole: u64, jitter: u16) -> u64 {
    let half = whole / 2;
    let part = u128::from(half) * u128::from(jitter.min(1000)) / 1000;
    (whole - half + narrow(part)).max(1)
}

fn narrow(x: u128) -> u64 {
    u64::try_from(x).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENT: Ratio = Ratio { num: 1, den: 100 };

    #[test]
    fn a_holders_term_is_rounded_down_and_a_takers_up() {
        assert_eq!(PERCENT.slower(100), 99);
        assert_eq!(PERCENT.slower(101), 99);
        assert_eq!(PERCENT.part_up(101), 2);
        assert_eq!(PERCENT.stretched(99), 100);
        assert_eq!(PERCENT.stretched(100), 102);
        assert_eq!(PERCENT.slower(u64::MAX), u64::MAX - u64::MAX.div_ceil(100));
    }
}
