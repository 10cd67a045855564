//! The stores that come with the library, each in its own folder with the same rooms.

pub(crate) mod memory;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
