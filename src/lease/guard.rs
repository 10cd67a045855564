//! The owner of a lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::held::{Ended, Held};
use crate::protocol::retry::Tries;
use crate::types::{Data, Error, ErrorKind, FencingToken, Handover, Name, Operation};

/// The longest time for which a release can close a record.
const LONGEST_CLOSING: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A lease that this process holds. Only its owner ends it.
///
/// Dropping it stops renewing at once and releases it in the background, without blocking and inside or outside of
/// a runtime; with [`Renewal::Manual`](crate::Renewal::Manual) the next call of the client, or
/// [`Leases::flush`](crate::Leases::flush), sends that release. A release whose success matters is
/// [`Lease::release`].
#[must_use = "a lease is released when it is dropped: `let _ =` and a pattern `Acquired(_)` release it at once"]
pub struct Lease {
    core: Arc<Core>,
}

impl Lease {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The lease's full name, prefix included.
    pub fn name(&self) -> &Name {
        &self.core.name
    }

    /// The fencing token.
    pub fn token(&self) -> FencingToken {
        self.core.token
    }

    /// A view for the code that works under the lease.
    pub fn held(&self) -> Held {
        Held { core: Arc::clone(&self.core) }
    }

    /// Renews now. With [`Renewal::Manual`](crate::Renewal::Manual) nobody else does.
    ///
    /// A request that fails in passing is tried again, up to three times.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when the lease is lost: stop. [`ErrorKind::Unavailable`] when no try was answered; the
    /// lease is still held until its deadline.
    ///
    /// # Cancel safety
    /// Safe: a renewal that was applied unseen does no harm.
    pub async fn renew(&self) -> Result<(), Error> {
        let held = self.held();
        let before = self.core.renewals();
        let mut tries = Tries::default();
        loop {
            held.still_held(Operation::Renew)?;
            self.core.renew_now().await;
            held.still_held(Operation::Renew)?;
            if self.core.renewals() != before {
                return Ok(());
            }
            if !self.core.until_next_renewal(&mut tries).await {
                break;
            }
        }
        let why = "no renewal was answered: the lease is held until its deadline; try again, or stop";
        let error = Error::new(ErrorKind::Unavailable, Operation::Renew, why);
        Err(error.for_name(&self.core.name).on(self.core.client.description.kind))
    }

    /// Releases it, and says how it has ended: [`Ended::Lost`] when it was lost before, which is no error here.
    ///
    /// After `Ok` no request is sent for this grant any more, and after `Ok(Ended::Released)` no late copy of an
    /// earlier one changes the record either. A release whose answer was lost is sent again with the same body; "not
    /// mine" then is a success, because the grant is over either way. For a lease that was lost before, one release
    /// is sent for the others' sake, and nothing hangs on its answer.
    ///
    /// # Errors
    /// As of the store, when no answer came: the lease then ends with a later try in the background, or with its
    /// term.
    ///
    /// # Cancel safety
    /// Safe: the release then goes on in the background.
    pub async fn release(self) -> Result<Ended, Error> {
        self.core.release().await
    }

    /// Releases it and closes the record in the same write: for so long nobody can acquire it, and whoever tries is
    /// shown `data` ([`HeldBy::data`](crate::HeldBy::data)); `None` removes the payload.
    ///
    /// `keep` is rounded up to a millisecond, is 1 ms at the least and ten years at the most, and counts from this
    /// call on the store's clock where that is believed: the record then opens for everybody, some seconds late.
    /// Elsewhere (SQLite, [`Takeover::ObservedOnly`](crate::Takeover::ObservedOnly)) a closed record opens only for a
    /// process that has watched it for so long. On the memory store the store itself opens it. Meanwhile a try is
    /// answered [`Attempt::Held`](crate::Attempt::Held), and an acquire waits until the record opens.
    ///
    /// `Ok(`[`Ended::Released`]`)`: it is recorded. `Ok(`[`Ended::Lost`]`)`: the lease was lost before, and nothing was
    /// recorded. [`recipes::Once`](crate::recipes::Once) is built on this.
    ///
    /// One request, on Azure Blob two; one more before it if the store's time is believed and not known.
    ///
    /// # Errors
    /// As of the store, when no answer came: it is tried again in the background until the term is over.
    /// [`ErrorKind::Unavailable`] also when an answer was lost and nobody can say any more. In both cases
    /// [`Error::written`] is [`Written::Unknown`](crate::Written::Unknown): it may be recorded, or may be yet.
    /// [`ErrorKind::Closed`] when the client was shut down and has released the lease first, and
    /// [`ErrorKind::Unreadable`] when something else is stored under its name: nothing was recorded.
    ///
    /// # Cancel safety
    /// Safe once it was polled: it then goes on in the background, or with
    /// [`Renewal::Manual`](crate::Renewal::Manual) with the next call of the client or
    /// [`Leases::flush`](crate::Leases::flush). Dropped before, it is a release without closing.
    pub async fn close(self, keep: Duration, data: Option<Data>) -> Result<Ended, Error> {
        let keep_ms = keep.min(LONGEST_CLOSING).as_nanos().div_ceil(1_000_000);
        self.core.close(u64::try_from(keep_ms).unwrap_or(u64::MAX).max(1), data).await
    }

    /// Stops renewing, leaves the record as it is, and gives what another process needs to take it up with
    /// [`Leases::resume`](crate::Leases::resume) before the term is over.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when the lease is lost.
    ///
    /// # Cancel safety
    /// Not safe: the lease is then neither handed over nor released, and ends with its term.
    pub async fn into_handover(self) -> Result<Handover, Error> {
        self.core.hand_over().await
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.core.release_later();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("name", self.name()).field("token", &self.token()).finish_non_exhaustive()
    }
}
