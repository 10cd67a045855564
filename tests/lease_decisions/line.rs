//! `src/lease/line.rs`: who waits within one client, and for whom.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Attempt, ErrorKind, Leases, Renewal, StoreErrorKind};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::SECOND;
use crate::core::own;
use crate::support::counting_sleeps::CountingSleeps;
use crate::support::scripted::{Fault, Verb, client, table};
use crate::told::{Said, Told, held, leased, stands, that_judges};

#[tokio::test(start_paused = true)]
async fn a_try_behind_a_waiter_is_answered_without_a_request() {
    let store = Told::new(that_judges(), [stands(leasehold::Standing::Held, held(7))]);
    let leases = store.client();
    let waiter = leases.clone();
    let waiter = tokio::spawn(async move { waiter.acquire("job").await.map(drop) });
    yield_now().await;
    let sent = store.total();
    let Attempt::Held(by) = leases.try_acquire("job").await.unwrap() else { panic!("a waiter comes first") };
    assert_eq!((by.is_own(), by.token(), by.holder(), by.of()), (false, None, None, None));
    assert_eq!((store.total(), leases.stats().waiting), (sent, 1));
    waiter.abort();
    let _ = waiter.await;
    assert_eq!(leases.stats().waiting, 0);
    let Attempt::Held(by) = leases.try_acquire("job").await.unwrap() else { panic!("the rival has it") };
    assert_eq!((by.holder(), store.total() > sent), (Some("rival"), true));
}

#[tokio::test(start_paused = true)]
async fn waiters_of_one_client_look_with_one_poller() {
    let store = Told::new(that_judges(), [stands(leasehold::Standing::Held, held(7))]);
    let leases = store.client();
    for _ in 0..5 {
        let waiter = leases.clone();
        tokio::spawn(async move { waiter.acquire("job").await.map(drop) });
    }
    sleep(SECOND * 30).await;
    assert!((30..=61).contains(&store.total()), "{}", store.total());
    assert_eq!(leases.stats().waiting, 5);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_their_order_and_each_as_soon_as_the_one_before_has_released() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let first = leases.acquire("job").await.unwrap();
    let (told, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..3 {
        let (leases, told) = (leases.clone(), told.clone());
        tokio::spawn(async move {
            let lease = leases.acquire("job").await.unwrap();
            told.send((number, Instant::now())).unwrap();
            sleep(SECOND / 3).await;
            lease.release().await.unwrap();
        });
        yield_now().await;
    }
    sleep(SECOND / 2).await;
    let released = Instant::now();
    first.release().await.unwrap();
    for number in 0..3 {
        let (served, at) = order.recv().await.unwrap();
        assert_eq!(served, number);
        let after = at - released;
        let most = SECOND / 3 * number + Duration::from_millis(20);
        assert!(after >= SECOND / 3 * number && after < most, "{number}: {after:?}");
    }
}

/// Shuts the client down while somebody waits, and says when that began.
async fn a_waiter_ends_at_once_with(leases: &Leases) -> Instant {
    let waiter = leases.clone();
    let waiter = tokio::spawn(async move {
        let error = waiter.acquire("job").await.map(drop).unwrap_err();
        (error.kind(), Instant::now())
    });
    sleep(SECOND / 3).await;
    let begun = Instant::now();
    leases.shutdown(SECOND * 5).await.unwrap();
    let (kind, at) = waiter.await.unwrap();
    assert_eq!((kind, at - begun), (ErrorKind::Closed, Duration::ZERO));
    begun
}

#[tokio::test(start_paused = true)]
async fn a_waiter_behind_the_clients_own_lease_ends_with_the_client_at_once() {
    let (_store, leases, lease) = leased(Renewal::Task, [Said::Accepts]).await;
    a_waiter_ends_at_once_with(&leases).await;
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_lets_the_next_one_go_on_at_once() {
    let store = Told::new(that_judges(), [Said::Hangs]);
    let leases = store.client();
    let (first, second) = (leases.clone(), leases.clone());
    let first = tokio::spawn(async move { first.acquire("job").await.map(drop) });
    yield_now().await;
    let second = tokio::spawn(async move { second.acquire("job").await.map(drop) });
    sleep(SECOND / 3).await;
    assert_eq!(store.total(), 1);
    store.says([Said::Accepts]);
    let begun = Instant::now();
    first.abort();
    second.await.unwrap().unwrap();
    assert!(begun.elapsed() < SECOND / 100, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_for_a_lease_of_this_client_claims_without_a_look() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    let waiter = leases.clone();
    let waiter = tokio::spawn(async move { waiter.acquire("job").await.unwrap().token().as_u64() });
    yield_now().await;
    let sent = store.total();
    lease.release().await.unwrap();
    assert_eq!(waiter.await.unwrap(), 2, "above the token that it has waited for");
    let claims = store.sent().claims;
    assert_eq!((store.total() - sent >= 2, claims.len(), claims[1].token), (true, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_a_release_that_failed_is_in_nobodys_way() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").renewal(Renewal::Manual).acquire().await.unwrap();
    store.on(Verb::Release).times(3).fault(Fault::Fail(StoreErrorKind::Unavailable));
    lease.release().await.unwrap_err();
    let begun = Instant::now();
    let next = leases.request("job").renewal(Renewal::Manual).acquire().await.unwrap();
    assert_eq!((begun.elapsed(), store.count(Verb::Release)), (Duration::ZERO, 4), "sent before the claim");
    own(leases.try_acquire("job").await.unwrap());
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_lease_past_its_deadline_is_in_nobodys_way() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    sleep(crate::TERM).await;
    let claims = store.sent().claims.len();
    let next = leases.request("job").renewal(Renewal::Manual).try_acquire().await.unwrap();
    assert!(matches!(next, Attempt::Acquired(_)));
    assert_eq!(store.sent().claims.len(), claims + 1);
    drop(lease);
    let by = own(leases.try_acquire("job").await.unwrap());
    assert_eq!(by.token().map(|token| token.as_u64()), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_ends_with_the_client_also_while_the_lease_before_it_is_still_being_released() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).fault(Fault::AnswerLate(SECOND * 3));
    let begun = a_waiter_ends_at_once_with(&leases).await;
    assert!(begun.elapsed() >= SECOND * 3);
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_goes_on_at_the_deadline_of_a_lease_that_nobody_looks_at() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    let begun = Instant::now();
    sleep(SECOND / 3).await;
    let next = leases.request("job").renewal(Renewal::Manual).acquire().await.unwrap();
    let after = begun.elapsed();
    assert!((crate::TERM..crate::TERM + SECOND / 100).contains(&after), "{after:?}");
    assert_eq!(store.sent().claims.len(), 2);
    drop((lease, next));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_nobody_polls_is_in_the_way_for_a_term_and_then_for_nobody() {
    let (store, leases, lease) = leased(Renewal::Task, [Said::Hangs]).await;
    let mut releasing = Box::pin(lease.release());
    tokio::select! {
        biased;
        _ = &mut releasing => panic!("it is not answered"),
        () = yield_now() => {}
    }
    store.says([Said::Accepts]);
    sleep(SECOND * 29).await;
    own(leases.try_acquire("job").await.unwrap());
    sleep(SECOND * 2).await;
    assert!(matches!(leases.try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
    drop(releasing);
}

#[tokio::test(start_paused = true)]
async fn what_was_watched_of_a_name_is_remembered_over_tries_of_others() {
    let rival = stands(leasehold::Standing::Held, held(7));
    let store = Told::new(crate::told::described(leasehold::ExpiryJudge::Client, false), [rival]);
    let leases = store.client();
    for name in ["job", "second", "third", "job"] {
        let Attempt::Held(by) = leases.try_acquire(name).await.unwrap() else { panic!("the rival has it") };
        let watched = if name == "job" && store.total() > 3 { SECOND * 3 } else { Duration::ZERO };
        assert_eq!((by.unchanged_for(), by.of()), (watched, Some(SECOND * 30 + SECOND * 3 / 10)), "{name}");
        sleep(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_watched_is_remembered_of_ten_to_twenty_thousand_names_and_no_more() {
    let rival = stands(leasehold::Standing::Held, held(7));
    let store = Told::new(crate::told::described(leasehold::ExpiryJudge::Client, false), [rival]);
    let leases = store.client();
    let watched = async |name: &str| match leases.try_acquire(name).await.unwrap() {
        Attempt::Held(by) => by.unchanged_for(),
        Attempt::Acquired(_) => panic!("the rival has it"),
    };
    for name in ["one", "two"] {
        assert_eq!(watched(name).await, Duration::ZERO);
    }
    sleep(SECOND).await;
    for number in 0..10_000 {
        watched(&number.to_string()).await;
    }
    assert_eq!(watched("one").await, SECOND);
    for number in 10_000..20_000 {
        watched(&number.to_string()).await;
    }
    assert_eq!(watched("two").await, Duration::ZERO);
    assert_eq!(watched("one").await, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_behind_a_lease_that_is_being_released_looks_once_a_second() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let clock = CountingSleeps(TestClock::new(), Arc::default());
    let leases = store.builder().clock(clock.clone()).renewal(Renewal::Manual).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    store.says([Said::Hangs]);
    let releasing = tokio::spawn(async move { lease.release().await.map(drop) });
    yield_now().await;
    let waiter = tokio::spawn(async move { leases.acquire("job").await.map(drop) });
    let before = clock.1.load(Ordering::Relaxed);
    sleep(SECOND * 4).await;
    let slept = clock.1.load(Ordering::Relaxed) - before;
    assert!((3..=6).contains(&slept), "{slept}");
    waiter.abort();
    releasing.abort();
}
