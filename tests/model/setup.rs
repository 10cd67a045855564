//! A configuration of the model: the constants of the protocol, small, and how much may happen.

use leasehold::protocol::acquire::Goal;
use leasehold::protocol::rules::{Clocks, Ratio, Rules};

use crate::monitor::Invariant;

/// One configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) title: &'static str,
    pub(crate) rules: Rules,
    /// True time ends after so many ticks.
    pub(crate) ticks: u64,
    /// Units of a clock in one tick of true time: the store's, and each client's.
    pub(crate) scale: u64,
    pub(crate) rates: [u64; 2],
    /// The rates that each client's clock may have in a tick, drawn anew in each; empty: always its own of above.
    pub(crate) rates_drawn: [&'static [u64]; 2],
    /// By how many units a server of the store's fleet is off, either way.
    pub(crate) skew: i64,
    /// Acquires and their kind, by client.
    pub(crate) attempts: [u8; 2],
    pub(crate) goals: [Goal; 2],
    /// Whether a call goes on with what earlier calls have watched.
    pub(crate) remembers: bool,
    /// Renewals of one grant.
    pub(crate) renewals: u8,
    /// Whether a decided claim may leave later.
    pub(crate) slow_send: bool,
    /// Whether no time passes while anything is on its way.
    pub(crate) prompt: bool,
    /// The one client to whom that does not apply.
    pub(crate) slow: Option<usize>,
    pub(crate) release: bool,
    /// A release may close the record for so long.
    pub(crate) closing: Option<u64>,
    pub(crate) set_data: bool,
    /// Whether each claim carries a payload that says no to all that look, and all look first.
    pub(crate) looks: bool,
    /// Whether there is a free record to begin with.
    pub(crate) begins_free: bool,
    /// How long a freeze lasts, in ticks.
    pub(crate) freeze: u64,
    /// By how much a wall clock may jump at once, either way.
    pub(crate) jumps: &'static [i64],
    /// Whether no acquire is under way when a record is deleted or restored.
    pub(crate) stops_acquires: bool,
    /// How long nothing is acquired after that.
    pub(crate) quiet: u64,
    /// Whether exclusion is void for a term after that.
    pub(crate) voids_a_term: bool,
    /// What this world does not promise.
    pub(crate) excepted: &'static [Invariant],
    pub(crate) left: Left,
}

/// How much may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// Lost answers, time-outs and definite failures.
    pub(crate) faults: u8,
    /// Copies made by the network.
    pub(crate) copies: u8,
    pub(crate) give_ups: u8,
    pub(crate) crashes: u8,
    pub(crate) hand_overs: u8,
    pub(crate) resumes: u8,
    pub(crate) revokes: u8,
    pub(crate) forces: u8,
    pub(crate) asks: u8,
    pub(crate) deletions: u8,
    pub(crate) backups: u8,
    pub(crate) restores: u8,
    pub(crate) freezes: u8,
    pub(crate) jumps: u8,
    pub(crate) writes: u8,
}

/// True time begins here, so that no date is below zero.
pub(crate) const START: u64 = 20;

impl Setup {
    /// Observation only, nothing but faults, no rates.
    pub(crate) fn observed(title: &'static str) -> Self {
        let clocks = Clocks {
            rho: Ratio { num: 0, den: 1 },
            kappa: 0,
            date_grain: 1,
            milli: 1,
            widest: 100,
            oldest: 100,
            floor_ms: (0, 0),
        };
        let rules = Rules {
            clocks,
            ttl: 2,
            margin: 0,
            attempt: 0,
            renew_every: 0,
            poll: 1,
            use_store_time: false,
            trusts_store_time: false,
            has_store_time: false,
            manual: false,
            native: false,
            data_in_every_renewal: false,
            tries: 3,
        };
        Self {
            title,
            rules,
            ticks: 5,
            scale: 1,
            rates: [1, 1],
            rates_drawn: [&[], &[]],
            skew: 0,
            attempts: [1, 1],
            goals: [Goal::Wait, Goal::Wait],
            remembers: false,
            renewals: 1,
            slow_send: false,
            prompt: false,
            slow: None,
            release: false,
            closing: None,
            set_data: false,
            looks: false,
            begins_free: false,
            freeze: 0,
            jumps: &[-3, 3],
            stops_acquires: true,
            quiet: 0,
            voids_a_term: true,
            excepted: &[],
            left: Left { faults: 1, ..Left::default() },
        }
    }

    /// With `expires_at` and dates that are off by up to kappa.
    pub(crate) fn dated(title: &'static str, kappa: u64) -> Self {
        let mut setup = Self::observed(title);
        setup.rules.use_store_time = true;
        setup.rules.trusts_store_time = true;
        setup.rules.has_store_time = true;
        setup.rules.clocks.kappa = kappa;
        setup.skew = i64::try_from(kappa).unwrap_or(0);
        setup
    }

    /// With changes.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
