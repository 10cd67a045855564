//! `src/lease/core.rs`: one lease: its renewals, and who is kept waiting by it.

use std::time::Duration;

use leasehold::{
    Applied, Attempt, Data, Ended, ErrorKind, HeldBy, Leases, LostReason, Renewal, State, StoreErrorKind, View, Written,
};
use tokio::time::{Instant, sleep, timeout};

use crate::SECOND;
use crate::support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use crate::told::{Said, Told, leased, that_judges};

const AWAY: Said = Said::Fails(StoreErrorKind::Unavailable, Applied::Unknown);

pub(crate) fn own(attempt: Attempt) -> HeldBy {
    match attempt {
        Attempt::Held(by) if by.is_own() => by,
        attempt => panic!("not held by this client: {attempt:?}"),
    }
}

// Renewals.

#[tokio::test(start_paused = true)]
async fn a_renewal_is_not_sent_while_another_is_under_way() {
    let (store, _leases, lease) = leased(Renewal::Manual, [Said::Hangs]).await;
    let (one, other) = (timeout(SECOND, lease.renew()), timeout(SECOND, lease.renew()));
    let (one, other) = tokio::join!(one, other);
    assert!(one.is_err() && other.is_err());
    assert_eq!(store.sent().renewals.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_its_caller_has_given_up_stands_in_no_ones_way() {
    let (store, _leases, lease) = leased(Renewal::Manual, [Said::Hangs, Said::Accepts]).await;
    assert!(timeout(SECOND, lease.renew()).await.is_err());
    let begun = Instant::now();
    lease.renew().await.unwrap();
    assert_eq!((begun.elapsed(), store.sent().renewals.len()), (Duration::ZERO, 2));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_its_caller_has_given_up_is_made_good_at_once() {
    let (store, _leases, lease) = leased(Renewal::Task, [Said::Hangs, Said::Accepts]).await;
    assert!(timeout(SECOND, lease.renew()).await.is_err());
    sleep(Duration::from_millis(5)).await;
    assert_eq!(store.sent().renewals.len(), 2, "the keeper's first would be due after five seconds");
    assert!(lease.held().remaining() > crate::TERM - SECOND / 10);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_was_made_good_is_not_named_by_a_later_loss() {
    let (store, _leases, lease) = leased(Renewal::Manual, [AWAY, Said::Accepts]).await;
    lease.renew().await.unwrap();
    store.says([Said::Shows(View::absent())]);
    let error = lease.renew().await.unwrap_err();
    let lost = error.lost().unwrap();
    assert_eq!((error.kind(), lost.reason(), lost.cause()), (ErrorKind::Lost, &LostReason::Deleted, None));
}

#[tokio::test(start_paused = true)]
async fn a_failure_just_before_a_loss_is_named_by_it() {
    let (_store, _leases, lease) = leased(Renewal::Manual, [AWAY, Said::Shows(View::absent())]).await;
    let error = lease.renew().await.unwrap_err();
    assert_eq!(error.lost().unwrap().cause(), Some("told: Unavailable"));
}

#[tokio::test(start_paused = true)]
async fn no_renewal_is_under_way_any_more_when_the_release_is_sent() {
    let (store, _leases, lease) = leased(Renewal::Task, [Said::Hangs, Said::Accepts]).await;
    while store.sent().renewals.is_empty() {
        sleep(SECOND / 10).await;
    }
    assert_eq!(store.sent().under_way, 1, "the keeper's");
    let begun = Instant::now();
    lease.release().await.unwrap();
    let sent = store.sent();
    assert_eq!((sent.vacates.len(), sent.under_way_at_release, begun.elapsed()), (1, 0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn no_renewal_is_under_way_any_more_once_the_lease_is_lost() {
    let (store, _leases, lease) = leased(Renewal::Manual, [Said::Hangs]).await;
    sleep(crate::TERM - SECOND).await;
    let begun = Instant::now();
    let (renewed, ended) = tokio::join!(lease.renew(), lease.held().lost());
    assert!(begun.elapsed() < SECOND + SECOND / 10, "{:?}", begun.elapsed());
    assert_eq!(renewed.unwrap_err().kind(), ErrorKind::Lost);
    assert!(matches!(ended, Ended::Lost(lost) if *lost.reason() == LostReason::Deadline));
    assert_eq!((store.sent().renewals.len(), store.sent().under_way), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_anothers_renewal_goes_on_when_it_is_answered() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").renewal(Renewal::Manual).acquire().await.unwrap();
    store.on(Verb::Renew).fault(Fault::AnswerLate(SECOND));
    let begun = Instant::now();
    let (one, other) = tokio::join!(lease.renew(), lease.renew());
    assert!(one.is_ok() && other.is_ok());
    assert!(begun.elapsed() < SECOND + SECOND / 100, "{:?}", begun.elapsed());
    assert_eq!(store.count(Verb::Renew), 1);
}

#[test]
fn a_lease_whose_keeper_has_gone_with_its_runtime_is_lost() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let first = runtime();
    let (store, leases, lease) = first.block_on(leased(Renewal::Task, [Said::Accepts]));
    assert_eq!(lease.held().state(), State::Held);
    drop(first);
    assert!(
        matches!(lease.held().state(), State::Ended(Ended::Lost(lost)) if *lost.reason() == LostReason::KeeperGone)
    );
    assert!(!lease.held().is_held());
    drop(lease);
    assert_eq!(leases.stats().owed, 1, "a release for the others' sake");
    drop(leases);
    assert!(store.is_alone(), "what is owed keeps no client that nobody serves");
}

// Payloads that the store does not take.

const INVALID: Said = Said::Fails(StoreErrorKind::Invalid, Applied::No);

#[tokio::test(start_paused = true)]
async fn a_payload_that_was_refused_is_forgotten_and_the_error_says_what_the_store_said() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts, INVALID, Said::Accepts]).await;
    lease.held().set_data(b"one").await.unwrap();
    let error = lease.held().set_data(b"two").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Invalid, Written::No));
    assert_eq!(error.to_string(), "set_data job on told: told: Invalid");
    assert_eq!(own(leases.try_acquire("job").await.unwrap()).data(), Some(&b"one"[..]));
    lease.renew().await.unwrap();
    let sent: Vec<_> = store.sent().renewals.into_iter().map(|renew| renew.data).collect();
    assert_eq!(sent, [Data::new(b"one"), Data::new(b"two"), None]);
}

#[tokio::test(start_paused = true)]
async fn where_every_renewal_carries_the_payload_it_is_the_one_before_the_refused() {
    let mut description = that_judges();
    description.data_in_every_renewal = true;
    let store = Told::new(description, [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Manual).build().unwrap();
    let lease = leases.request("job").data("one").acquire().await.unwrap();
    store.says([INVALID, Said::Accepts]);
    lease.held().set_data(b"two").await.unwrap_err();
    lease.renew().await.unwrap();
    let sent: Vec<_> = store.sent().renewals.into_iter().map(|renew| renew.data).collect();
    assert_eq!(sent, [Data::new(b"two"), Data::new(b"one")]);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_was_set_while_another_was_refused_is_kept() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").renewal(Renewal::Manual).acquire().await.unwrap();
    store.on(Verb::Renew).fault(Fault::AnswerLate(SECOND));
    store.on(Verb::Renew).fault(Fault::Fail(StoreErrorKind::Invalid));
    let (one, other) = (lease.held(), lease.held());
    let newer = async {
        sleep(SECOND / 2).await;
        other.set_data(b"two").await
    };
    let (one, two) = tokio::join!(one.set_data(b"one"), newer);
    one.unwrap();
    assert_eq!(two.unwrap_err().kind(), ErrorKind::Invalid, "it was the second that was refused");
    assert_eq!(own(leases.try_acquire("job").await.unwrap()).data(), Some(&b"one"[..]));
}

// Who is kept waiting.

/// A client with a lease whose release takes two seconds.
async fn being_released() -> (Scripted, Leases, tokio::task::JoinHandle<()>) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).fault(Fault::AnswerLate(SECOND * 2));
    let releasing = tokio::spawn(async move { drop(lease.release().await.unwrap()) });
    tokio::task::yield_now().await;
    assert_eq!(store.count(Verb::Release), 1);
    store.forget_calls();
    (store, leases, releasing)
}

#[tokio::test(start_paused = true)]
async fn a_name_that_this_client_holds_is_answered_without_a_request() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").data("mine").acquire().await.unwrap();
    store.forget_calls();
    let by = own(leases.try_acquire("job").await.unwrap());
    assert_eq!((by.holder(), by.token(), by.data()), (Some("a"), Some(lease.token()), Some(&b"mine"[..])));
    let begun = Instant::now();
    let error = leases.acquire_within("job", SECOND * 3).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.held_by().is_some_and(HeldBy::is_own), "{error}");
    assert!(error.to_string().contains("held by a, by this client itself, with token"), "{error}");
    assert!((SECOND * 3..SECOND * 3 + SECOND / 100).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(store.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_in_the_way_until_its_release_was_answered() {
    let (store, leases, releasing) = being_released().await;
    own(leases.try_acquire("job").await.unwrap());
    let begun = Instant::now();
    let next = leases.acquire("job").await.unwrap();
    assert!((SECOND * 2..SECOND * 2 + SECOND / 10).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(store.count(Verb::Claim), 1);
    releasing.await.unwrap();
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_never_answered_is_in_the_way_for_a_term_at_the_most() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).always().fault(Fault::Hang);
    let error = lease.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let next = leases.acquire_within("job", TTL * 3).await.unwrap();
    next.held();
}

// What a view says.

#[tokio::test(start_paused = true)]
async fn ensure_takes_all_that_a_term_can_give_and_no_more() {
    let (_store, _leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    let most = crate::TERM - SECOND * 5;
    lease.held().ensure(most).await.unwrap();
    let error = lease.held().ensure(most + Duration::from_nanos(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("a term of this lease can give 21.7s at the most"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_and_its_view_are_shown_by_name_and_token() {
    let (_store, _leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    for shown in [format!("{lease:?}"), format!("{:?}", lease.held())] {
        for part in ["job", "token: FencingToken(1)"] {
            assert!(shown.contains(part), "{part:?} is not in: {shown}");
        }
    }
}
