//! The way to the store: every request of a client goes through here.
//!
//! Stamps the local clocks around it, bounds it, learns the store's time from its answer, counts and logs it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

use super::stats::{Failures, Requests, Verb};
use crate::protocol::rules::Clocks;
use crate::protocol::store_time::StoreTime;
use crate::store::Store;
use crate::time::{self, Clock};
use crate::types::{
    Answer, Applied, Ask, Asked, Claim, Claimed, ListPage, Name, Page, Renew, Renewed, Revoke, Revoked, Sample, Stamp,
    StoreError, StoreErrorKind, TokenFloor, Vacate, Vacated, View,
};

/// The way to the store.
#[derive(Debug)]
pub(super) struct Port {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    clocks: Clocks,
    time: Mutex<StoreTime>,
    /// Where the calls run, if not where they are made (thread mode).
    runtime: Mutex<Option<Handle>>,
    pub(super) requests: Requests,
    pub(super) failures: Failures,
}

/// A store's value with what its date says.
pub(super) type Seen<T> = Result<(T, Option<Sample>), StoreError>;

impl Port {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, clocks: Clocks) -> Self {
        let (time, runtime) = (Mutex::default(), Mutex::default());
        Self { store, clock, clocks, time, runtime, requests: Requests::default(), failures: Failures::default() }
    }

    /// From now on the calls run on this runtime.
    pub(super) fn run_on(&self, runtime: Option<Handle>) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = runtime;
    }

    /// What is known of the store's clock.
    pub(super) fn time(&self) -> StoreTime {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's late end now in the records' milliseconds.
    pub(super) fn late_now_ms(&self) -> Option<u64> {
        let late = self.time().interval(&self.clock.stamp(), &self.clocks)?.1;
        Some(self.clocks.millis_up(late))
    }

    /// The lowest token that the store asks for now.
    pub(super) fn token_floor(&self, now: &Stamp) -> TokenFloor {
        self.store.token_floor(now)
    }

    pub(super) async fn claim(&self, limit: Duration, claim: Claim) -> Seen<Claimed> {
        self.call(Verb::Claim, limit, |store| async move { store.claim(&claim).await }).await
    }

    pub(super) async fn read(&self, limit: Duration, name: Name) -> Seen<View> {
        self.call(Verb::Read, limit, |store| async move { store.read(&name).await }).await
    }

    pub(super) async fn vacate(&self, limit: Duration, vacate: Vacate) -> Seen<Vacated> {
        let verb = if vacate.burn { Verb::Burn } else { Verb::Release };
        self.call(verb, limit, |store| async move { store.vacate(&vacate).await }).await
    }

    pub(super) async fn revoke(&self, limit: Duration, revoke: Revoke) -> Seen<Revoked> {
        self.call(Verb::Revoke, limit, |store| async move { store.revoke(&revoke).await }).await
    }

    pub(super) async fn ask(&self, limit: Duration, ask: Ask) -> Seen<Asked> {
        self.call(Verb::Ask, limit, |store| async move { store.ask(&ask).await }).await
    }

    pub(super) async fn list(&self, limit: Duration, prefix: String, page: Option<Page>) -> Seen<ListPage> {
        self.call(Verb::List, limit, |store| async move { store.list(&prefix, page).await }).await
    }

    /// One attempt for several grants; one answer each.
    pub(super) async fn renew(&self, limit: Duration, bodies: Vec<Renew>) -> Vec<Seen<Renewed>> {
        let count = bodies.len();
        self.requests.count_more(Verb::Renew, count as u64);
        let sent = self.clock.stamp();
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let answers = self
            .run(async move { time::within(&*clock, limit, async { store.renew(&bodies).await }).await })
            .await
            .unwrap_or(None);
        let mut answers = answers.unwrap_or_default();
        answers.resize_with(count, || Err(no_answer()));
        answers.into_iter().map(|answer| self.stamped(Verb::Renew, answer, sent)).collect()
    }

    async fn call<T, F, Fut>(&self, verb: Verb, limit: Duration, request: F) -> Seen<T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<dyn Store>) -> Fut,
        Fut: Future<Output = Answer<T>> + Send + 'static,
    {
        self.requests.count_more(verb, 1);
        let sent = self.clock.stamp();
        let (answer, clock) = (request(Arc::clone(&self.store)), Arc::clone(&self.clock));
        let answer = self.run(async move { time::within(&*clock, limit, answer).await }).await;
        let answer = answer.unwrap_or(None).unwrap_or_else(|| Err(no_answer()));
        self.stamped(verb, answer, sent)
    }

    /// Runs it here, or on the runtime that drives this client's connections. `None` if that one has ended, or the
    /// store has panicked.
    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let elsewhere = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match elsewhere {
            // Bound to this call: dropped half-way it must not go on by itself, least of all after a release.
            Some(runtime) => Bound(runtime.spawn(work)).await.ok(),
            // A store that panics must not take with it whoever called, least of all the keeper of all leases.
            None => AssertUnwindSafe(work).catch_unwind().await.ok(),
        }
    }

    fn stamped<T>(&self, verb: Verb, answer: Answer<T>, sent: Stamp) -> Seen<T> {
        let received = self.clock.stamp();
        let date_ms = match &answer {
            Ok(answer) => answer.date_ms,
            Err(error) => error.date_ms,
        };
        let sample = date_ms.map(|ms| Sample { date: self.clocks.units(ms), sent, received });
        if let Some(sample) = sample {
            let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
            time.learn(sample, &received, &self.clocks);
        }
        if let Err(error) = &answer {
            let (op, kind) = (verb.as_str(), error.kind);
            self.failures.count(kind);
            tracing::debug!(op, outcome = ?kind, applied = ?error.applied, error = %error, "a request failed");
        }
        answer.map(|answer| (answer.value, sample))
    }
}

/// A task that ends with the one who waits for it.
struct Bound<T>(JoinHandle<T>);

impl<T> Future for Bound<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::TimedOut, Applied::Unknown, "no answer in time, or the store has panicked")
}
