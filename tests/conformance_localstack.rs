//! The DynamoDB store conforms on LocalStack, and the client works on it.

mod gateways;
mod support;

/// Says where it is.
const ENDPOINT: &str = "LEASEHOLD_LOCALSTACK_ENDPOINT";
