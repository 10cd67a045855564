//! Fencing at the resource: a token in the condition of the caller's own writes.

mod merge;
mod refusal;

use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::delete_item::builders::DeleteItemFluentBuilder;
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemError, DeleteItemOutput};
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::put_item::{PutItemError, PutItemOutput};
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::builders::{DeleteBuilder, PutBuilder, UpdateBuilder};
use aws_sdk_dynamodb::types::{Delete, Put, ReturnValuesOnConditionCheckFailure, Update};

pub use self::refusal::Refusal;

use self::merge::{Fence, Merged, Own};
use self::refusal::MayRefuse;
use super::item::number;
use crate::types::FencingToken;

/// Writes of the SDK's that can be fenced: `PutItem`, `UpdateItem` and `DeleteItem`, and the same as members of a
/// transaction.
///
/// `fenced` is the last call on the SDK's builder. It makes the write conditional on the item having no attribute of
/// that name, or a token in it that is not above `token`; the builder's own condition has to hold as well. And it
/// sets the attribute to `token`, in the same atomic write. From then on whoever holds a lower token is refused.
/// An equal token is the same holder, which writes as often as it likes.
///
/// # Raise first, and only then read
///
/// A new holder that reads first acts on a state that a late write of its predecessor still changes. So its first act
/// is a write that does nothing but raise the fence: an update without an expression. With `ALL_NEW` it is also the
/// read, so the order costs no request.
///
/// ```no_run
/// use aws_sdk_dynamodb::Client;
/// use aws_sdk_dynamodb::types::AttributeValue::{N, S};
/// use aws_sdk_dynamodb::types::ReturnValue;
/// use leasehold::FencingToken;
/// use leasehold::dynamodb::{Fenced, FencedError, Refusal};
///
/// # async fn pay(client: Client, token: FencingToken) -> Result<(), Box<dyn std::error::Error>> {
/// let account = || client.update_item().table_name("accounts").key("id", S("42".into()));
///
/// // 1. Raise the fence, and see what is there from now on.
/// let raised = account().return_values(ReturnValue::AllNew).fenced("fence", token).send().await?;
/// let item = raised.attributes.unwrap_or_default();
/// let balance: i64 = item.get("balance").and_then(|balance| balance.as_n().ok()).map_or(Ok(0), |text| text.parse())?;
///
/// // 2. Write what follows from it.
/// let written = account()
///     .update_expression("SET balance = :balance")
///     .expression_attribute_values(":balance", N((balance - 10).to_string()))
///     .condition_expression("attribute_not_exists(frozen)")
///     .fenced("fence", token)
///     .send()
///     .await;
/// match written {
///     Ok(_) => println!("paid"),
///     Err(FencedError::Refused(Refusal::Stale(stale))) => return Err(stale.into()), // replaced: stop
///     Err(FencedError::Refused(Refusal::OwnCondition { .. })) => println!("the account is frozen"),
///     Err(error) => return Err(error.into()), // throttled, away, ..
/// }
/// # Ok(())
/// # }
/// ```
///
/// A raise makes an item where there is none, with nothing but its key and the fence.
///
/// # Why a wrapper comes back
///
/// The SDK keeps one condition: a later `condition_expression` on the same builder would replace the fence, and
/// nothing would tell. So what `fenced` returns has no such method; it can be sent or built, and that is all. What the
/// fence is merged with is what was there before.
///
/// # A delete leaves no fence behind
///
/// A delete is refused to a stale holder like any write, but it takes the attribute with it: after it a late write
/// finds no token and is accepted, and brings the item back. Where that matters do not delete. Write a tombstone, that
/// is, an update that removes what the item holds and keeps the fence, and let the table's time to live sweep it when
/// no holder of that time can be left.
///
/// # What else to know
///
/// - The attribute is a top-level one, which this fence alone writes; dots in its name mean nothing. It is not a part
///   of the key. An update that touches it otherwise is refused by DynamoDB, since two paths overlap; a put's own value
///   for it is replaced.
/// - 0 in the attribute is a fence that nobody has raised. What else is no token is never written over:
///   [`Refusal::NotAToken`]. A fraction is the one thing that a condition cannot tell: below the token it passes.
/// - The SDK repeats a write whose answer was lost, and the fence accepts the second copy, because its token is equal.
///   Make an effect one that may be repeated (`SET` a value, do not add to it), or give the write a condition that the
///   first copy falsifies, or send it in a transaction, where the SDK's request token sees to it.
/// - A batch write has no conditions, and cannot be fenced. Legacy parameters (`expected`, `attribute_updates`) cannot
///   be mixed with expressions: DynamoDB refuses them.
/// - A refused write costs what a write costs. The item comes back with the refusal, at no cost.
pub trait Fenced: sealed::Write {
    /// The same write, refused if a higher token has been here. Call it last.
    fn fenced(self, attribute: impl Into<String>, token: FencingToken) -> FencedWrite<Self> {
        let fence = Fence { attribute: attribute.into(), token };
        FencedWrite { write: self.under(&fence), fence }
    }
}

impl<W: sealed::Write> Fenced for W {}

/// A write under its fence; see [`Fenced`]. It can be sent, or built as a member of a transaction.
#[derive(Clone, Debug)]
#[must_use = "nothing is written before it is sent"]
pub struct FencedWrite<W> {
    write: W,
    fence: Fence,
}

/// Why a fenced write was not made.
#[derive(Debug, thiserror::Error)]
pub enum FencedError<E: std::error::Error + 'static> {
    /// A condition does not hold. Nothing was written.
    #[error(transparent)]
    Refused(Refusal),
    /// Whatever else the SDK says: throttled, denied, away. It may have been written where the SDK's error leaves
    /// that open.
    #[error(transparent)]
    Sdk(SdkError<E>),
}

macro_rules! sent {
    ($builder:ident, $output:ident, $error:ident) => {
        impl FencedWrite<$builder> {
            /// Sends the write.
            ///
            /// # Errors
            /// [`FencedError::Refused`]: by the fence, or by the write's own condition. [`FencedError::Sdk`]: anything
            /// else that the SDK's `send` says.
            ///
            /// # Cancel safety
            /// As the SDK's `send`: a future that is dropped may have written.
            pub async fn send(self) -> Result<$output, FencedError<$error>> {
                let Self { write, fence } = self;
                write.send().await.map_err(|error| told_apart(error, &fence))
            }
        }
    };
}

sent!(PutItemFluentBuilder, PutItemOutput, PutItemError);
sent!(UpdateItemFluentBuilder, UpdateItemOutput, UpdateItemError);
sent!(DeleteItemFluentBuilder, DeleteItemOutput, DeleteItemError);

macro_rules! built {
    ($builder:ident, $member:ident) => {
        impl FencedWrite<$builder> {
            /// The member of a transaction; [`Refusal::of_transaction`] says by what it was refused.
            ///
            /// # Errors
            /// What the SDK's `build` says: a field is missing.
            pub fn build(self) -> Result<$member, BuildError> {
                self.write.build()
            }
        }
    };
}

built!(PutBuilder, Put);
built!(UpdateBuilder, Update);
built!(DeleteBuilder, Delete);

fn told_apart<E: MayRefuse + std::error::Error>(error: SdkError<E>, fence: &Fence) -> FencedError<E> {
    match error.as_service_error().and_then(MayRefuse::refused) {
        Some(item) => FencedError::Refused(Refusal::of(Some(fence), item)),
        None => FencedError::Sdk(error),
    }
}

mod sealed {
    use super::Fence;

    /// A builder of the SDK's.
    pub trait Write: Sized {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "nobody outside can name the trait, so nobody can call it")]
        fn under(self, fence: &Fence) -> Self;
    }
}

/// `$own_update` is the builder's own update expression, and `$set` puts the token where this kind of write has it.
macro_rules! fence {
    ($builder:ident, $own_update:expr, $set:expr) => {
        impl sealed::Write for $builder {
            #[allow(private_interfaces, reason = "nobody outside can name the trait, so nobody can call it")]
            fn under(self, fence: &Fence) -> Self {
                let own_update: fn(&Self) -> Option<&str> = $own_update;
                let set: fn(Self, &Fence, String) -> Self = $set;
                let Merged { condition, update, names, values } = fence.over(Own {
                    condition: self.get_condition_expression().as_deref(),
                    update: own_update(&self),
                    names: self.get_expression_attribute_names().as_ref(),
                    values: self.get_expression_attribute_values().as_ref(),
                });
                set(self, fence, update)
                    .condition_expression(condition)
                    .set_expression_attribute_names(Some(names))
                    .set_expression_attribute_values(Some(values))
                    // Without the item nobody could tell which condition has failed.
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            }
        }
    };
}

macro_rules! put {
    ($builder:ident) => {
        fence!($builder, |_| None, |put, fence, _| { put.item(fence.attribute.clone(), number(fence.token.as_u64())) });
    };
}

macro_rules! update {
    ($builder:ident) => {
        fence!($builder, |update| update.get_update_expression().as_deref(), |update, _, merged| {
            update.update_expression(merged)
        });
    };
}

macro_rules! delete {
    ($builder:ident) => {
        fence!($builder, |_| None, |delete, _, _| delete);
    };
}

put!(PutItemFluentBuilder);
put!(PutBuilder);
update!(UpdateItemFluentBuilder);
update!(UpdateBuilder);
delete!(DeleteItemFluentBuilder);
delete!(DeleteBuilder);
