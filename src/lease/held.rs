//! A view of a lease for the code that works under it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use crate::protocol::retry::Tries;
use crate::time::Clock;
use crate::types::{Data, Error, ErrorKind, FencingToken, Lost, MAX_DATA, Name, Operation, Proof, StepDown, Written};

/// A clonable view of a lease, for handlers and tasks. It cannot end the lease.
#[derive(Clone)]
pub struct Held {
    pub(super) core: Arc<Core>,
}

/// How a lease stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The last renewal succeeded.
    Held,
    /// A renewal has failed or a clock has jumped. [`Held::is_held`] says whether it still counts.
    Jeopardy,
    /// It is over.
    Ended(Ended),
}

/// How a lease has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Its owner has released it.
    Released,
    /// Its owner has handed it over to another process.
    HandedOver,
    /// It was lost.
    Lost(Lost),
}

impl Held {
    /// The lease's full name, prefix included.
    pub fn name(&self) -> &Name {
        &self.core.name
    }

    /// The fencing token: send it with every write that the lease guards.
    pub fn token(&self) -> FencingToken {
        self.core.token
    }

    /// What a store needs to check this lease inside a transaction of the caller's:
    /// `DynamoDbStore::condition_check` takes it. Not every store can check one.
    pub fn proof(&self) -> Proof {
        self.core.proof()
    }

    /// Whether it is held at this moment on every clock. Reads the local clocks; no I/O, no waiting.
    ///
    /// A `true` is no promise for the next moment: only the token, checked by the resource, is safe against a pause
    /// that comes right after it.
    pub fn is_held(&self) -> bool {
        self.core.is_held()
    }

    /// For how much longer it is held without another answer from the store; zero when it is not.
    pub fn remaining(&self) -> Duration {
        if self.is_held() { self.core.left() } else { Duration::ZERO }
    }

    /// How it stands, judged now.
    pub fn state(&self) -> State {
        match self.core.judge() {
            Some(ended) => State::Ended(ended),
            None if self.core.is_in_jeopardy() => State::Jeopardy,
            None => State::Held,
        }
    }

    /// A stream of its states, beginning with the next change.
    pub fn watch(&self) -> Watch {
        Watch { held: self.clone(), last: self.state() }
    }

    /// Makes sure that it is held for `span` more, on every clock: renews if need be, up to three times.
    ///
    /// A term can give `0.99 ttl - margin - attempt`: 21.7 s with the defaults.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a whole term cannot give as much, or what is left of the longest hold. [`ErrorKind::Lost`] when the lease is lost.
    /// [`ErrorKind::Unavailable`] when no renewal was answered; the lease may still be held, but not for as long.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ensure(&self, span: Duration) -> Result<(), Error> {
        let most = Duration::from_nanos(self.core.rules.term().saturating_sub(self.core.rules.attempt));
        if span > most {
            let why = format!("a term of this lease can give {most:?} at the most, not {span:?}");
            return Err(self.error(ErrorKind::Invalid, Operation::Renew, why));
        }
        self.still_held(Operation::Renew)?;
        let longest = self.core.longest_left();
        if span > longest {
            let why = format!("its longest hold (at_most) leaves {longest:?}, not {span:?}: no renewal can help");
            return Err(self.error(ErrorKind::Invalid, Operation::Renew, why));
        }
        let mut tries = Tries::default();
        while self.remaining() < span {
            self.core.renew_now().await;
            self.still_held(Operation::Renew)?;
            if self.remaining() >= span || !self.core.until_next_renewal(&mut tries).await {
                break;
            }
            self.still_held(Operation::Renew)?;
        }
        if self.remaining() >= span {
            return Ok(());
        }
        Err(self.error(ErrorKind::Unavailable, Operation::Renew, "no renewal was answered: try again, or stop"))
    }

    /// Stores a payload of at most 4 KiB with the lease. Later payloads win over earlier ones.
    ///
    /// It tries until the payload is known to be stored, or the lease has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is too large, also where the store has no room for it beside what others keep
    /// there: then the lease is renewed without it, and the payload before it stays. [`ErrorKind::Lost`] when the lease
    /// is lost before the payload is known to be stored; then [`Error::written`] may be [`Written::Unknown`].
    ///
    /// # Cancel safety
    /// Not undone: the next renewals carry the payload all the same.
    pub async fn set_data(&self, data: impl AsRef<[u8]>) -> Result<(), Error> {
        let Some(data) = Data::new(data.as_ref()) else {
            let why = format!("a payload has at most {MAX_DATA} bytes, this one has {}", data.as_ref().len());
            return Err(self.error(ErrorKind::Invalid, Operation::SetData, why));
        };
        self.still_held(Operation::SetData)?;
        let number = self.core.set_data(data);
        loop {
            self.core.renew_now().await;
            if self.core.data_accepted() >= number {
                return Ok(());
            }
            let (refused, why) = self.core.data_refused();
            if refused >= number {
                let why = why.as_deref().unwrap_or("the store does not take it");
                return Err(self.error(ErrorKind::Invalid, Operation::SetData, why));
            }
            self.still_held(Operation::SetData).map_err(|error| error.written_if(Written::Unknown))?;
            let pause = self.core.rules.pause(1, self.core.client.jitter());
            self.core.client.clock.sleep(Duration::from_nanos(pause)).await;
            // The keeper's own next try may have carried it meanwhile.
            if self.core.data_accepted() >= number {
                return Ok(());
            }
        }
    }

    /// Whether somebody has asked the holder to finish, as of the last renewal.
    pub fn asked(&self) -> Option<StepDown> {
        self.core.asked()
    }

    /// Waits until somebody has asked the holder to finish ([`Leases::ask`](crate::Leases::ask)), as of the renewal that
    /// has brought it; `None` when the lease ends before.
    ///
    /// An owned future, as that of [`Held::lost`]. With [`Renewal::Manual`](crate::Renewal::Manual) only your own renewals
    /// bring it. On Azure Blob an ask is a revocation, so there it is always `None`.
    ///
    /// # Cancel safety
    /// Safe.
    pub fn until_asked(&self) -> impl Future<Output = Option<StepDown>> + Send + use<> {
        let core = Arc::clone(&self.core);
        async move {
            loop {
                let changed = core.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(asked) = core.asked() {
                    return Some(asked);
                }
                if core.judge().is_some() {
                    return None;
                }
                wait(&core, changed).await;
            }
        }
    }

    /// Waits for the end of the lease: its release, its hand-over or its loss.
    ///
    /// An owned future: it outlives this view. It notices the deadline by itself, within a second of a jump of a
    /// clock, without any answer from the store.
    ///
    /// # Cancel safety
    /// Safe.
    pub fn lost(&self) -> impl Future<Output = Ended> + Send + use<> {
        let core = Arc::clone(&self.core);
        async move { until_ended(&core).await }
    }

    /// The loss, if it is lost.
    pub(super) fn still_held(&self, operation: Operation) -> Result<(), Error> {
        match self.core.judge() {
            None => Ok(()),
            Some(Ended::Lost(lost)) => Err(Error::from(lost).during(operation)),
            Some(_) => Err(self.error(ErrorKind::Invalid, operation, "the lease was released or handed over before")),
        }
    }

    /// Where the recipes get time from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.core.client.clock
    }

    fn error(&self, kind: ErrorKind, operation: Operation, why: impl Into<String>) -> Error {
        Error::new(kind, operation, why).for_name(&self.core.name).on(self.core.client.description.kind)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("name", self.name()).field("token", &self.token()).finish_non_exhaustive()
    }
}

/// A stream of the states of a lease; see [`Held::watch`].
#[derive(Debug)]
pub struct Watch {
    held: Held,
    last: State,
}

impl Watch {
    /// The next state that differs from the last one; `None` after the end. Short states may be skipped.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn changed(&mut self) -> Option<State> {
        if matches!(self.last, State::Ended(_)) {
            return None;
        }
        let held = self.held.clone();
        loop {
            let changed = held.core.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let state = held.state();
            if state != self.last {
                self.last = state.clone();
                return Some(state);
            }
            wait(&held.core, changed).await;
        }
    }
}

pub(super) async fn until_ended(core: &Core) -> Ended {
    loop {
        let changed = core.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if let Some(ended) = core.judge() {
            return ended;
        }
        wait(core, changed).await;
    }
}

/// Waits for news, and for the deadline at the longest.
async fn wait(core: &Core, news: impl Future<Output = ()>) {
    // At least a millisecond, so that rounding cannot make it spin; at most a second, to notice jumps.
    let deadline = core.look_again_in().clamp(Duration::from_millis(1), Duration::from_secs(1));
    tokio::select! {
        biased;
        () = news => {}
        () = core.client.clock.sleep(deadline) => {}
    }
}
