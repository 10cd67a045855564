//! One call of acquire, from its first request to a grant or an answer without one.
//!
//! I1, I2, I9: every claim is a new grant with a token above all that this call has seen or proposed; a claim
//! whose copies were not all answered is either repeated with the same body, or given up and owed a clean-up.

use super::broken::Broken;
use super::cleanup::Debt;
use super::expiry::{Computed, expires_at};
use super::hold::Hold;
use super::observer::{Judgement, Observer, Progress};
use super::retry::Retry;
use super::rules::Rules;
use super::store_time::StoreTime;
use super::tokens;
use crate::types::{Applied, Claimed, Expect, Grant, Sample, Stamp, TokenFloor, View};

/// How often a single try claims while others keep getting in between.
const CLAIMS_OF_ONE_TRY: u8 = 4;

/// After so many the pauses do not grow any more.
const MANY_LOST_RACES: u8 = 7;

/// One call of acquire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    goal: Goal,
    observer: Observer,
    /// The highest token seen or proposed in this call.
    highest: u64,
    /// The token that the newest answer has shown.
    shown: u64,
    /// The highest token proposed in this call; for a hand-over at least that of the handed grant.
    proposed: u64,
    /// Whether a read of this call was answered.
    has_read: bool,
    /// Whether it looks before its first claim, although it need not.
    reads_first: bool,
    claim: Option<Outstanding>,
    failures: u8,
    claims: u8,
    /// How often in a row a waiter was refused what it was told that it could claim.
    lost_races: u8,
    /// Another's write was in the way of the last claim: what it has written is worth a look.
    met_another: bool,
    over: bool,
}

/// What the call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Get it now or say who has it.
    Try,
    /// Wait for it.
    Wait,
    /// Take up a grant that was handed over.
    Resume {
        /// The grant.
        from: Grant,
        /// Its token.
        token: u64,
    },
}

/// The moment of an event, and what only the outside can give.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The local clocks, read before anything is computed or sent.
    pub now: Stamp,
    /// What is known of the store's clock.
    pub time: &'a StoreTime,
    /// The lowest token that the store asks for.
    pub floor: TokenFloor,
    /// Chance.
    pub dice: Dice,
}

/// Chance, drawn outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dice {
    /// A fresh grant.
    pub grant: Grant,
    /// 0 to 999.
    pub digits: u16,
    /// 0 to 1000.
    pub jitter: u16,
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The call begins.
    Begin,
    /// A read was answered.
    Seen(&'a View),
    /// A claim was answered; the sample is of this answer, if its date counts.
    Claimed(&'a Claimed, Option<Sample>),
    /// A request failed.
    Failed {
        /// Whether it may have been applied.
        applied: Applied,
        /// When it is worth another try.
        retry: Retry,
    },
    /// The pause is over.
    Woken,
    /// The caller does not wait any longer.
    GiveUp,
}

/// What to do next, and what is owed from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// A clean-up that has to be begun.
    pub owed: Option<Debt>,
    /// What to do next.
    pub next: Next,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read the record.
    Read,
    /// Send this claim; perhaps for the second time.
    Claim(Proposal),
    /// Wait so long.
    Pause(u64),
    /// The call is over.
    Done(Outcome),
}

/// The changing part of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    /// The proposed token.
    pub token: u64,
    /// The new grant.
    pub grant: Grant,
    /// The end of the term on the store's clock.
    pub expires_at_ms: Option<u64>,
    /// What the record has to be.
    pub expect: Expect,
}

/// How a call of acquire ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a grant.
    Granted(Box<Hold>),
    /// Somebody else holds it, or it is closed.
    Held(Progress),
    /// The record must not be touched.
    Unreadable,
    /// The handed-over grant is not there any more.
    NotThere,
    /// The last request failed, and it is not worth another try.
    Failed,
    /// Every grant came too late to be of use; it was given back.
    TooLate,
    /// There is no higher token.
    TokensUsedUp,
    /// The caller did not wait any longer.
    GaveUp(Progress),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Outstanding {
    proposal: Proposal,
    expires_at: Option<u64>,
    first_sent: Stamp,
    last_sent: Stamp,
    /// The store's clock as it was known when `expires_at` was computed.
    basis: StoreTime,
    in_flight: bool,
    /// A copy of it ended without an answer.
    doubt: bool,
}

impl Acquire {
    /// A call; `known` is a token that this client has just seen of the record, 0 if none.
    pub fn new(goal: Goal, known: u64) -> Self {
        let highest = match goal {
            Goal::Resume { token, .. } => known.max(token),
            _ => known,
        };
        Self {
            goal,
            observer: Observer::default(),
            highest,
            shown: 0,
            proposed: if let Goal::Resume { token, .. } = goal { token } else { 0 },
            has_read: false,
            reads_first: false,
            claim: None,
            failures: 0,
            claims: 0,
            lost_races: 0,
            met_another: false,
            over: false,
        }
    }

    /// Goes on with what earlier calls of this client have watched of this name.
    pub fn watching(self, observer: Observer) -> Self {
        Self { observer, ..self }
    }

    /// Looks before its first claim: for calls that will hardly get it, because a read is cheaper than a refused claim.
    pub fn reading_first(self) -> Self {
        Self { reads_first: true, ..self }
    }

    /// What was watched, for the next call.
    pub fn watched(&self) -> &Observer {
        &self.observer
    }

    /// Takes in one event.
    pub fn on(&mut self, event: Event<'_>, at: At<'_>, rules: &Rules) -> Step {
        if self.over {
            return Step::next(Next::Done(Outcome::GaveUp(Progress::default())));
        }
        let step = match event {
            Event::Begin => Step::next(self.begin(at, rules)),
            Event::Seen(view) => self.seen(view, at, rules),
            Event::Claimed(Claimed::Granted, sample) => self.granted(sample, at, rules),
            Event::Claimed(Claimed::Refused(view), _) => self.refused(view, at, rules),
            Event::Failed { applied, retry } => self.failed(applied, retry, at, rules),
            Event::Woken => Step::next(self.woken(at, rules)),
            Event::GiveUp => self.end(Outcome::GaveUp(self.observer.progress(&at.now))),
        };
        self.over = matches!(step.next, Next::Done(_));
        step
    }

    /// The claim that `on` has asked for leaves now. Until then nothing can be owed for it.
    pub fn sent(&mut self, now: Stamp) {
        if let Some(claim) = &mut self.claim {
            if Broken::ExpiresAtBeforeStamp.on() && !claim.doubt {
                claim.first_sent = now;
            }
            claim.last_sent = now;
            claim.in_flight = true;
        }
    }

    /// How far the watching has come.
    pub fn progress(&self, now: &Stamp) -> Progress {
        self.observer.progress(now)
    }

    fn begin(&mut self, at: At<'_>, rules: &Rules) -> Next {
        if self.reads_first || self.must_read_first(at, rules) {
            return Next::Read;
        }
        match self.goal {
            Goal::Resume { from, .. } => self.claim(Expect::Handed(from), at, rules),
            _ => self.claim(Expect::Vacant, at, rules),
        }
    }

    /// Without the store's time there is neither a floor for the token nor an `expires_at`; without a floor
    /// nothing may be claimed of which nothing is known.
    fn must_read_first(&self, at: At<'_>, rules: &Rules) -> bool {
        let knows_time = at.time.interval(&at.now, &rules.clocks).is_some();
        !self.has_read
            && match at.floor {
                TokenFloor::At(_) => false,
                TokenFloor::Unknown => true,
                TokenFloor::None if rules.has_store_time => !knows_time,
                TokenFloor::None => self.highest == 0,
            }
    }

    fn seen(&mut self, view: &View, at: At<'_>, rules: &Rules) -> Step {
        self.has_read = true;
        self.failures = 0;
        match self.goal {
            Goal::Resume { from, .. } => {
                self.highest = self.highest.max(view.token());
                self.shown = view.token();
                Step::next(self.claim(Expect::Handed(from), at, rules))
            }
            _ => self.judge(view, at, rules),
        }
    }

    fn judge(&mut self, view: &View, at: At<'_>, rules: &Rules) -> Step {
        self.highest = self.highest.max(view.token());
        self.shown = view.token();
        let time = rules.trusts_store_time.then_some(at.time);
        match self.observer.judge(view, &at.now, time, &rules.clocks) {
            Judgement::Unreadable => Step::next(Next::Done(Outcome::Unreadable)),
            Judgement::Claimable(expect) => Step::next(self.claim_again(expect, at, rules)),
            Judgement::NotYet(progress) => Step::next(self.not_yet(progress, at, rules)),
        }
    }

    fn claim_again(&mut self, expect: Expect, at: At<'_>, rules: &Rules) -> Next {
        match self.goal {
            Goal::Try if self.claims >= CLAIMS_OF_ONE_TRY => Next::Done(Outcome::Held(Progress::default())),
            // One claim a free moment: after a lost race look again first, later and later. A service may say for a
            // minute that a term is over, and not give a new one.
            Goal::Wait if self.claims > 1 || (self.claims > 0 && self.lost_races > 0) => {
                self.claims = 0;
                self.lost_races = self.lost_races.saturating_add(1).min(MANY_LOST_RACES);
                let pause = rules.pause(self.lost_races, at.dice.jitter);
                Next::Pause(pause.min(rules.poll_pause(at.dice.jitter)))
            }
            _ => self.claim(expect, at, rules),
        }
    }

    fn not_yet(&mut self, progress: Progress, at: At<'_>, rules: &Rules) -> Next {
        (self.claims, self.lost_races) = (0, 0);
        match self.goal {
            Goal::Try => Next::Done(Outcome::Held(progress)),
            _ => {
                // The last read is timed to the end of the count.
                let poll = rules.poll_pause(at.dice.jitter);
                Next::Pause(progress.left().map_or(poll, |left| left.clamp(1, poll)))
            }
        }
    }

    fn claim(&mut self, expect: Expect, at: At<'_>, rules: &Rules) -> Next {
        let floor = match at.floor {
            TokenFloor::At(floor) => Some(floor),
            _ if rules.has_store_time => {
                at.time.early(&at.now, &rules.clocks).and_then(|early| tokens::floor(early, &rules.clocks))
            }
            _ => None,
        };
        // What is remembered from before this call may be of a record that is gone, and must not use up all tokens.
        let remembered = tokens::propose(self.highest, floor, at.dice.digits);
        let shown = || tokens::propose(self.shown.max(self.proposed), floor, at.dice.digits);
        let token = match remembered.or_else(|| self.has_read.then(shown).flatten()) {
            Some(token) => token,
            None if self.has_read => return Next::Done(Outcome::TokensUsedUp),
            None => return Next::Read,
        };
        let (token, grant) = match self.goal {
            Goal::Resume { from, token } if Broken::ResumeAsRenewal.on() => (token, from),
            _ => (token, at.dice.grant),
        };
        let expires_at = expires_at(&at.now, at.time, rules);
        let expires_at_ms = expires_at.map(|end| rules.clocks.millis_up(end));
        let proposal = Proposal { token, grant, expires_at_ms, expect };
        self.highest = token;
        self.proposed = token;
        self.claims = self.claims.saturating_add(1);
        self.claim = Some(Outstanding {
            proposal: proposal.clone(),
            expires_at,
            first_sent: at.now,
            last_sent: at.now,
            basis: *at.time,
            in_flight: false,
            doubt: false,
        });
        Next::Claim(proposal)
    }

    fn granted(&mut self, sample: Option<Sample>, at: At<'_>, rules: &Rules) -> Step {
        let Some(claim) = self.claim.take() else { return Step::next(Next::Done(Outcome::Failed)) };
        let Proposal { token, grant, .. } = claim.proposal;
        let since = if Broken::TermCountedFromAnswer.on() { at.now } else { claim.first_sent };
        let hold = Hold::new(token, grant, since, claim.expires_at, sample);
        let computed = Computed { first_sent: &claim.first_sent, basis: &claim.basis };
        let counts = claim.expires_at.is_none() || computed.agrees_with(sample, &at.now, rules);
        let debt = Debt { token, grant, since: claim.last_sent, burn: false };
        if counts && hold.left(&at.now, rules) >= rules.attempt.saturating_mul(2) {
            let owed = (Broken::CleanupOfGranted.on() && claim.doubt).then_some(Debt { burn: true, ..debt });
            return Step { owed, next: Next::Done(Outcome::Granted(Box::new(hold))) };
        }
        self.failures = self.failures.saturating_add(1);
        let next = match self.spent(rules) {
            true => Next::Done(Outcome::TooLate),
            false => Next::Pause(rules.pause(self.failures, at.dice.jitter)),
        };
        Step { owed: Some(debt), next }
    }

    fn refused(&mut self, view: &View, at: At<'_>, rules: &Rules) -> Step {
        self.failures = 0;
        if let Some(claim) = &mut self.claim {
            claim.in_flight = false;
        }
        // Once the stored token is not below the claim's, no late copy of it can be accepted.
        let owed = self.give_up_claim().filter(|debt| view.token() < debt.token);
        let step = match self.goal {
            Goal::Resume { .. } => Step::next(Next::Done(Outcome::NotThere)),
            _ => self.judge(view, at, rules),
        };
        Step { owed, ..step }
    }

    fn failed(&mut self, applied: Applied, retry: Retry, at: At<'_>, rules: &Rules) -> Step {
        self.met_another = retry == Retry::Soon && self.claim.is_some();
        if !self.met_another {
            self.failures = self.failures.saturating_add(1);
        }
        if let Some(claim) = &mut self.claim {
            claim.in_flight = false;
            claim.doubt |= applied == Applied::Unknown;
        }
        if retry == Retry::Never || self.spent(rules) {
            return self.end(Outcome::Failed);
        }
        let owed = if self.worth_repeating(at, rules) { None } else { self.give_up_claim() };
        let next = match &mut self.claim {
            // The first lost answer is asked for at once.
            Some(claim) if self.failures == 1 && !self.met_another => claim.again(),
            _ => Next::Pause(rules.pause(self.failures, at.dice.jitter)),
        };
        Step { owed, next }
    }

    fn woken(&mut self, at: At<'_>, rules: &Rules) -> Next {
        match (&mut self.claim, self.goal) {
            (Some(claim), _) => claim.again(),
            (None, Goal::Wait) => Next::Read,
            // Another claim could be in the way of the holder's renewal.
            (None, Goal::Try) if self.met_another => Next::Read,
            (None, _) => self.begin(at, rules),
        }
    }

    fn end(&mut self, outcome: Outcome) -> Step {
        Step { owed: self.give_up_claim(), next: Next::Done(outcome) }
    }

    /// Whether a single try has used up its requests.
    fn spent(&self, rules: &Rules) -> bool {
        let claimed_out = self.met_another && self.claims >= CLAIMS_OF_ONE_TRY;
        self.goal != Goal::Wait && (self.failures >= rules.tries || claimed_out)
    }

    /// A claim without doubt is made anew, because its term counts from its first send; one in doubt is repeated
    /// while a grant by it could still be of use.
    fn worth_repeating(&self, at: At<'_>, rules: &Rules) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            let used = at.now.longest_since(&claim.first_sent).saturating_add(rules.attempt);
            claim.doubt && used.saturating_add(rules.least_left()) <= rules.usable()
        })
    }

    /// Drops the claim. A debt if any copy of it may still be applied.
    fn give_up_claim(&mut self) -> Option<Debt> {
        let claim = self.claim.take()?;
        let Proposal { token, grant, .. } = claim.proposal;
        (claim.doubt || claim.in_flight).then_some(Debt { token, grant, since: claim.last_sent, burn: true })
    }
}

impl Outstanding {
    fn again(&self) -> Next {
        Next::Claim(self.proposal.clone())
    }
}

impl Step {
    fn next(next: Next) -> Self {
        Self { owed: None, next }
    }
}
