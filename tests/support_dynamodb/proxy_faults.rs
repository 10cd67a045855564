//! Each fault does what it says: to the item, and to the client.

use std::io::ErrorKind;
use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::RequestId;

use crate::fixture::{
    Fixture, Written, claim, io_cause, is_connection_failure, service_error, update, write,
};
use crate::support::faults::{Answer, Fault};

/// Long enough for an answer on loopback, short enough to wait for in a test.
const PATIENCE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_lost_request_writes_nothing_and_fails_at_the_client() {
    let fixture = Fixture::start().await;
    let lost = fixture.next_write(Fault::LoseRequest);
    assert_reset(write(&fixture.client).await);
    assert_eq!((lost.happened(), fixture.writes().await), (1, 0));
    write(&fixture.client).await.expect("a new connection");
}

#[tokio::test]
async fn a_lost_answer_leaves_the_item_written_and_fails_at_the_client() {
    let fixture = Fixture::start().await;
    let lost = fixture.next_write(Fault::LoseAnswer);
    assert_reset(claim(&fixture.client).await);
    assert_eq!((lost.happened(), fixture.writes().await), (1, 1));
    assert_eq!(fixture.proxy.seen()[0].answered, None);
}

#[tokio::test]
async fn a_held_request_lands_after_its_client_has_given_up() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldRequest);

    assert_timeout(impatient_write(&fixture).await);
    assert_eq!(
        (held.happened(), held.landed(), fixture.writes().await),
        (1, 0, 0)
    );

    held.release();
    held.until_landed(1).await;
    assert_eq!(fixture.writes().await, 1);
}

#[tokio::test]
async fn a_held_request_is_answered_to_a_client_that_waits() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldRequest);
    let (written, ()) = tokio::join!(write(&fixture.client), async {
        held.until_happened(1).await;
        assert_eq!(fixture.writes().await, 0);
        held.release();
    });
    written.expect("late, but answered");
    assert_eq!(fixture.writes().await, 1);
}

#[tokio::test]
async fn a_held_request_lands_while_the_proxy_is_down() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldRequest);
    let (written, ()) = tokio::join!(write(&fixture.client), async {
        held.until_happened(1).await;
        fixture.proxy.down();
    });
    written.expect_err("the connection is gone");
    held.release();
    held.until_landed(1).await;
    assert_eq!(fixture.writes().await, 1);
}

#[tokio::test]
async fn a_request_held_for_a_while_lands_by_itself() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldRequestFor(Duration::from_millis(30)));
    write(&fixture.client).await.expect("late, but answered");
    assert_eq!(
        (held.happened(), held.landed(), fixture.writes().await),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn a_request_that_was_reset_and_held_lands_later() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::ResetAndHold);
    assert_reset(write(&fixture.client).await);
    assert_eq!(fixture.writes().await, 0);
    held.release();
    held.until_landed(1).await;
    assert_eq!(fixture.writes().await, 1);
}

#[tokio::test]
async fn a_held_answer_arrives_after_the_item_was_written() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldAnswer);
    let (written, ()) = tokio::join!(write(&fixture.client), async {
        held.until_happened(1).await;
        assert_eq!(fixture.writes().await, 1);
        assert_eq!(fixture.proxy.seen()[0].answered, None);
        held.release();
    });
    written.expect("late, but answered");
}

#[tokio::test]
async fn an_answer_held_for_a_while_arrives_by_itself() {
    let fixture = Fixture::start().await;
    let held = fixture.next_write(Fault::HoldAnswerFor(Duration::from_millis(30)));
    write(&fixture.client).await.expect("late, but answered");
    assert_eq!((held.happened(), fixture.writes().await), (1, 1));
}

#[tokio::test]
async fn a_duplicate_is_applied_twice_and_answered_once() {
    let fixture = Fixture::start().await;
    let twice = fixture.next_write(Fault::Duplicate);
    write(&fixture.client).await.expect("answered");
    assert_eq!((twice.happened(), fixture.writes().await), (1, 2));
    assert_eq!(
        (fixture.proxy.total(), fixture.proxy.seen()[0].forwarded),
        (1, 2)
    );
}

#[tokio::test]
async fn the_client_sees_the_first_answer_to_a_duplicate() {
    let fixture = Fixture::start().await;
    let twice = fixture.next_write(Fault::Duplicate);
    claim(&fixture.client)
        .await
        .expect("the first copy found no item");
    assert_eq!((twice.happened(), fixture.writes().await), (1, 1));
}

#[tokio::test]
async fn a_late_duplicate_lands_after_a_newer_request_was_answered() {
    let fixture = Fixture::start().await;
    let late = fixture.next_write(Fault::LateDuplicate);
    write(&fixture.client).await.expect("the first copy");
    write(&fixture.client).await.expect("a newer request");
    assert_eq!(fixture.writes().await, 2);
    late.release();
    late.until_landed(1).await;
    assert_eq!(fixture.writes().await, 3);
}

#[tokio::test]
async fn a_stalled_request_is_neither_written_nor_answered() {
    let fixture = Fixture::start().await;
    let stalled = fixture.next_write(Fault::Stall);
    assert_timeout(impatient_write(&fixture).await);
    assert_eq!((stalled.happened(), fixture.writes().await), (1, 0));
}

#[tokio::test]
async fn a_truncated_answer_leaves_the_item_written_and_fails_at_the_client() {
    let fixture = Fixture::start().await;
    let cut = fixture.next_write(Fault::Truncate);
    let error = write(&fixture.client).await.expect_err("half an answer");
    assert!(matches!(error, SdkError::ResponseError(_)), "{error:?}");
    assert_eq!(
        error
            .raw_response()
            .expect("the headers arrived")
            .status()
            .as_u16(),
        200
    );
    assert_eq!((cut.happened(), fixture.writes().await), (1, 1));
}

#[tokio::test]
async fn a_scripted_answer_takes_the_place_of_the_write() {
    let answers = [
        (Answer::internal_error(), (500, "InternalServerError")),
        (Answer::forbidden(), (403, "AccessDeniedException")),
        (
            Answer::throttled(),
            (400, "ProvisionedThroughputExceededException"),
        ),
        (
            Answer::invalid_signature(),
            (400, "InvalidSignatureException"),
        ),
    ];
    for (answer, expected) in answers {
        let fixture = Fixture::start().await;
        let answered = fixture.next_write(Fault::Answer(answer));
        let error = write(&fixture.client).await.expect_err("scripted");
        assert_eq!(service_error(&error), Some(expected));
        assert_eq!((answered.happened(), fixture.writes().await), (1, 0));
    }
}

#[tokio::test]
async fn a_scripted_answer_can_hide_that_the_item_was_written() {
    let fixture = Fixture::start().await;
    let answered = fixture.next_write(Fault::AnswerAfterApply(Answer::internal_error()));
    let error = write(&fixture.client).await.expect_err("scripted");
    assert_eq!(service_error(&error), Some((500, "InternalServerError")));
    assert_eq!((answered.happened(), fixture.writes().await), (1, 1));
}

#[tokio::test]
async fn an_answer_can_lack_its_request_id() {
    let fixture = Fixture::start().await;
    let stripped = fixture.next_write(Fault::WithoutHeader("x-amzn-requestid"));
    let without = write(&fixture.client).await.expect("answered");
    let with = write(&fixture.client).await.expect("answered");
    assert_eq!((stripped.happened(), without.request_id()), (1, None));
    assert!(with.request_id().is_some());
}

#[tokio::test]
async fn an_answer_can_lack_its_date_or_have_another() {
    let fixture = Fixture::start().await;
    claim(&fixture.client).await.expect("free");

    fixture.next_write(Fault::WithoutHeader("date"));
    assert_eq!(date_of_refusal(&fixture).await, None);

    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    fixture.next_write(Fault::WithHeader("date", date.into()));
    assert_eq!(date_of_refusal(&fixture).await.as_deref(), Some(date));
}

async fn date_of_refusal(fixture: &Fixture) -> Option<String> {
    let refused = claim(&fixture.client).await.expect_err("taken");
    refused
        .raw_response()?
        .headers()
        .get("date")
        .map(str::to_owned)
}

async fn impatient_write(fixture: &Fixture) -> Written {
    let timeouts = TimeoutConfig::builder().operation_timeout(PATIENCE).build();
    let config = aws_sdk_dynamodb::Config::builder().timeout_config(timeouts);
    update(&fixture.client)
        .customize()
        .config_override(config)
        .send()
        .await
}

#[track_caller]
fn assert_reset(outcome: Written) {
    let error = outcome.expect_err("the connection is reset");
    assert!(is_connection_failure(&error), "{error:?}");
    assert_eq!(
        io_cause(&error),
        Some(ErrorKind::ConnectionReset),
        "{error:?}"
    );
}

#[track_caller]
fn assert_timeout(outcome: Written) {
    let error = outcome.expect_err("nobody answers");
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
}
