//! Performs what `protocol::acquire` decides.

use std::sync::Arc;
use std::time::Duration;

use super::builder::nanos;
use super::client::Client;
use super::core::Core;
use super::events::Event as Told;
use super::guard::Lease;
use super::line::{Before, Lines};
use super::request::{Attempt, Look};
use crate::protocol::acquire::{Acquire, At, Event, Goal, Next, Outcome, Proposal, Step};
use crate::protocol::cleanup::Debt;
use crate::protocol::hold::Hold;
use crate::protocol::look;
use crate::protocol::observer::Progress;
use crate::protocol::retry::Retry;
use crate::protocol::rules::Rules;
use crate::time;
use crate::types::{
    Applied, Claim, Data, Error, ErrorKind, Expect, ExpiryJudge, FencingToken, Handover, HeldBy, Name, Operation,
    Stamp, Standing, StoreError, StoreErrorKind, Vacate, View, Written,
};

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) name: Name,
    pub(super) rules: Arc<Rules>,
    pub(super) data: Option<Data>,
    pub(super) at_most: Option<Duration>,
    pub(super) background: bool,
    pub(super) look: Look,
}

impl Spec {
    /// A lease that would have to be given up at once is not waited for.
    fn longest_wait(&self) -> Option<Duration> {
        self.at_most.map(|longest| longest.saturating_sub(Duration::from_nanos(self.rules.margin)))
    }
}

/// Waits for the lease, at most `limit`.
pub(super) async fn wait(client: &Arc<Client>, spec: Spec, limit: Option<Duration>) -> Result<Lease, Error> {
    let begun = Begun::new(client, Operation::Acquire, &spec, limit)?;
    let place = Lines::join(client, &spec.name);
    let late = || timed_out(client, &spec.name, place.holder().map(|core| local(client, &core)), None);
    let known = begun.in_time(place.turn()).await.ok_or_else(late)?;
    begun.settle(&spec).await;
    client.ensure_open(Operation::Acquire)?;
    if begun.left().is_some_and(|left| left.is_zero()) {
        return Err(late()); // Nothing was sent.
    }
    let got = Call::new(begun, spec.clone(), Goal::Wait, known).get().await;
    // The lease is in the line before the place is given up: the next waits for it.
    drop(place);
    match got? {
        Attempt::Acquired(lease) => Ok(lease),
        Attempt::Held(_) => unreachable!("a waiter is never answered Held"),
    }
}

/// Tries once.
pub(super) async fn once(client: &Arc<Client>, spec: Spec) -> Result<Attempt, Error> {
    let begun = Begun::new(client, Operation::Acquire, &spec, None)?;
    begun.settle(&spec).await;
    if let Before::Holder(core) = client.lines.before(&spec.name) {
        core.judge(); // It may be over, and then those who wait here come first.
    }
    match client.lines.before(&spec.name) {
        Before::Holder(core) => return Ok(Attempt::Held(local(client, &core))),
        Before::Waiters => return Ok(Attempt::Held(unknown())),
        Before::Nobody => {}
    }
    Call::new(begun, spec, Goal::Try, 0).get().await
}

/// Takes up a hand-over.
pub(super) async fn resume(client: &Arc<Client>, handover: Handover) -> Result<Lease, Error> {
    if handover.store != client.description.identity {
        let why = "the hand-over is of another store: resume it on the store that it comes from";
        return Err(Error::new(ErrorKind::Invalid, Operation::Resume, why).for_name(&handover.name));
    }
    let goal = Goal::Resume { from: handover.grant, token: handover.token.as_u64() };
    let background = client.options.renewal != super::builder::Renewal::Manual;
    let spec = Spec {
        name: handover.name,
        rules: Arc::clone(&client.rules),
        data: handover.data,
        at_most: None,
        background,
        look: Look::default(),
    };
    let begun = Begun::new(client, Operation::Resume, &spec, None)?;
    begun.settle(&spec).await;
    let got = Call::new(begun, spec, goal, 0).get().await;
    match got.map_err(|error| error.during(Operation::Resume))? {
        Attempt::Acquired(lease) => Ok(lease),
        Attempt::Held(_) => unreachable!("a resume is never answered Held"),
    }
}

/// A call that has begun: the client's end waits for it.
struct Begun<'a> {
    client: &'a Arc<Client>,
    started: Stamp,
    limit: Option<Duration>,
}

impl<'a> Begun<'a> {
    fn new(client: &'a Arc<Client>, op: Operation, spec: &Spec, limit: Option<Duration>) -> Result<Self, Error> {
        client.calls.begin();
        let limit = [limit, spec.longest_wait()].into_iter().flatten().min();
        // Counted before it looks whether the client is closed, so that its end misses none.
        let begun = Self { client, started: client.now(), limit };
        client.ensure_open(op)?;
        client.ensure_runtime(op)?;
        if spec.background {
            client.start_keeper()?;
        }
        Ok(begun)
    }

    /// What is left of the limit.
    fn left(&self) -> Option<Duration> {
        let used = Duration::from_nanos(self.client.now().steady_since(&self.started));
        self.limit.map(|limit| limit.saturating_sub(used))
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.left() {
            None => Some(work.await),
            Some(left) => time::within(&*self.client.clock, left, work).await,
        }
    }

    /// With manual renewal nobody else sends what is owed.
    async fn settle(&self, spec: &Spec) {
        if !spec.background {
            self.client.settle_once(self.left()).await;
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.client.calls.end();
    }
}

/// One call under way. Dropped half-way it gives up, and what it owes is owed. What it has seen is remembered.
struct Call<'a> {
    client: &'a Arc<Client>,
    begun: Begun<'a>,
    spec: Spec,
    machine: Acquire,
    known: u64,
    last_seen: Option<View>,
    last_error: Option<StoreError>,
    /// How many requests in a row have had no answer.
    failures: u8,
    waits: bool,
    /// Whether something is owed for it: what it wrote may stand, or land yet.
    owes: bool,
    granted: bool,
    over: bool,
}

impl<'a> Call<'a> {
    fn new(begun: Begun<'a>, spec: Spec, goal: Goal, known: u64) -> Self {
        let client = begun.client;
        let remembered = client.memory.of(&spec.name);
        let known = known.max(remembered.token);
        let machine = Acquire::new(goal, known).watching(remembered.watched);
        let machine = if spec.look.first { machine.reading_first() } else { machine };
        let (last_seen, last_error, failures, waits) = (None, None, 0, goal == Goal::Wait);
        let (owes, granted, over) = (false, false, false);
        Self { client, begun, spec, machine, known, last_seen, last_error, failures, waits, owes, granted, over }
    }

    async fn get(mut self) -> Result<Attempt, Error> {
        let outcome = self.perform().await?;
        self.finish(outcome)
    }

    async fn perform(&mut self) -> Result<Outcome, Error> {
        let mut step = self.on(Event::Begin);
        loop {
            let owed = step.owed.is_some();
            let next = self.owe(step);
            if owed {
                self.begun.settle(&self.spec).await;
            }
            if let Next::Done(outcome) = next {
                return self.done(outcome);
            }
            if self.client.is_closed() {
                let step = self.on(Event::GiveUp);
                self.owe(step);
                return Err(self.closed());
            }
            let left = self.begun.left().unwrap_or(Duration::MAX);
            step = match next {
                _ if left.is_zero() => self.on(Event::GiveUp),
                Next::Claim(_) if self.spec.look.says_no(self.last_seen.as_ref()) => return Ok(self.leave_it()),
                Next::Read => self.read(left).await,
                Next::Claim(proposal) if self.needs_a_record(&proposal) => self.make_record(proposal, left).await,
                Next::Claim(proposal) => self.claim(proposal, left).await,
                Next::Pause(pause) => {
                    self.client.pause_while_open(Duration::from_nanos(pause).min(left)).await;
                    self.on(Event::Woken)
                }
                Next::Done(_) => unreachable!("returned above"),
            };
        }
    }

    fn done(&mut self, outcome: Outcome) -> Result<Outcome, Error> {
        match outcome {
            Outcome::Granted(hold) if self.client.is_closed() => {
                self.give_back(&hold);
                Err(self.closed())
            }
            outcome => Ok(outcome),
        }
    }

    /// What was seen is not to be claimed. A claim of this call that is in doubt is owed a clean-up.
    fn leave_it(&mut self) -> Outcome {
        let progress = self.machine.progress(&self.client.now());
        let step = self.on(Event::GiveUp);
        self.owe(step);
        Outcome::Held(progress)
    }

    /// A grant that came after the client's end: nobody would renew or release it.
    fn give_back(&mut self, hold: &Hold) {
        self.owes = true;
        let debt = Debt { token: hold.token, grant: hold.grant, since: self.client.now(), burn: false };
        self.client.owe(&self.spec.name, &self.spec.rules, debt);
    }

    fn closed(&self) -> Error {
        super::client::closed(Operation::Acquire).for_name(&self.spec.name).written_if(self.written())
    }

    async fn read(&mut self, left: Duration) -> Step {
        let (limit, cut) = self.limit(left);
        match self.client.port.read(limit, self.spec.name.clone()).await {
            Ok((view, _)) => {
                self.answered();
                let step = self.on(Event::Seen(&view));
                self.last_seen = Some(view);
                step
            }
            Err(error) => self.failed(error, cut),
        }
    }

    async fn claim(&mut self, proposal: Proposal, left: Duration) -> Step {
        let (limit, cut) = self.limit(left);
        let claim = Claim {
            name: self.spec.name.clone(),
            token: proposal.token,
            grant: proposal.grant,
            ttl_ms: self.spec.rules.ttl_ms(),
            expires_at_ms: proposal.expires_at_ms,
            holder: self.client.holder.clone(),
            data: self.spec.data.clone(),
            set: None,
            expect: self.expected(proposal.expect),
        };
        self.machine.sent(self.client.now());
        match self.client.port.claim(limit, claim).await {
            Ok((answer, sample)) => {
                self.answered();
                let step = self.on(Event::Claimed(&answer, sample));
                if let crate::types::Claimed::Refused(view) = answer {
                    self.last_seen = Some(view);
                }
                step
            }
            Err(error) => self.failed(error, cut),
        }
    }

    /// Where a payload may say no, a claim of a free record names the write whose payload was looked at: who has claimed
    /// and released it since may have left another. Stores whose versions are not writes compare no free record.
    fn expected(&self, expect: Expect) -> Expect {
        if self.names_what_was_seen() { look::only_what_was_seen(expect, self.last_seen.as_ref()) } else { expect }
    }

    fn names_what_was_seen(&self) -> bool {
        self.client.description.judge == ExpiryJudge::Client && self.spec.look.may_say_no()
    }

    /// Whether a payload may say no, and no record was seen yet that a claim could name.
    fn needs_a_record(&self, proposal: &Proposal) -> bool {
        self.names_what_was_seen() && look::needs_a_record(&proposal.expect, self.last_seen.as_ref(), &self.spec.rules)
    }

    /// Makes a free record, for the next claim to name. This one is not sent: nothing is owed for it.
    async fn make_record(&mut self, Proposal { token, grant, .. }: Proposal, left: Duration) -> Step {
        let (limit, cut) = self.limit(left);
        let (name, now_ms) = (self.spec.name.clone(), self.client.port.late_now_ms());
        let burn = Vacate { name, token, grant, burn: true, close: None, now_ms };
        match self.client.port.vacate(limit, burn).await {
            Ok(_) => {
                self.answered(); // Refused: somebody else has made one.
                self.on(Event::Failed { applied: Applied::No, retry: Retry::Soon })
            }
            Err(error) => self.failed(StoreError { applied: Applied::No, ..error }, cut),
        }
    }

    fn answered(&mut self) {
        (self.last_error, self.failures) = (None, 0);
    }

    /// `cut`: the caller had less time left than the request may take, so that it is no sign of anything if it took longer.
    fn failed(&mut self, error: StoreError, cut: bool) -> Step {
        self.failures = self.failures.saturating_add(1);
        if self.failures == self.spec.rules.tries && self.waits {
            let name = &self.spec.name;
            tracing::warn!(lease.name = %name, cause = %error, "the store does not answer; the acquire waits on");
        }
        let (applied, retry) = (error.applied, Retry::after(error.kind));
        if !(cut && error.kind == StoreErrorKind::TimedOut) {
            self.last_error = Some(error);
        }
        self.on(Event::Failed { applied, retry })
    }

    fn on(&mut self, event: Event<'_>) -> Step {
        let time = self.client.port.time();
        let now = self.client.now();
        let at = At { now, time: &time, floor: self.client.port.token_floor(&now), dice: self.client.dice() };
        self.machine.on(event, at, &self.spec.rules)
    }

    /// Begins what is owed.
    fn owe(&mut self, step: Step) -> Next {
        if let Some(debt) = step.owed {
            self.owes = true;
            self.client.owe(&self.spec.name, &self.spec.rules, debt);
        }
        self.over |= matches!(step.next, Next::Done(_));
        step.next
    }

    /// How long a request may take, and whether that is less than usual, because the caller has no more time.
    fn limit(&self, left: Duration) -> (Duration, bool) {
        let attempt = Duration::from_nanos(self.spec.rules.attempt);
        (attempt.min(left), left < attempt)
    }

    fn finish(mut self, outcome: Outcome) -> Result<Attempt, Error> {
        let (kind, why) = match outcome {
            Outcome::Granted(hold) => return Ok(Attempt::Acquired(self.granted(*hold))),
            Outcome::Held(progress) => return Ok(Attempt::Held(self.held_by(&progress).unwrap_or_else(unknown))),
            Outcome::GaveUp(progress) => {
                let (held_by, written) = (self.held_by(&progress), self.written());
                let error = timed_out(self.client, &self.spec.name, held_by, self.last_error.take());
                return Err(error.written_if(written));
            }
            Outcome::Failed => return Err(self.store_error()),
            Outcome::Unreadable => (ErrorKind::Unreadable, self.unreadable()),
            Outcome::NotThere => {
                let why = "the handed-over grant is not there any more: it was resumed before, or its term is over";
                (ErrorKind::Refused, why.to_owned())
            }
            Outcome::TooLate => {
                let why = "every grant came with too little of its term left, or with a date that contradicts the local \
                           clocks, and was given back: the store is slow, or this process was frozen; try again";
                (ErrorKind::Unavailable, why.to_owned())
            }
            Outcome::TokensUsedUp => {
                let why = "the stored token is 2^53 - 1 and there is none above: use another name";
                (ErrorKind::Unreadable, why.to_owned())
            }
        };
        Err(self.error(kind, why).written_if(self.written()))
    }

    fn granted(&mut self, mut hold: Hold) -> Lease {
        let (client, spec) = (self.client, &self.spec);
        if let Some(longest) = spec.at_most {
            hold.at_most(self.begun.started, nanos(longest));
        }
        hold.renew_first_after(spec.rules.first_renewal(client.jitter()));
        let (name, rules) = (spec.name.clone(), Arc::clone(&spec.rules));
        let core = Core::new(client, name.clone(), rules, spec.background, hold, spec.data.clone());
        self.granted = true;
        client.memory.forget(&name);
        client.holds(&core);
        let token = core.token;
        tracing::debug!(lease.name = %name, lease.token = %token, "acquired");
        client.teller.tell(|| Told::Acquired { name, token });
        Lease::new(core)
    }

    fn held_by(&self, progress: &Progress) -> Option<HeldBy> {
        // A free record has nobody, whatever has kept this call from getting it.
        let record = self.last_seen.as_ref().filter(|view| view.standing != Standing::Vacant)?.record.as_ref()?;
        let closed = record.closed.filter(|_| record.grant.is_none());
        // The token of a closed record may be that of a claim that was given up since.
        let token = closed.and_then(|closed| closed.by).unwrap_or(record.token);
        // Neither held nor closed: no majority of several stores shows the same, so nobody can say whose it is.
        let told = record.grant.is_some() || closed.is_some();
        Some(HeldBy {
            holder: record.holder.clone(),
            token: FencingToken::new(token).filter(|_| told),
            closed: closed.is_some(),
            data: record.data.clone(),
            own: false,
            unchanged_for: Duration::from_nanos(progress.seen_for),
            of: progress.of.map(Duration::from_nanos),
        })
    }

    fn written(&self) -> Written {
        if self.owes { Written::Unknown } else { Written::No }
    }

    fn unreadable(&self) -> String {
        let standing = self.last_seen.as_ref().map(|view| &view.standing);
        match standing {
            Some(Standing::Unreadable(reason)) => format!("the record is left alone: {reason}"),
            _ => "the record cannot be read and is left alone".to_owned(),
        }
    }

    fn store_error(&mut self) -> Error {
        let kind = self.client.description.kind;
        let error = match self.last_error.take() {
            Some(error) => Error::of_store(Operation::Acquire, kind, error),
            None => self.error(ErrorKind::Unavailable, "the store gave no answer"),
        };
        let written = self.written();
        error.for_name(&self.spec.name).written_if(written)
    }

    fn error(&self, kind: ErrorKind, why: impl Into<String>) -> Error {
        Error::new(kind, Operation::Acquire, why).for_name(&self.spec.name).on(self.client.description.kind)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.over {
            let step = self.on(Event::GiveUp);
            self.owe(step);
        }
        if !self.granted {
            let token = self.last_seen.as_ref().map_or(0, View::token).max(self.known);
            self.client.memory.keep(&self.spec.name, self.machine.watched(), token);
        }
    }
}

fn local(client: &Client, core: &Core) -> HeldBy {
    HeldBy {
        holder: client.holder.clone(),
        token: Some(core.token),
        closed: false,
        data: core.newest_data(),
        own: true,
        unchanged_for: Duration::ZERO,
        of: None,
    }
}

fn unknown() -> HeldBy {
    HeldBy { holder: None, token: None, closed: false, data: None, own: false, unchanged_for: Duration::ZERO, of: None }
}

fn timed_out(client: &Client, name: &Name, held_by: Option<HeldBy>, last: Option<StoreError>) -> Error {
    let mut why = "the time that was given is over".to_owned();
    if let Some(by) = &held_by {
        why += &format!(": {by}");
    }
    if let Some(last) = &last {
        why += &format!("; the last request failed: {}", last.message);
    }
    let error = Error::new(ErrorKind::TimedOut, Operation::Acquire, why).for_name(name);
    let error = error.on(client.description.kind).seen_held_by(held_by);
    match last {
        Some(last) => error.caused_by(last),
        None => error,
    }
}
