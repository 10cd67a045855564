//! What the emulator answers, where leases depend on it.

use std::io::ErrorKind;
use std::thread;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;

use crate::fixture::{
    Fixture, claim, io_cause, is_connection_failure, item, service_error, update, write, writes,
};
use crate::sdk_clients::{Answers, derived, header_names};
use crate::support::emulator;

#[tokio::test]
async fn a_failed_condition_writes_nothing_and_returns_the_item() {
    let fixture = Fixture::start().await;
    claim(&fixture.client)
        .await
        .expect("nobody has claimed before");

    let refused = claim(&fixture.client).await.expect_err("it is claimed");

    assert_eq!(
        service_error(&refused),
        Some((400, "ConditionalCheckFailedException"))
    );
    let UpdateItemError::ConditionalCheckFailedException(refusal) = refused.into_service_error()
    else {
        panic!("the condition failed");
    };
    assert_eq!(writes(refusal.item().expect("ALL_OLD was asked for")), 1);
    assert_eq!(fixture.writes().await, 1);
}

#[tokio::test]
async fn a_failed_condition_returns_no_item_unless_asked() {
    let fixture = Fixture::start().await;
    claim(&fixture.client)
        .await
        .expect("nobody has claimed before");

    let claim = update(&fixture.client).condition_expression("attribute_not_exists(pk)");
    let refused = claim
        .send()
        .await
        .expect_err("it is claimed")
        .into_service_error();

    let UpdateItemError::ConditionalCheckFailedException(refusal) = refused else {
        panic!("the condition failed");
    };
    assert!(refusal.item().is_none());
}

#[tokio::test]
async fn success_has_a_date_and_a_request_id() {
    let fixture = Fixture::start().await;
    let answers = Answers::default();
    write(&derived(&fixture.client, answers.clone()))
        .await
        .expect("no condition");
    let all = answers.all();
    let [success] = all.as_slice() else {
        panic!("one answer, not {all:?}")
    };
    assert_eq!(success.names, EMULATOR_HEADERS);
}

#[tokio::test]
async fn errors_have_a_date_and_a_request_id() {
    let fixture = Fixture::start().await;
    claim(&fixture.client)
        .await
        .expect("nobody has claimed before");

    let refused = claim(&fixture.client).await.expect_err("it is claimed");
    let unknown = update(&fixture.client)
        .table_name("missing")
        .send()
        .await
        .expect_err("no table");
    let invalid = update(&fixture.client)
        .update_expression("GARBAGE")
        .send()
        .await
        .expect_err("no expression");

    for error in [refused, unknown, invalid] {
        assert_eq!(
            header_names(error.raw_response().expect("an answer")),
            EMULATOR_HEADERS
        );
    }
}

#[tokio::test]
async fn data_survives_an_outage() {
    let fixture = Fixture::start().await;
    let direct = fixture.emulator.client();
    write(&direct).await.expect("up");

    fixture.emulator.down();
    let during = write(&direct).await.expect_err("down");
    let anew = write(&fixture.emulator.client()).await.expect_err("down");
    fixture.emulator.up();

    assert!(is_connection_failure(&during), "{during:?}");
    assert_eq!(
        io_cause(&anew),
        Some(ErrorKind::ConnectionRefused),
        "{anew:?}"
    );
    write(&direct).await.expect("up again");
    assert_eq!(writes(&item(&direct).await.expect("written")), 2);
}

#[tokio::test]
async fn an_outage_of_the_emulator_looks_like_one_through_the_proxy() {
    let fixture = Fixture::start().await;
    write(&fixture.client).await.expect("up");

    fixture.emulator.down();
    write(&fixture.client).await.expect_err("down");
    fixture.emulator.up();

    write(&fixture.client).await.expect("up again");
    assert_eq!(fixture.writes().await, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn the_emulator_answers_while_the_test_runtime_is_blocked() {
    let fixture = Fixture::start().await;
    let addr = fixture.proxy.addr();

    let elsewhere = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { write(&emulator::client(addr)).await.is_ok() })
    });

    // Joining blocks the only thread that this test's runtime has.
    assert!(elsewhere.join().expect("no panic"), "written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_emulator_works_from_a_multi_thread_runtime() {
    let fixture = Fixture::start().await;
    let client = fixture.client.clone();
    tokio::spawn(async move { write(&client).await.expect("up") })
        .await
        .expect("no panic");
    assert_eq!(fixture.writes().await, 1);
}

/// What every answer of the emulator carries, in alphabetical order.
const EMULATOR_HEADERS: [&str; 7] = [
    "content-length",
    "content-type",
    "date",
    "server",
    "x-amz-crc32",
    "x-amzn-requestid",
    "x-dynoxide-version",
];
