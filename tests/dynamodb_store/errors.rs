//! What failed calls say: whether anything was written, and what to do.

use leasehold::dynamodb::DynamoDbStore;
use leasehold::store::Store;
use leasehold::{Applied, StoreError, StoreErrorKind};

use crate::bodies::{Fixture, TABLE, a, claim};
use crate::support::emulator;
use crate::support::faults::{Answer, Fault};

async fn failed(fixture: &Fixture, fault: Fault) -> StoreError {
    let fault = fixture.next_write(fault);
    let error = fixture.store.claim(&claim(1, a())).await.expect_err("scripted");
    assert_eq!(fault.happened(), 1);
    error
}

#[tokio::test]
async fn access_denied_names_the_operation_and_the_permission() {
    let fixture = Fixture::start().await;
    let error = failed(&fixture, Fault::Answer(Answer::forbidden())).await;
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Denied));
    let text = error.to_string();
    assert!(text.contains("UpdateItem on table `leases` in eu-central-1"), "{text}");
    assert!(text.contains("allow `dynamodb:UpdateItem`"), "{text}");
}

#[tokio::test]
async fn access_denied_on_opening_names_describe_table_and_the_way_around_it() {
    let fixture = Fixture::start().await;
    fixture.proxy.on(crate::support::faults::Match::op("DescribeTable")).fault(Fault::Answer(Answer::forbidden()));
    let text = DynamoDbStore::open(fixture.client.clone(), TABLE).await.expect_err("scripted").to_string();
    assert!(text.contains("`dynamodb:DescribeTable`") && text.contains("unverified()"), "{text}");
}

#[tokio::test]
async fn a_conflict_between_regions_is_contention_and_not_applied() {
    let fixture = Fixture::start().await;
    let conflict = Answer::new(409, "com.amazonaws.dynamodb.v20120810#ReplicatedWriteConflictException");
    let error = failed(&fixture, Fault::Answer(conflict)).await;
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Contended));
}

#[tokio::test]
async fn throttling_and_a_stale_signature_are_transient_and_not_applied() {
    let fixture = Fixture::start().await;
    let throttled = failed(&fixture, Fault::Answer(Answer::throttled())).await;
    assert_eq!((throttled.applied, throttled.kind), (Applied::No, StoreErrorKind::Throttled));
    let fixture = Fixture::start().await;
    let stale = failed(&fixture, Fault::Answer(Answer::invalid_signature())).await;
    assert_eq!((stale.applied, stale.kind), (Applied::No, StoreErrorKind::Unavailable));
}

#[tokio::test]
async fn broken_connections_and_garbled_answers_leave_the_write_unknown() {
    for fault in
        [Fault::LoseRequest, Fault::LoseAnswer, Fault::Truncate, Fault::AnswerAfterApply(Answer::internal_error())]
    {
        let fixture = Fixture::start().await;
        let error = failed(&fixture, fault.clone()).await;
        assert_eq!((error.applied, error.kind), (Applied::Unknown, StoreErrorKind::Unavailable), "{fault:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_certainly_not_applied() {
    let fixture = Fixture::start().await;
    let store = DynamoDbStore::builder(emulator::client(fixture.proxy.addr()), TABLE).unverified().expect("fine");
    fixture.proxy.down();
    let error = store.claim(&claim(1, a())).await.expect_err("refused");
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Unavailable), "{error:?}");
}

#[tokio::test]
async fn a_kept_connection_that_is_gone_leaves_no_doubt_or_leaves_it_open() {
    let fixture = Fixture::start().await;
    fixture.claimed(1, a()).await;
    fixture.proxy.down();
    // Whichever the HTTP client notices first, it must not be taken for an answer.
    let error = fixture.store.claim(&claim(1, a())).await.expect_err("down");
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_denied_before_anything_is_sent() {
    let fixture = Fixture::start().await;
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("eu-central-1"))
        .endpoint_url(format!("http://{}", fixture.proxy.addr()));
    let client = aws_sdk_dynamodb::Client::from_conf(config.build());
    let store = DynamoDbStore::builder(client, TABLE).unverified().expect("fine");
    let error = store.claim(&claim(1, a())).await.expect_err("no credentials");
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Denied), "{error:?}");
    assert_eq!(fixture.proxy.total(), 0);
}

/// It takes the ten seconds that it is about: over a socket a paused clock would run out before the request arrives.
#[tokio::test]
async fn a_stalled_call_ends_by_itself() {
    let fixture = Fixture::start().await;
    let stalled = fixture.next_write(Fault::Stall);
    let error = fixture.store.claim(&claim(1, a())).await.expect_err("no answer comes");
    assert_eq!(stalled.happened(), 1);
    assert_eq!((error.applied, error.kind), (Applied::Unknown, StoreErrorKind::TimedOut));
}

#[tokio::test]
async fn numbers_that_would_spoil_the_record_are_never_sent() {
    let fixture = Fixture::start().await;
    for claim in [claim(0, a()), claim(1 << 53, a()), leasehold::Claim { ttl_ms: 0, ..claim(1, a()) }] {
        let error = fixture.store.claim(&claim).await.expect_err("out of range");
        assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Invalid));
    }
    assert_eq!(fixture.proxy.total(), 0);
}
