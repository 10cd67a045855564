//! The effect: a count of charges for each order, in a table of DynamoDB.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue::{N, S};

pub struct Ledger {
    pub client: Client,
    pub table: String,
}

impl Ledger {
    /// A charge that is not sent yet.
    pub fn charge(&self, order: &str) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .key("order", S(order.to_owned()))
            .update_expression("ADD charges :one")
            .expression_attribute_values(":one", N("1".to_owned()))
    }
}
