//! What must never happen, stated without the code under test, and the history that it needs.

use leasehold::Grant;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Harm {
    TokenTwice,
    TokensFall,
    TwoHolders,
    NotCarried,
    WritesAfterwards,
    NotRecorded,
    NoOutcome,
}

impl Harm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TokenTwice => "I1 a token is granted at most once",
            Self::TokensFall => "I2 tokens rise in real time",
            Self::TwoHolders => "I3 at most one valid holder at any instant",
            Self::NotCarried => "I4 while a holder believes, a majority carries its grant",
            Self::WritesAfterwards => "I9, I10 a grant whose end a member has answered writes nothing there afterwards",
            Self::NotRecorded => "a closing is reported only if a majority has recorded it",
            Self::NoOutcome => "an outcome is shown only if a majority has recorded it",
        }
    }

    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ghosts {
    /// Bits of what has happened.
    pub(crate) harm: u8,
    /// Bits of the tokens that were granted.
    tokens: u32,
    /// By grant: bits of the members that have answered its end, and of those that have recorded its closing.
    ended: [u8; 8],
    recorded: [u8; 8],
    /// The token of each grant.
    token_of: [u8; 8],
}

impl Ghosts {
    pub(crate) fn flag(&mut self, harm: Harm, happens: bool) {
        if happens {
            self.harm |= harm.bit();
        }
    }

    /// The highest token granted so far.
    pub(crate) fn highest(&self) -> u64 {
        u64::from(31u32.saturating_sub(self.tokens.leading_zeros()))
    }

    pub(crate) fn granted(&mut self, grant: Grant, token: u64, highest_at_begin: u64) {
        let bit = 1u32 << token;
        self.flag(Harm::TokenTwice, self.tokens & bit != 0);
        self.flag(Harm::TokensFall, token <= highest_at_begin);
        self.tokens |= bit;
        self.token_of[index(grant)] = token as u8;
    }

    /// A member has answered the end of a grant, and its client has heard it.
    pub(crate) fn ended(&mut self, grant: Grant, member: usize) {
        self.ended[index(grant)] |= 1 << member;
    }

    pub(crate) fn recorded(&mut self, grant: Grant, member: usize) {
        self.recorded[index(grant)] |= 1 << member;
    }

    /// A member has accepted a claim of this grant.
    pub(crate) fn claimed(&mut self, grant: Grant, member: usize) {
        self.flag(Harm::WritesAfterwards, self.ended[index(grant)] & 1 << member != 0);
    }

    /// A closing was reported as done.
    pub(crate) fn reported(&mut self, grant: Grant) {
        self.flag(Harm::NotRecorded, self.recorded[index(grant)].count_ones() < 2);
    }

    /// Somebody was shown the outcome of the grant with this token.
    pub(crate) fn shown(&mut self, by: Option<u64>) {
        let of = |grant: &usize| Some(u64::from(self.token_of[*grant])) == by;
        let recorded = (0..8).filter(of).any(|grant| self.recorded[grant].count_ones() >= 2);
        self.flag(Harm::NoOutcome, !recorded);
    }
}

fn index(grant: Grant) -> usize {
    grant.bits() as usize % 8
}
