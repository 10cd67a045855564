//! What a store keeps for one lease name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Grant, Label};

/// The longest term of a record in milliseconds: one day.
pub const MAX_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The largest payload in bytes.
pub const MAX_DATA: usize = 4096;

/// The caller's payload, at most 4 KiB. Its `Debug` shows the length only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Data(Arc<[u8]>);

impl Data {
    /// A payload, or `None` when it is larger than 4 KiB.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_DATA).then(|| Self(bytes.into()))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Data({} bytes)", self.0.len())
    }
}

/// The hash of a majority's member list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberSet(pub u64);

/// A readable record. Release clears the grant and keeps the rest, so that tokens go on rising.
///
/// The format is 1 and there is no session field, else the record is [`Unreadable`](super::Unreadable).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// The token of the newest grant or of a burnt claim; 0: never granted.
    pub token: u64,
    /// The current acquisition; absent: free.
    pub grant: Option<Grant>,
    /// Chosen by the holder: 1 by the claim, higher with each renewal. Release and burn leave it.
    pub version: Option<u64>,
    /// The holder's label, for people.
    pub holder: Option<Label>,
    /// The term in milliseconds, 1 to one day; every held record has it.
    pub ttl_ms: Option<u64>,
    /// The end of the term on the store's clock, milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
    /// After a closing release: nobody may claim for a while.
    pub closed: Option<Closed>,
    /// Whether an operator has revoked the grant.
    pub revoked: bool,
    /// A wish that the holder finish.
    pub asked: Option<StepDown>,
    /// The member list of the majority that wrote this.
    pub set: Option<MemberSet>,
    /// The caller's payload.
    pub data: Option<Data>,
}

impl Record {
    /// A record that was never granted.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A record that nobody may claim for a while after its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Closed {
    /// For how long, in milliseconds, counted by whoever watches the record.
    pub for_ms: Option<u64>,
    /// Until when on the store's clock, milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// The token of the grant whose release closed it.
    pub by: Option<u64>,
}

/// A wish that the holder with a certain token finish within a grace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepDown {
    /// The token of the grant that was asked; it does not count for any other.
    pub token: u64,
    /// The grace in milliseconds.
    pub grace_ms: u64,
    /// Who asked, for people.
    pub by: Option<Label>,
}

impl StepDown {
    /// The grace, counted from when the holder sees the wish.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}
