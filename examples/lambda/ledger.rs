//! The effect: the charges of each order, in a table of DynamoDB.
//!
//! Each run that charges adds its own name to a set. So what the SDK sends again, because an answer was lost, is there
//! once (a number that is counted up would not say), and a second run that charges is there to be seen. Your effect
//! should rather look first, or send the order along as a key that the other side knows again: a run that has charged
//! and was killed before this was remembered is followed by another one.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue::{S, Ss};

pub struct Ledger {
    pub client: Client,
    pub table: String,
}

impl Ledger {
    /// A charge by this run, which is not sent yet.
    pub fn charge(&self, order: &str, by: String) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .key("order", S(order.to_owned()))
            .update_expression("ADD charges :by")
            .expression_attribute_values(":by", Ss(vec![by]))
    }
}
