//! What a fence says to a holder that was replaced.

use super::FencingToken;

/// A token lower than one that the resource has seen: its holder is not the newest. Stop, and do not try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stale fencing token {token}: the resource has seen {highest}; this holder was replaced and must stop")]
#[non_exhaustive]
pub struct Stale {
    /// The token that was refused.
    pub token: FencingToken,
    /// The highest that the resource has seen.
    pub highest: FencingToken,
}
