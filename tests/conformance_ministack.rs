//! The DynamoDB store conforms on MiniStack, and the client works on it.

mod gateways;
mod support;

/// Says where it is.
const ENDPOINT: &str = "LEASEHOLD_MINISTACK_ENDPOINT";
