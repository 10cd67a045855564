//! Once on DynamoDB: what it costs at the wire, what the item says, and how a record opens again.
#![allow(clippy::disallowed_methods, reason = "sockets have no paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod support;

#[path = "lease_dynamodb/ground.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod ground;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::{Close, Data, Grant, Leases, Name, Status, Store, Takeover, Vacate, Vacated, Written};

use crate::ground::{Ground, TABLE, claim, number, soon};
use crate::support::faults::{Answer, Fault};

const HOUR: Duration = Duration::from_secs(3600);
/// What tells a closing release from the other writes.
const CLOSING: &str = "\":closed_ms\"";

type Ran = Result<Outcome, OnceError<std::fmt::Error>>;

async fn receive(once: &Once) -> Ran {
    once.run("message", |held| async move { Ok::<_, Failed<std::fmt::Error>>(format!("by {}", held.token())) }).await
}

fn done(ran: Ran) -> Vec<u8> {
    match ran {
        Ok(Outcome::Done(value)) => value,
        other => panic!("{other:?}"),
    }
}

/// A client as a fresh function is one: it has heard nothing of the store.
async fn fresh(ground: &Ground) -> Leases {
    let leases = ground.builder("fresh").await.build().expect("fits");
    ground.proxy.reset_counts();
    leases
}

/// A record that somebody has closed with an outcome, until so many milliseconds after now on the store's clock.
async fn closed(ground: &Ground, until: i64) {
    let rival = ground.rival().await;
    let read = rival.read(&Name::new("some other").unwrap()).await.unwrap();
    let until_ms = read.date_ms.unwrap().checked_add_signed(until);
    let grant = Grant::from_bits(77);
    let claim = claim("message", 5, grant);
    rival.claim(&claim).await.unwrap();
    let close = Close { for_ms: 3_600_000, until_ms, data: Data::new(b"once\x01theirs") };
    let close = Vacate { name: claim.name, token: 5, grant, burn: false, close: Some(close), now_ms: None };
    assert_eq!(rival.vacate(&close).await.unwrap().value, Vacated::Vacated);
}

#[tokio::test]
async fn a_first_run_is_two_requests_and_a_repeat_one() {
    let ground = Ground::new().await;
    let (a, b) = (ground.quiet("a").await, ground.quiet("b").await);
    let value = done(receive(&Once::new(&a)).await);
    assert_eq!(ground.operations(), ["UpdateItem", "UpdateItem"], "the claim, and the release that closes");
    assert_eq!(ground.sent(CLOSING).len(), 1);
    for again in [&a, &b] {
        ground.proxy.reset_counts();
        assert_eq!(receive(&Once::new(again)).await.unwrap(), Outcome::AlreadyDone(value.clone()));
        assert_eq!(ground.operations(), ["UpdateItem"], "the claim that was refused");
    }
}

#[tokio::test]
async fn a_cold_start_pays_one_read_more_for_a_first_run_and_only_that_read_for_a_repeat() {
    let ground = Ground::new().await;
    let value = done(receive(&Once::new(&fresh(&ground).await)).await);
    assert_eq!(ground.operations(), ["GetItem", "UpdateItem", "UpdateItem"]);
    let again = receive(&Once::new(&fresh(&ground).await)).await;
    assert_eq!((again.unwrap(), ground.operations()), (Outcome::AlreadyDone(value), vec!["GetItem".to_owned()]));
}

#[tokio::test]
async fn the_item_says_for_how_long_until_when_and_by_whom_it_is_closed_and_keeps_the_outcome() {
    let ground = Ground::new().await;
    let value = done(receive(&Once::new(&ground.quiet("a").await).keep(HOUR)).await);
    let item = ground.item("message").await.unwrap();
    let marked = [b"once\x01", &value[..]].concat();
    assert_eq!(item["lh_data"].as_b().unwrap().as_ref(), marked);
    assert_eq!((number(&item, "lh_closed_ms"), item.contains_key("lh_grant")), (3_600_000, false));
    assert_eq!(number(&item, "lh_closed_by"), number(&item, "lh_token"));
    let left = number(&item, "lh_closed_until_ms") - number(&item, "lh_token") / 1000 * 1000;
    assert!((3_600_000..3_620_000).contains(&left), "an hour after the store's time, which the token is of: {left}");
}

#[tokio::test]
async fn a_fresh_client_opens_a_record_whose_time_is_over_by_the_stores_clock_in_two_requests() {
    let ground = Ground::new().await;
    closed(&ground, -60_000).await;
    let leases = fresh(&ground).await;
    let lease = leases.try_acquire("message").await.unwrap().acquired().expect("its time was over a minute ago");
    assert_eq!(ground.operations(), ["GetItem", "UpdateItem"]);
    assert!(lease.token().as_u64() > 5);
    let item = ground.item("message").await.unwrap();
    let left = ["lh_closed_ms", "lh_closed_until_ms", "lh_closed_by", "lh_data"].map(|field| item.contains_key(field));
    assert_eq!(left, [false; 4]);
}

#[tokio::test]
async fn nobody_opens_a_record_before_its_time_and_whoever_only_watches_not_by_it() {
    let ground = Ground::new().await;
    closed(&ground, 60_000).await;
    let theirs = Outcome::AlreadyDone(b"theirs".to_vec());
    assert_eq!(receive(&Once::new(&fresh(&ground).await)).await.unwrap(), theirs, "a minute to go");

    let ground = Ground::new().await;
    closed(&ground, -60_000).await;
    let watches = ground.builder("watches").await.takeover(Takeover::ObservedOnly).build().unwrap();
    assert_eq!(receive(&Once::new(&watches)).await.unwrap(), theirs, "it has not watched for an hour");
    assert_eq!(watches.inspect("message").await.unwrap().status, Status::Closed);
    assert_eq!(fresh(&ground).await.inspect("message").await.unwrap().status, Status::Free);
}

#[tokio::test]
async fn a_message_that_comes_again_after_its_time_runs_again_in_a_fresh_client_and_not_before() {
    let ground = Ground::new().await;
    let keep = Duration::from_secs(1);
    let first = done(receive(&Once::new(&ground.quiet("a").await).keep(keep)).await);
    let begun = Instant::now();
    let second = soon("it runs again", async {
        loop {
            match receive(&Once::new(&fresh(&ground).await)).await.unwrap() {
                Outcome::Done(second) => return second,
                Outcome::AlreadyDone(told) => assert_eq!(told, first),
                other => panic!("{other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let second = second.await;
    assert!(begun.elapsed() >= keep && second != first);
}

#[tokio::test]
async fn an_outcome_whose_answer_was_lost_is_done_once() {
    // B3
    for fault in [Fault::LoseAnswer, Fault::AnswerAfterApply(Answer::internal_error()), Fault::Truncate] {
        let ground = Ground::new().await;
        let leases = ground.quiet("a").await;
        let lost = ground.next(CLOSING, fault.clone());
        let value = done(receive(&Once::new(&leases)).await);
        let sent = ground.sent(CLOSING);
        assert_eq!((lost.happened(), sent.len(), leases.stats().owed), (1, 2, 0), "{fault:?}");
        assert_eq!(sent[0].body, sent[1].body, "the same body");
        let told = receive(&Once::new(&ground.quiet("b").await)).await;
        assert_eq!(told.unwrap(), Outcome::AlreadyDone(value), "{fault:?}");
    }
}

#[tokio::test]
async fn a_late_copy_of_a_closing_does_not_close_the_next_ones_record() {
    // I10
    let ground = Ground::new().await;
    let late = ground.next(CLOSING, Fault::LateDuplicate);
    let leases = ground.quiet("a").await;
    leases.acquire("job").await.unwrap().close(Duration::from_millis(1), None).await.unwrap();
    let theirs = soon("it opens", ground.bystander("b").await.acquire("job")).await.unwrap();
    let before = ground.item("job").await.unwrap();
    late.release();
    soon("it lands", late.until_landed(1)).await;
    assert_eq!(ground.item("job").await.unwrap(), before);
    theirs.renew().await.unwrap();
}

#[tokio::test]
async fn a_closing_that_was_lost_and_taken_over_is_not_known() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    let (token, lost) = (lease.token(), ground.next(CLOSING, Fault::LoseRequest));
    let second = ground.nth(2, CLOSING, Fault::HoldRequest);
    let closes = tokio::spawn(lease.close(HOUR, Data::new(b"the outcome")));
    soon("the second is on its way", second.until_happened(1)).await;
    ground.bystander("operator").await.force("job", token).await.unwrap();
    second.release();
    let error = soon("an answer", closes).await.unwrap().unwrap_err();
    assert_eq!((lost.happened(), error.written()), (1, Written::Unknown), "{error}");
    assert!(!ground.item("job").await.unwrap().contains_key("lh_closed_ms"));
}

#[tokio::test]
async fn an_operator_opens_a_closed_record_by_removing_three_attributes() {
    // As docs/operations.md says it.
    let ground = Ground::new().await;
    let once = Once::new(&ground.quiet("a").await);
    let first = done(receive(&once).await);
    let update = ground.emulator.client().update_item().table_name(TABLE);
    let token = ground.item("message").await.unwrap()["lh_token"].clone();
    update
        .key("pk", AttributeValue::S("message".into()))
        .update_expression("REMOVE lh_closed_ms, lh_closed_until_ms, lh_closed_by")
        .condition_expression("lh_token = :token AND attribute_not_exists(lh_grant)")
        .expression_attribute_values(":token", token)
        .send()
        .await
        .unwrap();
    assert_ne!(done(receive(&once).await), first, "with a higher token");
}

#[tokio::test]
async fn a_hundred_deliveries_at_once_have_one_effect() {
    let ground = Ground::new().await;
    let mut clients = Vec::new();
    for holder in 0..10 {
        clients.push(ground.quiet(&format!("client-{holder}")).await);
    }
    let effects = AtomicUsize::new(0);
    let deliver = async |leases: &Leases| {
        let work = |_| {
            effects.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok::<_, Failed<std::fmt::Error>>("done"))
        };
        Once::new(leases).run("message", work).await.unwrap()
    };
    let ran = futures_util::future::join_all((0..100).map(|n| deliver(&clients[n % 10]))).await;
    assert_eq!(ran.iter().filter(|ran| matches!(ran, Outcome::Done(_))).count(), 1);
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}
