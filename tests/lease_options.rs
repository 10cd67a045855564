//! Bad input: a clear kind, a text that says what to do, and no request.
#![allow(clippy::disallowed_methods, reason = "tests read a paused clock")]

mod support;

use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Error, ErrorKind, Lease, Leases, LeasesBuilder, MemoryStore, Operation, Renewal, Request, Status};
use support::scripted::{Fault, Scripted, Verb, client, table};

const SECOND: Duration = Duration::from_secs(1);

fn builder(store: &Scripted, clock: &TestClock) -> LeasesBuilder {
    Leases::builder(store.clone()).clock(clock.clone())
}

fn is_invalid(error: &Error, operation: Operation, words: &[&str]) {
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, operation), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is not in: {error}");
    }
}

fn refused_by_build(change: impl FnOnce(LeasesBuilder) -> LeasesBuilder, operation: Operation, words: &[&str]) {
    let (store, clock) = table();
    is_invalid(&change(builder(&store, &clock)).build().unwrap_err(), operation, words);
    assert_eq!(store.total(), 0);
}

/// Every way of acquiring refuses it, and nothing is sent, started or waited for.
async fn refused_by_request(change: impl Fn(Request) -> Request, words: &[&str]) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let begun = tokio::time::Instant::now();
    let request = || change(leases.request("job"));
    let errors = [
        request().acquire().await.map(drop).unwrap_err(),
        request().acquire_within(SECOND).await.map(drop).unwrap_err(),
        request().try_acquire().await.map(drop).unwrap_err(),
    ];
    for error in &errors {
        is_invalid(error, Operation::Acquire, words);
    }
    assert_eq!((store.total(), begun.elapsed()), (0, Duration::ZERO));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_term_outside_the_stores_range_is_refused_and_names_the_range() {
    let range = ["a term on memory is 1ms to 86400s"];
    refused_by_build(|builder| builder.ttl(Duration::from_micros(999)), Operation::Build, &range);
    refused_by_build(|builder| builder.ttl(SECOND * 86_401), Operation::Build, &range);
    refused_by_build(|builder| builder.ttl(Duration::MAX), Operation::Build, &range);
    refused_by_build(|builder| builder.ttl(Duration::ZERO), Operation::Build, &range);
    refused_by_request(|request| request.ttl(SECOND * 86_401), &range).await;
}

#[tokio::test(start_paused = true)]
async fn a_term_between_two_of_the_stores_steps_is_refused_and_names_the_step() {
    let odd = Duration::from_micros(30_000_500);
    let step = ["a term on memory is a multiple of 1ms, not 30.0005s"];
    refused_by_build(|builder| builder.ttl(odd), Operation::Build, &step);
    refused_by_request(|request| request.ttl(odd), &step).await;
}

#[tokio::test(start_paused = true)]
async fn a_margin_that_leaves_no_room_for_two_failures_is_refused_and_says_what_fits() {
    let room = "leaves no room for a renewal and two failures";
    let words = [room, "make the term longer, or the margin less than 9.7s"];
    refused_by_build(|builder| builder.margin(SECOND * 10), Operation::Build, &words);
    refused_by_build(|builder| builder.margin(Duration::MAX), Operation::Build, &words);
    refused_by_request(|request| request.margin(SECOND * 10), &words).await;
    // The shortest default margin is a second.
    let words = [room, "the margin less than 323ms"];
    refused_by_build(|builder| builder.ttl(SECOND), Operation::Build, &words);
    refused_by_request(|request| request.ttl(SECOND), &words).await;
}

#[tokio::test(start_paused = true)]
async fn terms_and_margins_at_the_very_edge_are_accepted() {
    let (store, clock) = table();
    // 30 s less 1 % less 2/3 leaves 9.7 s.
    builder(&store, &clock).margin(Duration::from_millis(9_699)).build().unwrap();
    assert!(builder(&store, &clock).margin(Duration::from_millis(9_700)).build().is_err());
    builder(&store, &clock).ttl(SECOND * 86_400).build().unwrap();
    builder(&store, &clock).ttl(Duration::from_millis(1)).margin(Duration::ZERO).build().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_of_none_is_refused() {
    refused_by_build(|builder| builder.concurrency(0), Operation::Build, &["at least 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_bad_prefix_is_refused() {
    let words = ["at most 255 bytes and no control characters"];
    refused_by_build(|builder| builder.prefix("a\nb"), Operation::Build, &words);
    refused_by_build(|builder| builder.prefix("x".repeat(256)), Operation::Build, &words);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_too_long_is_refused() {
    refused_by_build(|builder| builder.holder("x".repeat(129)), Operation::Name, &["at most 128 bytes", "has 129"]);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_is_too_large_is_refused() {
    refused_by_request(|request| request.data(vec![0; 4097]), &["at most 4096 bytes", "has 4097"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_longest_hold_within_the_margin_is_refused() {
    let words = ["at_most has to be longer than the margin of 3s"];
    refused_by_request(|request| request.at_most(SECOND * 3), &words).await;
    // A6: a deadline that is already past.
    refused_by_request(|request| request.at_most(Duration::ZERO), &words).await;
    let margin = |request: Request| request.margin(SECOND * 5).at_most(SECOND * 5);
    refused_by_request(margin, &["at_most has to be longer than the margin of 5s"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_try_that_outlasts_its_longest_hold_is_timed_out_and_leaves_the_name_free() {
    // A6
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    leases.inspect("job").await.unwrap();
    let late = store.on(Verb::Claim).fault(Fault::AnswerLate(SECOND * 4));
    let begun = tokio::time::Instant::now();
    let error = leases.request("job").at_most(SECOND * 6).try_acquire().await.map(drop).unwrap_err();
    assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::TimedOut, SECOND * 3));
    leases.flush().await;
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    assert_eq!(late.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thread_for_one_request_is_refused() {
    let words = ["manual renewal or the client's own mode", "choose others for the client"];
    refused_by_request(|request| request.renewal(Renewal::Thread), &words).await;
    let (store, clock) = table();
    let manual = builder(&store, &clock).renewal(Renewal::Manual).build().unwrap();
    let error = manual.request("job").renewal(Renewal::Task).try_acquire().await.map(drop).unwrap_err();
    is_invalid(&error, Operation::Acquire, &words);
    assert_eq!(store.total(), 0);
    let task = client(&store, &clock, "a");
    let _lease: Lease = task.request("job").renewal(Renewal::Task).acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_of_another_store_is_refused() {
    let (store, clock) = table();
    let other = Scripted::new(MemoryStore::like_a_table(clock.another(98)), clock.clone());
    let handover = client(&store, &clock, "a").acquire("job").await.unwrap().into_handover().await.unwrap();
    let error = client(&other, &clock.another(2), "b").resume(handover).await.map(drop).unwrap_err();
    is_invalid(&error, Operation::Resume, &["of another store", "resume it on the store that it comes from"]);
    assert_eq!(error.lease().unwrap().as_str(), "job");
    assert_eq!(other.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn to_ensure_more_than_a_term_can_give_is_refused_and_says_how_much_it_can() {
    let (store, clock) = table();
    let lease = client(&store, &clock, "a").acquire("job").await.unwrap();
    let sent = store.total();
    // A term of 26.7 s less an attempt of 5 s.
    let error = lease.held().ensure(Duration::from_millis(21_701)).await.unwrap_err();
    is_invalid(&error, Operation::Renew, &["21.7s at the most", "21.701s"]);
    assert_eq!(store.total(), sent);
}
