//! Why DynamoDB has refused a write: by the fence, or by the caller's own condition.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};

use super::merge::Fence;
use crate::backends::dynamodb::check;
use crate::backends::dynamodb::item::{self, Item};
use crate::types::{FencingToken, Stale};

/// Which condition has refused a write. Nothing was written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The fence: the item has seen a higher token. Whatever the caller's own condition says.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The fence: what the attribute holds is no token, so that nobody can write this item under the fence.
    /// Another kind of write has put it there: find that, and mend the item by hand.
    #[error("`{attribute}` is not a fencing token (a whole number of 0 to 2^53 - 1): it was not written by a fence")]
    #[non_exhaustive]
    NotAToken {
        /// The attribute.
        attribute: String,
        /// What it holds.
        found: AttributeValue,
    },
    /// The caller's own condition; the fence has let the write through.
    #[error("the write's own condition does not hold")]
    #[non_exhaustive]
    OwnCondition {
        /// The item as it was. `None`: there is none, or the member asked for none, or this is one of the emulators
        /// that never show it, where a refusal by the fence looks like this as well.
        item: Option<Item>,
    },
    /// In a transaction, [`condition_check`](super::super::DynamoDbStore::condition_check): the lease is not held
    /// any more. This holder was replaced, revoked or released, and must stop.
    #[error("the lease is not held by this grant any more; this holder must stop")]
    NotHeld,
}

impl Refusal {
    /// Which members of a transaction were refused, and by what: one entry for each of `members`, which are those of
    /// the request in their order. `None` is a member that was not refused by a condition. Empty where the
    /// transaction was not cancelled.
    ///
    /// Nothing of a cancelled transaction was written. Where no member was refused, `error` says why it was
    /// cancelled: by a conflict with another write, say, or by throttling.
    ///
    /// ```no_run
    /// # use aws_sdk_dynamodb::{Client, types::TransactWriteItem};
    /// use leasehold::dynamodb::Refusal;
    ///
    /// # async fn send(client: Client, members: Vec<TransactWriteItem>) -> Result<(), Box<dyn std::error::Error>> {
    /// let sent = client.transact_write_items().set_transact_items(Some(members.clone())).send().await;
    /// if let Err(error) = sent {
    ///     let refused = Refusal::of_transaction(&error, &members);
    ///     if refused.iter().flatten().any(|refusal| matches!(refusal, Refusal::Stale(_) | Refusal::NotHeld)) {
    ///         // this holder was replaced: stop
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_transaction(
        error: &SdkError<TransactWriteItemsError>,
        members: &[TransactWriteItem],
    ) -> Vec<Option<Self>> {
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Vec::new();
        };
        let reasons = cancelled.cancellation_reasons();
        members.iter().zip(reasons).map(|(member, reason)| Self::of_member(member, reason)).collect()
    }

    fn of_member(member: &TransactWriteItem, reason: &CancellationReason) -> Option<Self> {
        if reason.code() != Some("ConditionalCheckFailed") {
            return None;
        }
        if member.condition_check().is_some_and(check::is_ours) {
            return Some(Self::NotHeld);
        }
        Some(Self::of(fence_of(member).as_ref(), reason.item()))
    }

    /// A refusal under this fence, with the item as it was.
    pub(super) fn of(fence: Option<&Fence>, item: Option<&Item>) -> Self {
        let found = |fence: &Fence| Some((fence.clone(), item?.get(&fence.attribute)?.clone()));
        match fence.and_then(found) {
            None => Self::OwnCondition { item: item.cloned() },
            Some((fence, found)) => match seen(&found) {
                None => Self::NotAToken { attribute: fence.attribute, found },
                Some(Some(highest)) if highest > fence.token => Self::Stale(Stale { token: fence.token, highest }),
                Some(_) => Self::OwnCondition { item: item.cloned() },
            },
        }
    }
}

/// The token in an attribute. 0 is one that nobody has raised yet.
fn seen(found: &AttributeValue) -> Option<Option<FencingToken>> {
    match item::integer(found)? {
        0 => Some(None),
        number => FencingToken::new(number).map(Some),
    }
}

fn fence_of(member: &TransactWriteItem) -> Option<Fence> {
    macro_rules! of {
        ($write:expr) => {
            $write.and_then(|write| {
                Fence::of(
                    write.condition_expression()?,
                    write.expression_attribute_names()?,
                    write.expression_attribute_values()?,
                )
            })
        };
    }
    of!(member.put()).or_else(|| of!(member.update())).or_else(|| of!(member.delete()))
}

/// An error that can be a failed condition: with the item as it was, where it is one.
pub(super) trait MayRefuse {
    fn refused(&self) -> Option<Option<&Item>>;
}

macro_rules! may_refuse {
    ($($error:ident),*) => {$(
        impl MayRefuse for $error {
            fn refused(&self) -> Option<Option<&Item>> {
                match self {
                    Self::ConditionalCheckFailedException(refused) => Some(refused.item()),
                    _ => None,
                }
            }
        }
    )*};
}

may_refuse!(PutItemError, UpdateItemError, DeleteItemError);

#[cfg(test)]
mod tests {
    use super::*;

    fn fence() -> Fence {
        Fence { attribute: "fence".into(), token: FencingToken::new(7).unwrap() }
    }

    fn refused_over(value: AttributeValue) -> Refusal {
        Refusal::of(Some(&fence()), Some(&Item::from([("fence".to_owned(), value)])))
    }

    #[test]
    fn a_higher_token_in_the_item_is_a_stale_writer() {
        let highest = FencingToken::new(8).unwrap();
        let stale = Stale { token: fence().token, highest };
        assert_eq!(refused_over(AttributeValue::N("8".into())), Refusal::Stale(stale));
    }

    #[test]
    fn no_token_or_one_that_is_not_higher_leaves_the_callers_own_condition() {
        for token in ["0", "1", "7"] {
            let refusal = refused_over(AttributeValue::N(token.into()));
            assert!(matches!(&refusal, Refusal::OwnCondition { item: Some(_) }), "{token}: {refusal:?}");
        }
        let item = Item::from([("other".to_owned(), AttributeValue::Bool(true))]);
        assert_eq!(Refusal::of(Some(&fence()), Some(&item)), Refusal::OwnCondition { item: Some(item) });
        assert_eq!(Refusal::of(Some(&fence()), None), Refusal::OwnCondition { item: None });
    }

    #[test]
    fn what_is_no_token_is_a_case_of_its_own() {
        let numbers = ["-1", "7.5", "9007199254740992", "1E+30"].map(|number| AttributeValue::N(number.into()));
        let others = [AttributeValue::S("7".into()), AttributeValue::Null(true), AttributeValue::L(Vec::new())];
        for found in numbers.into_iter().chain(others) {
            assert_eq!(refused_over(found.clone()), Refusal::NotAToken { attribute: "fence".into(), found });
        }
    }
}
