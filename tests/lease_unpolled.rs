//! Futures that are begun and then neither polled nor dropped, and stores that panic: what hangs on them must not take
//! the rest with it.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{
    Answer, Ask, Asked, Claim, Claimed, Description, ErrorKind, FencingToken, Leases, ListPage, MemoryStore, Name,
    Page, Renew, Renewed, Revoke, Revoked, Vacate, Vacated, View,
};
use support::scripted::{Fault, TTL, Verb, client, table};
use tokio::time::{Instant, sleep};

/// Polls it once and leaves it.
fn begin<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    future
}

#[tokio::test(start_paused = true)]
async fn a_renewal_by_the_owner_that_is_not_polled_does_not_stop_the_keeper() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let held = lease.held();
    let hung = store.on(Verb::Renew).fault(Fault::Hang);
    let parked = begin(held.set_data(b"progress"));
    sleep(TTL * 3).await;
    assert_eq!(hung.times(), 1);
    assert!(held.is_held(), "the keeper has gone on");
    let started = Instant::now();
    lease.release().await.unwrap();
    assert!(started.elapsed() <= TTL / 6, "{:?}", started.elapsed());
    drop(parked);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_polled_blocks_the_line_for_a_term_at_the_most() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).fault(Fault::Hang);
    let parked = begin(lease.release());
    let started = Instant::now();
    let next = leases.acquire("job").await.unwrap();
    assert!(started.elapsed() < TTL * 2, "{:?}", started.elapsed());
    drop((parked, next));
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_not_polled_does_not_keep_a_shutdown_from_releasing() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let _busy = b.acquire("busy").await.unwrap();
    let _mine = a.acquire("mine").await.unwrap();
    let waits = a.clone();
    let parked = begin(waits.acquire("busy"));
    store.on(Verb::Release).fault(Fault::AnswerLate(Duration::from_millis(5)));
    let error = a.shutdown(Duration::from_secs(3)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("still under way"), "{error}");
    assert!(b.try_acquire("mine").await.unwrap().acquired().is_some(), "it was released all the same");
    drop(parked);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_for_one_lease_takes_no_other_with_it() {
    let clock = TestClock::new();
    let store = Panics(MemoryStore::like_a_table(clock.another(9)));
    let leases = Leases::builder(store).clock(clock).build().unwrap();
    let (good, bad) = (leases.acquire("good").await.unwrap(), leases.acquire("bad").await.unwrap());
    let lost = bad.held().lost();
    sleep(TTL * 2).await;
    assert!(good.held().is_held());
    assert!(!bad.held().is_held());
    lost.await;
    drop(bad);
    sleep(TTL * 2).await;
    assert_eq!(leases.stats().owed, 0, "a clean-up that panics ends with its term");
    assert!(good.held().is_held());
    good.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_remembered_token_that_leaves_none_above_is_forgotten_when_the_record_is_mended() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let name = Name::new("job").unwrap();
    let mut claim = a_claim(&name, FencingToken::MAX);
    assert!(matches!(store.inner().claim(&claim).await.unwrap().value, Claimed::Granted));
    assert!(a.try_acquire("job").await.unwrap().acquired().is_none());
    store.inner().delete("job");
    claim.token = 1;
    assert!(a.try_acquire("job").await.unwrap().acquired().is_some());
    assert!(b.try_acquire("job").await.unwrap().acquired().is_none());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_dropped_leases_are_released_in_one_round_of_requests_each() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let mut held = Vec::new();
    for number in 0..10_000 {
        held.push(leases.acquire(format!("job/{number}")).await.unwrap());
    }
    store.forget_calls();
    drop(held);
    leases.flush().await;
    assert_eq!((store.count(Verb::Release), store.total(), leases.stats().owed), (10_000, 10_000, 0));
}

fn a_claim(name: &Name, token: u64) -> Claim {
    Claim {
        name: name.clone(),
        token,
        grant: leasehold::store::Grant::from_bits(7),
        ttl_ms: 30_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: leasehold::store::Expect::Vacant,
    }
}

/// Panics whenever the lease `bad` is renewed or released.
#[derive(Debug)]
struct Panics(MemoryStore);

#[async_trait]
impl Store for Panics {
    fn describe(&self) -> Description {
        let mut description = self.0.describe();
        description.renew_batch = 1;
        description
    }
    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.0.claim(claim).await
    }
    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        assert!(renewals.iter().all(|renew| renew.name.as_str() != "bad"), "the store panics");
        self.0.renew(renewals).await
    }
    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        assert!(vacate.name.as_str() != "bad", "the store panics");
        self.0.vacate(vacate).await
    }
    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.0.revoke(revoke).await
    }
    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.0.ask(ask).await
    }
    async fn read(&self, name: &Name) -> Answer<View> {
        self.0.read(name).await
    }
    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.0.list(prefix, page).await
    }
    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}
