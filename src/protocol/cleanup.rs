//! What a client owes for a claim that it has given up, and for a grant that it could not use.

use super::rules::Rules;
use crate::types::{Grant, Stamp, Standing, Vacated};

/// A write that is owed. While it is, the name may be locked by nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Debt {
    /// The claim's token.
    pub token: u64,
    /// The claim's grant.
    pub grant: Grant,
    /// When the last copy of the claim or renewal left: a term later nothing is owed any more.
    pub since: Stamp,
    /// A burn, for a claim without an answer; else a release, for a grant that was answered.
    pub burn: bool,
}

/// What becomes of a debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// Nothing is owed any more.
    Settled,
    /// Send the same body again after so long.
    Again(u64),
    /// The term is over before it could be settled; others get in by its end.
    RanOut,
}

/// One debt being settled. Once begun, no answer of its claim may grant any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cleanup {
    /// What is owed.
    pub debt: Debt,
    failures: u8,
}

impl Cleanup {
    /// Begins to settle.
    pub fn new(debt: Debt) -> Self {
        Self { debt, failures: 0 }
    }

    /// The store has answered.
    pub fn answered(&mut self, answer: &Vacated, now: &Stamp, rules: &Rules, jitter: u16) -> Settlement {
        match answer {
            Vacated::Vacated => Settlement::Settled,
            // A release that is told "not mine" has nothing left to do.
            Vacated::Refused(_) if !self.debt.burn => Settlement::Settled,
            Vacated::Refused(view) if matches!(view.standing, Standing::Unreadable(_)) => Settlement::Settled,
            // I5 keeps a late copy of the claim out from here on.
            Vacated::Refused(view) if view.token() >= self.debt.token => Settlement::Settled,
            Vacated::Refused(_) => self.again(now, rules, jitter),
        }
    }

    /// The store has not.
    pub fn failed(&mut self, now: &Stamp, rules: &Rules, jitter: u16) -> Settlement {
        self.again(now, rules, jitter)
    }

    fn again(&mut self, now: &Stamp, rules: &Rules, jitter: u16) -> Settlement {
        if now.steady_since(&self.debt.since) >= rules.ttl {
            return Settlement::RanOut;
        }
        self.failures = self.failures.saturating_add(1);
        Settlement::Again(rules.pause(self.failures, jitter))
    }
}
