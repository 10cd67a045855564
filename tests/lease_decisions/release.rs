//! `src/lease/core/release.rs`: how a lease ends by its owner's will.

use std::time::Duration;

use leasehold::{
    Applied, Closed, Data, Ended, ErrorKind, Event, LostReason, Operation, Record, Renewal, StoreErrorKind, Takeover,
    Unreadable, View, Written,
};
use tokio::time::{Instant, sleep};

use crate::told::{Said, Told, free, held, leased, like_a_table, shows, that_judges};
use crate::{SECOND, TERM};

const AWAY: Said = Said::Fails(StoreErrorKind::Unavailable, Applied::No);
const LOST: Said = Said::Fails(StoreErrorKind::Unavailable, Applied::Unknown);
const INVALID: Said = Said::Fails(StoreErrorKind::Invalid, Applied::No);
/// The latest that the store's clock says at the beginning.
const LATE: u64 = 1_790_000_000_000 + 2000;

fn closed_by(token: u64) -> Record {
    let mut record = free(1);
    record.closed = Some(Closed { for_ms: Some(60_000), until_ms: None, by: Some(token) });
    record
}

fn lost(ended: &Ended) -> Option<&LostReason> {
    match ended {
        Ended::Lost(lost) => Some(lost.reason()),
        _ => None,
    }
}

// A release.

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_at_once_says_how_the_lease_was_lost_before() {
    let (_store, _leases, lease) = leased(Renewal::Manual, [shows(held(8))]).await;
    let ended = lease.release().await.unwrap();
    assert!(matches!(lost(&ended), Some(LostReason::Taken { token, .. }) if token.as_u64() == 8), "{ended:?}");
    let (_store, _leases, lease) = leased(Renewal::Manual, [Said::Shows(View::absent())]).await;
    assert_eq!(lost(&lease.release().await.unwrap()), Some(&LostReason::Deleted));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_after_a_lost_answer_was_accepted() {
    let (store, _leases, lease) = leased(Renewal::Manual, [LOST, shows(held(8))]).await;
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert_eq!(store.sent().vacates.len(), 2);
    let (_store, _leases, lease) = leased(Renewal::Manual, [AWAY, shows(held(8))]).await;
    assert!(lost(&lease.release().await.unwrap()).is_some(), "the first never arrived");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_sent_three_times_and_then_owed() {
    let (store, leases, lease) = leased(Renewal::Manual, [AWAY]).await;
    let error = lease.release().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, Operation::Release));
    assert_eq!((error.written(), error.lease().unwrap().as_str()), (Written::Unknown, "job"));
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (3, 1));
    store.says([Said::Accepts]);
    leases.flush().await;
    let vacates = store.sent().vacates;
    assert_eq!((vacates.len(), leases.stats().owed), (4, 0));
    assert!(vacates.iter().all(|vacate| !vacate.burn && vacate.close.is_none() && vacate.grant == vacates[0].grant));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_succeed_is_sent_once() {
    let (store, leases, lease) = leased(Renewal::Manual, [INVALID]).await;
    let error = lease.release().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, Operation::Release));
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_past_its_deadline_sends_one_release_for_the_others_sake() {
    for said in [Said::Accepts, AWAY] {
        let (store, leases, lease) = leased(Renewal::Manual, [said]).await;
        sleep(TERM).await;
        assert_eq!(lost(&lease.release().await.unwrap()), Some(&LostReason::Deadline));
        assert_eq!((store.sent().vacates.len(), leases.stats().owed), (1, 0));
    }
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    sleep(TERM).await;
    drop(lease);
    assert_eq!(leases.stats().owed, 1, "dropped, it is owed");
    leases.flush().await;
    assert_eq!(store.sent().vacates.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_has_or_nobody_sends_no_release() {
    for (said, dropped) in [(shows(held(8)), false), (shows(held(8)), true), (Said::Shows(View::absent()), false)] {
        let (store, leases, lease) = leased(Renewal::Manual, [said]).await;
        assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
        if dropped {
            drop(lease);
        } else {
            assert!(lost(&lease.release().await.unwrap()).is_some());
        }
        assert_eq!((store.sent().vacates.len(), leases.stats().owed), (0, 0));
    }
}

// A closing.

#[tokio::test(start_paused = true)]
async fn a_closing_ends_on_the_latest_clock_of_the_store_where_that_is_believed() {
    for (takeover, until) in [(Takeover::StoreTime, Some(LATE + 60_000)), (Takeover::ObservedOnly, None)] {
        let store = Told::new(like_a_table(), [Said::Accepts]);
        let leases = store.builder().takeover(takeover).build().unwrap();
        let lease = leases.acquire("job").await.unwrap();
        assert_eq!(lease.close(SECOND * 60, Data::new(b"done")).await.unwrap(), Ended::Released);
        let close = store.sent().vacates[0].close.clone().unwrap();
        assert_eq!((close.for_ms, close.until_ms, close.data), (60_000, until, Data::new(b"done")));
        assert_eq!(store.total(), 3, "a read, a claim and the closing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_asks_for_the_stores_time_if_it_is_not_known_any_more() {
    let store = Told::new(like_a_table(), [Said::Accepts]);
    let leases = store.builder().ttl(SECOND * 3600).renewal(Renewal::Manual).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    sleep(SECOND * 900).await;
    lease.close(SECOND * 60, None).await.unwrap();
    assert_eq!(store.total(), 4, "one read more");
    let close = store.sent().vacates[0].close.clone().unwrap();
    assert_eq!(close.until_ms, Some(LATE + 900_000 + 60_000));
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_the_store_will_never_take_is_a_release_and_an_error() {
    let (store, leases, lease) = leased(Renewal::Manual, [INVALID, Said::Accepts]).await;
    let held = lease.held();
    let error = lease.close(SECOND, None).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.written()), (ErrorKind::Invalid, Operation::Close, Written::No));
    let closes: Vec<_> = store.sent().vacates.iter().map(|vacate| vacate.close.is_some()).collect();
    assert_eq!((closes, leases.stats().owed), (vec![true, false], 0));
    assert_eq!(held.lost().await, Ended::Released);
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_is_not_answered_stays_a_closing() {
    let (store, leases, lease) = leased(Renewal::Manual, [AWAY, AWAY, AWAY, Said::Accepts]).await;
    let error = lease.close(SECOND, Data::new(b"done")).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, Operation::Close));
    assert_eq!(error.written(), Written::Unknown);
    leases.flush().await;
    let vacates = store.sent().vacates;
    assert_eq!(vacates.len(), 4);
    assert!(vacates.iter().all(|vacate| vacate.close == vacates[0].close && vacate.close.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_closing_of_which_the_record_shows_nothing_after_a_lost_answer_is_unknown() {
    for shown in [held(8), free(1), closed_by(9)] {
        let (_store, leases, lease) = leased(Renewal::Manual, [LOST, shows(shown)]).await;
        let error = lease.close(SECOND, None).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, Operation::Close));
        assert_eq!((error.written(), leases.stats().owed), (Written::Unknown, 0));
        assert!(error.to_string().contains("nobody can say whether it was recorded"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_the_record_shows_is_recorded_whatever_was_lost() {
    for script in [vec![LOST, shows(closed_by(1))], vec![shows(closed_by(1))]] {
        let (_store, _leases, lease) = leased(Renewal::Manual, script).await;
        assert_eq!(lease.token().as_u64(), 1);
        assert_eq!(lease.close(SECOND, None).await.unwrap(), Ended::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_is_refused_at_once_says_why_nothing_was_recorded() {
    let (_store, _leases, lease) = leased(Renewal::Manual, [shows(held(8))]).await;
    assert!(matches!(lost(&lease.close(SECOND, None).await.unwrap()), Some(LostReason::Taken { .. })));
    let unreadable = Said::Shows(View::unreadable(Unreadable::Foreign));
    let (_store, _leases, lease) = leased(Renewal::Manual, [unreadable]).await;
    let error = lease.close(SECOND, None).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.operation(), error.written()),
        (ErrorKind::Unreadable, Operation::Close, Written::No)
    );
    assert!(error.to_string().contains("nothing was recorded"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_closes_nothing() {
    let (store, _leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    sleep(TERM).await;
    assert_eq!(lost(&lease.close(SECOND, None).await.unwrap()), Some(&LostReason::Deadline));
    assert_eq!(store.sent().vacates.iter().map(|vacate| vacate.close.clone()).collect::<Vec<_>>(), [None]);
}

// Released by the client's end.

#[tokio::test(start_paused = true)]
async fn after_the_clients_end_a_release_tells_what_came_of_the_one_that_it_has_sent() {
    let (_store, leases, lease) = leased(Renewal::Task, [Said::Accepts]).await;
    leases.shutdown(SECOND).await.unwrap();
    assert_eq!(lease.release().await.unwrap(), Ended::Released);

    let (store, leases, lease) = leased(Renewal::Task, [AWAY, AWAY, AWAY, Said::Accepts]).await;
    leases.shutdown(SECOND * 20).await.unwrap();
    assert_eq!(store.sent().vacates.len(), 4);
    assert_eq!(lease.release().await.unwrap(), Ended::Released);

    let (_store, leases, lease) = leased(Renewal::Task, [AWAY]).await;
    leases.shutdown(SECOND * 5).await.unwrap_err();
    let error = lease.release().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, Operation::Release));
    assert_eq!(error.written(), Written::Unknown);
    assert!(error.to_string().contains("the release was begun and not answered yet"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn after_the_clients_end_there_is_nothing_to_close_or_to_hand_over() {
    let (_store, leases, lease) = leased(Renewal::Task, [Said::Accepts]).await;
    leases.shutdown(SECOND).await.unwrap();
    let error = lease.close(SECOND, None).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.written()), (ErrorKind::Closed, Operation::Close, Written::No));
    let (_store, leases, lease) = leased(Renewal::Task, [Said::Accepts]).await;
    leases.shutdown(SECOND).await.unwrap();
    let error = lease.into_handover().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, Operation::Handover));
    assert!(error.to_string().contains("released before: there is nothing to hand over"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_handed_over() {
    let (store, _leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    let sent = store.total();
    sleep(TERM).await;
    let error = lease.into_handover().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, Operation::Handover));
    assert_eq!(store.total(), sent);
}

// What is told, and when.

#[tokio::test(start_paused = true)]
async fn each_ending_is_told_once() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let mut events = leases.events();
    let handover = leases.acquire("handed").await.unwrap().into_handover().await.unwrap();
    leases.acquire("released").await.unwrap().release().await.unwrap();
    drop(leases.acquire("dropped").await.unwrap());
    let _ = leases.acquire("closed").await.unwrap().close(SECOND, None).await;
    leases.flush().await;
    drop((leases, handover));
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.extend(match event {
            Event::Released { name, .. } => Some(format!("released {name}")),
            Event::HandedOver { name, .. } => Some(format!("handed over {name}")),
            _ => None,
        });
    }
    told.sort();
    assert_eq!(told, ["handed over handed", "released closed", "released dropped", "released released"]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_at_its_longest_hold_is_released_by_the_keeper_a_little_after_that_moment() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let begun = Instant::now();
    let lease = leases.request("job").at_most(SECOND * 20).acquire().await.unwrap();
    assert_eq!(lost(&lease.held().lost().await), Some(&LostReason::AtMost));
    assert!((SECOND * 17..SECOND * 17 + SECOND / 10).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    while store.sent().vacates.is_empty() {
        sleep(Duration::from_millis(10)).await;
        assert!(begun.elapsed() < SECOND * 25, "it is not released");
    }
    let after = begun.elapsed();
    assert!((SECOND * 20 + SECOND / 10..SECOND * 20 + SECOND / 2).contains(&after), "{after:?}");
    assert_eq!(lost(&lease.release().await.unwrap()), Some(&LostReason::AtMost));
    assert_eq!(store.sent().vacates.len(), 1, "by the keeper, and not again by its owner");
    assert_eq!(leases.stats().owed, 0);
}

#[test]
fn a_release_under_way_while_its_keeper_goes_is_told_once() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let keepers = runtime();
    let (store, leases, lease) = keepers.block_on(leased(Renewal::Task, [Said::Hangs, Said::Accepts]));
    let mut events = leases.events();
    let told = runtime().block_on(async {
        let mut releasing = Box::pin(lease.release());
        tokio::select! {
            biased;
            _ = &mut releasing => panic!("it is not answered"),
            () = tokio::task::yield_now() => {}
        }
        keepers.shutdown_background();
        assert_eq!(releasing.await.unwrap(), Ended::Released);
        drop(leases);
        let mut told = 0;
        while let Some(event) = events.next().await {
            told += usize::from(matches!(event, Event::Released { .. }));
        }
        told
    });
    assert_eq!((told, store.sent().vacates.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_payload_whose_renewal_was_refused_without_a_loss_is_not_handed_over() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Manual).build().unwrap();
    let lease = leases.request("job").data("one").acquire().await.unwrap();
    store.says([Said::Shows(View::unreadable(Unreadable::Format)), Said::Hangs]);
    assert!(tokio::time::timeout(SECOND, lease.held().set_data(b"two")).await.is_err());
    assert_eq!(store.sent().renewals.len(), 2);
    let handover = lease.into_handover().await.unwrap();
    store.says([Said::Accepts]);
    let _resumed = leases.resume(handover).await.unwrap();
    assert_eq!(store.sent().claims.pop().unwrap().data, Data::new(b"one"));
}
