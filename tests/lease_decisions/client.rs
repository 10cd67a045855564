//! `src/lease/client.rs`: a client's counts and its end.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::recipes::{Election, Schedule};
use leasehold::{Applied, Data, Error, ErrorKind, FencingToken, Operation, Renewal, StoreErrorKind, Written};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use crate::SECOND;
use crate::support::scripted::{Fault, TTL, Verb, client, table};
use crate::told::{Said, Told, free, held, like_a_table, shows, that_judges};

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_ok_when_a_release_that_was_not_answered_at_first_is_settled_by_its_end() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let failed = store.on(Verb::Release).times(3).fault(Fault::Fail(StoreErrorKind::Unavailable));
    leases.shutdown(TTL).await.unwrap();
    assert_eq!((failed.times(), store.count(Verb::Release)), (3, 4));
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_names_the_leases_whose_release_was_not_answered_in_their_terms() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let held = [leases.acquire("one").await.unwrap(), leases.acquire("two").await.unwrap()];
    store.on(Verb::Release).of("two").always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    let error = leases.shutdown(TTL * 3).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.operation(), error.store()),
        (ErrorKind::Unavailable, Operation::Shutdown, Some("memory"))
    );
    assert!(error.to_string().contains("the release of these leases was not answered: two; they end"), "{error}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_says_that_an_acquire_was_still_under_way() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let waiter = leases.clone();
    let hung = store.on(Verb::Read).always().fault(Fault::Hang);
    let waiter = tokio::spawn(async move { waiter.acquire("job").await.map(drop) });
    yield_now().await;
    assert_eq!(hung.times(), 1);
    let error = leases.shutdown(SECOND).await.unwrap_err();
    assert!(error.to_string().contains("an acquire was still under way at the deadline; it gives back"), "{error}");
    assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_says_that_clean_ups_were_still_owed() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    store.on(Verb::Release).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    drop(leases.acquire("job").await.unwrap());
    sleep(SECOND).await;
    let error = leases.shutdown(SECOND).await.unwrap_err();
    assert!(error.to_string().contains("clean-ups were still owed at the deadline; they end"), "{error}");
    assert_eq!(error.written(), Written::No);
}

/// The record is free again, so that only its payload says so.
#[tokio::test(start_paused = true)]
async fn a_tick_that_another_node_has_run_is_looked_at_once() {
    let mut begun = free(7);
    begun.data = Data::new(format!("tick {} begun", 1_790_000_000 / 60).as_bytes());
    let store = Told::new(like_a_table(), [shows(begun)]);
    let schedule = Schedule::new(&store.client(), "job", SECOND * 60).unwrap();
    // Twenty seconds of this tick are over.
    assert!(timeout(SECOND * 39, schedule.turn()).await.is_err());
    assert_eq!(store.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_tick_of_a_schedule_is_looked_for_half_a_poll_to_a_poll_after_it_has_begun() {
    let mut begun = free(7);
    begun.data = Data::new(format!("tick {} begun", 1_790_000_000 / 60).as_bytes());
    begun.grant = held(7).grant;
    let store = Told::new(like_a_table(), [shows(begun), shows(free(7)), Said::Accepts]);
    let schedule = Schedule::new(&store.client(), "job", SECOND * 60).unwrap();
    drop(schedule.turn().await.unwrap());
    let looks = store.sent().at;
    let after = Duration::from_nanos(looks[1].real % 60_000_000_000);
    assert!((SECOND / 2..=SECOND + SECOND / 100).contains(&after), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn an_election_is_refused_where_nobody_renews() {
    for (renewal, refused) in [(Renewal::Manual, true), (Renewal::Task, false)] {
        let store = Told::new(like_a_table(), [Said::Accepts]);
        let leases = store.builder().renewal(renewal).build().unwrap();
        let result: Result<Option<()>, Error> = Election::new(&leases, "job").lead(async |_| Ok(())).await;
        assert_eq!(result.is_err(), refused, "{renewal:?}: {result:?}");
        assert_eq!(store.total() == 0, refused, "nothing is written then");
    }
}

/// What it is at its first poll, outside of a runtime.
fn without_a_runtime<T>(call: impl Future<Output = Result<T, Error>>) -> Error {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => error,
        Poll::Ready(Ok(_)) => panic!("it did something"),
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn without_a_runtime_every_call_says_so_and_sends_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let store = runtime.block_on(async { Told::new(like_a_table(), [Said::Accepts]) });
    for renewal in [Renewal::Task, Renewal::Thread, Renewal::Manual] {
        let leases = store.builder().renewal(renewal).build().unwrap();
        let token = FencingToken::new(7).unwrap();
        let errors = [
            (Operation::Acquire, without_a_runtime(leases.acquire("job"))),
            (Operation::Acquire, without_a_runtime(leases.try_acquire("job"))),
            (Operation::Inspect, without_a_runtime(leases.inspect("job"))),
            (Operation::List, without_a_runtime(leases.list("").all())),
            (Operation::Ask, without_a_runtime(leases.ask("job", token, SECOND))),
            (Operation::Revoke, without_a_runtime(leases.revoke("job", token))),
            (Operation::Force, without_a_runtime(leases.force("job", token))),
        ];
        for (operation, error) in errors {
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, operation), "{renewal:?}: {error}");
            assert!(error.to_string().contains("there is no tokio runtime here"), "{error}");
        }
    }
    assert_eq!(store.total(), 0);
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn after_its_end_a_client_starts_nothing() {
    let store = Told::new(like_a_table(), [Said::Accepts]);
    let leases = store.client();
    leases.shutdown(SECOND).await.unwrap();
    let errors = [
        leases.acquire("job").await.map(drop).unwrap_err(),
        leases.acquire_within("job", SECOND).await.map(drop).unwrap_err(),
        leases.try_acquire("job").await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Closed, Operation::Acquire));
        assert_eq!(error.to_string(), "acquire: the client was shut down: build a new one");
    }
    assert_eq!((store.total(), tasks()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_keeper_ends_with_its_client_and_not_at_its_next_look() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    leases.acquire("job").await.unwrap().release().await.unwrap();
    sleep(SECOND / 2).await; // It has looked, and sleeps.
    assert_eq!(tasks(), 1);
    let begun = Instant::now();
    drop(leases);
    yield_now().await;
    yield_now().await;
    assert_eq!((tasks(), begun.elapsed()), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_handed_over_keeps_no_client() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let lease = leases.acquire("job").await.unwrap();
    sleep(SECOND / 2).await;
    let handover = lease.into_handover().await.unwrap();
    drop((leases, handover));
    sleep(SECOND + SECOND / 10).await;
    assert_eq!(tasks(), 0, "the first renewal would be due after five seconds");
}

#[tokio::test]
async fn with_a_thread_of_its_own_every_request_is_sent_on_it() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Thread).build().unwrap();
    leases.inspect("job").await.unwrap();
    leases.revoke("job", FencingToken::new(7).unwrap()).await.unwrap();
    leases.acquire("job").await.unwrap().release().await.unwrap();
    assert_eq!(store.sent().threads.into_iter().collect::<Vec<_>>(), ["leasehold-keeper"]);
}

#[test]
fn a_client_is_shown_by_its_store_its_prefix_and_its_holder() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().prefix("app/").holder("me").build().unwrap();
    let shown = format!("{leases:?}");
    for part in ["Leases", "store: \"told\"", "prefix: \"app/\"", "holder: Some(", "me"] {
        assert!(shown.contains(part), "{part:?} is not in: {shown}");
    }
    let shown = format!("{:?}", leases.list("x"));
    assert!(shown.contains("Client { store: \"told\""), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_by_their_kind() {
    let fails = |kind| Said::Fails(kind, Applied::No);
    let kinds = [
        ("throttled", StoreErrorKind::Throttled),
        ("unavailable", StoreErrorKind::Unavailable),
        ("timed_out", StoreErrorKind::TimedOut),
        ("contended", StoreErrorKind::Contended),
        ("denied", StoreErrorKind::Denied),
        ("misconfigured", StoreErrorKind::Misconfigured),
        ("invalid", StoreErrorKind::Invalid),
    ];
    for (name, kind) in kinds {
        let store = Told::new(that_judges(), [fails(kind)]);
        let leases = store.client();
        leases.inspect("job").await.unwrap_err();
        leases.inspect("job").await.unwrap_err();
        let counted = leases.stats().failures;
        assert_eq!((counted.len(), counted[name], counted.values().sum::<u64>()), (kinds.len(), 2, 2), "{counted:?}");
    }
}

/// In real time only where it fails: it looks a number of times.
#[tokio::test]
async fn with_a_thread_of_its_own_a_call_that_is_given_up_stops_its_request() {
    let store = Told::new(that_judges(), [Said::Hangs]);
    let leases = store.builder().renewal(Renewal::Thread).build().unwrap();
    let caller = leases.clone(); // The client stays.
    let call = tokio::spawn(async move { caller.inspect("job").await.map(drop) });
    while store.sent().under_way == 0 {
        yield_now().await;
    }
    call.abort();
    let _ = call.await;
    let mut looks = 0;
    while store.sent().under_way > 0 {
        looks += 1;
        assert!(looks < 100_000, "it goes on");
        std::thread::yield_now();
    }
}
