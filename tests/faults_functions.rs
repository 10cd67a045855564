//! Faults of functions: frozen, without background work, with a client that outlives its runtime.
#![allow(clippy::disallowed_methods, reason = "tests sleep, mostly on a paused clock")]

mod support;

use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Ended, ErrorKind, Lease, Leases, LostReason, MemoryStore, Renewal, State, Status, SystemClock,
};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::sleep;

fn manual(store: &Scripted, clock: &TestClock) -> Leases {
    Leases::builder(store.clone()).ttl(TTL).renewal(Renewal::Manual).clock(clock.clone()).build().unwrap()
}

async fn held_manually() -> (Scripted, TestClock, Leases, Lease) {
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = leases.acquire("job").await.unwrap();
    assert!(lease.held().is_held());
    store.forget_calls();
    (store, clock, leases, lease)
}

fn reason(lease: &Lease) -> LostReason {
    match lease.held().state() {
        State::Ended(Ended::Lost(lost)) => lost.reason().clone(),
        state => panic!("not lost: {state:?}"),
    }
}

// F1

#[tokio::test(start_paused = true)]
async fn a_function_frozen_while_its_clocks_ran_on_does_not_hold_before_any_request() {
    let (store, _clock, _leases, lease) = held_manually().await;
    sleep(TTL * 3).await;
    assert!(!lease.held().is_held());
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(reason(&lease), LostReason::Deadline);
    assert_eq!(store.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_function_suspended_while_one_clock_ran_on_does_not_hold_before_any_request() {
    // F1
    let (store, clock, _leases, lease) = held_manually().await;
    clock.suspend(TTL * 3);
    assert!(!lease.held().is_held());
    assert_eq!(reason(&lease), LostReason::Deadline);
    assert_eq!(store.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_frozen_function_makes_sure_of_before_its_effect_is_refused_before_any_request() {
    // F1
    let (store, clock, _leases, lease) = held_manually().await;
    clock.suspend(TTL * 3);
    let error = lease.held().ensure(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!((error.kind(), store.total()), (ErrorKind::Lost, 0));
}

#[tokio::test(start_paused = true)]
async fn a_function_frozen_with_all_clocks_learns_it_from_its_first_renewal() {
    // F1
    let (store, clock, _leases, lease) = held_manually().await;
    clock.freeze();
    sleep(TTL * 3).await;
    clock.thaw();
    let error = lease.renew().await.unwrap_err();
    assert_eq!((error.kind(), store.count(Verb::Renew)), (ErrorKind::Lost, 1), "the first renewal says so");
    assert!(!lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_function_frozen_with_all_clocks_learns_who_has_taken_over() {
    // F1
    let (store, clock, _leases, lease) = held_manually().await;
    clock.freeze();
    let rival = client(&store, &clock.another(2), "rival").acquire("job").await.unwrap();
    clock.thaw();
    assert!(rival.token() > lease.token());
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(
        matches!(reason(&lease), LostReason::Taken { holder: Some(by), token } if by.as_str() == "rival" && token == rival.token())
    );
    assert!(rival.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_function_frozen_for_less_than_its_term_holds_no_longer_than_a_rival_waits() {
    // F1: 20 s of its 30 s passed unseen. After a renewal it stops a margin before a rival may begin.
    let (store, clock, _leases, lease) = held_manually().await;
    clock.freeze();
    sleep(Duration::from_secs(20)).await;
    clock.thaw();
    lease.renew().await.unwrap();
    let rival = client(&store, &clock.another(2), "rival");
    let waits = tokio::spawn(async move { rival.acquire("job").await.unwrap() });
    let started = tokio::time::Instant::now();
    lease.held().lost().await;
    let lost = started.elapsed();
    let _rival = waits.await.unwrap();
    let margin = started.elapsed() - lost;
    assert!(margin >= Duration::from_secs(3), "only {margin:?}");
}

// F2

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_nothing_runs_and_nothing_is_sent_after_the_handler_has_returned() {
    let (store, _clock, leases, lease) = held_manually().await;
    drop(lease);
    let kept = leases.acquire("kept").await.unwrap();
    assert_eq!(store.count(Verb::Release), 1, "the next call has sent the release that was owed");
    drop(leases.acquire("other").await.unwrap());
    store.forget_calls();
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    sleep(TTL * 10).await;
    assert_eq!(store.total(), 0);
    assert_eq!((leases.stats().owed, kept.held().is_held()), (1, false));
}

#[tokio::test]
async fn with_manual_renewal_no_thread_is_started() {
    // F2. The control is a client with a thread of its own.
    for (renewal, threads) in [(Renewal::Manual, 0), (Renewal::Thread, 1)] {
        let leases = Leases::builder(MemoryStore::new()).renewal(renewal).build().unwrap();
        let lease = leases.acquire("job").await.unwrap();
        lease.renew().await.unwrap();
        assert_eq!(keeper_threads(), threads, "{renewal:?}");
        lease.release().await.unwrap();
    }
}

/// The system shows 15 letters of a name.
fn keeper_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux");
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("leasehold-keepe")).count()
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_was_cancelled_in_manual_mode_is_cleaned_up_by_the_next_call() {
    // F2
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    leases.inspect("job").await.unwrap();
    let hung = store.on(Verb::Claim).fault(support::scripted::Fault::Hang);
    assert!(tokio::time::timeout(Duration::from_secs(1), leases.acquire("job")).await.is_err());
    store.forget_calls();
    sleep(Duration::from_secs(5)).await;
    assert_eq!((hung.times(), store.total(), leases.stats().owed), (1, 0, 1));
    let _lease = leases.acquire("other").await.unwrap();
    assert_eq!((store.count(Verb::Burn), leases.stats().owed), (1, 0));
}

// F5

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

static STORE: LazyLock<Scripted> = LazyLock::new(|| Scripted::new(MemoryStore::new(), SystemClock));
static LEASES: LazyLock<Leases> = LazyLock::new(|| short(&STORE));

fn short(store: &Scripted) -> Leases {
    let (ttl, margin) = (Duration::from_millis(900), Duration::from_millis(30));
    Leases::builder(store.clone()).ttl(ttl).margin(margin).build().unwrap()
}

#[test]
fn a_client_in_a_static_loses_the_leases_of_its_first_runtime_and_works_in_the_second() {
    let first = runtime();
    let (old, other) =
        first.block_on(async { (LEASES.acquire("job").await.unwrap(), LEASES.acquire("other").await.unwrap()) });
    assert!(old.held().is_held());
    drop(first);
    assert_eq!((reason(&old), reason(&other)), (LostReason::KeeperGone, LostReason::KeeperGone));
    assert_eq!(LEASES.stats().lost["keeper_gone"], 2);
    let (renewed, token) = (STORE.count(Verb::Renew), old.token());
    drop(old);
    runtime().block_on(async {
        let lease = LEASES.acquire("job").await.unwrap();
        assert!(lease.token() > token);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(lease.held().is_held(), "renewed by a keeper of the second runtime");
        assert!(STORE.count(Verb::Renew) >= renewed + 4);
        assert!(matches!(LEASES.try_acquire("job").await.unwrap(), Attempt::Held(_)));
        lease.release().await.unwrap();
    });
    drop(other);
}

#[test]
fn every_runtime_of_many_begins_with_a_keeper_of_its_own() {
    // F5: what the old keeper left behind must not confuse the next one.
    let leases = short(&Scripted::new(MemoryStore::new(), SystemClock));
    for round in 0..3 {
        let runtime = runtime();
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        let held = runtime.block_on(async {
            let mut held = Vec::new();
            for name in &names {
                held.push(leases.acquire(name).await.unwrap());
            }
            tokio::time::sleep(Duration::from_millis(1200)).await;
            held
        });
        assert!(held.iter().all(|lease| lease.held().is_held()), "round {round}");
        drop(runtime);
        assert!(held.iter().all(|lease| reason(lease) == LostReason::KeeperGone));
    }
}

#[test]
fn outside_of_a_runtime_the_error_says_what_to_do_and_nothing_is_sent() {
    // F5
    for renewal in [Renewal::Task, Renewal::Thread, Renewal::Manual] {
        let store = Scripted::new(MemoryStore::new(), SystemClock);
        let leases = Leases::builder(store.clone()).renewal(renewal).build().unwrap();
        let mut acquire = pin!(leases.acquire("job"));
        let Poll::Ready(Err(error)) = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("no error")
        };
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("no tokio runtime here: call it inside one"), "{error}");
        assert_eq!(store.total(), 0);
    }
}

#[test]
fn what_a_runtime_left_owed_is_settled_in_the_next() {
    // F5
    let store = Scripted::new(MemoryStore::new(), SystemClock);
    let leases = short(&store);
    let first = runtime();
    let lease = first.block_on(leases.acquire("job")).unwrap();
    drop(first);
    drop(lease);
    assert_eq!(leases.stats().owed, 1);
    runtime().block_on(async {
        leases.flush().await;
        assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    });
    assert_eq!((store.count(Verb::Release), leases.stats().owed), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_the_longest_hold_ends_it_although_nobody_ticks() {
    // A6
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = leases.request("job").at_most(Duration::from_secs(20)).acquire().await.unwrap();
    let held = lease.held();
    sleep(Duration::from_secs(16)).await;
    assert!(held.is_held());
    sleep(Duration::from_secs(1)).await;
    assert!(!held.is_held(), "the stop signal comes a margin of 3 s before the end");
}

#[tokio::test(start_paused = true)]
async fn past_the_invocations_deadline_a_manual_renewal_is_refused_before_any_request() {
    // A6
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = leases.request("job").at_most(Duration::from_secs(20)).acquire().await.unwrap();
    sleep(Duration::from_secs(15)).await;
    lease.renew().await.unwrap();
    sleep(Duration::from_secs(2)).await;
    store.forget_calls();
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((reason(&lease), store.total()), (LostReason::AtMost, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_later_than_the_term_ends_nothing_before_it_while_the_function_renews() {
    // A6
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = leases.request("job").at_most(TTL * 3).acquire().await.unwrap();
    for _ in 0..5 {
        sleep(TTL / 2).await;
        lease.renew().await.unwrap();
    }
    assert!(lease.held().is_held(), "two terms and a half are over");
    sleep(TTL / 2).await;
    assert!(!lease.held().is_held(), "and now the deadline is");
}

#[tokio::test(start_paused = true)]
async fn a_manual_waiter_takes_over_from_its_own_clients_dropped_lease_at_once() {
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = leases.acquire("job").await.unwrap();
    let waiter = {
        let leases = leases.clone();
        tokio::spawn(async move { leases.acquire("job").await.unwrap() })
    };
    sleep(Duration::from_millis(10)).await;
    store.forget_calls();
    drop(lease);
    let started = tokio::time::Instant::now();
    let _lease = waiter.await.unwrap();
    assert!(started.elapsed() < Duration::from_millis(10), "{:?}", started.elapsed());
    assert_eq!((store.count(Verb::Release), store.count(Verb::Claim), store.count(Verb::Read)), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_manual_renewal_whose_rival_was_cancelled_is_not_called_done() {
    let (store, clock) = table();
    let leases = manual(&store, &clock);
    let lease = std::sync::Arc::new(leases.acquire("job").await.unwrap());
    store.on(Verb::Renew).fault(Fault::Hang);
    let cancelled = {
        let lease = lease.clone();
        tokio::spawn(async move { tokio::time::timeout(Duration::from_secs(1), lease.renew()).await.is_err() })
    };
    sleep(Duration::from_millis(10)).await;
    let before = store.count(Verb::Renew);
    lease.renew().await.unwrap();
    assert!(cancelled.await.unwrap());
    assert_eq!(store.count(Verb::Renew) - before, 1, "one of its own, and that was answered");
    sleep(Duration::from_secs(20)).await;
    assert!(lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_whose_release_hangs_past_the_deadline_is_not_said_to_have_ended_while_one_is_owed() {
    // I10
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).ttl(TTL).clock(clock).renewal(Renewal::Manual).build().unwrap();
    let lease = leases.request("job").at_most(Duration::from_secs(20)).acquire().await.unwrap();
    sleep(Duration::from_secs(21)).await;
    store.on(Verb::Release).fault(Fault::Hang);
    let error = lease.release().await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, leasehold::Written::Unknown));
    assert_eq!(store.count(Verb::Release), 1);
    leases.flush().await;
    assert_eq!(store.count(Verb::Release), 2, "by the next call");
}
