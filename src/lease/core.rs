//! What all handles of one lease share: the grant, its payload, and what became of it.

mod release;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::client::Client;
use super::events::Event;
use super::held::Ended;
use super::port::Seen;
use crate::protocol::hold::{Due, Hold, Loss, RenewalAnswer, State};
use crate::protocol::observer::Observer;
use crate::protocol::retry::{Retry, Tries};
use crate::protocol::rules::Rules;
use crate::time;
use crate::types::{
    Data, FencingToken, Grant, Label, Lost, LostReason, Name, Proof, Renew, Renewed, Stamp, StepDown, StoreErrorKind,
    View,
};

/// One lease.
pub(super) struct Core {
    pub(super) client: Arc<Client>,
    pub(super) name: Name,
    pub(super) token: FencingToken,
    pub(super) rules: Arc<Rules>,
    /// Whether the keeper renews it.
    pub(super) background: bool,
    /// Told whenever `state` has changed.
    pub(super) changed: Notify,
    /// By which the keeper knows it; never used again within a client.
    pub(super) id: u64,
    /// Whether its renewal waits for its turn.
    pub(super) queued: AtomicBool,
    grant: Grant,
    state: Mutex<Inner>,
}

struct Inner {
    hold: Hold,
    data: Option<Data>,
    /// The payload of the newest renewal, and the newest that is known to be stored.
    data_sent: Option<Data>,
    data_stored: Option<Data>,
    asked: Option<StepDown>,
    /// Why the store will not take a payload.
    data_refusal: Option<Arc<str>>,
    /// What the last failed renewal said, and when another is worth a try.
    cause: Option<Arc<str>>,
    retry: Retry,
    taken_by: Option<Label>,
    handed_over: bool,
    release_begun: Option<Stamp>,
    /// Whether the store has answered the release.
    release_answered: bool,
    /// Whether the next in line may go: the release was tried, or nobody is going to.
    line_unblocked: bool,
}

impl Core {
    pub(super) fn new(
        client: &Arc<Client>,
        name: Name,
        rules: Arc<Rules>,
        background: bool,
        hold: Hold,
        data: Option<Data>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            name,
            token: FencingToken::of_checked(hold.token),
            rules,
            background,
            changed: Notify::new(),
            id: client.keeper.next_id(),
            queued: AtomicBool::new(false),
            grant: hold.grant,
            state: Mutex::new(Inner {
                hold,
                data_sent: data.clone(),
                data_stored: data.clone(),
                data,
                asked: None,
                data_refusal: None,
                cause: None,
                retry: Retry::Later,
                taken_by: None,
                handed_over: false,
                release_begun: None,
                release_answered: false,
                line_unblocked: false,
            }),
        })
    }

    /// Whether it is held at this moment on every clock. No I/O; waits for nobody.
    pub(super) fn is_held(&self) -> bool {
        let (now, time) = (self.client.now(), self.client.port.time());
        self.lock().hold.is_held(&now, &time, &self.rules)
    }

    /// For how much longer it is held without another answer.
    pub(super) fn left(&self) -> Duration {
        let now = self.client.now();
        let inner = self.lock();
        match inner.hold.state() {
            State::Held | State::Jeopardy => Duration::from_nanos(inner.hold.left(&now, &self.rules)),
            _ => Duration::ZERO,
        }
    }

    /// When to look at it again although nothing has happened.
    pub(super) fn look_again_in(&self) -> Duration {
        let now = self.client.now();
        Duration::from_nanos(self.lock().hold.ends_in(&now, &self.rules))
    }

    /// How much of the longest hold is left.
    pub(super) fn longest_left(&self) -> Duration {
        let now = self.client.now();
        Duration::from_nanos(self.lock().hold.longest_left(&now, &self.rules))
    }

    /// How it has ended, if it has, as of the last event.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.lock().ended(self)
    }

    /// How it has ended, if it has, judging the clocks now.
    pub(super) fn judge(&self) -> Option<Ended> {
        self.tick();
        self.ended()
    }

    /// Whether the next in line has to wait for it: until its release was answered, not only begun.
    ///
    /// A term after it was begun at the latest: whoever has begun it may have stopped to drive it.
    pub(super) fn is_in_the_way(&self) -> bool {
        let now = self.client.now();
        let inner = self.lock();
        match inner.hold.state() {
            State::Held | State::Jeopardy => true,
            State::Ended => !inner.line_unblocked && !inner.release_ran_out(&now, &self.rules),
            State::Lost(_) => false,
        }
    }

    pub(super) fn is_in_jeopardy(&self) -> bool {
        self.lock().hold.state() == State::Jeopardy
    }

    /// What the keeper has to do for it now.
    pub(super) fn tick(&self) -> Due {
        let time = self.client.port.time();
        self.change(|inner, now| inner.hold.tick(now, &time, &self.rules))
    }

    pub(super) fn asked(&self) -> Option<StepDown> {
        self.lock().asked.clone()
    }

    pub(super) fn proof(&self) -> Proof {
        Proof::new(self.client.description.identity.clone(), self.name.clone(), self.token, self.grant)
    }

    /// A new renewal body, if one may be sent now.
    pub(super) fn begin_renewal(&self) -> Option<Renew> {
        let time = self.client.port.time();
        self.change(|inner, now| {
            let live = matches!(inner.hold.state(), State::Held | State::Jeopardy);
            let zombie = crate::protocol::broken::Broken::RenewalAfterLoss.on();
            let busy = inner.hold.is_under_way() && !inner.hold.is_overdue(now, &self.rules);
            if !(live || zombie) || busy {
                return None;
            }
            let body = inner.hold.renewal(now, &time, &self.rules);
            inner.data_sent.clone_from(&inner.data);
            Some(Renew {
                name: self.name.clone(),
                token: self.token.as_u64(),
                grant: self.grant,
                version: body.version,
                ttl_ms: body.ttl_ms,
                expires_at_ms: body.expires_at_ms,
                holder: self.client.holder.clone(),
                data: inner.data.clone().filter(|_| body.with_data),
                set: None,
            })
        })
    }

    /// What came of the renewal with this version.
    pub(super) fn finish_renewal(&self, version: u64, answer: Seen<Renewed>) {
        let (time, jitter) = (self.client.port.time(), self.client.jitter());
        self.change(|inner, now| match answer {
            Ok((answer, sample)) => {
                inner.take_notice(&answer, self.token);
                let answer = RenewalAnswer::Answered(&answer, sample);
                let stored = inner.hold.data_accepted();
                inner.hold.answered(version, answer, now, &time, &self.rules, jitter);
                if inner.hold.data_accepted() > stored {
                    inner.data_stored.clone_from(&inner.data_sent);
                }
                if inner.hold.state() == State::Held {
                    inner.cause = None;
                }
            }
            Err(error) => {
                inner.cause = Some(error.message.as_str().into());
                if error.kind == StoreErrorKind::Invalid {
                    inner.refuse_data();
                }
                inner.retry = Retry::after(error.kind);
                let failed = RenewalAnswer::Failed { retry: inner.retry };
                inner.hold.answered(version, failed, now, &time, &self.rules, jitter);
            }
        });
    }

    /// The renewal that was begun was dropped.
    pub(super) fn abandon_renewal(&self, version: u64) {
        self.change(|inner, _| inner.hold.abandoned(version));
    }

    /// One renewal in the caller's own task; waits for one that is under way.
    ///
    /// Dropped half-way it counts as a renewal without an answer.
    pub(super) async fn renew_now(&self) {
        let Some(body) = self.begin_renewal() else {
            return self.until_not_under_way().await;
        };
        let abandoned = Abandoned { core: self, version: body.version };
        let limit = Duration::from_nanos(self.rules.attempt);
        let answer = tokio::select! {
            biased;
            // First, so that nothing is sent for a grant that has ended since this was polled last.
            () = self.until_stopped() => None,
            mut answers = self.client.port.renew(limit, vec![body]) => answers.pop(),
        };
        drop(abandoned.told(answer));
    }

    /// What its owner has sent is over: the keeper, which has waited for it, has to look again.
    fn renewed_by_owner(&self) {
        self.client.keeper.watch_again(self);
    }

    /// Waits until a renewal that is under way has an answer, was dropped, or has taken its time.
    pub(super) async fn until_not_under_way(&self) {
        let limit = Duration::from_nanos(self.rules.attempt);
        time::within(&*self.client.clock, limit, self.until(|inner| !inner.hold.is_under_way())).await;
    }

    /// Waits until the next try is due. `false`: there is to be none.
    pub(super) async fn until_next_try(&self, tries: &mut Tries, retry: Retry) -> bool {
        self.client.until_next_try(tries, retry, &self.rules).await
    }

    /// The same after a renewal. Only the lease's end says that none is worth another try.
    pub(super) async fn until_next_renewal(&self, tries: &mut Tries) -> bool {
        let retry = self.lock().retry;
        self.until_next_try(tries, if retry == Retry::Never { Retry::Later } else { retry }).await
    }

    /// Waits until nothing of this grant may be sent any more.
    pub(super) async fn until_stopped(&self) {
        let zombie = crate::protocol::broken::Broken::RenewalAfterLoss.on();
        self.until(|inner| match inner.hold.state() {
            State::Held | State::Jeopardy => false,
            State::Lost(_) => !zombie,
            State::Ended => true,
        })
        .await;
    }

    /// Keeps a new payload; the next renewals carry it. Returns its number.
    pub(super) fn set_data(&self, data: Data) -> u32 {
        self.change(|inner, _| {
            inner.data = Some(data);
            inner.hold.set_data()
        })
    }

    /// The newest payload, stored or not.
    pub(super) fn newest_data(&self) -> Option<Data> {
        self.lock().data.clone()
    }

    /// How many renewals have counted so far.
    pub(super) fn renewals(&self) -> u32 {
        self.lock().hold.renewals()
    }

    pub(super) fn data_accepted(&self) -> u32 {
        self.lock().hold.data_accepted()
    }

    /// The number of the newest payload that the store will never take, and why.
    pub(super) fn data_refused(&self) -> (u32, Option<Arc<str>>) {
        let inner = self.lock();
        (inner.hold.data_refused(), inner.data_refusal.clone())
    }

    /// It is lost for a reason from outside.
    pub(super) fn lose(&self, loss: Loss) {
        self.change(|inner, _| inner.hold.lose(loss));
    }

    async fn until(&self, done: impl Fn(&Inner) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if done(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Changes the state and does all that follows from a change, outside the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Inner, &Stamp) -> T) -> T {
        let now = self.client.now();
        let mut inner = self.lock();
        let (before, was_under_way) = (inner.hold.state(), inner.hold.is_under_way());
        let answer = change(&mut inner, &now);
        let (after, is_under_way) = (inner.hold.state(), inner.hold.is_under_way());
        let cause = inner.cause.clone();
        drop(inner);
        if before != after {
            self.tell(before, after, cause);
        }
        if before != after || was_under_way != is_under_way {
            self.changed.notify_waiters();
        }
        answer
    }

    fn tell(&self, before: State, after: State, cause: Option<Arc<str>>) {
        let (name, token) = (&self.name, self.token);
        let told = |make: fn(Name, FencingToken) -> Event| self.client.teller.tell(|| make(name.clone(), token));
        match (before, after) {
            (State::Held, State::Jeopardy) => {
                tracing::warn!(lease.name = %name, lease.token = %token, cause = cause.as_deref(), "a renewal has failed or a clock has jumped");
                let cause = cause.map(|cause| cause.to_string());
                self.client.teller.tell(|| Event::Jeopardy { name: name.clone(), token, cause });
                self.client.keeper.watch_again(self);
            }
            (State::Jeopardy, State::Held) => told(|name, token| Event::Recovered { name, token }),
            (_, State::Lost(_)) => self.tell_loss(),
            (_, State::Ended) => self.client.keeper.forget(self),
            _ => {}
        }
    }

    fn tell_loss(&self) {
        self.client.memory.keep(&self.name, &Observer::default(), self.token.as_u64());
        self.client.lines.over(self);
        self.client.keeper.watch_again(self);
        if let Some(Ended::Lost(lost)) = self.ended() {
            tracing::warn!(lease.name = %self.name, lease.token = %self.token, outcome = %lost.reason(), "a lease was lost");
            self.client.losses.count(lost.reason());
            self.client.teller.tell(|| Event::Lost(lost));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while it was held leaves a state that is at worst too careful.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take_notice(&mut self, answer: &Renewed, token: FencingToken) {
        match answer {
            Renewed::Renewed(asked) => {
                self.asked = asked.clone().filter(|asked| asked.token == token.as_u64());
            }
            Renewed::Refused(view) => self.see_holder(view),
        }
    }

    /// The request itself is wrong, and the payload is all that a caller has put into it: without it the lease is renewed.
    fn refuse_data(&mut self) {
        let refused = self.hold.data_refused();
        self.hold.refuse_data();
        if self.hold.data_refused() == refused {
            return;
        }
        self.data_refusal.clone_from(&self.cause);
        if !self.hold.has_new_data() {
            self.data.clone_from(&self.data_stored);
        }
    }

    fn release_ran_out(&self, now: &Stamp, rules: &Rules) -> bool {
        self.release_begun.is_some_and(|begun| now.steady_since(&begun) >= rules.ttl)
    }

    fn release_refused(&mut self, view: &View) {
        self.see_holder(view);
        self.hold.release_refused(view);
    }

    fn see_holder(&mut self, view: &View) {
        self.taken_by = view.record.as_ref().and_then(|record| record.holder.clone());
    }

    fn ended(&self, core: &Core) -> Option<Ended> {
        let reason = match self.hold.state() {
            State::Held | State::Jeopardy => return None,
            State::Ended if self.handed_over => return Some(Ended::HandedOver),
            State::Ended => return Some(Ended::Released),
            State::Lost(loss) => loss,
        };
        let reason = match reason {
            Loss::Deadline => LostReason::Deadline,
            Loss::Deleted => LostReason::Deleted,
            Loss::Revoked => LostReason::Revoked,
            Loss::ClockSuspect => LostReason::ClockSuspect,
            Loss::AtMost => LostReason::AtMost,
            Loss::KeeperGone => LostReason::KeeperGone,
            Loss::Taken(token) => {
                LostReason::Taken { holder: self.taken_by.clone(), token: FencingToken::of_checked(token) }
            }
        };
        Some(Ended::Lost(Lost::new(core.name.clone(), core.token, reason, self.cause.clone())))
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &self.name).field("token", &self.token).finish_non_exhaustive()
    }
}

/// A renewal under way: abandoned when it is dropped.
struct Abandoned<'a> {
    core: &'a Core,
    version: u64,
}

impl Abandoned<'_> {
    fn told(self, answer: Option<Seen<Renewed>>) -> Option<Self> {
        let answer = answer?;
        self.core.finish_renewal(self.version, answer);
        self.core.renewed_by_owner();
        std::mem::forget(self);
        None
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.core.abandon_renewal(self.version);
        self.core.renewed_by_owner();
    }
}
