//! Faults of crowds: many contenders, hand-overs between waiters, a shutdown that is not answered.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::{ErrorKind, Leases, Status, StoreErrorKind, Written};
use support::scripted::{Fault, Scripted, Verb, client, table};
use tokio::time::{Instant, sleep};

// H1

#[tokio::test(start_paused = true)]
async fn a_hundred_contenders_in_ten_processes_all_get_it_with_one_claim_a_free_moment_and_process() {
    let (store, clock) = table();
    // A counter of its own for every process.
    let stores: Vec<_> = (0..10).map(|_| Scripted::new(store.inner().clone(), clock.clone())).collect();
    let mut contenders = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        let leases = client(store, &clock.another(number as u64 + 2), "process");
        for _ in 0..10 {
            let leases = leases.clone();
            contenders.push(tokio::spawn(async move {
                let lease = leases.acquire("job").await.unwrap();
                let (token, begun) = (lease.token(), Instant::now());
                sleep(Duration::from_millis(100)).await;
                assert!(lease.held().is_held());
                let ended = Instant::now();
                lease.release().await.unwrap();
                (token, begun, ended)
            }));
        }
    }
    let mut holds = Vec::new();
    for contender in contenders {
        holds.push(contender.await.unwrap());
    }
    holds.sort_by_key(|(token, ..)| *token);
    assert!(holds.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].2 <= pair[1].1), "one after another");
    for store in &stores {
        let (claims, mut moments) = (store.count(Verb::Claim), 0);
        // A free moment is the time between two holds; the first is the one before all.
        for free in holds.iter().map(|(_, begun, _)| *begun) {
            let claimed = claims_at(store, &clock, free);
            assert!(claimed <= 1, "{claimed} claims of one process at once");
            moments += usize::from(claimed > 0);
        }
        assert!(claims <= moments + 1, "{claims} claims for {moments} free moments");
    }
}

/// How many claims were sent at this moment.
fn claims_at(store: &Scripted, clock: &impl leasehold::Clock, at: Instant) -> usize {
    let ago = Instant::now().duration_since(at).as_nanos() as u64;
    let moment = clock.stamp().mono - ago;
    store.calls().iter().filter(|call| call.verb == Verb::Claim && call.at.mono == moment).count()
}

// H2

#[tokio::test(start_paused = true)]
async fn a_clean_release_is_taken_by_a_waiter_of_the_same_process_at_once() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let first = leases.acquire("job").await.unwrap();
    let waits = waiter(&leases);
    sleep(Duration::from_millis(2_345)).await;
    store.forget_calls();
    let released = Instant::now();
    first.release().await.unwrap();
    assert_eq!(waits.await.unwrap(), released);
    assert_eq!((store.count(Verb::Claim), store.count(Verb::Read)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_is_taken_by_a_waiter_of_the_same_process_at_once() {
    // H2
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let first = leases.acquire("job").await.unwrap();
    let waits = waiter(&leases);
    sleep(Duration::from_millis(2_345)).await;
    let released = Instant::now();
    drop(first);
    let waited = waits.await.unwrap() - released;
    assert!(waited <= Duration::from_secs(1), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clean_release_is_taken_by_another_process_within_one_poll() {
    // H2
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    for round in 0..20 {
        let first = a.acquire("job").await.unwrap();
        let waits = waiter(&b);
        sleep(Duration::from_millis(2_000 + round * 50)).await;
        store.forget_calls();
        let released = Instant::now();
        first.release().await.unwrap();
        let waited = waits.await.unwrap() - released;
        assert!(waited <= Duration::from_secs(1), "{waited:?}");
        assert_eq!((store.count(Verb::Claim), store.count(Verb::Read)), (1, 1));
        sleep(Duration::from_millis(10)).await;
    }
}

fn waiter(leases: &Leases) -> tokio::task::JoinHandle<Instant> {
    let leases = leases.clone();
    tokio::spawn(async move {
        let _lease = leases.acquire("job").await.unwrap();
        Instant::now()
    })
}

// H3

async fn shut_down_with(fault: Fault) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let mut held = Vec::new();
    for name in ["jobs/1", "jobs/2", "jobs/3"] {
        held.push(leases.acquire(name).await.unwrap());
    }
    let failed = store.on(Verb::Release).of("jobs/2").always().fault(fault);
    let begun = Instant::now();
    let error = leases.shutdown(Duration::from_secs(12)).await.unwrap_err();
    assert!(begun.elapsed() <= Duration::from_millis(12_001), "{:?}", begun.elapsed());
    assert!(failed.times() >= 1);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("jobs/2") && !text.contains("jobs/1") && !text.contains("jobs/3"), "{text}");
    let looks = client(&store, &clock.another(2), "b");
    for (name, free) in [("jobs/1", true), ("jobs/2", false), ("jobs/3", true)] {
        assert_eq!(looks.inspect(name).await.unwrap().status == Status::Free, free, "{name}");
    }
    assert!(held.iter().all(|lease| !lease.held().is_held()));
    assert_eq!(leases.acquire("more").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_one_failing_release_of_three_releases_the_others_and_names_the_one() {
    shut_down_with(Fault::Fail(StoreErrorKind::Unavailable)).await;
    shut_down_with(Fault::Fail(StoreErrorKind::Denied)).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_one_hanging_release_of_three_keeps_its_deadline_and_names_the_one() {
    // H3
    shut_down_with(Fault::Hang).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_whose_release_is_answered_late_but_in_time_is_a_success() {
    // H3
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let _lease = leases.acquire("job").await.unwrap();
    let failed = store.on(Verb::Release).times(4).fault(Fault::Fail(StoreErrorKind::Unavailable));
    leases.shutdown(Duration::from_secs(20)).await.unwrap();
    assert_eq!(failed.times(), 4);
    assert_eq!(client(&store, &clock, "b").inspect("job").await.unwrap().status, Status::Free);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_waiters_and_claims_that_are_under_way() {
    // H3
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let _held = b.acquire("taken").await.unwrap();
    a.inspect("slow").await.unwrap();
    let slow = store.on(Verb::Claim).of("slow").fault(Fault::AnswerLate(Duration::from_secs(2)));
    let (waits, claims) = (a.clone(), a.clone());
    let waits = tokio::spawn(async move { waits.acquire("taken").await.map(drop) });
    let claims = tokio::spawn(async move { claims.try_acquire("slow").await.map(drop) });
    sleep(Duration::from_secs(1)).await;
    a.shutdown(Duration::from_secs(10)).await.unwrap();
    let errors = [waits.await.unwrap().unwrap_err(), claims.await.unwrap().unwrap_err()];
    let told = errors.map(|error| (error.kind(), error.written()));
    assert_eq!(told, [(ErrorKind::Closed, Written::No), (ErrorKind::Closed, Written::Unknown)]);
    assert_eq!(slow.times(), 1);
    assert_eq!(b.inspect("slow").await.unwrap().status, Status::Free, "the late grant was given back before the end");
}
