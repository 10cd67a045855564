//! A lease as a condition of the caller's own transaction.

use aws_sdk_dynamodb::types::{ConditionCheck, ReturnValuesOnConditionCheckFailure};

use super::expressions::{self, Update};
use super::item::PREFIX;
use super::open::Consistency;
use super::{DynamoDbStore, KIND};
use crate::types::{Error, ErrorKind, Operation, Proof};

impl DynamoDbStore {
    /// A condition for the caller's own `TransactWriteItems`: that the lease's item still carries this grant and this
    /// token, and is not revoked. Otherwise DynamoDB refuses the whole transaction.
    ///
    /// ```no_run
    /// use aws_sdk_dynamodb::Client;
    /// use aws_sdk_dynamodb::types::AttributeValue::{N, S};
    /// use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
    /// use leasehold::Held;
    /// use leasehold::dynamodb::{DynamoDbStore, Refusal};
    ///
    /// # async fn pay(client: Client, store: DynamoDbStore, held: Held) -> Result<(), Box<dyn std::error::Error>> {
    /// let update = Update::builder()
    ///     .table_name("accounts")
    ///     .key("id", S("42".into()))
    ///     .update_expression("SET balance = :balance")
    ///     .expression_attribute_values(":balance", N("90".into()));
    /// let members = vec![
    ///     TransactWriteItem::builder().condition_check(store.condition_check(&held.proof())?).build(),
    ///     TransactWriteItem::builder().update(update.build()?).build(),
    /// ];
    /// let sent = client.transact_write_items().set_transact_items(Some(members.clone())).send().await;
    /// if let Err(error) = sent {
    ///     if Refusal::of_transaction(&error, &members).contains(&Some(Refusal::NotHeld)) {
    ///         println!("this holder was replaced: stop");
    ///     }
    ///     return Err(error.into());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # What it says, and what it does not
    ///
    /// It does not say that the term is not over: DynamoDB's conditions know no time, and until somebody takes over,
    /// the item carries the grant of a holder whose clocks have run out long ago. That is what fencing needs. The
    /// transaction and a rival's claim are two writes to one item, so DynamoDB puts one before the other. If the
    /// transaction is first, the rival, which reads after its claim, sees its whole effect. If the claim is first, the
    /// transaction is refused. An effect after the claim, which the rival knows nothing of, cannot be.
    ///
    /// So the resource needs no fence attribute and no raise, if *every* write to it goes with this check, and if a new
    /// holder reads only after its acquire has returned, and strongly consistently. Otherwise use
    /// [`Fenced`](super::fenced::Fenced).
    ///
    /// # Limits
    ///
    /// - The resource is in the lease table's account and region. A transaction has at most 100 members, and a lease is
    ///   checked by one of them: DynamoDB refuses two members for one item.
    /// - It costs 2 write units for each KB of the lease's item, and each write of a transaction costs double.
    /// - It needs the permission `dynamodb:ConditionCheckItem` on the lease table, for whoever sends the transaction.
    /// - Strongly consistent global tables (MRSC) have no transactions.
    /// - It is in the way of the lease's own renewals and they are in its way. A renewal that meets a transaction
    ///   (`TransactionConflictException`) was not applied, and is tried again within the term. A transaction that meets
    ///   a renewal is cancelled with the reason `TransactionConflict`, which is no refusal: send it again. Frequent
    ///   transactions under one lease, by many tasks, wear its renewals out: there the fence is better.
    /// - It carries the grant, which is a secret: do not log it. It asks for no item in the refusal, because that would
    ///   be the successor's.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`]: the proof is of a lease in another store. Make both from the same `DynamoDbStore` or its
    /// clones: one that was opened by [`unverified`](super::DynamoDbStoreBuilder::unverified) is another one than one
    /// that was opened by `open`. Or the table is a strongly consistent global table, which has no transactions.
    pub fn condition_check(&self, proof: &Proof) -> Result<ConditionCheck, Error> {
        let invalid =
            |why: String| Error::new(ErrorKind::Invalid, Operation::Fence, why).on(KIND).for_name(proof.name());
        if proof.store() != self.shared.identity {
            return Err(invalid(format!(
                "the lease is in the store {}, and this one is {}; take the store that it was acquired from",
                proof.store(),
                self.shared.identity
            )));
        }
        if self.shared.consistency == Consistency::Strong {
            return Err(invalid(
                "the table is a global table with strong consistency, which has no transactions; fence the writes \
                 themselves, with `Fenced`"
                    .into(),
            ));
        }
        let Update { condition, names, values, .. } = expressions::held(proof);
        let check = ConditionCheck::builder()
            .table_name(&self.shared.link.place.table)
            .set_key(Some(self.shared.keys.of(proof.name())))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::None);
        check.build().map_err(|error| invalid(error.to_string()))
    }
}

/// Whether this is a check of a lease's grant.
pub(super) fn is_ours(check: &ConditionCheck) -> bool {
    let grant = format!("{PREFIX}grant");
    check.expression_attribute_names().is_some_and(|names| names.values().any(|name| *name == grant))
}
