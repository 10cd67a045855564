//! The invariants, stated once more without the code under test, and the history that they need.

use leasehold::protocol::hold::State;
use leasehold::protocol::record::Stored;
use leasehold::{Claim, Data, Expect, Grant, Record, Renew, Vacate, Version};

use crate::world::{Request, World};

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Invariant {
    I1,
    I2,
    I3,
    I4,
    I5,
    I6,
    I7,
    I8,
    I9,
    I10,
    /// A closed record opens early.
    Closed,
    /// A closing release is reported other than it went.
    Outcome,
    /// A payload outlives its grant, or an accepted one is undone.
    Payload,
    /// A wall clock that was set costs more than a renewal.
    Wall,
    /// A payload said no, and the record was claimed all the same.
    Look,
}

impl Invariant {
    pub(crate) const ALL: [(Invariant, &'static str); 15] = [
        (Invariant::I1, "I1 a token is granted at most once"),
        (Invariant::I2, "I2 tokens rise in real time"),
        (Invariant::I3, "I3 at most one valid holder at any instant"),
        (Invariant::I4, "I4 while a holder believes, the store carries its grant"),
        (Invariant::I5, "I5 no write lowers a stored token"),
        (Invariant::I6, "I6 loss is terminal"),
        (Invariant::I7, "I7 the fenced resource never goes back, nor refuses the valid holder"),
        (Invariant::I8, "I8 no write without its condition"),
        (Invariant::I9, "I9 a contender that is out writes nothing afterwards"),
        (Invariant::I10, "I10 after a release nothing is sent and nothing late is accepted"),
        (Invariant::Closed, "a closed record opens to nobody before its time"),
        (Invariant::Outcome, "a closing release is reported as it went"),
        (Invariant::Payload, "a payload neither outlives its grant nor is undone"),
        (Invariant::Wall, "a wall clock that was set costs at most a renewal"),
        (Invariant::Look, "nothing is claimed whose payload says no"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// What has to happen somewhere, or the model says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Witness {
    TakeoverByObservation,
    TakeoverByStoreTime,
    LostAnswerRecovered,
    Burn,
    ZombieRefused,
    LateClaimRefused,
    LateRenewalRefused,
    Renewed,
    Resumed,
    ResumedTwiceRefused,
    Revoked,
    ClosedOpened,
    OutcomeRecoveredFromView,
    SavedFromJump,
    GivenBack,
    StepBackIgnored,
    GrantedAfterRestore,
    TakenAfterRestore,
    LostToRestore,
    TakenAtChangedRates,
    SaidNo,
    SlowLookRefused,
    RecordMade,
}

impl Witness {
    pub(crate) const ALL: [(Witness, &'static str); 23] = [
        (Witness::TakeoverByObservation, "a takeover by observation"),
        (Witness::TakeoverByStoreTime, "a takeover by store time"),
        (Witness::LostAnswerRecovered, "a lost answer recovered by repetition"),
        (Witness::Burn, "a burn"),
        (Witness::ZombieRefused, "a zombie's write refused by the fence"),
        (Witness::LateClaimRefused, "a late copy of a claim refused"),
        (Witness::LateRenewalRefused, "a late renewal refused"),
        (Witness::Renewed, "a renewal"),
        (Witness::Resumed, "a hand-over resumed"),
        (Witness::ResumedTwiceRefused, "a second resume refused"),
        (Witness::Revoked, "a revocation noticed"),
        (Witness::ClosedOpened, "a closed record opened in time"),
        (Witness::OutcomeRecoveredFromView, "a closing release confirmed by what the record shows"),
        (Witness::SavedFromJump, "a renewal that proved a jumping clock wrong"),
        (Witness::GivenBack, "a grant that came too late, given back"),
        (Witness::StepBackIgnored, "a wall clock set back under a holder"),
        (Witness::GrantedAfterRestore, "a free record granted after a restore, above a token of before"),
        (Witness::TakenAfterRestore, "a lease that a backup shows as held, taken over"),
        (Witness::LostToRestore, "a holder that a restore has deposed"),
        (Witness::TakenAtChangedRates, "a takeover while both clocks had changed their rates"),
        (Witness::SaidNo, "a free record left alone, because its payload says no"),
        (Witness::SlowLookRefused, "a higher token refused, because the payload that was seen is gone"),
        (Witness::RecordMade, "a record made for a claim to name"),
    ];

    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The history that the invariants speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ghosts {
    /// Bits of what was violated.
    pub(crate) violated: u16,
    /// The highest token of an accepted claim.
    pub(crate) highest: u64,
    /// Grants whose claim is out because all its copies were answered, because its clean-up is settled, and those
    /// whose release was answered; bits.
    answered: u32,
    settled: u32,
    released: u32,
    /// Grants whose closing release was accepted.
    recorded: u32,
    /// Nobody may claim before this tick.
    closed_until: u64,
    /// Grants whose claim was decided on before the record was deleted or put back: excepted from what is said of
    /// claims first sent afterwards; bits.
    before_reset: u32,
    /// No promise of exclusion before this tick: an operator has acted.
    pub(crate) void_until: u64,
    /// No acquire may begin before this tick: an operator has acted.
    pub(crate) quiet_until: u64,
    /// The highest token that the fenced resource has seen.
    pub(crate) fence: u64,
}

impl Ghosts {
    pub(crate) fn flag(&mut self, invariant: Invariant, is_violated: bool) {
        if is_violated {
            self.violated |= invariant.bit();
        }
    }

    /// The record was deleted or put back: no promise of exclusion, and no acquire, before these ticks.
    pub(crate) fn reset(&mut self, drawn: impl Iterator<Item = Grant>, void_until: u64, quiet_until: u64) {
        self.before_reset = drawn.fold(0, |bits, grant| bits | bit(grant));
        self.closed_until = 0;
        (self.void_until, self.quiet_until) = (void_until, quiet_until);
    }

    /// Whether the claim of a grant was first sent after the last deletion or restore, if there was one.
    pub(crate) fn is_after_reset(&self, grant: Grant) -> bool {
        self.before_reset & bit(grant) == 0
    }

    pub(crate) fn all_copies_answered(&mut self, grant: Grant) {
        self.answered |= bit(grant);
    }

    pub(crate) fn cleanup_settled(&mut self, grant: Grant) {
        self.settled |= bit(grant);
    }

    pub(crate) fn release_done(&mut self, grant: Grant, closing: bool) {
        self.released |= bit(grant);
        let recorded = self.recorded & bit(grant) != 0;
        self.flag(Invariant::Outcome, closing && !recorded);
    }

    pub(crate) fn release_not_recorded(&mut self, grant: Grant) {
        self.released |= bit(grant);
        let recorded = self.recorded & bit(grant) != 0;
        self.flag(Invariant::Outcome, recorded);
    }

    /// A request for this grant leaves.
    pub(crate) fn sends_for(&mut self, grant: Grant) {
        self.flag(Invariant::I10, self.released & bit(grant) != 0);
    }

    /// An accepted claim.
    pub(crate) fn claimed(&mut self, before: &Stored, after: &Record, claim: &Claim, request: &Request, now: u64) {
        self.wrote(before, after, claim.grant, request);
        if self.is_after_reset(claim.grant) {
            self.flag(Invariant::I1, claim.token == self.highest);
            self.flag(Invariant::I2, claim.token < self.highest);
            self.flag(Invariant::Closed, now < self.closed_until);
        }
        self.highest = self.highest.max(claim.token);
        self.closed_until = 0;
        self.flag(Invariant::I8, !may_claim(before, claim));
        self.flag(Invariant::Payload, after.data != claim.data);
    }

    /// An accepted renewal.
    pub(crate) fn renewed(&mut self, before: &Stored, after: &Record, renew: &Renew, request: &Request) {
        self.wrote(before, after, renew.grant, request);
        let lawful = record(before)
            .is_some_and(|record| record.grant == Some(renew.grant) && record.version <= Some(renew.version));
        self.flag(Invariant::I8, !lawful);
    }

    /// An accepted release or clean-up.
    pub(crate) fn vacated(&mut self, before: &Stored, after: &Record, vacate: &Vacate, request: &Request, now: u64) {
        self.wrote(before, after, vacate.grant, request);
        let (token, grant) = record(before).map_or((0, None), |record| (record.token, record.grant));
        let lawful = grant == Some(vacate.grant) || (vacate.burn && grant.is_none() && token < vacate.token);
        self.flag(Invariant::I8, !lawful);
        if let Some(close) = &vacate.close {
            self.recorded |= bit(vacate.grant);
            // Until a time of the store: counted from when that was computed.
            let from = if close.until_ms.is_some() { request.first } else { now };
            self.closed_until = from + close.for_ms;
            self.flag(Invariant::Payload, after.data != close.data);
        }
    }

    fn wrote(&mut self, before: &Stored, after: &Record, grant: Grant, request: &Request) {
        let token = record(before).map_or(0, |record| record.token);
        self.flag(Invariant::I5, after.token < token);
        if self.is_after_reset(grant) {
            // A copy that the network made was not answered.
            let out = if request.repeated { self.settled } else { self.settled | self.answered };
            self.flag(Invariant::I9, out & bit(grant) != 0);
            self.flag(Invariant::I10, self.released & bit(grant) != 0);
        }
    }
}

/// What is judged of the world as it stands. `believes`: which clients do.
pub(crate) fn judge(world: &mut World, believes: [bool; 2], loss_may_be_doubted: bool) {
    let exclusive = world.now >= world.ghosts.void_until;
    world.ghosts.flag(Invariant::I3, exclusive && believes[0] && believes[1]);
    for (c, believes) in believes.into_iter().enumerate() {
        let Some(hold) = &world.clients[c].hold else { continue };
        let stored = record(&world.stored);
        let mine = stored.filter(|record| record.grant == Some(hold.machine.grant));
        let revoked = stored.is_some_and(|record| record.revoked && record.token == hold.machine.token);
        let kept = mine.is_none_or(|record| number(&record.data) >= hold.machine.data_accepted());
        let carried = mine.is_some() || revoked;
        let revived = hold.lost && believes;
        let over = matches!(hold.machine.state(), State::Lost(_)) || (!believes && !loss_may_be_doubted);
        let newly_lost = over && !hold.lost;
        world.ghosts.flag(Invariant::I6, revived);
        world.ghosts.flag(Invariant::I4, believes && exclusive && !carried);
        world.ghosts.flag(Invariant::Payload, !kept);
        if let (true, Some(hold)) = (newly_lost, world.clients[c].hold.as_mut()) {
            hold.lost = true;
        }
    }
}

fn may_claim(before: &Stored, claim: &Claim) -> bool {
    let Some(record) = record(before) else { return claim.expect == Expect::Vacant };
    record.token < claim.token
        && match &claim.expect {
            Expect::Vacant => record.grant.is_none() && record.closed.is_none(),
            Expect::Expired(version) => *version == Version::of(record),
            Expect::Handed(grant) => record.grant == Some(*grant),
        }
}

fn record(stored: &Stored) -> Option<&Record> {
    match stored {
        Stored::Record(record) => Some(record),
        _ => None,
    }
}

/// The number of a payload.
fn number(data: &Option<Data>) -> u32 {
    data.as_ref().map_or(0, |data| u32::from(data.as_bytes()[0]))
}

/// Grants are small numbers here.
fn bit(grant: Grant) -> u32 {
    1 << grant.bits()
}
