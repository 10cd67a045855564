//! One grant, from the answer that made it to its loss or end.
//!
//! I4, I6: what a holder believes is bounded by the first send of the newest body known to be stored, judged on
//! every clock; a loss is final.

use super::broken::Broken;
use super::expiry::{Computed, expires_at};
use super::payload::Payload;
use super::retry::Retry;
use super::rules::{Clocks, Rules};
use super::store_time::{StoreTime, late_end};
use crate::types::{Grant, Renewed, Sample, Stamp, Standing, View};

/// One grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Its fencing token.
    pub token: u64,
    /// Its id.
    pub grant: Grant,
    state: State,
    base: Base,
    /// The highest version sent.
    version: u64,
    under_way: Option<Sent>,
    last_send: Stamp,
    next_after: u64,
    failures: u8,
    /// How many renewals have counted.
    renewals: u32,
    /// Whether a clock that may jump has said "over" since the last renewal that counted.
    suspect: bool,
    longest: Option<(Stamp, u64)>,
    data: Payload,
}

/// How a grant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The last renewal succeeded.
    Held,
    /// A renewal has failed, or a clock has jumped; the deadline is still ahead.
    Jeopardy,
    /// Lost, for good.
    Lost(Loss),
    /// Released or handed over by its owner.
    Ended,
}

/// Why a grant was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // as in types::LostReason
pub enum Loss {
    Deadline,
    Taken(u64),
    Deleted,
    Revoked,
    ClockSuspect,
    AtMost,
    KeeperGone,
}

/// What is to be done for a grant now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Send a renewal.
    Renew,
    /// Nothing for so long.
    Wait(u64),
    /// Nothing ever again.
    Over,
}

/// The changing part of a renewal body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// One more than any version sent before.
    pub version: u64,
    /// The end of the term on the store's clock.
    pub expires_at_ms: Option<u64>,
    /// The term.
    pub ttl_ms: u64,
    /// Whether it carries the newest payload.
    pub with_data: bool,
}

/// What came of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalAnswer<'a> {
    /// The store has answered, with its time if that counts.
    Answered(&'a Renewed, Option<Sample>),
    /// It has not.
    Failed {
        /// When it is worth another try. A renewal is always tried again, even where nothing but the deadline will
        /// end that.
        retry: Retry,
    },
}

/// The clock that a holder's term is counted on: the first send of the newest body known to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Base {
    since: Stamp,
    expires_at: Option<u64>,
    /// With manual renewal: the answer's own date, which bounds a freeze that no local clock has seen.
    cap: Option<Sample>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    version: u64,
    at: Stamp,
    expires_at: Option<u64>,
    basis: Option<Box<StoreTime>>,
    data: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Valid,
    Suspect,
    Over,
}

impl Hold {
    /// A grant whose claim was first sent at `since`; `sample` is of its answer.
    pub fn new(token: u64, grant: Grant, since: Stamp, expires_at: Option<u64>, answer: Option<Sample>) -> Self {
        let base = Base { since, expires_at, cap: answer };
        Self {
            token,
            grant,
            state: State::Held,
            base,
            version: 1,
            under_way: None,
            last_send: since,
            next_after: 0,
            failures: 0,
            renewals: 0,
            suspect: false,
            longest: None,
            data: Payload::default(),
        }
    }

    /// Ends the grant `longest` after `since`, with its stop signal a margin before.
    pub fn at_most(&mut self, since: Stamp, longest: u64) {
        self.longest = Some((since, longest));
    }

    /// When the first renewal is due, so that leases taken together are not renewed together.
    pub fn renew_first_after(&mut self, after: u64) {
        self.next_after = after;
    }

    /// How it stands, as of the last event.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it is held at this moment on every clock. Pure: it needs no event and no answer to turn false.
    pub fn is_held(&self, now: &Stamp, time: &StoreTime, rules: &Rules) -> bool {
        matches!(self.state, State::Held | State::Jeopardy)
            && self.longest_left(now, rules) > 0
            && self.verdict(now, time, rules) == Verdict::Valid
    }

    /// For how much longer it is held if nothing is answered any more.
    pub fn left(&self, now: &Stamp, rules: &Rules) -> u64 {
        let by_term = rules.term().saturating_sub(now.longest_since(&self.base.since));
        let by_cap = self.capped_left(now, rules, late_end);
        let by_longest = self.longest_left(now, rules);
        by_term.min(by_cap).min(by_longest)
    }

    /// When it ends if nothing is answered any more: on the clocks that cannot be set, because one that has jumped
    /// is no reason to look again at once. At least 1.
    pub fn ends_in(&self, now: &Stamp, rules: &Rules) -> u64 {
        let by_term = rules.term().saturating_sub(now.steady_since(&self.base.since));
        let by_cap = self.capped_left(now, rules, steady_late_end);
        by_term.min(by_cap).min(self.longest_left(now, rules)).max(1)
    }

    /// Judges the clocks and says what is due.
    pub fn tick(&mut self, now: &Stamp, time: &StoreTime, rules: &Rules) -> Due {
        if !matches!(self.state, State::Held | State::Jeopardy) {
            let zombie = Broken::RenewalAfterLoss.on() && matches!(self.state, State::Lost(_));
            return if zombie && self.under_way.is_none() { Due::Renew } else { Due::Over };
        }
        if self.longest_left(now, rules) == 0 {
            return self.lose(Loss::AtMost);
        }
        match self.verdict(now, time, rules) {
            Verdict::Over => self.overdue(),
            Verdict::Suspect => {
                self.suspect(now, rules);
                self.due(now, rules)
            }
            Verdict::Valid => self.due(now, rules),
        }
    }

    /// A new renewal body. Its term counts from `now`, which is before it is computed and sent.
    pub fn renewal(&mut self, now: &Stamp, time: &StoreTime, rules: &Rules) -> Body {
        let again = Broken::RenewalBodySentAgain.on() && self.failures > 0 && self.version > 1;
        self.version = self.version.saturating_add(u64::from(!again));
        let expires_at = expires_at(now, time, rules);
        let with_data = self.data.is_carried(rules.data_in_every_renewal);
        self.under_way = Some(Sent {
            version: self.version,
            at: *now,
            expires_at,
            basis: expires_at.map(|_| Box::new(*time)),
            data: self.data.of_body(with_data),
        });
        self.last_send = *now;
        self.next_after = rules.renew_every;
        let ttl_ms = if Broken::RenewalShortensTtl.on() { rules.ttl_ms() / 2 } else { rules.ttl_ms() };
        let expires_at_ms = expires_at.map(|at| rules.clocks.millis_up(at));
        Body { version: self.version, expires_at_ms, ttl_ms, with_data }
    }

    /// Takes in what came of the renewal under way. `jitter` is 0 to 1000.
    ///
    /// An answer to any other body than the newest says nothing: that one was abandoned.
    pub fn answered(
        &mut self,
        version: u64,
        answer: RenewalAnswer<'_>,
        now: &Stamp,
        time: &StoreTime,
        rules: &Rules,
        jitter: u16,
    ) {
        let Some(sent) = self.under_way.take_if(|sent| sent.version == version) else { return };
        if !matches!(self.state, State::Held | State::Jeopardy) {
            return; // I6: nothing revives it.
        }
        if self.verdict(now, time, rules) == Verdict::Over {
            self.overdue(); // Came after the deadline.
            return;
        }
        match answer {
            RenewalAnswer::Answered(Renewed::Renewed(_), sample) => self.renewed(&sent, sample, now, rules, jitter),
            RenewalAnswer::Answered(Renewed::Refused(view), _) => self.refused(&sent, view, now, rules, jitter),
            RenewalAnswer::Failed { retry } => self.try_again(now, rules, jitter, retry),
        }
    }

    /// The renewal under way was abandoned: nothing is known of it, so the next one is due at once.
    ///
    /// Else a caller that gives up again and again would put off every renewal until the deadline.
    ///
    /// Only if it is the one of this version.
    pub fn abandoned(&mut self, version: u64) {
        if self.under_way.as_ref().is_some_and(|sent| sent.version != version) {
            return;
        }
        if self.under_way.take().is_some() {
            self.next_after = 0;
        }
    }

    /// The highest version sent so far.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a renewal is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether whoever waits for the renewal under way may stop waiting: it counts as abandoned.
    pub fn is_overdue(&self, now: &Stamp, rules: &Rules) -> bool {
        now.steady_since(&self.last_send) >= rules.attempt.saturating_add(rules.shortest_pause())
    }

    /// A new payload: every body carries it until one was accepted. Returns its number.
    pub fn set_data(&mut self) -> u32 {
        self.data.set()
    }

    /// The number of the newest payload that is known to be stored.
    pub fn data_accepted(&self) -> u32 {
        self.data.accepted()
    }

    /// The store has said that it will never take the payload of the renewal under way: later bodies do without.
    pub fn refuse_data(&mut self) {
        if let Some(sent) = &self.under_way {
            self.data.refuse(sent.data);
        }
    }

    /// The number of the newest payload that the store will never take.
    pub fn data_refused(&self) -> u32 {
        self.data.refused()
    }

    /// Whether the next renewal has a payload to carry.
    pub fn has_new_data(&self) -> bool {
        self.data.is_new()
    }

    /// How many renewals have counted so far.
    pub fn renewals(&self) -> u32 {
        self.renewals
    }

    /// Its release was refused, and no earlier copy of it can have been accepted: what is there tells how the grant
    /// was lost before, unnoticed.
    pub fn release_refused(&mut self, view: &View) {
        if let (State::Ended, Some(loss)) = (self.state, self.loss_shown_by(view)) {
            self.state = State::Lost(loss);
        }
    }

    /// The owner has ended it.
    pub fn end(&mut self) {
        if !matches!(self.state, State::Lost(_)) {
            self.state = State::Ended;
        }
    }

    /// How long until a grant that its longest hold has ended is to be released, should its owner not do it;
    /// `None` for any other grant.
    pub fn release_after(&self, now: &Stamp) -> Option<u64> {
        self.longest_ends_in(now).filter(|_| self.state == State::Lost(Loss::AtMost))
    }

    /// It is lost for a reason from outside the protocol.
    pub fn lose(&mut self, loss: Loss) -> Due {
        if matches!(self.state, State::Held | State::Jeopardy) {
            self.state = State::Lost(loss);
        }
        Due::Over
    }

    fn renewed(&mut self, sent: &Sent, sample: Option<Sample>, now: &Stamp, rules: &Rules, jitter: u16) {
        self.data.accept(sent.data);
        let computed = sent.basis.as_ref().map(|basis| Computed { first_sent: &sent.at, basis });
        if !computed.is_none_or(|computed| computed.agrees_with(sample, now, rules)) {
            // The date contradicts what expires_at was computed from: the body does not count. Write again, the
            // first time at once.
            let first = self.failures == 0;
            self.try_again(now, rules, jitter, Retry::Later);
            self.next_after = if first { 0 } else { self.next_after };
            return;
        }
        let since = if Broken::TermCountedFromAnswer.on() { *now } else { sent.at };
        self.base = Base { since, expires_at: sent.expires_at, cap: sample };
        self.failures = 0;
        self.renewals = self.renewals.wrapping_add(1);
        self.suspect = false;
        self.state = State::Held;
    }

    fn refused(&mut self, sent: &Sent, view: &View, now: &Stamp, rules: &Rules, jitter: u16) {
        let Some(loss) = self.loss_shown_by(view) else {
            // Unreadable, or my own grant with a higher version: an older body of mine came late. No loss.
            let newest = view.record.as_ref().and_then(|record| record.version).unwrap_or(0);
            self.version = self.version.max(newest).max(sent.version);
            return self.try_again(now, rules, jitter, Retry::Later);
        };
        self.lose(loss);
    }

    fn loss_shown_by(&self, view: &View) -> Option<Loss> {
        if matches!(view.standing, Standing::Unreadable(_)) {
            return None;
        }
        let Some(record) = &view.record else { return Some(Loss::Deleted) };
        if record.grant == Some(self.grant) {
            return None;
        }
        Some(match record.token {
            token if token > self.token => Loss::Taken(token),
            // A rival that holds it and has not yet written its own token (Azure Blob).
            token if token == self.token && record.grant.is_some() && !record.revoked => Loss::Taken(token),
            token if token == self.token => Loss::Revoked,
            _ => Loss::Deleted,
        })
    }

    fn try_again(&mut self, now: &Stamp, rules: &Rules, jitter: u16, retry: Retry) {
        self.state = State::Jeopardy;
        self.failures = self.failures.saturating_add(1);
        let failures = match retry {
            Retry::Soon => 1,
            Retry::MuchLater => self.failures.saturating_add(1),
            Retry::Later | Retry::Never => self.failures,
        };
        self.next_after = rules.renewal_pause(failures, self.ends_in(now, rules), jitter);
    }

    fn due(&self, now: &Stamp, rules: &Rules) -> Due {
        let over = self.ends_in(now, rules);
        if self.under_way.is_some() {
            // Whoever sent it may have stopped to be polled: an attempt later it counts as abandoned.
            let patience = rules.attempt.saturating_add(rules.shortest_pause());
            let wait = patience.saturating_sub(now.steady_since(&self.last_send));
            return if self.is_overdue(now, rules) { Due::Renew } else { Due::Wait(wait.min(over)) };
        }
        match self.next_after.saturating_sub(now.steady_since(&self.last_send)) {
            0 => Due::Renew,
            wait => Due::Wait(wait.min(over)),
        }
    }

    fn verdict(&self, now: &Stamp, time: &StoreTime, rules: &Rules) -> Verdict {
        let term = rules.term();
        let counted = if Broken::HolderTrustsWallClock.on() {
            now.wall_since(&self.base.since)
        } else if Broken::WallClockEndsTerm.on() {
            now.longest_since(&self.base.since)
        } else {
            now.steady_since(&self.base.since)
        };
        if counted >= term || self.capped_left(now, rules, steady_late_end) == 0 {
            return Verdict::Over;
        }
        let by_wall = now.wall_since(&self.base.since) >= term;
        let by_store = match (self.base.expires_at, time.early(now, &rules.clocks)) {
            (Some(expires_at), Some(early)) => early > expires_at,
            _ => false,
        };
        if by_wall || by_store || self.capped_left(now, rules, late_end) == 0 {
            Verdict::Suspect
        } else {
            Verdict::Valid
        }
    }

    fn overdue(&mut self) -> Due {
        self.lose(if self.suspect { Loss::ClockSuspect } else { Loss::Deadline })
    }

    /// A clock that may jump says "over": one renewal is sent at once, and its success proves the clock wrong.
    fn suspect(&mut self, now: &Stamp, rules: &Rules) {
        self.state = State::Jeopardy;
        // So near to the deadline it is no jump, only the first of several clocks to reach it.
        let well_before = rules.term().saturating_sub(now.steady_since(&self.base.since)) > rules.margin;
        if well_before && !self.suspect {
            self.suspect = true;
            self.next_after = 0;
        }
    }

    /// What is left before a rival could take over by the store's clock, by the answer's own date.
    fn capped_left(&self, now: &Stamp, rules: &Rules, late: fn(&Sample, &Stamp, &Clocks) -> u64) -> u64 {
        match (self.base.expires_at, self.base.cap) {
            (Some(expires_at), Some(sample)) if rules.manual => {
                expires_at.saturating_sub(late(&sample, now, &rules.clocks)).saturating_sub(rules.margin)
            }
            _ => u64::MAX,
        }
    }

    /// How much of the longest hold is left, if there is one.
    pub fn longest_ends_in(&self, now: &Stamp) -> Option<u64> {
        self.longest.map(|(since, longest)| longest.saturating_sub(now.steady_since(&since)))
    }

    /// How much of the longest hold is left before its stop signal; without one, endless.
    pub fn longest_left(&self, now: &Stamp, rules: &Rules) -> u64 {
        self.longest.map_or(u64::MAX, |(since, longest)| {
            longest.saturating_sub(rules.margin).saturating_sub(now.steady_since(&since))
        })
    }
}

fn steady_late_end(sample: &Sample, now: &Stamp, clocks: &Clocks) -> u64 {
    let without_wall = Stamp { real: sample.sent.real, ..*now };
    late_end(sample, &without_wall, clocks)
}
