//! `src/lease/acquire.rs`: what a call sends, and what it says when it ends without a lease.

use leasehold::recipes::Schedule;
use leasehold::{
    Applied, Attempt, Closed, Error, ErrorKind, Expect, Leases, Operation, Standing, Status, StoreErrorKind,
    Unreadable, Version, View, Written,
};

use crate::SECOND;
use crate::support::scripted::{Fault, Scripted, Verb, client, table};
use crate::told::{Said, Told, free, held, like_a_table, shows, stands, that_judges};

/// A client that has had an answer, so that it knows the store's time and claims without a read.
async fn that_knows_the_time(store: &Scripted, clock: &leasehold::testing::TestClock) -> Leases {
    let leases = client(store, clock, "a");
    leases.inspect("other").await.unwrap();
    store.forget_calls();
    leases
}

/// A client whose first request of an acquire is this one.
async fn that_begins_with(verb: Verb) -> (Scripted, Leases) {
    let (store, clock) = table();
    let leases = match verb {
        Verb::Read => client(&store, &clock, "a"),
        _ => that_knows_the_time(&store, &clock).await,
    };
    (store, leases)
}

fn timed_out(result: Result<leasehold::Lease, Error>) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::TimedOut, Operation::Acquire), "{error}");
    error.to_string()
}

// What the last request had to say.

#[tokio::test(start_paused = true)]
async fn a_request_that_had_less_time_than_it_may_take_is_not_blamed() {
    for verb in [Verb::Read, Verb::Claim] {
        let (store, leases) = that_begins_with(verb).await;
        let hung = store.on(verb).always().fault(Fault::Hang);
        let begun = tokio::time::Instant::now();
        let why = timed_out(leases.acquire_within("job", SECOND * 2).await);
        assert_eq!((hung.times(), store.total().max(1)), (1, 1), "{verb:?}");
        assert!(begun.elapsed() < SECOND * 2 + SECOND / 10, "{verb:?}: {:?}", begun.elapsed());
        assert!(!why.contains("the last request failed"), "{verb:?}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_had_all_its_time_is_blamed_although_the_last_one_had_not() {
    for verb in [Verb::Read, Verb::Claim] {
        let (store, leases) = that_begins_with(verb).await;
        let hung = store.on(verb).always().fault(Fault::Hang);
        let why = timed_out(leases.acquire_within("job", SECOND * 7).await);
        assert_eq!(hung.times(), 2, "{verb:?}: one of 5 s and one that was cut");
        assert!(why.contains("the last request failed: no answer in time"), "{verb:?}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_refused_is_blamed_however_little_time_it_had() {
    for verb in [Verb::Read, Verb::Claim] {
        let (store, leases) = that_begins_with(verb).await;
        for verb in [Verb::Read, Verb::Claim] {
            store.on(verb).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
        }
        let why = timed_out(leases.acquire_within("job", SECOND * 2).await);
        assert!(why.contains("the last request failed: scripted: Unavailable"), "{verb:?}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_was_answered_since_is_not_blamed() {
    let lost = Said::Fails(StoreErrorKind::Unavailable, Applied::No);
    let store = Told::new(like_a_table(), [lost, shows(held(7))]);
    let why = timed_out(store.client().acquire_within("job", SECOND * 3).await);
    assert!(why.contains("the time that was given is over: held by rival with token 7"), "{why}");
    assert!(!why.contains("the last request failed"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_answered_clears_the_failure_before_it() {
    let lost = Said::Fails(StoreErrorKind::Unavailable, Applied::No);
    let store = Told::new(that_judges(), [Said::Accepts, lost, stands(Standing::Held, held(7))]);
    let leases = store.client();
    leases.inspect("other").await.unwrap();
    let why = timed_out(leases.acquire_within("job", SECOND * 3).await);
    assert!(!why.contains("the last request failed"), "{why}");
}

// A record that is not one.

#[tokio::test(start_paused = true)]
async fn what_is_not_a_lease_is_left_alone_and_the_error_says_why() {
    for (reason, words) in [
        (Unreadable::Foreign, "the record is left alone: it is not a lease"),
        (Unreadable::Field("ttl_ms"), "the record is left alone: its field ttl_ms is missing"),
    ] {
        let store = Told::new(like_a_table(), [Said::Shows(View::unreadable(reason))]);
        let errors = [
            store.client().acquire("job").await.map(drop).unwrap_err(),
            store.client().try_acquire("job").await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(
                (error.kind(), error.written(), error.store()),
                (ErrorKind::Unreadable, Written::No, Some("told"))
            );
            assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
        }
        assert_eq!((store.total(), store.sent().claims.len()), (2, 0));
    }
}

// The client's end.

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_the_clients_end_is_given_back_and_the_call_says_closed() {
    let (store, clock) = table();
    let leases = that_knows_the_time(&store, &clock).await;
    let late = store.on(Verb::Claim).fault(Fault::AnswerLate(SECOND));
    let acquiring = leases.clone();
    let acquiring = tokio::spawn(async move { acquiring.acquire("job").await.map(drop) });
    tokio::task::yield_now().await;
    assert_eq!(late.times(), 1);
    leases.shutdown(SECOND * 10).await.unwrap();
    let error = acquiring.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Closed, Written::Unknown));
    assert_eq!((store.count(Verb::Claim), store.count(Verb::Release)), (1, 1));
    assert_eq!(client(&store, &clock.another(2), "b").inspect("job").await.unwrap().status, Status::Free);
}

// A payload that may say no.

/// The tick of a minute at the beginning of the clock, and a record whose payload has used it up or not.
fn marked(tick: u64) -> leasehold::Record {
    let mut record = free(7);
    record.data = leasehold::Data::new(format!("tick {tick} begun").as_bytes());
    record
}

const TICK: u64 = 1_790_000_000 / 60;

#[tokio::test(start_paused = true)]
async fn a_payload_that_says_no_is_not_claimed() {
    let store = Told::new(like_a_table(), [shows(marked(TICK)), Said::Accepts]);
    let schedule = Schedule::new(&store.client(), "job", SECOND * 60).unwrap();
    assert!(schedule.try_turn().await.unwrap().is_none());
    assert_eq!((store.total(), store.sent().claims.len()), (1, 0));
}

/// What the claim expected that came after a look.
async fn expected(store: &Told, by_payload: bool) -> Expect {
    if by_payload {
        let schedule = Schedule::new(&store.client(), "job", SECOND * 60).unwrap();
        assert!(schedule.try_turn().await.unwrap().is_some());
    } else {
        assert!(matches!(store.client().try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
    }
    let sent = store.sent();
    assert!(sent.at.len() >= 2, "a look and a claim");
    sent.claims[0].expect.clone()
}

#[tokio::test(start_paused = true)]
async fn a_claim_after_a_payload_that_was_looked_at_names_its_write() {
    let record = marked(TICK - 2);
    let store = Told::new(like_a_table(), [shows(record.clone()), Said::Accepts]);
    assert_eq!(expected(&store, true).await, Expect::Expired(Version::of(&record)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_after_a_payload_of_a_store_that_judges_names_no_write() {
    let store = Told::new(that_judges(), [shows(marked(TICK - 2)), Said::Accepts]);
    assert_eq!(expected(&store, true).await, Expect::Vacant);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_no_payload_can_stop_names_no_write_of_a_free_record() {
    let store = Told::new(like_a_table(), [shows(marked(TICK)), Said::Accepts]);
    assert_eq!(expected(&store, false).await, Expect::Vacant);
}

#[tokio::test(start_paused = true)]
async fn a_closed_record_with_a_payload_is_claimed_as_the_write_that_was_seen() {
    let mut record = marked(TICK - 2);
    record.closed = Some(Closed { for_ms: Some(1), until_ms: Some(1), by: Some(7) });
    let store = Told::new(like_a_table(), [shows(record.clone()), Said::Accepts]);
    assert_eq!(expected(&store, true).await, Expect::Expired(Version::of(&record)));
}
