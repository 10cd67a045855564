//! The guard at the resource: what refuses the late write of a holder that was replaced (I7).
//!
//! [`Fence`] guards what lives inside a process. [`raise`] guards an object of a store that writes on condition of a
//! tag: a blob, an S3 object, a key of etcd. For tables the token is a condition of the write; see `docs/fencing.md`.

mod error;
mod object;
#[cfg(feature = "conformance")]
mod verify;
mod write_id;

pub use self::error::FenceError;
pub use self::object::{Found, Put, Raised, Tagged, raise};
#[cfg(feature = "conformance")]
pub use self::verify::verify;
pub use self::write_id::WriteId;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::{FencingToken, Stale};

/// Remembers the highest token that a resource has seen, and refuses lower ones (I7).
///
/// Put it at the resource, not at the client. A new holder raises it first and only then reads, else it acts on a
/// state that a late write may still change.
///
/// This one guards what lives in one process: check and effect have to be atomic, so keep it inside the lock of what
/// it guards, or let the effect itself carry the token. For tables and objects the same check is a condition of the
/// write.
///
/// ```
/// use leasehold::{Fence, FencingToken};
///
/// let (old, new) = (FencingToken::new(7).unwrap(), FencingToken::new(8).unwrap());
/// let fence = Fence::new();
/// assert!(fence.admit(old).is_ok());
/// assert!(fence.raise(new).is_ok()); // the new holder, before it reads
/// assert!(fence.admit(old).is_err()); // the old holder's late write
/// assert!(fence.admit(new).is_ok());
/// ```
#[derive(Debug, Default)]
pub struct Fence {
    highest: AtomicU64,
}

impl Fence {
    /// A fence that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new holder's first act: from now on lower tokens are refused.
    ///
    /// # Errors
    /// [`Stale`] when a higher token was seen before.
    pub fn raise(&self, token: FencingToken) -> Result<(), Stale> {
        self.admit(token)
    }

    /// Admits an effect with this token, and from now on no lower one.
    ///
    /// # Errors
    /// [`Stale`] when a higher token was seen before: do not apply the effect.
    pub fn admit(&self, token: FencingToken) -> Result<(), Stale> {
        let highest = self.highest.fetch_max(token.as_u64(), Ordering::SeqCst);
        if highest > token.as_u64() {
            return Err(Stale { token, highest: FencingToken::of_checked(highest) });
        }
        Ok(())
    }

    /// The highest token seen, if any.
    pub fn highest(&self) -> Option<FencingToken> {
        FencingToken::new(self.highest.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_token_after_a_higher_is_refused_and_told_why() {
        let [low, high] = [3, 9].map(|number| FencingToken::new(number).unwrap());
        let fence = Fence::new();
        fence.admit(low).unwrap();
        fence.raise(high).unwrap();
        let stale = fence.admit(low).unwrap_err();
        assert_eq!((stale.token, stale.highest), (low, high));
        assert_eq!(fence.highest(), Some(high));
    }
}
