#![forbid(unsafe_code)]
//! Leases on managed cloud stores: distributed locks with a time to live, renewal and fencing tokens.
//!
//! A lease is a lock that ends by itself. Its holder renews it while the work goes on; a dead holder is replaced; and
//! every grant carries a [`FencingToken`] that is higher than any before it, so that the thing you protect can refuse
//! the late write of a holder that was paused past its term.
//!
//! ```
//! use leasehold::{Error, Leases, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let leases = Leases::builder(MemoryStore::new()).prefix("billing/").holder("billing-3").build()?;
//!
//! let total = leases
//!     .acquire("orders/eu")
//!     .await?
//!     .run(|held| async move {
//!         let token = held.token(); // goes with every write
//!         Ok::<_, Error>(format!("done with token {token}"))
//!     })
//!     .await?;
//! # assert_eq!(total, "done with token 1");
//! # Ok(())
//! # }
//! ```
//!
//! # Which door do I take?
//!
//! | you want | take |
//! |---|---|
//! | work that stops when its lease is lost | [`Leases::acquire`], then [`Lease::run`] |
//! | to try once, as a cron job does | [`Leases::try_acquire`] |
//! | to wait, but not for ever | [`Leases::acquire_within`] |
//! | options of one lease: term, payload, longest hold, manual renewal | [`Leases::request`] |
//! | to know in a handler whether it still counts | [`Held::is_held`], [`Held::ensure`], [`Held::lost`] |
//! | to refuse late writes | [`Held::token`] at the resource: `dynamodb::Fenced`, [`fence::raise`] for an object, the statements of `docs/fencing.md`; inside a process [`Fence`] |
//! | work once per key, its outcome remembered: a queue delivers twice | [`recipes::Once`] |
//! | one leader, *n* at a time, several names or none, once an hour, "please finish" | [`recipes`] |
//! | to keep others out for a while after the release | [`Lease::close`] |
//! | to give a lease to another process | [`Lease::into_handover`], [`Leases::resume`] |
//! | to look, or to end somebody's lease | [`Leases::inspect`], [`Leases::list`], [`Leases::revoke`], [`Leases::ask`] |
//! | metrics and alarms | [`Leases::stats`], [`Leases::events`] |
//! | to test your own code | the feature `testing` |
//! | a store of your own | [`Store`], and the feature `conformance` |
//!
//! # Stores
//!
//! | store | feature | for |
//! |---|---|---|
//! | [`MemoryStore`] | none | tests, examples, one process |
//! | `sqlite::SqliteStore` | `sqlite` | processes of one machine |
//! | `dynamodb::DynamoDbStore` | `dynamodb` | services and functions |
//! | `azure_blob::AzureBlobStore` | `azure-blob` | services and functions |
//! | [`majority::MajorityStore`] | none | services in several regions or clouds, over three or five of the others |
//!
//! Linux, Android and macOS only: it needs a clock that goes on while the machine sleeps. It needs a tokio runtime.
//!
//! # What is promised
//!
//! Tokens rise, always, as long as the store's conditional writes are linearizable and durable: no clock is needed.
//! A resource that checks them atomically with its write never applies a late one. That two holders never *believe* at
//! once needs more: clocks whose rates agree within 1 %, and pauses that some local clock sees. `docs/guarantees.md`
//! keeps these apart.
//!
//! # Layers
//!
//! `types` are values; `time` alone reads clocks, draws chance and sleeps; `protocol` decides, without I/O; `store` is
//! the contract and `backends` keep it; `lease` performs what `protocol` decides. `tests/layering` enforces the arrows.

mod backends;
pub mod fence;
mod lease;
#[doc(hidden)]
pub mod protocol;
pub mod recipes;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod types;

pub use backends::memory::MemoryStore;
pub use fence::Fence;
pub use lease::*;
pub use store::Store;
pub use time::{Clock, Sleep, SystemClock};
pub use types::{
    Data, Error, ErrorKind, FencingToken, Handover, HeldBy, Label, Lost, LostReason, Name, Operation, Proof, Stale,
    StepDown, Unreadable, Written,
};
// The words of the store contract; documented in `store`.
#[doc(hidden)]
pub use types::*;

#[cfg(feature = "azure-blob")]
pub mod azure_blob {
    //! Leases in an Azure Blob container (feature `azure-blob`).
    //!
    //! A lease is a native lease of a blob, for 15 to 60 whole seconds, with the record in the blob's metadata. The blob
    //! is empty, unless its holder writes it.
    //! The service judges when it is over. `docs/stores/azure-blob.md` says what is stored, what it costs, and what an
    //! ask, a revocation and a hand-over are there.
    //!
    //! ```no_run
    //! use std::sync::Arc;
    //! use std::time::Duration;
    //!
    //! use leasehold::azure_blob::azure_core::credentials::TokenCredential;
    //! use leasehold::azure_blob::{AzureBlobStore, Credential};
    //! use leasehold::{Error, Leases};
    //!
    //! // credential: azure_identity::ManagedIdentityCredential::new(None)?, or another of that crate
    //! async fn report(credential: Arc<dyn TokenCredential>) -> Result<(), Error> {
    //!     let container = "https://billing.blob.core.windows.net/leases";
    //!     let store = AzureBlobStore::open(container, Credential::token(credential)).await?;
    //!     let leases = Leases::builder(store).prefix("billing/").holder("billing-3").build()?;
    //!     leases.acquire("orders/eu").await?.run(|held| async move { held.ensure(Duration::from_secs(5)).await }).await
    //! }
    //! ```
    //!
    //! # Which door do I take?
    //!
    //! | you have | take |
    //! |---|---|
    //! | a container, and a role that may read its properties | [`AzureBlobStore::open`] |
    //! | a function, or a shared access signature of one container: neither may look at the container | [`AzureBlobStore::builder`], then [`unverified`](AzureBlobStoreBuilder::unverified) |
    //! | Azurite, a test, first steps | [`AzureBlobStore::builder`], [`create_container`](AzureBlobStoreBuilder::create_container), then [`open`](AzureBlobStoreBuilder::open) |
    //! | a proxy, or certificates of your own | [`AzureBlobStore::builder`], [`http_client`](AzureBlobStoreBuilder::http_client) |
    //! | state that only the holder may write | [`AzureBlobStore::write_content`]: in the lease's own blob, guarded by the service |
    //! | a blob of your own that late writes must not reach, under a lease of any store | [`FencedBlob`] |
    //!
    //! # Credentials
    //!
    //! [`Credential::token`] takes any credential of `azure_identity`, over https only. [`Credential::sas`] and
    //! [`Credential::in_url`] are a shared access signature; it ends when it says, and a store cannot be given another.
    //! [`Credential::shared_key`] is for Azurite and development accounts. None of them shows itself in `Debug`, errors
    //! or logs of this library.
    //!
    //! # Errors
    //!
    //! [`Misconfigured`](crate::ErrorKind::Misconfigured): no such container, or a URL and a credential that do not
    //! fit. [`Denied`](crate::ErrorKind::Denied): the text names the request and the permission that is missing.
    //! [`Invalid`](crate::ErrorKind::Invalid): a term that is not 15 to 60 whole seconds, when the client is built.
    //! [`Unavailable`](crate::ErrorKind::Unavailable): throttled, out of order, away, or no answer within 10 s (content: 60 s); the
    //! client has asked again already. While a lease is held none of these is a loss.

    pub use azure_core;

    pub use crate::backends::azure_blob::{
        AzureBlobStore, AzureBlobStoreBuilder, Credential, FencedBlob, FencedBlobBuilder, RaisedBlob,
    };
}

/// Leases in a DynamoDB table (feature `dynamodb`).
#[cfg(feature = "dynamodb")]
pub mod dynamodb {
    pub use aws_sdk_dynamodb;

    pub use crate::backends::dynamodb::{
        DynamoDbStore, DynamoDbStoreBuilder, Fenced, FencedError, FencedWrite, Refusal, SortKey, create_table,
    };
}

pub mod majority {
    //! Leases on a majority of three or five independent stores: several regions, or two clouds.
    //!
    //! A [`MajorityStore`] is a [`Store`](crate::Store) made of stores, so that everything else works on it unchanged.
    //! `docs/multi-region.md` says when to take it, what it needs, what it costs and what breaks it.
    //!
    //! # Errors
    //! [`Misconfigured`](crate::ErrorKind::Misconfigured): the members were not set up together, or records were written
    //! by clients with another list of members; the text says which. [`Unavailable`](crate::ErrorKind::Unavailable):
    //! fewer than a majority have answered; the text says what each of them said. While a lease is held neither is a
    //! loss before its deadline.

    pub use crate::backends::majority::{MajorityStore, MajorityStoreBuilder};
}

/// Leases in a SQLite file (feature `sqlite`).
#[cfg(feature = "sqlite")]
pub mod sqlite {
    pub use crate::backends::sqlite::SqliteStore;
}

/// The code of the README, which is compiled.
#[cfg(all(doctest, feature = "dynamodb", feature = "azure-blob"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The code of `docs/stores/azure-blob.md`, which is compiled.
#[cfg(all(doctest, feature = "azure-blob"))]
#[doc = include_str!("../docs/stores/azure-blob.md")]
struct AzureBlobPage;

/// The programs of `docs/programs.md`, which are tests.
#[cfg(all(doctest, feature = "testing", feature = "serde"))]
#[doc = include_str!("../docs/programs.md")]
struct Programs;

/// The programs of `docs/recipes.md`, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/recipes.md")]
struct Recipes;

/// The tests of `docs/testing-your-code.md`, which are tests.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../docs/testing-your-code.md")]
struct TestingYourCode;

/// The writes of `docs/fencing.md`: compiled, and run where SQLite does.
#[cfg(all(doctest, feature = "dynamodb", feature = "sqlite", feature = "azure-blob"))]
#[doc = include_str!("../docs/fencing.md")]
struct Fencing;

/// The settings of `docs/functions.md`, which are compiled.
#[cfg(all(doctest, feature = "dynamodb", feature = "azure-blob"))]
#[doc = include_str!("../docs/functions.md")]
struct Functions;

/// The runbook of `docs/operations.md`, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../docs/operations.md")]
struct Operations;

/// The code of `docs/multi-region.md`, which is compiled.
#[cfg(all(doctest, feature = "dynamodb"))]
#[doc = include_str!("../docs/multi-region.md")]
struct MultiRegion;

/// The code of `docs/production.md`, which is a test where it can be.
#[cfg(doctest)]
#[doc = include_str!("../docs/production.md")]
struct Production;
