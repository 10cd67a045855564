//! A memory store that counts its calls and misbehaves by script: for paused-clock tests of the client.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold::testing::TestClock;
use leasehold::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Clock, Description, Leases, ListPage, MemoryStore, Name, Page, Renew,
    Renewed, Revoke, Revoked, Stamp, Store, StoreError, StoreErrorKind, Vacate, Vacated, View,
};

/// The term of the clients made here.
pub const TTL: Duration = Duration::from_secs(30);

/// A store like a cloud table (its clients judge, and its answers carry a date), and a machine's clock.
///
/// `clock.another(seed)` is another machine's; the store has one of its own.
pub fn table() -> (Scripted, TestClock) {
    let clock = TestClock::new();
    let store = MemoryStore::like_a_table(clock.another(99));
    (Scripted::new(store, clock.clone()), clock)
}

/// A client with a term of 30 s, and so a margin of 3 s, an attempt of 5 s and a renewal every 10 s.
pub fn client(store: &Scripted, clock: &TestClock, holder: &str) -> Leases {
    Leases::builder(store.clone()).holder(holder).ttl(TTL).clock(clock.clone()).build().unwrap()
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Claim,
    Renew,
    Release,
    Burn,
    Revoke,
    Ask,
    Read,
    List,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It never arrives; the caller sees a broken connection.
    LoseRequest,
    /// It is applied; the caller sees a broken connection.
    LoseAnswer,
    /// The caller sees a broken connection at once; it is applied so much later.
    ApplyLate(Duration),
    /// It arrives so much later, if its caller still waits: it is counted when it is sent and when it arrives.
    ArriveLate(Duration),
    /// It is applied, and answered so much later.
    AnswerLate(Duration),
    /// It is applied and answered, and a second copy is applied so much later.
    Twice(Duration),
    /// It is applied twice at once, as by a proxy that repeats it, and the caller sees the second answer.
    Repeated,
    /// It never arrives and is never answered.
    Hang,
    /// It is refused with this kind and not applied.
    Fail(StoreErrorKind),
    /// It is applied, and answered with this kind: whether it was applied is not known.
    FailAfterApplying(StoreErrorKind),
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Call {
    pub verb: Verb,
    pub name: String,
    pub at: Stamp,
}

/// A memory store that counts its calls and misbehaves by script. Clones share both.
#[derive(Clone, Debug)]
pub struct Scripted {
    inner: MemoryStore,
    clock: Arc<dyn Clock>,
    rules: Arc<Mutex<Vec<Rule>>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

#[derive(Debug)]
struct Rule {
    verb: Verb,
    name: Option<String>,
    skip: usize,
    left: usize,
    /// Of a thousand matching calls, and the state of the dice.
    share: (u64, u64),
    fault: Fault,
    happened: Arc<AtomicUsize>,
}

/// A fault being scripted.
#[derive(Debug)]
pub struct On<'a> {
    store: &'a Scripted,
    verb: Verb,
    name: Option<String>,
    skip: usize,
    times: usize,
    share: (u64, u64),
}

/// How often a fault has happened.
#[derive(Clone, Debug)]
pub struct Happened(Arc<AtomicUsize>);

impl Happened {
    pub fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Scripted {
    pub fn new(inner: MemoryStore, clock: impl Clock) -> Self {
        Self { inner, clock: Arc::new(clock), rules: Arc::default(), calls: Arc::default() }
    }

    /// Scripts a fault of the next calls of this verb.
    pub fn on(&self, verb: Verb) -> On<'_> {
        On { store: self, verb, name: None, skip: 0, times: 1, share: (1000, 0) }
    }

    /// Forgets all faults.
    pub fn heal(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// The store below, to act as somebody else.
    pub fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub fn count(&self, verb: Verb) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.verb == verb).count()
    }

    pub fn total(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    pub fn forget_calls(&self) {
        self.calls.lock().unwrap().clear();
    }

    fn arrives(&self, verb: Verb, name: &str) -> Option<Fault> {
        let call = Call { verb, name: name.to_owned(), at: self.clock.stamp() };
        self.calls.lock().unwrap().push(call);
        let mut rules = self.rules.lock().unwrap();
        let rule = rules
            .iter_mut()
            .find(|rule| rule.verb == verb && rule.left > 0 && rule.name.as_deref().is_none_or(|only| only == name))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        let (of_thousand, dice) = &mut rule.share;
        // Knuth's generator: its upper bits are good enough for a coin.
        *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (*dice >> 33) % 1000 >= *of_thousand {
            return None;
        }
        rule.left -= 1;
        rule.happened.fetch_add(1, Ordering::SeqCst);
        Some(rule.fault)
    }

    async fn through<T, F, Fut>(&self, verb: Verb, name: &Name, call: F) -> Answer<T>
    where
        F: Fn(MemoryStore) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer<T>> + Send,
        T: Send,
    {
        let fault = self.arrives(verb, name.as_str());
        let (inner, clock) = (self.inner.clone(), Arc::clone(&self.clock));
        match fault {
            None => call(inner).await,
            Some(Fault::LoseRequest) => Err(broken(StoreErrorKind::Unavailable, Applied::Unknown)),
            Some(Fault::LoseAnswer) => {
                call(inner).await?;
                Err(broken(StoreErrorKind::Unavailable, Applied::Unknown))
            }
            Some(Fault::ApplyLate(late)) => {
                tokio::spawn(async move {
                    clock.sleep(late).await;
                    let _ = call(inner).await;
                });
                Err(broken(StoreErrorKind::Unavailable, Applied::Unknown))
            }
            Some(Fault::ArriveLate(late)) => {
                clock.sleep(late).await;
                let arrived = Call { verb, name: name.as_str().to_owned(), at: clock.stamp() };
                self.calls.lock().unwrap().push(arrived);
                call(inner).await
            }
            Some(Fault::AnswerLate(late)) => {
                let answer = call(inner).await;
                clock.sleep(late).await;
                answer
            }
            Some(Fault::Twice(late)) => {
                let answer = call(inner.clone()).await;
                tokio::spawn(async move {
                    clock.sleep(late).await;
                    let _ = call(inner).await;
                });
                answer
            }
            Some(Fault::Repeated) => {
                call(inner.clone()).await?;
                call(inner).await
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Fail(kind)) => Err(broken(kind, Applied::No)),
            Some(Fault::FailAfterApplying(kind)) => {
                call(inner).await?;
                Err(broken(kind, Applied::Unknown))
            }
        }
    }
}

impl On<'_> {
    /// Only calls for this lease.
    pub fn of(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Lets so many calls through first.
    pub fn after(mut self, calls: usize) -> Self {
        self.skip = calls;
        self
    }

    /// So many calls; one if it is not said.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Only so many of a thousand; the same seed picks the same ones.
    pub fn share(mut self, of_thousand: u64, seed: u64) -> Self {
        self.share = (of_thousand, seed);
        self
    }

    /// All calls from then on.
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    pub fn fault(self, fault: Fault) -> Happened {
        let happened = Arc::new(AtomicUsize::new(0));
        let Self { store, verb, name, skip, times: left, share } = self;
        let rule = Rule { verb, name, skip, left, share, fault, happened: Arc::clone(&happened) };
        store.rules.lock().unwrap().push(rule);
        Happened(happened)
    }
}

#[async_trait]
impl Store for Scripted {
    fn describe(&self) -> Description {
        let mut description = self.inner.describe();
        // One answer a call, so that a fault hits one renewal.
        description.renew_batch = 1;
        description
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        let body = claim.clone();
        self.through(Verb::Claim, &claim.name, move |store| {
            let body = body.clone();
            async move { store.claim(&body).await }
        })
        .await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let mut answers = Vec::new();
        for renew in renewals {
            let body = renew.clone();
            let answer = self.through(Verb::Renew, &renew.name, move |store| {
                let body = body.clone();
                async move { store.renew(&[body]).await.remove(0) }
            });
            answers.push(answer.await);
        }
        answers
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        let body = vacate.clone();
        let verb = if vacate.burn { Verb::Burn } else { Verb::Release };
        self.through(verb, &vacate.name, move |store| {
            let body = body.clone();
            async move { store.vacate(&body).await }
        })
        .await
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        let body = revoke.clone();
        self.through(Verb::Revoke, &revoke.name, move |store| {
            let body = body.clone();
            async move { store.revoke(&body).await }
        })
        .await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let body = ask.clone();
        self.through(Verb::Ask, &ask.name, move |store| {
            let body = body.clone();
            async move { store.ask(&body).await }
        })
        .await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let body = name.clone();
        self.through(Verb::Read, name, move |store| {
            let body = body.clone();
            async move { store.read(&body).await }
        })
        .await
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.inner.list(prefix, page).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

fn broken(kind: StoreErrorKind, applied: Applied) -> StoreError {
    StoreError::new(kind, applied, format!("scripted: {kind:?}"))
}
