//! What is asked of every gateway that looks like DynamoDB: LocalStack, MiniStack.

mod client;
mod conformance;
mod places;
