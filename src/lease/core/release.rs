//! How a lease ends by its owner's will: released, released later, or handed over.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::lease::events::Event;
use crate::lease::held::Ended;
use crate::protocol::cleanup::Debt;
use crate::protocol::hold::State;
use crate::protocol::observer::Observer;
use crate::protocol::release::{Release, Released};
use crate::types::{Close, Error, ErrorKind, Handover, LostReason, Operation, Stamp, Vacate, Vacated, Written};

impl Core {
    /// Stops all sends of this grant without telling the store, and gives what another process needs to go on.
    pub(in crate::lease) async fn hand_over(&self) -> Result<Handover, Error> {
        if let Some(Ended::Lost(lost)) = self.judge() {
            return Err(Error::from(lost).during(Operation::Handover));
        }
        let handed_over = self.change(|inner, _| {
            let free = inner.release_begun.is_none() && !matches!(inner.hold.state(), State::Lost(_) | State::Ended);
            if free {
                inner.handed_over = true;
                inner.hold.end();
            }
            free
        });
        if !handed_over {
            let why = "the lease was released before: there is nothing to hand over";
            return Err(Error::new(ErrorKind::Invalid, Operation::Handover, why).for_name(&self.name));
        }
        self.unblock_line();
        self.until_not_under_way().await;
        let data = self.lock().data_stored.clone();
        Ok(Handover {
            store: self.client.description.identity.clone(),
            name: self.name.clone(),
            token: self.token,
            grant: self.grant,
            data,
        })
    }

    /// Ends the grant and tells the store; repeats the same body until it is answered. With `close` the same write
    /// closes the record; a lease that was lost closes nothing.
    ///
    /// Dropped half-way, or without an answer, the release is owed.
    pub(in crate::lease) async fn release(self: &Arc<Self>, close: Option<Close>) -> Result<Ended, Error> {
        self.judge();
        if !self.begin_release() {
            // Somebody else has begun it: what comes of that is ours too.
            self.until(|inner| inner.line_unblocked).await;
            return self.outcome_of_release();
        }
        let mut owed = OwedRelease { core: self, close, settled: false };
        self.until_not_under_way().await;
        let ended = self.ended().unwrap_or(Ended::Released);
        if !self.is_worth_a_release(&ended) {
            owed.settled = true;
            return Ok(ended);
        }
        if matches!(ended, Ended::Lost(_)) {
            // A lost lease sends one release for others' sake; nothing hangs on it.
            owed.close = None;
            let _ = self.send_release(None).await;
            owed.settled = true;
            return Ok(ended);
        }
        match self.send_release(owed.close.clone()).await? {
            // What was there has told how it was lost before; else nobody will ever know more.
            Released::NotRecorded | Released::Unknown if matches!(self.ended(), Some(Ended::Released)) => {
                owed.settled = true;
                Err(self.not_known_to_be_recorded())
            }
            _ => {
                owed.settled = true;
                self.lock().release_answered = true;
                Ok(self.ended().unwrap_or(Ended::Released))
            }
        }
    }

    /// Ends the grant without waiting: the release is owed.
    pub(in crate::lease) fn release_later(self: &Arc<Self>) {
        if !self.begin_release() {
            // The next in line waits for what was begun, and so does a release by the owner.
            return;
        }
        let ended = self.ended().unwrap_or(Ended::Released);
        match self.is_worth_a_release(&ended) {
            true => self.owe_release(None),
            false => self.unblock_line(),
        }
    }

    /// A release that was owed was tried. Whether it was answered or not, the next in line may go and see.
    pub(in crate::lease) fn owed_release_tried(&self, answered: bool) {
        self.lock().release_answered |= answered;
        self.unblock_line();
    }

    fn outcome_of_release(&self) -> Result<Ended, Error> {
        let ended = self.ended().unwrap_or(Ended::Released);
        if matches!(ended, Ended::Released) && !self.lock().release_answered {
            let why = "the release was begun and not answered yet; it goes on in the background";
            let error = Error::new(ErrorKind::Unavailable, Operation::Release, why).for_name(&self.name);
            return Err(error.on(self.client.description.kind).written_if(Written::Unknown));
        }
        Ok(ended)
    }

    /// Stops all sends but the release. Whether this is the first to do so.
    fn begin_release(&self) -> bool {
        let first = self.change(|inner, now| {
            inner.hold.end();
            let first = inner.release_begun.is_none();
            inner.release_begun.get_or_insert(*now);
            first
        });
        self.client.keeper.forget(self);
        first
    }

    /// How long until the keeper has to release what its longest hold has ended, if nobody has begun to.
    pub(in crate::lease) fn release_after(&self) -> Option<u64> {
        let now = self.client.now();
        let inner = self.lock();
        let wait = inner.hold.release_after(&now).filter(|_| inner.release_begun.is_none())?;
        // A little later than the owner's own release, which says more.
        Some(if wait > 0 { wait.saturating_add(self.rules.pause(1, 1000)) } else { 0 })
    }

    /// Whether the store may still carry this grant.
    fn is_worth_a_release(&self, ended: &Ended) -> bool {
        match ended {
            Ended::Released => true,
            Ended::HandedOver => false,
            Ended::Lost(lost) => {
                !matches!(lost.reason(), LostReason::Taken { .. } | LostReason::Deleted | LostReason::Revoked)
            }
        }
    }

    /// The next in line may go: the release was tried, or nobody is going to.
    pub(in crate::lease) fn unblock_line(&self) {
        let first = !std::mem::replace(&mut self.lock().line_unblocked, true);
        self.changed.notify_waiters();
        self.client.memory.keep(&self.name, &Observer::default(), self.token.as_u64());
        self.client.lines.over(self);
        let (name, token) = (self.name.clone(), self.token);
        match self.ended() {
            Some(Ended::Released) if first => self.client.teller.tell(|| Event::Released { name, token }),
            Some(Ended::HandedOver) if first => self.client.teller.tell(|| Event::HandedOver { name, token }),
            _ => {}
        }
    }

    /// What the store's answer means; an error when there was none.
    async fn send_release(&self, close: Option<Close>) -> Result<Released, Error> {
        let mut release = Release::new(close.is_some());
        let limit = Duration::from_nanos(self.rules.attempt);
        let body = Vacate {
            name: self.name.clone(),
            token: self.token.as_u64(),
            grant: self.grant,
            burn: false,
            close,
            now_ms: self.client.port.late_now_ms(),
        };
        // A lost lease sends one at the most.
        let tries = if matches!(self.ended(), Some(Ended::Lost(_))) { 1 } else { self.rules.tries };
        let mut failures = 0;
        loop {
            failures += 1;
            let error = match self.client.port.vacate(limit, body.clone()).await {
                Ok((answer, _)) => {
                    if let (Vacated::Refused(view), true) = (&answer, release.is_beyond_doubt()) {
                        // So it was lost before, and nobody had noticed.
                        self.change(|inner, _| inner.release_refused(view));
                    }
                    return Ok(release.answered(&answer, self.token.as_u64()));
                }
                Err(error) => error,
            };
            release.failed(error.applied);
            if !error.kind.is_transient() || failures >= tries {
                let error = Error::of_store(Operation::Release, self.client.description.kind, error);
                return Err(error.for_name(&self.name));
            }
            self.pause_before_try(failures).await;
        }
    }

    fn not_known_to_be_recorded(&self) -> Error {
        let why = "the answer to a first copy was lost, and now the record shows neither this grant nor its closing: \
                   nobody can say any more whether it was recorded";
        let error = Error::new(ErrorKind::Unavailable, Operation::Close, why).for_name(&self.name);
        error.on(self.client.description.kind).written_if(Written::Unknown)
    }

    fn owe_release(self: &Arc<Self>, close: Option<Close>) {
        // The term of a lost lease is over: a release that fails is not sent again.
        let lost = matches!(self.ended(), Some(Ended::Lost(_)));
        let since = if lost { Stamp::default() } else { self.client.now() };
        let debt = Debt { token: self.token.as_u64(), grant: self.grant, since, burn: false };
        let of = self.background.then(|| Arc::clone(self));
        self.client.owe_release(&self.name, &self.rules, debt, close, of);
        if !self.background {
            // Nobody sends it before the next call, and whoever waits for this name is one.
            self.unblock_line();
        } else if !self.client.keeper.is_running() {
            self.client.debts.let_go();
        }
    }
}

/// A release under way: owed when it is dropped without having been settled.
struct OwedRelease<'a> {
    core: &'a Arc<Core>,
    close: Option<Close>,
    settled: bool,
}

impl Drop for OwedRelease<'_> {
    fn drop(&mut self) {
        match self.settled {
            true => self.core.unblock_line(),
            false => self.core.owe_release(self.close.take()),
        }
    }
}
