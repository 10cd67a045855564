//! Fenced members of the application's transactions, and what a cancelled one says of each.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::error::{ThrottlingException, TransactionCanceledException};
use aws_sdk_dynamodb::types::{CancellationReason, ConditionCheck, Delete, Put, TransactWriteItem, Update};
use leasehold::dynamodb::{Fenced, Refusal};

use crate::ground::{FENCE, Ground, TABLE, item, n, s, token};

fn update(id: &str, mine: u64) -> TransactWriteItem {
    let update = Update::builder().table_name(TABLE).key("id", s(id));
    let update = update.update_expression("SET a = :a").expression_attribute_values(":a", n(1));
    member().update(update.fenced(FENCE, token(mine)).build().unwrap()).build()
}

fn put(id: &str, mine: u64) -> TransactWriteItem {
    let put = Put::builder().table_name(TABLE).item("id", s(id)).item("a", n(1));
    member().put(put.fenced(FENCE, token(mine)).build().unwrap()).build()
}

fn delete(id: &str, mine: u64) -> TransactWriteItem {
    let delete = Delete::builder().table_name(TABLE).key("id", s(id));
    member().delete(delete.fenced(FENCE, token(mine)).build().unwrap()).build()
}

fn member() -> aws_sdk_dynamodb::types::builders::TransactWriteItemBuilder {
    TransactWriteItem::builder()
}

async fn send(ground: &Ground, members: &[TransactWriteItem]) -> Vec<Option<Refusal>> {
    let sent = ground.client.transact_write_items().set_transact_items(Some(members.to_vec())).send().await;
    sent.map_or_else(|error| Refusal::of_transaction(&error, members), |_| Vec::new())
}

#[tokio::test]
async fn a_transaction_under_the_newest_token_is_written_and_raises_every_fence() {
    let ground = Ground::new().await;
    ground.put(item("gone", [(FENCE, n(7))])).await;
    let raise = Update::builder().table_name(TABLE).key("id", s("raised")).fenced(FENCE, token(8)).build().unwrap();
    let raise = member().update(raise).build();
    assert_eq!(send(&ground, &[update("u", 8), put("p", 8), delete("gone", 8), raise]).await, []);
    for id in ["u", "p"] {
        assert_eq!(ground.item(id).await, Some(item(id, [("a", n(1)), (FENCE, n(8))])));
    }
    assert_eq!(ground.item("gone").await, None);
    assert_eq!(ground.item("raised").await, Some(item("raised", [(FENCE, n(8))])));
}

#[tokio::test]
async fn one_stale_member_refuses_all_of_a_transaction() {
    let ground = Ground::new().await;
    ground.put(item("b", [(FENCE, n(8))])).await;
    for late in [update("b", 7), put("b", 7), delete("b", 7)] {
        let refused = send(&ground, &[update("a", 7), late]).await;
        assert!(
            matches!(&refused[..], [None, Some(Refusal::Stale(stale))] if stale.highest == token(8)),
            "{refused:?}"
        );
        assert_eq!(ground.item("a").await, None);
        assert_eq!(ground.item("b").await, Some(item("b", [(FENCE, n(8))])));
    }
}

#[tokio::test]
async fn each_member_is_told_by_which_condition_it_was_refused() {
    let ground = Ground::new().await;
    ground.put(item("stale", [(FENCE, n(8))])).await;
    ground.put(item("text", [(FENCE, s("8"))])).await;
    ground.put(item("own", [(FENCE, n(7))])).await;
    let own = Put::builder().table_name(TABLE).item("id", s("own")).condition_expression("attribute_not_exists(id)");
    let own = member().put(own.fenced(FENCE, token(7)).build().unwrap()).build();
    let check = ConditionCheck::builder().table_name(TABLE).key("id", s("none"));
    let check = check.condition_expression("attribute_exists(id)").build().unwrap();
    let unfenced = member().condition_check(check).build();
    let members = [update("fine", 7), update("stale", 7), put("text", 7), own, unfenced];
    let refused = send(&ground, &members).await;
    let [None, Some(Refusal::Stale(_)), Some(text), Some(own), Some(unfenced)] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert!(matches!(text, Refusal::NotAToken { found, .. } if *found == s("8")), "{text:?}");
    let before = item("own", [(FENCE, n(7))]);
    assert!(matches!(own, Refusal::OwnCondition { item: Some(item), .. } if *item == before), "{own:?}");
    assert!(matches!(unfenced, Refusal::OwnCondition { item: None, .. }), "{unfenced:?}");
}

#[test]
fn a_transaction_that_was_cancelled_by_a_conflict_or_throttling_was_not_refused() {
    for code in ["None", "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError", "ValidationError"] {
        let reasons = ["None", code].map(|code| CancellationReason::builder().code(code).build());
        let cancelled = TransactionCanceledException::builder().set_cancellation_reasons(Some(reasons.to_vec()));
        let error = failed(TransactWriteItemsError::TransactionCanceledException(cancelled.build()));
        let members = [update("a", 7), update("b", 7)];
        assert_eq!(Refusal::of_transaction(&error, &members), [None, None], "{code}");
    }
    let error = failed(TransactWriteItemsError::ThrottlingException(ThrottlingException::builder().build()));
    assert_eq!(Refusal::of_transaction(&error, &[update("a", 7)]), []);
}

fn failed(error: TransactWriteItemsError) -> SdkError<TransactWriteItemsError> {
    SdkError::service_error(error, HttpResponse::new(400.try_into().unwrap(), "".into()))
}
