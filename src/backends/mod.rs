//! The stores that come with the library, each in its own folder with the same rooms.

#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
pub(crate) mod memory;
