#![forbid(unsafe_code)]
//! Leases on managed cloud stores.

mod backends;
#[doc(hidden)]
pub mod protocol;
pub mod store;
mod time;
mod types;

pub use backends::memory::MemoryStore;
pub use time::{Clock, Sleep, SystemClock};
pub use types::*;

/// Leases in a DynamoDB table (feature `dynamodb`).
#[cfg(feature = "dynamodb")]
pub mod dynamodb {
    pub use aws_sdk_dynamodb;

    pub use crate::backends::dynamodb::{DynamoDbStore, DynamoDbStoreBuilder, SortKey, create_table};
}

/// the answer
#[derive(Debug)]
pub struct Attempt;
