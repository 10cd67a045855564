//! Who has a lease that a call did not get.

use std::fmt;
use std::time::Duration;

use super::{Data, FencingToken, Label};

/// Who has a lease that a call did not get, and how far this client has come in watching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    pub(crate) holder: Option<Label>,
    pub(crate) token: Option<FencingToken>,
    pub(crate) closed: bool,
    pub(crate) data: Option<Data>,
    pub(crate) own: bool,
    pub(crate) unchanged_for: Duration,
    pub(crate) of: Option<Duration>,
}

impl HeldBy {
    /// The holder's label, if it has one.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_ref().map(Label::as_str)
    }

    /// The holder's token; of a closed lease, that of the holder who has closed it.
    pub fn token(&self) -> Option<FencingToken> {
        self.token
    }

    /// Whether nobody holds it, and its last holder has closed it for a while, with
    /// [`Lease::close`](crate::Lease::close): it opens by itself, and releases or revocations change nothing about it.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The payload, at most 4 KiB: what the holder publishes ([`Held::set_data`](crate::Held::set_data)), or of a
    /// closed lease what its last holder has left. As of the answer that this was made of.
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_ref().map(Data::as_bytes)
    }

    /// Whether it is held by this same client. A lease is not re-entrant: who holds it and waits for it waits for
    /// itself.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// For how long this client has seen the record unchanged, over all its calls for this name.
    pub fn unchanged_for(&self) -> Duration {
        self.unchanged_for
    }

    /// How long it must be seen unchanged before it may be taken over, where watching can open it.
    pub fn of(&self) -> Option<Duration> {
        self.of
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.closed, &self.holder) {
            (true, _) => f.write_str("closed by its last holder")?,
            (false, Some(holder)) => write!(f, "held by {holder}")?,
            (false, None) => f.write_str("held by another")?,
        }
        if self.own {
            f.write_str(", by this client itself,")?;
        }
        if let Some(token) = self.token {
            write!(f, " with token {token}")?;
        }
        if let Some(of) = self.of {
            write!(f, ", seen unchanged for {:.1} s of {:.1} s", self.unchanged_for.as_secs_f64(), of.as_secs_f64())?;
        }
        Ok(())
    }
}
