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
use crate::protocol::retry::{Retry, Tries};
use crate::time;
use crate::types::{Close, Data, Error, ErrorKind, Handover, LostReason, Operation, Stamp, Vacate, Vacated, Written};

/// For the release at the end of a longest hold, or after it.
const LEAST_TO_END: Duration = Duration::from_millis(500);

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

    /// Ends the grant and tells the store; repeats the same body until it is answered.
    ///
    /// Dropped half-way, or without an answer, the release is owed.
    pub(in crate::lease) async fn release(self: &Arc<Self>) -> Result<Ended, Error> {
        self.end(None).await
    }

    /// The same, and the same write closes the record. `Ok(Released)` only if that is known to be recorded.
    pub(in crate::lease) async fn close(self: &Arc<Self>, for_ms: u64, data: Option<Data>) -> Result<Ended, Error> {
        self.end(Some(Close { for_ms, until_ms: None, data })).await
    }

    /// A longest hold is somebody's deadline, which a store that hangs must not outlast.
    async fn end(self: &Arc<Self>, close: Option<Close>) -> Result<Ended, Error> {
        let operation = if close.is_some() { Operation::Close } else { Operation::Release };
        let ended = self.end_when_answered(close);
        let now = self.client.now();
        let Some(left) = self.lock().hold.longest_ends_in(&now) else { return ended.await };
        let limit = Duration::from_nanos(left).max(LEAST_TO_END);
        match time::within(&*self.client.clock, limit, ended).await {
            Some(ended) => ended,
            None => Err(self.ended_too_late(operation)),
        }
    }

    /// It is owed now, also for a lease that was lost: I10 lets `Ok` be said only when nothing is sent any more.
    fn ended_too_late(&self, operation: Operation) -> Error {
        let why = "the longest hold (at_most) was over before the store had answered; it is sent again in the background, \
                   or by the client's next call";
        self.error(ErrorKind::Unavailable, operation, why).written_if(Written::Unknown)
    }

    async fn end_when_answered(self: &Arc<Self>, close: Option<Close>) -> Result<Ended, Error> {
        self.judge();
        if !self.begin_release() {
            // Somebody else has begun it: what comes of that is ours too.
            self.until(|inner| inner.line_unblocked).await;
            return self.ended_by_another(close.is_some());
        }
        let ended = self.ended().unwrap_or(Ended::Released);
        // A lost lease closes nothing.
        let close = close.filter(|_| matches!(ended, Ended::Released));
        let mut owed = OwedRelease { core: self, close, settled: false };
        self.until_not_under_way().await;
        if let Some(close) = &mut owed.close {
            close.until_ms = self.end_of_closing(close.for_ms).await;
        }
        let answer = match ended {
            Ended::Released => match self.send_release(owed.close.clone()).await {
                // The store will never take what it was to be closed with: it is released, and closed by nothing.
                Err(error) if owed.close.is_some() && error.kind() == ErrorKind::Invalid => {
                    owed.close = None;
                    self.send_release(None).await?;
                    owed.settled = true;
                    self.lock().release_answered = true;
                    return Err(error.written_if(Written::No));
                }
                answer => answer?,
            },
            // A lost lease sends one release for others' sake; nothing hangs on it.
            _ if self.is_worth_a_release(&ended) => self.send_release(None).await.unwrap_or(Released::Done),
            _ => Released::Done,
        };
        owed.settled = true;
        self.lock().release_answered = true;
        self.what_became(answer)
    }

    fn what_became(&self, answer: Released) -> Result<Ended, Error> {
        let ended = self.ended().unwrap_or(Ended::Released);
        match (answer, &ended) {
            (Released::Unknown, _) => {
                let why = "an answer was lost, and the record shows neither this grant nor its closing any more: nobody \
                           can say whether it was recorded";
                Err(self.error(ErrorKind::Unavailable, Operation::Close, why).written_if(Written::Unknown))
            }
            // What was there did not tell how the grant had ended before.
            (Released::NotRecorded, Ended::Released) => {
                let why = "the record cannot be read any more and is left alone: nothing was recorded";
                Err(self.error(ErrorKind::Unreadable, Operation::Close, why))
            }
            _ => Ok(ended),
        }
    }

    /// The moment of the store's clock until which a closing that begins now lasts, where such moments are believed.
    ///
    /// Without one only those would open the record who have watched it for so long. So a time that is not known is
    /// asked for, once.
    async fn end_of_closing(&self, for_ms: u64) -> Option<u64> {
        let port = &self.client.port;
        if !self.rules.trusts_store_time {
            return None;
        }
        if port.late_now_ms().is_none() {
            let _ = port.read(Duration::from_nanos(self.rules.attempt), self.name.clone()).await;
        }
        port.late_now_ms().map(|now| now.saturating_add(for_ms))
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

    /// The client's end, or that of the longest hold, has released it first, and closes nothing.
    fn ended_by_another(&self, closing: bool) -> Result<Ended, Error> {
        match self.ended().unwrap_or(Ended::Released) {
            Ended::Released if closing => {
                let why = "the client was shut down and has released the lease: nothing was recorded";
                Err(self.error(ErrorKind::Closed, Operation::Close, why))
            }
            Ended::Released if !self.lock().release_answered => {
                let why = "the release was begun and not answered yet; it goes on in the background";
                Err(self.error(ErrorKind::Unavailable, Operation::Release, why).written_if(Written::Unknown))
            }
            ended => Ok(ended),
        }
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
        let operation = if close.is_some() { Operation::Close } else { Operation::Release };
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
        let once = matches!(self.ended(), Some(Ended::Lost(_)));
        let mut tries = Tries::default();
        loop {
            let error = match self.client.port.vacate(limit, body.clone()).await {
                Ok((answer, _)) => return Ok(self.released(&release, operation, &answer)),
                Err(error) => error,
            };
            release.failed(error.applied);
            if once || !self.until_next_try(&mut tries, Retry::after(error.kind)).await {
                // It is owed from now on: whatever this copy has done, a later one may do it yet.
                let error = Error::of_store(operation, self.client.description.kind, error);
                return Err(error.for_name(&self.name).written_if(Written::Unknown));
            }
        }
    }

    fn released(&self, release: &Release, operation: Operation, answer: &Vacated) -> Released {
        let released = release.answered(answer, self.token.as_u64());
        let recorded = operation == Operation::Close && released == Released::Done;
        if let (Vacated::Refused(view), true, false) = (answer, release.is_beyond_doubt(), recorded) {
            // So it was lost before, and nobody had noticed.
            self.change(|inner, _| inner.release_refused(view));
        }
        released
    }

    fn error(&self, kind: ErrorKind, operation: Operation, why: &str) -> Error {
        Error::new(kind, operation, why).for_name(&self.name).on(self.client.description.kind)
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
