//! The closing release itself: what it says, what others see, and how a record opens again.

use std::time::Duration;

use leasehold::{
    Attempt, Data, Ended, ErrorKind, HeldBy, Lease, LostReason, State, Status, StoreErrorKind, Takeover, Written,
};
use tokio::time::{Instant, sleep, timeout};

use crate::ground::{Ground, JUDGES, Judge, Machine, SECOND};
use crate::support::scripted::{Fault, TTL, Verb};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn data(text: &str) -> Option<Data> {
    Data::new(text.as_bytes())
}

async fn held(machine: &Machine) -> Lease {
    machine.leases.request("job").data("a checkpoint").acquire().await.unwrap()
}

async fn refused(machine: &Machine) -> HeldBy {
    match machine.leases.try_acquire("job").await.unwrap() {
        Attempt::Held(by) => by,
        Attempt::Acquired(lease) => panic!("it is closed: {lease:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_lease_is_shown_with_who_closed_it_and_what_was_left() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let lease = held(&a).await;
        let (token, view) = (lease.token(), lease.held());
        assert_eq!(lease.close(HOUR, data("the outcome")).await.unwrap(), Ended::Released);
        assert_eq!(view.state(), State::Ended(Ended::Released));

        let by = refused(&b).await;
        assert_eq!(
            (by.is_closed(), by.token(), by.data()),
            (true, Some(token), Some(&b"the outcome"[..])),
            "{judge:?}"
        );
        assert!(by.to_string().starts_with(&format!("closed by its last holder with token {token}")), "{by}");
        let seen = b.leases.inspect("job").await.unwrap();
        assert_eq!((seen.status, seen.token), (Status::Closed, Some(token)), "{judge:?}");
        assert_eq!(seen.data.unwrap().as_bytes(), b"the outcome");
        assert_eq!(b.leases.list("").all().await.unwrap()[0].status, Status::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn closing_without_data_removes_what_was_published_before() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.machine(2), ground.machine(3));
    held(&a).await.close(HOUR, None).await.unwrap();
    let by = refused(&b).await;
    assert_eq!((by.is_closed(), by.data()), (true, None));
}

#[tokio::test(start_paused = true)]
async fn a_payload_whose_renewal_is_still_on_its_way_does_not_replace_the_outcome() {
    // I10, B6
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let lease = held(&a).await;
        let late = a.way.on(Verb::Renew).fault(Fault::ApplyLate(2 * SECOND));
        a.way.on(Verb::Renew).always().fault(Fault::Hang);
        let publishes = lease.held();
        let publishes = tokio::spawn(async move { publishes.set_data("a late checkpoint").await });
        sleep(SECOND).await;
        lease.close(HOUR, data("the outcome")).await.unwrap();
        sleep(MINUTE).await;
        assert!(publishes.await.unwrap().is_err());
        assert_eq!((late.times(), refused(&b).await.data()), (1, Some(&b"the outcome"[..])), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_gets_the_lease_when_its_closing_is_over_and_not_before() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let lease = held(&a).await;
        let token = lease.token();
        lease.close(MINUTE, data("the outcome")).await.unwrap();
        let begun = Instant::now();
        let next = b.leases.acquire("job").await.unwrap();
        assert!(next.token() > token);
        let late = match judge {
            Judge::Store => SECOND,
            Judge::StoreTime => 5 * SECOND,
            _ => MINUTE / 100,
        };
        let waited = begun.elapsed();
        assert!((MINUTE..=MINUTE + late).contains(&waited), "{judge:?}: {waited:?}");
        let record = ground.record("job").await;
        assert_eq!((record.closed, record.data), (None, None), "{judge:?}: nothing of it is left");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_of_the_same_client_waits_for_the_closing_too() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let lease = held(&a).await;
    let waiter = a.leases.clone();
    let waiter = tokio::spawn(async move { waiter.acquire_within("job", 10 * SECOND).await });
    sleep(SECOND).await;
    lease.close(HOUR, data("the outcome")).await.unwrap();
    let error = waiter.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let by = error.held_by().unwrap();
    assert_eq!((by.is_closed(), by.data()), (true, Some(&b"the outcome"[..])));
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_is_over_is_shown_as_free_where_the_store_or_its_time_tells() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        held(&ground.machine(2)).await.close(MINUTE, None).await.unwrap();
        sleep(MINUTE + 6 * SECOND).await;
        let status = ground.machine(3).leases.inspect("job").await.unwrap().status;
        assert_eq!(status, if ground.tells_the_fresh() { Status::Free } else { Status::Closed }, "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_is_rounded_up_to_a_millisecond_and_has_one_at_least_and_ten_years_at_most() {
    let ground = Ground::new(Judge::ObservedOnly);
    let a = ground.machine(2);
    let year = 366 * 24 * HOUR;
    for (keep, for_ms) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(1001), 2),
        (10 * year, 10 * year.as_millis()),
        (11 * year, 10 * year.as_millis()),
        (Duration::MAX, 10 * year.as_millis()),
    ] {
        a.leases.acquire("job").await.unwrap().close(keep, None).await.unwrap();
        let closed = ground.record("job").await.closed.unwrap();
        assert_eq!((closed.for_ms.map(u128::from), closed.until_ms), (Some(for_ms), None), "{keep:?}");
        ground.store.delete("job");
        sleep(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_has_not_heard_the_stores_time_for_long_asks_for_it_so_that_others_can_tell_the_end() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine_with(2, |builder| builder.ttl(HOUR).renewal(leasehold::Renewal::Manual));
    let lease = held(&a).await;
    // So old a sample of the store's time does not count any more.
    sleep(11 * MINUTE).await;
    a.way.forget_calls();
    lease.close(HOUR, data("the outcome")).await.unwrap();
    assert_eq!((a.way.count(Verb::Read), a.way.count(Verb::Release), a.way.total()), (1, 1, 2));
    assert!(ground.record("job").await.closed.unwrap().until_ms.is_some());
    sleep(HOUR + 6 * SECOND).await;
    assert!(matches!(ground.machine(3).leases.try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_does_not_change_how_long_a_record_stays_closed() {
    // C9
    for ahead in [false, true] {
        let ground = Ground::new(Judge::StoreTime);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let lease = held(&a).await;
        let jump = |machine: &Machine, ahead| match ahead {
            true => machine.clock.set_wall_forward(HOUR),
            false => machine.clock.set_wall_back(HOUR),
        };
        jump(&a, ahead);
        jump(&b, !ahead);
        lease.close(MINUTE, None).await.unwrap();
        let begun = Instant::now();
        b.leases.acquire("job").await.unwrap().release().await.unwrap();
        let waited = begun.elapsed();
        assert!((MINUTE..=MINUTE + 5 * SECOND).contains(&waited), "{ahead}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_only_watches_and_whoever_believes_the_stores_time_keep_to_the_same_closing() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let watches = ground.machine_with(3, |builder| builder.takeover(Takeover::ObservedOnly));
    held(&a).await.close(MINUTE, None).await.unwrap();
    let begun = Instant::now();
    watches.leases.acquire("job").await.unwrap().release().await.unwrap();
    let waited = begun.elapsed();
    assert!((MINUTE..=MINUTE + SECOND).contains(&waited), "{waited:?}");
    // Closed by one who does not believe it, it names no moment.
    watches.leases.acquire("job").await.unwrap().close(MINUTE, None).await.unwrap();
    assert_eq!(ground.record("job").await.closed.unwrap().until_ms, None);
}

#[tokio::test(start_paused = true)]
async fn nobody_can_end_a_closing_by_the_means_against_a_holder() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.machine(2), ground.machine(3));
    let lease = held(&a).await;
    let token = lease.token();
    lease.close(HOUR, data("the outcome")).await.unwrap();
    let before = ground.record("job").await;
    for error in [
        b.leases.revoke("job", token).await.unwrap_err(),
        b.leases.force("job", token).await.unwrap_err(),
        b.leases.ask("job", token, SECOND).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    assert_eq!(ground.record("job").await, before);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_lost_is_released_and_not_closed() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.machine(2);
        let lease = held(&a).await;
        a.way.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Denied));
        lease.held().lost().await;
        let ended = lease.close(HOUR, data("the outcome")).await.unwrap();
        assert!(matches!(ended, Ended::Lost(lost) if lost.reason() == &LostReason::Deadline), "{judge:?}");
        assert_eq!((ground.record("job").await.closed, a.way.count(Verb::Release)), (None, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_closing_of_a_lost_lease_asks_for_nothing_and_is_not_made_up_for_when_it_is_cancelled() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine_with(2, |builder| builder.ttl(HOUR).renewal(leasehold::Renewal::Manual));
    let lease = held(&a).await;
    sleep(HOUR).await;
    a.way.forget_calls();
    a.way.on(Verb::Release).fault(Fault::Hang);
    assert!(timeout(SECOND, lease.close(HOUR, data("the outcome"))).await.is_err());
    assert_eq!((a.way.count(Verb::Release), a.way.total()), (1, 1));
    a.leases.flush().await;
    let record = ground.record("job").await;
    assert_eq!((a.way.count(Verb::Release), record.grant, record.closed), (2, None, None));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_lost_unnoticed_says_how_and_changes_nothing() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.machine(2);
        let lease = held(&a).await;
        let rival = ground.store.take_over("job").unwrap();
        let ended = lease.close(HOUR, data("the outcome")).await.unwrap();
        let Ended::Lost(lost) = ended else { panic!("{judge:?}: {ended:?}") };
        assert!(matches!(lost.reason(), LostReason::Taken { token, .. } if *token == rival));
        assert_eq!(ground.record("job").await.closed, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_shut_down_first_says_that_nothing_was_recorded() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let lease = held(&a).await;
    a.leases.shutdown(SECOND).await.unwrap();
    let error = lease.close(HOUR, data("the outcome")).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Closed, Written::No), "{error}");
    let record = ground.record("job").await;
    assert_eq!((record.grant, record.closed), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_closing_that_is_under_way_and_sends_no_release_of_its_own() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.machine(2), ground.machine(3));
    let lease = held(&a).await;
    a.way.on(Verb::Release).fault(Fault::ArriveLate(2 * SECOND));
    let closes = tokio::spawn(async move { lease.close(HOUR, data("the outcome")).await });
    sleep(SECOND).await;
    a.leases.shutdown(10 * SECOND).await.unwrap();
    assert_eq!(closes.await.unwrap().unwrap(), Ended::Released);
    assert_eq!(refused(&b).await.data(), Some(&b"the outcome"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_sends_the_closing_that_is_owed_and_says_if_it_could_not() {
    for away in [false, true] {
        let ground = Ground::new(Judge::StoreTime);
        let a = ground.machine(2);
        let lease = held(&a).await;
        a.way.on(Verb::Release).fault(Fault::Hang);
        assert!(timeout(SECOND, lease.close(HOUR, data("the outcome"))).await.is_err());
        assert_eq!(a.leases.stats().owed, 1);
        if away {
            a.way.on(Verb::Release).always().fault(Fault::Hang);
        }
        let ended = a.leases.shutdown(10 * SECOND).await;
        assert_eq!(ended.is_err(), away, "{ended:?}");
        assert_eq!(ground.record("job").await.closed.is_some(), !away);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_dropped_before_it_was_polled_is_a_plain_release() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    drop(held(&a).await.close(HOUR, data("the outcome")));
    a.leases.flush().await;
    let record = ground.record("job").await;
    assert_eq!((record.grant, record.closed), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_ends_before_a_closing_that_comes_too_late() {
    // A6, D8: its release was sent by the keeper, because its owner did nothing.
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let lease = a.leases.request("job").at_most(20 * SECOND).acquire().await.unwrap();
    sleep(TTL).await;
    let released = a.way.count(Verb::Release);
    let ended = lease.close(HOUR, data("the outcome")).await.unwrap();
    assert!(matches!(ended, Ended::Lost(lost) if lost.reason() == &LostReason::AtMost));
    assert_eq!((released, a.way.count(Verb::Release), ground.record("job").await.closed), (1, 1, None));
}
