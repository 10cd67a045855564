//! What a lease does when nothing goes wrong.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::{Attempt, Ended, ErrorKind, Leases, LostReason, Renewal, Status};
use support::scripted::{Fault, TTL, Verb, client, table};

#[tokio::test(start_paused = true)]
async fn a_lease_is_acquired_renewed_and_released() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    assert_eq!((store.count(Verb::Read), store.count(Verb::Claim)), (1, 1), "it knew no store time");
    tokio::time::sleep(TTL * 5).await;
    assert!(lease.held().is_held());
    assert!((15..=17).contains(&store.count(Verb::Renew)), "{}", store.count(Verb::Renew));
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    let sent = store.count(Verb::Renew);
    tokio::time::sleep(TTL).await;
    assert_eq!(store.count(Verb::Renew), sent, "nothing is renewed after release");
}

#[tokio::test(start_paused = true)]
async fn each_operation_costs_one_request_once_the_store_time_is_known() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    a.inspect("job").await.unwrap();
    b.inspect("job").await.unwrap();
    store.forget_calls();
    let lease = a.acquire("job").await.unwrap();
    assert_eq!(store.total(), 1, "an acquire");
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.holder() == Some("a")));
    assert_eq!(store.total(), 2, "a refused try");
    lease.renew().await.unwrap();
    assert_eq!(store.total(), 3, "a renewal");
    lease.release().await.unwrap();
    assert_eq!(store.total(), 4, "a release");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_is_released_in_the_background() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    drop(leases.acquire("job").await.unwrap());
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    assert_eq!(store.count(Verb::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn waiters_of_one_client_are_served_in_order() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let first = leases.acquire("job").await.unwrap();
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..5 {
        let (leases, order) = (leases.clone(), order.clone());
        waiters.push(tokio::spawn(async move {
            let lease = leases.acquire("job").await.unwrap();
            order.lock().unwrap().push((number, lease.token()));
            lease.release().await.unwrap();
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(leases.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    store.forget_calls();
    first.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let order = order.lock().unwrap();
    assert_eq!(order.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(order.is_sorted_by_key(|(_, token)| *token));
    assert_eq!(store.count(Verb::Claim), 5, "one claim each");
    assert_eq!(store.count(Verb::Read), 0, "a local hand-over reads nothing");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gives_up_after_its_time_and_names_the_holder() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let lease = a.acquire("job").await.unwrap();
    let error = b.acquire_within("job", Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let by = error.held_by().unwrap();
    assert_eq!((by.holder(), by.token()), (Some("a"), Some(lease.token())));
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_a_longest_hold_ends_a_margin_before_it() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").at_most(Duration::from_secs(60)).acquire().await.unwrap();
    let started = tokio::time::Instant::now();
    let Ended::Lost(lost) = lease.held().lost().await else { panic!("not lost") };
    assert_eq!(lost.reason(), &LostReason::AtMost);
    assert_eq!(started.elapsed().as_secs(), 57);
}

#[tokio::test(start_paused = true)]
async fn manual_renewal_sends_nothing_by_itself() {
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).renewal(Renewal::Manual).clock(clock.clone()).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    store.forget_calls();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(lease.held().is_held());
    assert_eq!(store.total(), 0);
    lease.renew().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(lease.held().is_held());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!lease.held().is_held());
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(store.total(), 1);
    drop(lease);
    leases.flush().await;
    assert_eq!(store.count(Verb::Release), 1);
}

/// The waiter must not claim before the release was answered: its claim would be refused by our own old record, and it
/// would wait a whole poll.
#[tokio::test(start_paused = true)]
async fn a_local_waiter_claims_after_the_release_was_answered_and_not_before() {
    for drop_it in [false, true] {
        let (store, clock) = table();
        let leases = client(&store, &clock, "a");
        let lease = leases.acquire("job").await.unwrap();
        let waiter = {
            let leases = leases.clone();
            tokio::spawn(async move { leases.acquire("job").await.unwrap() })
        };
        tokio::time::sleep(Duration::from_millis(1)).await;
        store.forget_calls();
        store.on(Verb::Release).fault(Fault::AnswerLate(Duration::from_millis(40)));
        let started = tokio::time::Instant::now();
        match drop_it {
            true => drop(lease),
            false => drop(lease.release().await.unwrap()),
        }
        waiter.await.unwrap().release().await.unwrap();
        assert!((40..50).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
        assert_eq!((store.count(Verb::Claim), store.count(Verb::Read)), (1, 0), "drop: {drop_it}");
    }
}
