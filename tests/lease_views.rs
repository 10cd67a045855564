//! What the views of a lease say, and what an operator can do.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Ended, ErrorKind, Event, FencingToken, Lease, Leases, LostReason, Renewal, State, Status, StoreErrorKind,
    Unreadable, Written,
};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
/// 30 s less 1 % less the margin of 3 s.
const TERM: Duration = Duration::from_millis(26_700);

async fn held() -> (Scripted, TestClock, Leases, Lease) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.forget_calls();
    (store, clock, leases, lease)
}

fn reason(ended: Ended) -> LostReason {
    match ended {
        Ended::Lost(lost) => lost.reason().clone(),
        ended => panic!("not lost: {ended:?}"),
    }
}

async fn status(leases: &Leases) -> Status {
    leases.inspect("job").await.unwrap().status
}

// held

#[tokio::test(start_paused = true)]
async fn a_view_counts_down_from_the_last_renewal_and_says_zero_after_the_end() {
    let (_store, _clock, _leases, lease) = held().await;
    let held = lease.held();
    assert_eq!(held.remaining(), TERM);
    sleep(SECOND * 4).await;
    assert_eq!(held.remaining(), TERM - SECOND * 4);
    lease.renew().await.unwrap();
    assert_eq!(held.remaining(), TERM);
    lease.release().await.unwrap();
    assert_eq!((held.remaining(), held.is_held()), (Duration::ZERO, false));
    assert_eq!(held.state(), State::Ended(Ended::Released));
    assert_eq!(held.clone().lost().await, Ended::Released);
}

#[tokio::test(start_paused = true)]
async fn the_views_of_one_lease_agree_and_cannot_be_held_beyond_it() {
    let (_store, _clock, _leases, lease) = held().await;
    let (one, other) = (lease.held(), lease.held().clone());
    assert_eq!((one.token(), one.name().as_str()), (other.token(), "job"));
    let ended = tokio::spawn(one.lost());
    drop(lease);
    assert_eq!(ended.await.unwrap(), Ended::Released);
    assert!(!other.is_held());
}

// ensure

#[tokio::test(start_paused = true)]
async fn ensure_sends_nothing_while_enough_is_left_and_renews_when_it_is_not() {
    let (store, _clock, _leases, lease) = held().await;
    let held = lease.held();
    held.ensure(SECOND * 21).await.unwrap();
    assert_eq!(store.total(), 0);
    sleep(SECOND * 4).await;
    held.ensure(SECOND * 22 + SECOND / 2).await.unwrap_err();
    held.ensure(SECOND * 21).await.unwrap();
    assert_eq!(store.total(), 0, "22.7 s are left");
    sleep(SECOND * 4).await;
    let before = store.count(Verb::Renew);
    let left = held.remaining();
    held.ensure(SECOND * 21).await.unwrap();
    assert!(held.remaining() >= SECOND * 21);
    assert_eq!(store.count(Verb::Renew) - before, usize::from(left < SECOND * 21));
}

#[tokio::test(start_paused = true)]
async fn ensure_tries_three_times_and_says_whether_the_lease_is_lost() {
    let (store, _clock, _leases, lease) = held().await;
    let held = lease.held();
    let failed = store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    sleep(TERM - SECOND).await;
    let before = failed.times();
    let error = held.ensure(SECOND * 2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no renewal was answered: try again, or stop"), "{error}");
    assert!((3..=4).contains(&(failed.times() - before)), "its own three, and perhaps one of the keeper's");
    assert!(held.is_held(), "but not for as long");
    sleep(SECOND).await;
    let error = held.ensure(SECOND).await.unwrap_err();
    assert_eq!((error.kind(), error.lost().unwrap().reason()), (ErrorKind::Lost, &LostReason::Deadline));
}

#[tokio::test(start_paused = true)]
async fn ensure_beyond_the_longest_hold_says_so_and_sends_nothing() {
    let (store, clock) = table();
    let lease = client(&store, &clock, "a").request("job").at_most(SECOND * 20).acquire().await.unwrap();
    store.forget_calls();
    lease.held().ensure(SECOND * 17).await.unwrap();
    let error = lease.held().ensure(SECOND * 18).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("at_most"), "{error}");
    assert_eq!(store.total(), 0);
}

// set_data

#[tokio::test(start_paused = true)]
async fn set_data_is_ok_when_a_renewal_has_carried_it() {
    let (store, clock, leases, lease) = held().await;
    lease.held().set_data(b"one").await.unwrap();
    assert_eq!(store.count(Verb::Renew), 1);
    let lost = store.on(Verb::Renew).fault(Fault::LoseAnswer);
    lease.held().set_data(b"two").await.unwrap();
    assert_eq!((lost.times(), store.count(Verb::Renew)), (1, 3), "asked again after the lost answer");
    let found = client(&store, &clock.another(2), "b").inspect("job").await.unwrap();
    assert_eq!(found.data.unwrap().as_bytes(), b"two");
    sleep(TTL).await;
    assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"two", "renewals keep it");
}

#[tokio::test(start_paused = true)]
async fn set_data_is_unknown_at_the_deadline() {
    let (store, _clock, _leases, lease) = held().await;
    let lost = store.on(Verb::Renew).always().fault(Fault::LoseRequest);
    let begun = Instant::now();
    let error = lease.held().set_data(b"one").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Lost, Written::Unknown));
    assert!((TERM..TERM + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert!(lost.times() > 3);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_the_store_will_never_take_is_an_error_and_the_lease_goes_on_without_it() {
    let (store, _clock, leases, lease) = held().await;
    lease.held().set_data(b"one").await.unwrap();
    let refused = store.on(Verb::Renew).fault(Fault::Fail(StoreErrorKind::Invalid));
    let error = lease.held().set_data(b"too much").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Invalid, Written::No));
    sleep(3 * TTL).await;
    assert_eq!((lease.held().state(), refused.times()), (State::Held, 1), "not sent again");
    assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"one");
    lease.held().set_data(b"two").await.unwrap();
    assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"two");
    let handover = lease.into_handover().await.unwrap();
    assert_eq!(leases.resume(handover).await.unwrap().held().state(), State::Held);
}

#[tokio::test(start_paused = true)]
async fn the_newer_of_two_payloads_wins() {
    let (store, _clock, leases, lease) = held().await;
    let slow = store.on(Verb::Renew).fault(Fault::AnswerLate(SECOND));
    let (first, second) = (lease.held(), lease.held());
    let first = tokio::spawn(async move { first.set_data(b"one").await });
    sleep(SECOND / 2).await;
    second.set_data(b"two").await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(slow.times(), 1);
    assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"two");
}

#[tokio::test(start_paused = true)]
async fn after_the_end_nothing_is_stored_and_the_error_says_so() {
    let (store, _clock, _leases, lease) = held().await;
    let held = lease.held();
    lease.release().await.unwrap();
    store.forget_calls();
    for error in [held.set_data(b"one").await.unwrap_err(), held.ensure(SECOND).await.unwrap_err()] {
        assert_eq!((error.kind(), error.written()), (ErrorKind::Invalid, Written::No));
        assert!(error.to_string().contains("released or handed over before"), "{error}");
    }
    assert_eq!(store.total(), 0);
}

// ask

#[tokio::test(start_paused = true)]
async fn a_wish_reaches_the_holder_with_its_next_renewal_and_no_other_grant() {
    let (store, clock, leases, lease) = held().await;
    let b = client(&store, &clock.another(2), "b");
    b.ask("job", lease.token(), SECOND * 5).await.unwrap();
    assert_eq!(lease.held().asked(), None);
    lease.renew().await.unwrap();
    let asked = lease.held().asked().unwrap();
    assert_eq!(
        (asked.token, asked.grace_ms, asked.by.unwrap().as_str().to_owned()),
        (lease.token().as_u64(), 5_000, "b".to_owned())
    );
    assert!(lease.held().is_held());
    lease.release().await.unwrap();
    let next = leases.acquire("job").await.unwrap();
    next.renew().await.unwrap();
    assert_eq!(next.held().asked(), None);
}

#[tokio::test(start_paused = true)]
async fn to_ask_or_end_with_another_token_changes_nothing_and_says_which_is_there() {
    let (store, clock, leases, lease) = held().await;
    let b = client(&store, &clock.another(2), "b");
    let wrong = FencingToken::new(lease.token().as_u64() - 1).unwrap();
    let before = format!("{:?}", leases.inspect("job").await.unwrap());
    let errors = [
        b.ask("job", wrong, SECOND).await.unwrap_err(),
        b.revoke("job", wrong).await.unwrap_err(),
        b.force("job", wrong).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(&format!("held with token {}, not {wrong}", lease.token())), "{error}");
    }
    assert_eq!(format!("{:?}", leases.inspect("job").await.unwrap()), before);
    for error in [b.ask("none", wrong, SECOND).await.unwrap_err(), b.revoke("none", wrong).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("there is no such lease"), "{error}");
    }
    assert_eq!(b.inspect("none").await.unwrap().token, None);
}

// watch, events, stats

#[tokio::test(start_paused = true)]
async fn a_watch_gives_every_change_and_ends_after_the_end() {
    let (store, _clock, _leases, lease) = held().await;
    let mut watch = lease.held().watch();
    store.on(Verb::Renew).fault(Fault::Fail(StoreErrorKind::Unavailable));
    assert_eq!(watch.changed().await, Some(State::Jeopardy));
    assert_eq!(watch.changed().await, Some(State::Held));
    lease.release().await.unwrap();
    assert_eq!(watch.changed().await, Some(State::Ended(Ended::Released)));
    assert_eq!(watch.changed().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_notices_the_deadline_without_a_keeper() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").renewal(leasehold::Renewal::Manual).acquire().await.unwrap();
    let (mut watch, begun) = (lease.held().watch(), Instant::now());
    assert!(matches!(watch.changed().await, Some(State::Jeopardy | State::Ended(Ended::Lost(_)))));
    assert!(!lease.held().is_held());
    assert!(begun.elapsed() <= TERM);
}

#[tokio::test(start_paused = true)]
async fn events_tell_of_every_lease_and_end_with_the_client() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let mut events = leases.events();
    let first = leases.acquire("x").await.unwrap();
    let second = leases.acquire("y").await.unwrap();
    first.release().await.unwrap();
    store.inner().take_over("y").unwrap();
    second.held().lost().await;
    drop((second, leases));
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(match event {
            Event::Acquired { name, .. } => format!("acquired {name}"),
            Event::Released { name, .. } => format!("released {name}"),
            Event::Lost(lost) => format!("lost {}: {}", lost.name(), lost.reason()),
            event => format!("{event:?}"),
        });
    }
    assert_eq!(told[..3], ["acquired x", "acquired y", "released x"]);
    assert!(told[3].starts_with("lost y: taken over by rival") && told.len() == 4, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn stats_count_what_is_held_waited_for_owed_lost_and_sent() {
    let (store, _clock, leases, lease) = held().await;
    sleep(SECOND).await;
    let other = leases.acquire("other").await.unwrap();
    let waiter = leases.clone();
    let waiter = tokio::spawn(async move { waiter.acquire("job").await.map(drop) });
    tokio::task::yield_now().await;
    let stats = leases.stats();
    assert_eq!((stats.held, stats.waiting, stats.owed), (2, 1, 0));
    assert_eq!(stats.smallest_remaining, Some(TERM - SECOND));
    assert_eq!((stats.requests["claim"], stats.requests["read"]), (2, 1));
    waiter.abort();
    let _ = waiter.await;
    leases.revoke("job", lease.token()).await.unwrap();
    lease.held().lost().await;
    let failed = store.on(Verb::Release).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    drop(other);
    sleep(SECOND).await;
    let stats = leases.stats();
    assert!(failed.times() > 0);
    assert_eq!((stats.held, stats.waiting, stats.owed), (0, 0, 1));
    assert_eq!((stats.lost["revoked"], stats.lost.values().sum::<u64>()), (1, 1));
    assert_eq!(stats.requests["revoke"], 1);
    assert_eq!(stats.smallest_remaining, None);
}

// inspect, list

#[tokio::test(start_paused = true)]
async fn an_inspection_tells_held_from_expired_and_free_where_it_can() {
    let (store, clock, leases, lease) = held().await;
    let looks = client(&store, &clock.another(2), "b");
    assert_eq!(status(&looks).await, Status::Held);
    let found = looks.inspect("job").await.unwrap();
    assert_eq!((found.holder.unwrap().as_str(), found.token, found.ttl), ("a", Some(lease.token()), Some(TTL)));
    assert!(!found.revoked && found.data.is_none() && found.asked.is_none());
    lease.release().await.unwrap();
    assert_eq!(status(&looks).await, Status::Free);
    let manual = leases.request("job").renewal(leasehold::Renewal::Manual).acquire().await.unwrap();
    sleep(TTL + SECOND * 6).await;
    assert_eq!(status(&looks).await, Status::Expired);
    drop(manual);
    store.inner().put_unreadable("job", Unreadable::Foreign).unwrap();
    assert_eq!(status(&looks).await, Status::Unreadable(Unreadable::Foreign));
    store.inner().take_over("job").unwrap();
    assert_eq!(status(&looks).await, Status::NotKnownToHaveExpired, "a rival that writes no end");
    assert_eq!(looks.inspect("none").await.unwrap().status, Status::Free);
}

#[tokio::test(start_paused = true)]
async fn a_list_gives_the_prefix_and_counts_what_it_skips() {
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).prefix("app/").clock(clock.clone()).build().unwrap();
    let mut held = Vec::new();
    for number in 0..1005 {
        held.push(leases.acquire(format!("orders/{number:04}")).await.unwrap());
    }
    held.push(leases.acquire("jobs/1").await.unwrap());
    let other = client(&store, &clock.another(2), "b");
    let _other = other.acquire("orders/9999").await.unwrap();
    store.inner().put_unreadable("app/orders/broken", Unreadable::Foreign).unwrap();
    let mut list = leases.list("orders/");
    let mut names = std::collections::BTreeSet::new();
    while let Some(found) = list.next().await.unwrap() {
        assert_eq!(found.status, Status::Held);
        assert!(names.insert(found.name.to_string()), "twice: {}", found.name);
    }
    assert_eq!((names.len(), list.skipped()), (1005, 1));
    assert!(names.iter().all(|name| name.starts_with("app/orders/")));
    assert_eq!(other.list("").all().await.unwrap().len(), 1007);
}

// revoke, force

#[tokio::test(start_paused = true)]
async fn a_revoked_lease_is_lost_at_its_next_renewal_and_taken_after_its_term() {
    // A7
    let (store, clock, _leases, lease) = held().await;
    let b = client(&store, &clock.another(2), "b");
    b.revoke("job", lease.token()).await.unwrap();
    assert!(lease.held().is_held(), "it does not know yet");
    b.revoke("job", lease.token()).await.unwrap();
    assert!(b.inspect("job").await.unwrap().revoked);
    let revoked = Instant::now();
    assert_eq!(reason(lease.held().lost().await), LostReason::Revoked);
    assert!(revoked.elapsed() <= SECOND * 10);
    let token = lease.token();
    assert_eq!(reason(lease.release().await.unwrap()), LostReason::Revoked, "its release is no error");
    let next = b.acquire("job").await.unwrap();
    assert!(next.token() > token);
    assert!(revoked.elapsed() >= TERM + SECOND * 3, "{:?}", revoked.elapsed());
    assert!(revoked.elapsed() <= TTL + SECOND * 7, "{:?}", revoked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_forced_lease_is_free_at_once_and_its_holder_is_lost_at_its_next_renewal() {
    let (store, clock, _leases, lease) = held().await;
    let b = client(&store, &clock.another(2), "b");
    b.revoke("job", lease.token()).await.unwrap();
    let lost = store.on(Verb::Revoke).fault(Fault::LoseAnswer);
    b.force("job", lease.token()).await.unwrap();
    assert_eq!(lost.times(), 1, "and the lost answer was no error");
    assert_eq!(status(&b).await, Status::Free);
    let Attempt::Acquired(next) = b.try_acquire("job").await.unwrap() else { panic!("it is free") };
    assert!(next.token() > lease.token());
    assert!(matches!(reason(lease.held().lost().await), LostReason::Taken { token, .. } if token == next.token()));
}

// hand-over

#[tokio::test(start_paused = true)]
async fn a_hand_over_stops_all_sends_and_its_resume_has_a_higher_token_and_the_stored_payload() {
    // F3
    let (store, clock, _leases, lease) = held().await;
    lease.held().set_data(b"checkpoint").await.unwrap();
    let (held, old) = (lease.held(), lease.token());
    let handover = lease.into_handover().await.unwrap();
    assert_eq!((handover.token(), handover.name().as_str()), (old, "job"));
    assert_eq!((held.state(), held.is_held()), (State::Ended(Ended::HandedOver), false));
    let sent = store.total();
    sleep(SECOND * 15).await;
    assert_eq!(store.total(), sent, "neither renewed nor released");
    let b = client(&store, &clock.another(2), "b");
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    let resumed = b.resume(handover).await.unwrap();
    assert!(resumed.token() > old);
    assert_eq!(resumed.held().remaining(), TERM);
    let found = b.inspect("job").await.unwrap();
    assert_eq!((found.data.unwrap().as_bytes(), found.holder.unwrap().as_str()), (&b"checkpoint"[..], "b"));
    sleep(TTL * 2).await;
    assert!(resumed.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_carries_only_a_payload_that_is_known_to_be_stored() {
    let (store, clock, _leases, lease) = held().await;
    lease.held().set_data(b"stored").await.unwrap();
    let failed = store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    assert!(tokio::time::timeout(SECOND, lease.held().set_data(b"not stored")).await.is_err());
    assert!(failed.times() > 0);
    let handover = lease.into_handover().await.unwrap();
    let b = client(&store, &clock.another(2), "b");
    let _resumed = b.resume(handover).await.unwrap();
    assert_eq!(b.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"stored");
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_whose_lease_was_taken_over_is_refused() {
    // F3
    let (store, clock, _leases, lease) = held().await;
    let handover = lease.into_handover().await.unwrap();
    let rival = store.inner().take_over("job").unwrap();
    let b = client(&store, &clock.another(2), "b");
    let error = b.resume(handover).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("resumed before, or its term is over"), "{error}");
    assert_eq!(b.inspect("job").await.unwrap().token, Some(rival));
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_accepted_after_its_term_if_nobody_took_over() {
    let (store, clock, _leases, lease) = held().await;
    let handover = lease.into_handover().await.unwrap();
    sleep(TTL * 2).await;
    assert!(client(&store, &clock.another(2), "b").resume(handover).await.unwrap().held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_handed_over() {
    let (store, _clock, _leases, lease) = held().await;
    store.inner().take_over("job").unwrap();
    lease.held().lost().await;
    let error = lease.into_handover().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, leasehold::Operation::Handover));
}

/// F4: a queue has delivered it twice.
#[cfg(feature = "serde")]
#[tokio::test(start_paused = true)]
async fn a_hand_over_that_is_resumed_twice_has_one_winner() {
    let (store, clock, _leases, lease) = held().await;
    let text = serde_json::to_string(&lease.into_handover().await.unwrap()).unwrap();
    let (b, c) = (client(&store, &clock.another(2), "b"), client(&store, &clock.another(3), "c"));
    let won = b.resume(serde_json::from_str(&text).unwrap()).await.unwrap();
    let error = c.resume(serde_json::from_str(&text).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    sleep(TTL).await;
    assert!(won.held().is_held());
}

// flush, shutdown

#[tokio::test(start_paused = true)]
async fn a_flush_returns_when_dropped_leases_are_released() {
    let (store, _clock, leases, lease) = held().await;
    let failed = store.on(Verb::Release).times(2).fault(Fault::Fail(StoreErrorKind::Unavailable));
    drop(lease);
    assert_eq!(leases.stats().owed, 1);
    leases.flush().await;
    assert_eq!((failed.times(), leases.stats().owed), (2, 0));
    assert_eq!(status(&leases).await, Status::Free);
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_with_the_term_of_what_is_owed_at_the_latest() {
    let (store, _clock, leases, lease) = held().await;
    let failed = store.on(Verb::Release).always().fault(Fault::Hang);
    let begun = Instant::now();
    drop(lease);
    leases.flush().await;
    assert!(failed.times() > 1);
    // A term, and the last request that was begun before its end.
    assert!((TTL..=TTL + SECOND * 10).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_releases_every_lease_and_sends_nothing_afterwards() {
    let (store, clock, leases, lease) = held().await;
    let other = leases.request("other").renewal(leasehold::Renewal::Manual).acquire().await.unwrap();
    drop(leases.acquire("dropped").await.unwrap());
    leases.shutdown(SECOND * 10).await.unwrap();
    assert_eq!((lease.held().state(), other.held().is_held()), (State::Ended(Ended::Released), false));
    let sent = store.total();
    assert_eq!(leases.try_acquire("job").await.map(drop).unwrap_err().kind(), ErrorKind::Closed);
    drop((lease, other));
    sleep(TTL).await;
    assert_eq!(store.total(), sent);
    let b = client(&store, &clock.another(2), "b");
    for name in ["job", "other", "dropped"] {
        assert_eq!(b.inspect(name).await.unwrap().status, Status::Free, "{name}");
    }
    leases.shutdown(SECOND).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_that_finds_the_grant_revoked_says_so_although_nobody_had_noticed() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let lease = a.acquire("job").await.unwrap();
    b.revoke("job", lease.token()).await.unwrap();
    let Ended::Lost(lost) = lease.release().await.unwrap() else { panic!("it was revoked") };
    assert_eq!(lost.reason(), &LostReason::Revoked);
    assert_eq!(a.stats().lost["revoked"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_cannot_be_handed_over() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    leases.shutdown(SECOND).await.unwrap();
    assert_eq!(lease.into_handover().await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_release_begun_by_a_shutdown_and_not_answered_is_no_success_for_its_owner() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    let ends = {
        let leases = leases.clone();
        tokio::spawn(async move { leases.shutdown(SECOND).await.is_err() })
    };
    tokio::task::yield_now().await;
    let error = lease.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(ends.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_just_held_is_acquired_again_with_one_request() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    leases.acquire("job").await.unwrap().release().await.unwrap();
    store.forget_calls();
    for _ in 0..20 {
        leases.acquire("job").await.unwrap().release().await.unwrap();
    }
    assert_eq!((store.count(Verb::Claim), store.count(Verb::Release), store.total()), (20, 20, 40));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_long_on_its_way_does_not_say_that_a_term_is_over_which_was_renewed_meanwhile() {
    let (store, clock) = table();
    let with =
        |clock: &TestClock| Leases::builder(store.clone()).ttl(60 * SECOND).margin(Duration::ZERO).clock(clock.clone());
    let (a, b) = (with(&clock).renewal(Renewal::Manual).build().unwrap(), with(&clock.another(2)).build().unwrap());
    let lease = a.acquire("job").await.unwrap();
    assert_eq!(status(&b).await, Status::Held);
    sleep(58 * SECOND).await;
    store.on(Verb::Read).fault(Fault::AnswerLate(9 * SECOND));
    let renewed = async {
        sleep(SECOND).await;
        lease.renew().await.unwrap();
    };
    let (seen, ()) = tokio::join!(status(&b), renewed);
    assert!(lease.held().is_held());
    assert_ne!(seen, Status::Expired);
    assert_eq!(status(&b).await, Status::Held);
}
