//! The contract between leases and the stores that keep them.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::types::Name;
pub use crate::types::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Close, Closed, Description, Expect, ExpiryJudge, Grant, ListPage,
    Listed, MAX_DATA, MAX_TTL_MS, MemberSet, Page, Record, Renew, Renewed, Revoke, Revoked, Sample, Stamp, Standing,
    StoreError, StoreErrorKind, Timed, TokenFloor, Vacate, Vacated, Version, View,
};

#[cfg(feature = "conformance")]
pub mod conformance;

/// A place where lease records are kept.
///
/// What every store promises:
/// - Each verb takes effect at one moment, by a conditional write that is atomic, durable and linearizable for its
///   name. It is accepted exactly as `docs/protocol.md` says, and nothing is ever written without a condition (I8).
/// - A refused verb answers what is there, as of the moment of the refusal or later.
/// - No conditional write is sent twice by one call, neither by the store nor by a library below it: one call is
///   one attempt. An answer that is lost is [`Applied::Unknown`].
///
/// A store whose service needs several requests for a verb (Azure Blob: lease, then write) sends each under a condition
/// of its own, and answers `Applied::Unknown` as soon as one of them may have been applied and the verb has not ended.
/// What a call leaves that was dropped between two of them, the clean-up of the same grant takes away, or else the end of
/// the term.
///
/// And of each:
/// - A record that is not readable is a [`View`], not an error, and no verb changes it.
/// - The store's time in an answer is the service's own; an answer that a proxy has made carries none.
///
/// Callers bound each call by a time-out of their own, and may drop a call at any moment: whether it was applied
/// is then not known.
#[async_trait]
pub trait Store: Send + Sync + Debug + 'static {
    /// What this store can do. Constant over its life.
    fn describe(&self) -> Description;

    /// Becomes the holder if the record is what the claim expects.
    async fn claim(&self, claim: &Claim) -> Answer<Claimed>;

    /// Renews up to [`Description::renew_batch`] grants; one answer each, in the same order.
    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>>;

    /// Releases a grant or cleans up after a claim.
    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated>;

    /// Ends somebody's grant.
    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked>;

    /// Asks the holder to finish.
    async fn ask(&self, ask: &Ask) -> Answer<Asked>;

    /// Reads one record with the store's strongest consistency.
    async fn read(&self, name: &Name) -> Answer<View>;

    /// One page of the records whose names start with `prefix`.
    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage>;

    /// The same store over connections that nobody else uses, for a thread with a runtime of its own; `None` where
    /// there are no connections.
    fn isolated(&self) -> Option<Arc<dyn Store>>;

    /// The lowest token that a client may propose now, at this reading of its clocks: for stores made of stores, whose
    /// members have a time that their answers do not carry. Wrappers must forward it.
    fn token_floor(&self, _now: &Stamp) -> TokenFloor {
        TokenFloor::None
    }
}

macro_rules! forward_to_inner {
    ($($head:tt)*) => {
        #[async_trait]
        $($head)* {
            fn describe(&self) -> Description {
                (**self).describe()
            }
            async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
                (**self).claim(claim).await
            }
            async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
                (**self).renew(renewals).await
            }
            async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
                (**self).vacate(vacate).await
            }
            async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
                (**self).revoke(revoke).await
            }
            async fn ask(&self, ask: &Ask) -> Answer<Asked> {
                (**self).ask(ask).await
            }
            async fn read(&self, name: &Name) -> Answer<View> {
                (**self).read(name).await
            }
            async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
                (**self).list(prefix, page).await
            }
            fn isolated(&self) -> Option<Arc<dyn Store>> {
                (**self).isolated()
            }
            fn token_floor(&self, now: &Stamp) -> TokenFloor {
                (**self).token_floor(now)
            }
        }
    };
}

forward_to_inner!(impl<S: Store + ?Sized> Store for Arc<S>);
