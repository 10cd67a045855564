//! What a fenced write needs to know of a lease.

use super::{FencingToken, Grant, Name};

/// Name, token and grant of a lease, for stores that can check it inside the caller's own transaction.
///
/// It does not keep the lease alive, and nothing can be renewed or released by it.
#[derive(Clone, Debug)]
pub struct Proof {
    name: Name,
    token: FencingToken,
    grant: Grant,
}

impl Proof {
    pub(crate) fn new(name: Name, token: FencingToken, grant: Grant) -> Self {
        Self { name, token, grant }
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
    #[allow(
        dead_code,
        reason = "for conditions in the caller's own transactions, which come with fencing at the resource"
    )]
    pub(crate) fn grant(&self) -> Grant {
        self.grant
    }
}
