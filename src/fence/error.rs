//! Why an object was not written, and what its writer can know then.

use super::write_id::WriteId;
use crate::types::{Stale, Written};

/// Why an object was not written, or not raised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError<E: std::error::Error + 'static> {
    /// The object has seen a higher token: this holder was replaced. Stop this work.
    #[error(transparent)]
    #[non_exhaustive]
    Stale {
        /// Both tokens.
        #[from]
        stale: Stale,
    },
    /// The object has seen a higher token, and whether this write was stored before that is not known: its answer was
    /// lost. Stop this work.
    #[error("{stale} (whether it has written before that is not known)")]
    #[non_exhaustive]
    StaleInDoubt {
        /// Both tokens.
        stale: Stale,
        /// The write in doubt.
        write: WriteId,
    },
    /// Somebody else has written: with the same token, or past the fence. Raise again, and begin from what is found.
    #[error("the object was written by somebody else who has the same token or none; raise again to see what is there")]
    #[non_exhaustive]
    Overtaken {
        /// The write, if its answer was lost as well: whether it was stored before that is not known.
        in_doubt: Option<WriteId>,
    },
    /// Others keep writing, so that no look at the object was still true when the write came. Try again; stop them,
    /// if it goes on.
    #[error("others keep writing the object: {rounds} looks at it were each outdated when the write came; try again")]
    #[non_exhaustive]
    Contended {
        /// How often was tried.
        rounds: u32,
    },
    /// What is stored in the fence's place is no fence, so nothing was written over it. Another program has put it
    /// there: find that, and mend the object by hand. (A fence begins with a token: a whole number of 0 to 2^53 - 1.)
    #[error("{found:?} stands in the fence's place and is no fence: it was not written by a fenced write")]
    #[non_exhaustive]
    NotAFence {
        /// What it is.
        found: String,
    },
    /// The write was stored and the tag is as before: it does not cover the fence, which therefore protects nothing.
    /// Store the fence in what the tag is computed from.
    #[error("the tag does not change with the fence, so it is no condition for it: store the fence in the content")]
    TagNotMoved,
    /// The store has failed, or said no for reasons of its own. Nothing was written.
    #[error(transparent)]
    Store(E),
    /// The store has failed, and whether the write was stored, or will be yet, is not known. Write again, if the same
    /// content may be stored twice. Else raise again: after that the write cannot be stored any more, and
    /// [`Raised::found_is_of`](super::Raised::found_is_of) is `write` if it was. (Unless somebody else with the same token has written meanwhile.)
    #[error("{error} (whether it was written is not known)")]
    #[non_exhaustive]
    InDoubt {
        /// The store's own error.
        #[source]
        error: E,
        /// The write in doubt.
        write: WriteId,
    },
}

impl<E: std::error::Error + 'static> FenceError<E> {
    /// Whether the call may have changed the content.
    pub fn written(&self) -> Written {
        match self {
            Self::StaleInDoubt { .. } | Self::InDoubt { .. } | Self::Overtaken { in_doubt: Some(_) } => {
                Written::Unknown
            }
            _ => Written::No,
        }
    }

    /// The tokens, where the object has seen a higher one: this holder was replaced and must stop.
    pub fn stale(&self) -> Option<Stale> {
        match self {
            Self::Stale { stale } | Self::StaleInDoubt { stale, .. } => Some(*stale),
            _ => None,
        }
    }
}
