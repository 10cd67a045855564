//! What a fenced write needs to know of a lease.

use super::{FencingToken, Grant, Name};

/// Name, token and grant of a lease, for stores that can check it inside the caller's own transaction.
///
/// It does not keep the lease alive, and nothing can be renewed or released by it.
#[derive(Clone, Debug)]
pub struct Proof {
    store: String,
    name: Name,
    token: FencingToken,
    grant: Grant,
}

impl Proof {
    pub(crate) fn new(store: String, name: Name, token: FencingToken, grant: Grant) -> Self {
        Self { store, name, token, grant }
    }

    /// Which store the lease is in: another one must not vouch for it.
    #[cfg_attr(
        not(any(feature = "dynamodb", feature = "azure-blob")),
        allow(dead_code, reason = "the stores that can check a proof use it")
    )]
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// The lease's full name, prefix included.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The lease's fencing token.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The grant, for the stores' own conditions only: it is a secret.
    #[cfg_attr(
        not(any(feature = "dynamodb", feature = "azure-blob")),
        allow(dead_code, reason = "the stores that can check a proof use it")
    )]
    pub(crate) fn grant(&self) -> Grant {
        self.grant
    }
}
