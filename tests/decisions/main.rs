//! The decisions of `src/protocol`, one at a time: what each does at its bounds, to the tick.
//!
//! The model walks every order of events within small bounds, and sees what is harmful. What is only worse than it
//! need be (a claim too many, a pause that does not grow, a renewal later than it could be) harms nobody there, and is
//! held here.

mod acquire;
mod ends;
mod hold;
mod majority;
mod moments;
mod record;
mod rules;

use leasehold::protocol::rules::{Clocks, Ratio, Rules};
use leasehold::{Grant, Record, Sample, Stamp};

/// Without store time. One unit is a millisecond.
const RULES: Rules = Rules {
    clocks: Clocks {
        rho: Ratio { num: 1, den: 100 },
        kappa: 10,
        date_grain: 10,
        milli: 1,
        widest: 100,
        oldest: 5000,
        floor_ms: (100, 1_000_000),
    },
    ttl: 1000,
    margin: 90,
    attempt: 160,
    renew_every: 300,
    poll: 100,
    use_store_time: false,
    trusts_store_time: false,
    has_store_time: false,
    manual: false,
    native: false,
    data_in_every_renewal: false,
    tries: 3,
};

/// With store time, which is true time here.
const TIMED: Rules = Rules { use_store_time: true, trusts_store_time: true, has_store_time: true, ..RULES };

/// All clocks show this.
fn at(t: u64) -> Stamp {
    Stamp { boot: t, mono: t, raw: t, real: t }
}

/// The wall clock shows something else.
fn with_wall(t: u64, real: u64) -> Stamp {
    Stamp { real, ..at(t) }
}

/// An answer, at once, of a store whose time is true.
fn sample(t: u64) -> Sample {
    Sample { date: t / 10 * 10, sent: at(t), received: at(t) }
}

fn grant(bits: u128) -> Grant {
    Grant::from_bits(bits)
}

/// A record of this token, held under this grant if there is one, for a term of 1000.
fn record(token: u64, holder: Option<u128>) -> Record {
    let mut record = Record::default();
    record.token = token;
    record.grant = holder.map(grant);
    record.version = holder.map(|_| 1);
    record.ttl_ms = holder.map(|_| 1000);
    record
}
