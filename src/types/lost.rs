//! Why a lease was lost.

use std::fmt;
use std::sync::Arc;

use super::{FencingToken, Label, Name};

/// A lease that was held and is not any more. Final: the work that it guarded must stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    name: Name,
    token: FencingToken,
    reason: LostReason,
    cause: Option<Arc<str>>,
}

impl Lost {
    pub(crate) fn new(name: Name, token: FencingToken, reason: LostReason, cause: Option<Arc<str>>) -> Self {
        Self { name, token, reason, cause }
    }

    /// Why.
    pub fn reason(&self) -> &LostReason {
        &self.reason
    }

    /// The lease's full name, prefix included.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The token of the lease that was lost.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// What the last renewals failed with, if any did.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease {} with token {} was lost: {}", self.name, self.token, self.reason)?;
        match &self.cause {
            Some(cause) => write!(f, " (last failure: {cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Lost {}

/// Why a lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// No renewal succeeded before the term's deadline.
    Deadline,
    /// Another grant was made, or had been made, with a higher token.
    Taken {
        /// The other holder's label, if it is known.
        holder: Option<Label>,
        /// The token that was seen.
        token: FencingToken,
    },
    /// The record is gone, or was put back to an older state.
    Deleted,
    /// An operator, or the holder of a revoke permission, ended it.
    Revoked,
    /// The wall clock or the store's clock said that the term was over, and no renewal proved them wrong in time.
    ClockSuspect,
    /// The longest hold that the caller had asked for is over.
    AtMost,
    /// The runtime that renewed the lease has ended.
    KeeperGone,
    /// The client was shut down while the work was still running.
    Shutdown,
    /// Nothing was going to renew it: [`Lease::run`](crate::Lease::run) with
    /// [`Renewal::Manual`](crate::Renewal::Manual). The work was not begun.
    NotRenewed,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline => f.write_str("no renewal succeeded before its deadline"),
            Self::Taken { holder: Some(holder), token } => write!(f, "taken over by {holder} with token {token}"),
            Self::Taken { holder: None, token } => write!(f, "taken over with token {token}"),
            Self::Deleted => f.write_str("its record was deleted or restored from an older state"),
            Self::Revoked => f.write_str("it was revoked"),
            Self::ClockSuspect => f.write_str("a clock jumped past its end and no renewal succeeded since"),
            Self::AtMost => f.write_str("the longest hold that was asked for is over"),
            Self::Shutdown => f.write_str("the client was shut down while its work was still running"),
            Self::KeeperGone => f.write_str("the runtime that renewed it has ended"),
            Self::NotRenewed => f.write_str(
                "it was given back, because `run` needs renewal in the background: with manual renewal, renew and call \
                 the work yourself",
            ),
        }
    }
}
