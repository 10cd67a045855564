//! The stores that come with the library, each in its own folder with the same rooms.

#[cfg(feature = "azure-blob")]
pub(crate) mod azure_blob;
#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
pub(crate) mod majority;
pub(crate) mod memory;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
