//! What must never happen, stated without the code under test, and the history that it needs.

use leasehold::Grant;
use leasehold::protocol::majority::moving::Brought;
use stateright::Property;

use crate::Model;
use crate::world::{Shown, World};

macro_rules! harms {
    ($($harm:ident: $name:literal,)*) => {
        /// What must never happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Harm {
            $($harm,)*
        }

        impl Harm {
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$harm => $name,)*
                }
            }

            /// Each of them, as a property of the model: none can be forgotten.
            pub(crate) fn properties() -> Vec<Property<Model>> {
                vec![$(Property::always($name, |_, world: &World| {
                    world.ghosts.harm & Self::$harm.bit() == 0
                })),*]
            }
        }
    };
}

harms! {
    TokenTwice: "I1 a token is granted at most once",
    TokensFall: "I2 tokens rise in real time",
    TwoHolders: "I3 at most one valid holder at any instant",
    NotCarried: "I4 while a holder believes, a majority carries its grant, or its token revoked",
    WritesAfterwards: "I9, I10 a grant whose end a member has answered writes nothing there afterwards",
    NotRecorded: "a closing is reported only if a majority has recorded it",
    NoOutcome: "an outcome is shown only if a majority has recorded it",
    Revived: "I6 no renewal counts after a loss, or after a revocation was reported",
    PayloadGone: "whoever sees a grant sees its newest payload that was answered",
    TakesUnseen: "nobody is taken over of whom the taker has seen nothing, nor an older payload",
    WishWrites: "an ask changes nothing but the wish",
    WishUnrecorded: "an ask is reported as done only if a majority has the wish",
    WishUnheard: "a renewal that counts hears of a wish that was reported as done before it began",
    WishStrays: "a wish reaches no other grant than the one it names",
    OldList: "who has the old list of members and begins after the change is granted nothing",
    OpensEarly: "what was reported closed is granted to nobody before its time",
}

impl Harm {
    pub(crate) fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// The history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ghosts {
    /// How many members make a majority.
    needed: u32,
    /// Bits of what has happened.
    pub(crate) harm: u32,
    /// Bits of the tokens that were granted.
    tokens: u32,
    /// By grant: bits of the members that have answered its end, and of those that have recorded its closing.
    ended: [u8; 8],
    recorded: [u8; 8],
    /// The token of each grant.
    token_of: [u8; 8],
    /// By grant: its newest payload that was answered.
    pub(crate) answered: [u8; 8],
    /// By grant: when what it has closed opens, as long as it is closed.
    opens: [u64; 8],
    /// Bits of the tokens whose revocation was reported.
    revoked: u32,
    /// The token whose holder was asked to finish, bits of the members that have the wish, and whether it was reported.
    asked: (u64, u8, bool),
    /// Of closings that were brought to another list: the token there, and whether it is an outcome.
    brought: Vec<(u64, bool)>,
    /// The token of a closing that a move has begun to complete.
    completing: u64,
}

impl Ghosts {
    pub(crate) fn new(needed: usize) -> Self {
        Self { needed: needed as u32, ..Self::default() }
    }

    pub(crate) fn flag(&mut self, harm: Harm, happens: bool) {
        if happens {
            self.harm |= harm.bit();
        }
    }

    /// The highest token granted so far.
    pub(crate) fn highest(&self) -> u64 {
        u64::from(31u32.saturating_sub(self.tokens.leading_zeros()))
    }

    pub(crate) fn granted(&mut self, grant: Grant, token: u64, highest_at_begin: u64, now: u64) {
        let bit = 1u32 << token;
        self.flag(Harm::TokenTwice, self.tokens & bit != 0);
        self.flag(Harm::TokensFall, token <= highest_at_begin);
        self.flag(Harm::OpensEarly, self.opens.iter().any(|opens| *opens > now));
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

    /// A member has forgotten everything.
    pub(crate) fn wiped(&mut self, member: usize) {
        self.ended.iter_mut().for_each(|members| *members &= !(1 << member));
    }

    /// A closing was reported as done, until then.
    pub(crate) fn reported(&mut self, grant: Grant, opens: u64) {
        self.flag(Harm::NotRecorded, self.recorded[index(grant)].count_ones() < self.needed);
        self.opens[index(grant)] = opens;
    }

    /// Whether a majority has recorded a closing with this token.
    pub(crate) fn was_recorded(&self, token: u64) -> bool {
        let of = |grant: &usize| u64::from(self.token_of[*grant]) == token;
        self.brought.contains(&(token, true))
            || token > 0 && (0..8).filter(of).any(|grant| self.recorded[grant].count_ones() >= self.needed)
    }

    /// What was closed until then is not closed any more.
    pub(crate) fn open(&mut self, now: u64) {
        self.opens.iter_mut().filter(|opens| **opens <= now).for_each(|opens| *opens = 0);
    }

    /// A takeover was granted of what its client has seen.
    pub(crate) fn takes_over(&mut self, from: Shown, granted: u64) {
        let before = self.tokens & !(1u32 << granted);
        let newest = u64::from(31u32.saturating_sub(before.leading_zeros()));
        let answered =
            (0..8).filter(|grant| u64::from(self.token_of[*grant]) == newest).map(|grant| self.answered[grant]);
        let payload = answered.max().unwrap_or(0);
        let changed = newest == from.token && from.payload < payload;
        self.flag(Harm::TakesUnseen, newest > from.highest || changed);
    }

    /// A payload was answered.
    pub(crate) fn answered(&mut self, grant: Grant, payload: u32) {
        let answered = &mut self.answered[index(grant)];
        *answered = (*answered).max(payload as u8);
    }

    /// Somebody was shown a payload of a grant; `answered` are those when it began to look.
    pub(crate) fn saw(&mut self, grant: Grant, payload: u8, answered: &[u8; 8]) {
        self.flag(Harm::PayloadGone, payload < answered[index(grant)]);
    }

    /// An administrator brings this to another list of members; `all`: every old one has answered.
    pub(crate) fn brings(&mut self, brought: &Brought, all: bool) {
        let Some(by) = brought.record.closed.and_then(|closed| closed.by) else { return };
        // A closing of the newest grant, which those that have not answered may have recorded, may be completed; and by
        // a move that is made again.
        let completes = by == self.highest() && (!all || by == self.completing);
        if completes {
            self.completing = by;
        }
        let outcome = (brought.token, self.was_recorded(by) || completes);
        if !self.brought.contains(&outcome) {
            self.brought.push(outcome);
        }
    }

    /// A member has taken in a wish.
    pub(crate) fn asked(&mut self, token: u64, member: usize) {
        let (of, members, _) = &mut self.asked;
        (*of, *members) = (token, *members | 1 << member);
    }

    /// An ask was reported as done.
    pub(crate) fn ask_reported(&mut self) {
        self.flag(Harm::WishUnrecorded, self.asked.1.count_ones() < self.needed);
        self.asked.2 = true;
    }

    /// Whether an ask of its holder was reported as done.
    pub(crate) fn is_asked(&self, token: u64) -> bool {
        (self.asked.0, self.asked.2) == (token, true)
    }

    pub(crate) fn revoked(&mut self, token: u64) {
        self.revoked |= 1 << token;
    }

    /// Whether a revocation of it was reported.
    pub(crate) fn is_revoked(&self, token: u64) -> bool {
        self.revoked & 1 << token != 0
    }

    /// Somebody was shown the outcome of the grant with this token.
    pub(crate) fn shown(&mut self, by: Option<u64>) {
        self.flag(Harm::NoOutcome, !by.is_some_and(|by| self.was_recorded(by)));
    }
}

fn index(grant: Grant) -> usize {
    grant.bits() as usize % 8
}
