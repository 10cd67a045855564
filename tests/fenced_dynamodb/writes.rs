//! Single fenced writes.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ExpectedAttributeValue, ReturnValue};
use leasehold::Fence;
use leasehold::dynamodb::{Fenced, FencedError, Refusal};

use crate::ground::{FENCE, Ground, Item, TABLE, item, n, s, token};
use crate::support::faults::{Answer, Fault, Match};

fn update(ground: &Ground) -> UpdateItemFluentBuilder {
    ground.client.update_item().table_name(TABLE).key("id", s("42"))
}

fn set_balance(ground: &Ground, balance: u64) -> UpdateItemFluentBuilder {
    update(ground).update_expression("SET balance = :b").expression_attribute_values(":b", n(balance))
}

fn put(ground: &Ground, balance: u64) -> PutItemFluentBuilder {
    ground.client.put_item().table_name(TABLE).item("id", s("42")).item("balance", n(balance))
}

fn account(balance: u64, fence: u64) -> Item {
    item("42", [("balance", n(balance)), (FENCE, n(fence))])
}

/// The refusal, which must be one.
fn refusal<T: std::fmt::Debug, E: std::error::Error>(written: Result<T, FencedError<E>>) -> Refusal {
    match written {
        Err(FencedError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Only a fence can make one, so one is taken from a fence.
fn stale(mine: u64, highest: u64) -> Refusal {
    let fence = Fence::new();
    fence.raise(token(highest)).unwrap();
    Refusal::Stale(fence.admit(token(mine)).unwrap_err())
}

#[tokio::test]
async fn a_late_put_update_or_delete_is_refused_and_told_which_token_was_there() {
    let ground = Ground::new().await;
    ground.put(account(10, 8)).await;
    let delete = ground.client.delete_item().table_name(TABLE).key("id", s("42"));
    assert_eq!(refusal(put(&ground, 99).fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(refusal(set_balance(&ground, 99).fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(refusal(delete.fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(ground.item("42").await, Some(account(10, 8)));
}

#[tokio::test]
async fn the_holder_writes_as_often_as_it_likes() {
    let ground = Ground::new().await;
    for balance in 1..=3 {
        set_balance(&ground, balance).fenced(FENCE, token(7)).send().await.unwrap();
        assert_eq!(ground.item("42").await, Some(account(balance, 7)));
        put(&ground, balance * 10).fenced(FENCE, token(7)).send().await.unwrap();
        assert_eq!(ground.item("42").await, Some(account(balance * 10, 7)));
    }
    ground.client.delete_item().table_name(TABLE).key("id", s("42")).fenced(FENCE, token(7)).send().await.unwrap();
    assert_eq!(ground.item("42").await, None);
}

#[tokio::test]
async fn an_update_without_an_expression_raises_the_fence_and_reads_in_one_request() {
    let ground = Ground::new().await;
    ground.put(account(10, 7)).await;
    let raised = update(&ground).return_values(ReturnValue::AllNew).fenced(FENCE, token(8)).send().await.unwrap();
    assert_eq!(raised.attributes, Some(account(10, 8)));
    assert_eq!(refusal(set_balance(&ground, 99).fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(refusal(update(&ground).fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(ground.item("42").await, Some(account(10, 8)));
}

#[tokio::test]
async fn a_raise_fences_an_item_that_is_not_there_yet() {
    let ground = Ground::new().await;
    update(&ground).fenced(FENCE, token(8)).send().await.unwrap();
    assert_eq!(ground.item("42").await, Some(item("42", [(FENCE, n(8))])));
    assert_eq!(refusal(put(&ground, 99).fenced(FENCE, token(7)).send().await), stale(7, 8));
}

#[tokio::test]
async fn an_own_condition_that_fails_is_told_apart_and_shows_the_item() {
    let ground = Ground::new().await;
    ground.put(account(10, 7)).await;
    let write = |mine| {
        let write = set_balance(&ground, 99).condition_expression("balance > :b");
        write.fenced(FENCE, token(mine)).send()
    };
    for mine in [7, 8] {
        match refusal(write(mine).await) {
            Refusal::OwnCondition { item, .. } => assert_eq!(item, Some(account(10, 7))),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refusal(write(6).await), stale(6, 7), "whatever its own condition says, it was replaced");
    let absent = ground.client.update_item().table_name(TABLE).key("id", s("none"));
    match refusal(absent.condition_expression("attribute_exists(id)").fenced(FENCE, token(7)).send().await) {
        Refusal::OwnCondition { item: None, .. } => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(ground.item("42").await, Some(account(10, 7)));
}

#[tokio::test]
async fn what_is_no_token_is_never_written_over() {
    let ground = Ground::new().await;
    let numbers = ["-1", "-0.5", "9007199254740992", "1000000000000000000000000000000"].map(n);
    let others = [s(""), s("7"), AttributeValue::Null(true), AttributeValue::Bool(false), AttributeValue::L(vec![])];
    for found in numbers.into_iter().chain(others) {
        let before = item("42", [("balance", n(10)), (FENCE, found.clone())]);
        ground.put(before.clone()).await;
        let highest = token(leasehold::FencingToken::MAX);
        match refusal(set_balance(&ground, 99).fenced(FENCE, highest).send().await) {
            Refusal::NotAToken { attribute, found: shown, .. } => {
                assert_eq!((attribute.as_str(), shown), (FENCE, found));
            }
            other => panic!("{found:?}: {other:?}"),
        }
        assert_eq!(ground.item("42").await, Some(before));
    }
}

/// A condition cannot tell them from tokens; the documentation says so.
#[tokio::test]
async fn a_fence_of_zero_or_of_a_fraction_below_the_token_is_raised() {
    let ground = Ground::new().await;
    for found in ["0", "6.5"] {
        ground.put(item("42", [(FENCE, n(found))])).await;
        set_balance(&ground, 10).fenced(FENCE, token(7)).send().await.unwrap();
        assert_eq!(ground.item("42").await, Some(account(10, 7)), "{found}");
    }
}

#[tokio::test]
async fn throttling_conflicts_and_other_failures_stay_the_sdks_errors() {
    let ground = Ground::new().await;
    ground.put(account(10, 8)).await;
    let client = ground.proxy.client();
    for (status, code) in [
        (400, "ProvisionedThroughputExceededException"),
        (400, "ThrottlingException"),
        (400, "TransactionConflictException"),
        (400, "AccessDeniedException"),
        (500, "InternalServerError"),
    ] {
        ground.proxy.on(Match::op("UpdateItem")).nth(1).fault(Fault::Answer(Answer::new(status, code)));
        let write = client.update_item().table_name(TABLE).key("id", s("42"));
        match write.fenced(FENCE, token(7)).send().await {
            Err(FencedError::Sdk(error)) => {
                assert_eq!(error.code(), Some(code));
            }
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_no_refusal_when_the_sdk_repeats_it() {
    let ground = Ground::new().await;
    let lost = ground.proxy.on(Match::op("UpdateItem")).nth(1).fault(Fault::LoseAnswer);
    let write = ground.through_the_proxy().update_item().table_name(TABLE).key("id", s("42"));
    let write = write.update_expression("SET balance = :b").expression_attribute_values(":b", n(10));
    write.fenced(FENCE, token(7)).send().await.unwrap();
    assert_eq!((lost.happened(), ground.proxy.count("UpdateItem")), (1, 2));
    assert_eq!(ground.item("42").await, Some(account(10, 7)));
}

#[tokio::test]
async fn a_delete_takes_the_fence_with_it_and_a_tombstone_keeps_it() {
    let ground = Ground::new().await;
    ground.put(account(10, 8)).await;
    ground.client.delete_item().table_name(TABLE).key("id", s("42")).fenced(FENCE, token(8)).send().await.unwrap();
    put(&ground, 99).fenced(FENCE, token(7)).send().await.expect("nothing is left to refuse it by");

    ground.put(account(10, 8)).await;
    update(&ground).update_expression("REMOVE balance").fenced(FENCE, token(8)).send().await.unwrap();
    assert_eq!(refusal(put(&ground, 99).fenced(FENCE, token(7)).send().await), stale(7, 8));
    assert_eq!(ground.item("42").await, Some(item("42", [(FENCE, n(8))])));
}

#[tokio::test]
async fn the_attribute_may_have_any_name() {
    let ground = Ground::new().await;
    for name in ["set", "SET", "my.fence", "token", "#lh_fence", ":lh_fence_token", "a b", "\u{fc}"] {
        ground.put(item("42", [(name, n(7))])).await;
        set_balance(&ground, 10).fenced(name, token(8)).send().await.unwrap();
        assert_eq!(ground.item("42").await, Some(item("42", [("balance", n(10)), (name, n(8))])));
        assert_eq!(refusal(set_balance(&ground, 99).fenced(name, token(7)).send().await), stale(7, 8));
    }
}

#[tokio::test]
async fn a_put_replaces_the_token_that_it_has_read() {
    let ground = Ground::new().await;
    ground.put(account(10, 7)).await;
    let read = ground.item("42").await;
    let back = ground.client.put_item().table_name(TABLE).set_item(read);
    back.fenced(FENCE, token(8)).send().await.unwrap();
    assert_eq!(ground.item("42").await, Some(account(10, 8)));
}

#[tokio::test]
async fn what_would_get_around_the_fence_or_makes_no_sense_without_it_is_an_error_of_the_services() {
    let ground = Ground::new().await;
    ground.put(account(10, 8)).await;
    let invalid = |what: &str, written: Result<_, FencedError<UpdateItemError>>| match written {
        Err(FencedError::Sdk(error)) => {
            assert_eq!(error.code(), Some("ValidationException"), "{what}");
        }
        other => panic!("{what}: {other:?}"),
    };
    let sets_the_fence = update(&ground).update_expression("SET fence = :b").expression_attribute_values(":b", n(1));
    invalid("sets it", sets_the_fence.fenced(FENCE, token(9)).send().await.map(drop));
    let removes_it = update(&ground).update_expression("REMOVE fence");
    invalid("removes it", removes_it.fenced(FENCE, token(9)).send().await.map(drop));
    let breaks_out = set_balance(&ground, 99).condition_expression("balance = :b) OR (attribute_exists(id)");
    invalid("breaks out", breaks_out.fenced(FENCE, token(7)).send().await.map(drop));
    for empty in ["", " \n"] {
        invalid("is empty", update(&ground).update_expression(empty).fenced(FENCE, token(9)).send().await.map(drop));
    }
    let legacy = update(&ground).expected("balance", ExpectedAttributeValue::builder().value(n(10)).build());
    invalid("legacy", legacy.fenced(FENCE, token(9)).send().await.map(drop));
    assert_eq!(ground.item("42").await, Some(account(10, 8)));
}
