//! What the proxy counts and remembers.

use std::io::ErrorKind;
use std::time::Duration;

use http_body_util::Full;
use tokio::time::Instant;

use crate::fixture::{Fixture, claim, io_cause, is_connection_failure, item, write};
use crate::support::emulator::retrying_client;
use crate::support::faults::{Answer, Fault, Match};
use crate::support::http::send;
use crate::support::wire::first_half;

#[tokio::test]
async fn requests_are_counted_by_operation() {
    let fixture = Fixture::start().await;
    write(&fixture.client).await.expect("up");
    write(&fixture.client).await.expect("up");
    item(&fixture.client).await;

    let proxy = &fixture.proxy;
    assert_eq!((proxy.count("UpdateItem"), proxy.count("GetItem"), proxy.total()), (2, 1, 3));

    proxy.reset_counts();
    assert_eq!((proxy.total(), proxy.connections_opened()), (0, 0));
}

#[tokio::test]
async fn a_request_is_recorded_with_its_body_and_what_became_of_it() {
    let fixture = Fixture::start().await;
    claim(&fixture.client).await.expect("free");
    claim(&fixture.client).await.expect_err("taken");
    fixture.proxy.on(Match::op("GetItem")).fault(Fault::Answer(Answer::internal_error()));
    let _ = fixture.client.get_item().table_name("leases").send().await;

    let seen = fixture.proxy.seen();
    let fates: Vec<_> = seen.iter().map(|s| (&*s.operation, s.forwarded, s.answered)).collect();
    let expected = [("UpdateItem", 1, Some(200)), ("UpdateItem", 1, Some(400)), ("GetItem", 0, Some(500))];
    assert_eq!(fates, expected);
    assert_eq!(seen[0].body["ConditionExpression"], "attribute_not_exists(pk)");
    assert!(seen.is_sorted_by_key(|seen| seen.arrived));
}

#[tokio::test]
async fn faults_are_remembered_with_their_names_in_their_order() {
    let fixture = Fixture::start().await;
    fixture.next_write(Fault::LoseAnswer);
    let _ = write(&fixture.client).await;
    fixture.next_write(Fault::Answer(Answer::internal_error()));
    let _ = write(&fixture.client).await;
    write(&fixture.client).await.expect("no fault any more");

    let happened = fixture.proxy.happened();
    let names: Vec<_> = happened.iter().map(|happened| (happened.fault, &*happened.operation)).collect();
    assert_eq!(names, [("answer lost", "UpdateItem"), ("error answered", "UpdateItem")]);
    assert!(happened.is_sorted_by_key(|happened| happened.at));
}

#[tokio::test]
async fn requests_of_the_blob_service_are_named_by_what_they_ask_and_refused_in_its_words() {
    let fixture = Fixture::start().await;
    let refusal = Fault::Answer(Answer::of_blob_service(503, "ServerBusy"));
    let refused = fixture.proxy.on(Match::op("PUT lease acquire")).fault(refusal);
    let url = format!("http://{}/account/leases/a?comp=lease&timeout=5", fixture.proxy.addr());

    let answer = send("PUT", &url, &[("x-ms-lease-action", "acquire")], b"").expect("it answers");

    assert_eq!((answer.status, answer.header("x-ms-error-code")), (503, Some("ServerBusy")));
    assert!(answer.text().contains("<Code>ServerBusy</Code>"), "{}", answer.text());
    assert_eq!(refused.happened(), 1);
}

#[tokio::test]
async fn an_answer_without_a_body_is_cut_in_its_head() {
    let answer = hyper::Response::builder().status(201).header("x-ms-lease-id", "an id").body(Full::default()).unwrap();
    let cut = first_half(answer).await;
    assert!(cut.starts_with(b"HTTP/1.1 201"));
    assert!(!cut.windows(4).any(|bytes| bytes == b"\r\n\r\n"), "{}", String::from_utf8_lossy(&cut));
}

#[tokio::test]
async fn a_client_keeps_its_connection_between_requests() {
    let fixture = Fixture::start().await;
    for _ in 0..5 {
        write(&fixture.client).await.expect("up");
    }
    assert_eq!(fixture.proxy.connections_opened(), 1);
    assert!(fixture.proxy.seen().iter().all(|seen| seen.connection == 1));
}

#[tokio::test]
async fn the_sdks_own_retries_are_seen_as_requests() {
    let fixture = Fixture::start().await;
    let lost = fixture.next_write(Fault::LoseAnswer);

    let refused = claim(&retrying_client(fixture.proxy.addr())).await.expect_err("its own success");

    assert!(refused.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()));
    assert_eq!((lost.happened(), fixture.proxy.count("UpdateItem")), (1, 2));
}

#[tokio::test]
async fn a_fault_meets_only_the_requests_it_is_for() {
    let fixture = Fixture::start().await;
    let by_body = Match::op("UpdateItem").containing("attribute_not_exists");
    let lost = fixture.proxy.on(by_body).nth(2).fault(Fault::LoseRequest);

    write(&fixture.client).await.expect("another body");
    claim(&fixture.client).await.expect_err("refused by the emulator, the first match");
    write(&fixture.client).await.expect("another body");
    assert_eq!(lost.happened(), 0);

    let second = claim(&fixture.client).await.expect_err("lost, the second match");
    assert!(is_connection_failure(&second));
    assert_eq!(lost.happened(), 1);
}

#[tokio::test]
async fn the_first_requests_fail_and_the_next_succeeds() {
    let fixture = Fixture::start().await;
    let lost = fixture.proxy.on(Match::any()).first(2).fault(Fault::LoseRequest);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(write(&fixture.client).await.is_ok());
    }
    assert_eq!((outcomes, lost.happened()), (vec![false, false, true], 2));
}

#[tokio::test]
async fn a_rate_takes_the_same_requests_for_the_same_seed() {
    let one = outcomes_at_half_rate(7).await;
    assert_eq!(one, outcomes_at_half_rate(7).await);
    assert_ne!(one, outcomes_at_half_rate(8).await);
    let failed = one.iter().filter(|ok| !**ok).count();
    assert!((5..35).contains(&failed), "{failed} of 40 failed");
}

async fn outcomes_at_half_rate(seed: u64) -> Vec<bool> {
    let fixture = Fixture::start().await;
    let throttled = Fault::Answer(Answer::throttled());
    fixture.proxy.on(Match::any()).rate(0.5, seed).fault(throttled);
    let mut outcomes = Vec::new();
    for _ in 0..40 {
        outcomes.push(write(&fixture.client).await.is_ok());
    }
    outcomes
}

#[tokio::test]
async fn a_stopped_or_healed_fault_happens_no_more() {
    let fixture = Fixture::start().await;
    let stopped = fixture.proxy.on(Match::any()).fault(Fault::LoseRequest);
    write(&fixture.client).await.expect_err("lost");
    stopped.stop();
    write(&fixture.client).await.expect("stopped");

    let healed = fixture.proxy.on(Match::any()).fault(Fault::LoseRequest);
    fixture.proxy.heal();
    write(&fixture.client).await.expect("healed");
    assert_eq!((stopped.happened(), healed.happened()), (1, 0));
}

#[tokio::test]
async fn latency_delays_every_request() {
    let fixture = Fixture::start().await;
    let latency = Duration::from_millis(30);
    fixture.proxy.set_latency(latency);
    for _ in 0..2 {
        let start = Instant::now();
        write(&fixture.client).await.expect("late, but up");
        assert!(start.elapsed() >= latency);
    }
}

#[tokio::test]
async fn a_proxy_that_is_down_refuses_and_comes_back() {
    let fixture = Fixture::start().await;
    write(&fixture.client).await.expect("up");

    fixture.proxy.down();
    let during = write(&fixture.client).await.expect_err("down");
    assert!(is_connection_failure(&during), "{during:?}");
    let anew = write(&fixture.proxy.client()).await.expect_err("down");
    assert_eq!(io_cause(&anew), Some(ErrorKind::ConnectionRefused), "{anew:?}");

    fixture.proxy.up();
    write(&fixture.client).await.expect("up again");
    assert_eq!((fixture.writes().await, fixture.proxy.connections_opened()), (2, 2));
}
