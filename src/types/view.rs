//! What a store shows of a record.

use std::fmt;
use std::sync::Arc;

use super::{Grant, Record};

/// A record as a store showed it, with what the store says of its standing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// What a claim may expect.
    pub standing: Standing,
    /// The record; `None` when there is none, or it is unreadable.
    pub record: Option<Record>,
}

/// What a claim may expect of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Absent, or free and not closed.
    Vacant,
    /// Held, or free and closed, as that write. From a store whose clients judge it means
    /// "not known to have expired".
    Held(Version),
    /// A store that judges says that this write's term is over.
    Expired(Version),
    /// There is something, and this version of the library must not touch it.
    Unreadable(Unreadable),
}

impl View {
    /// No record at all.
    pub fn absent() -> Self {
        Self { standing: Standing::Vacant, record: None }
    }

    /// A record that must not be touched.
    pub fn unreadable(reason: Unreadable) -> Self {
        Self { standing: Standing::Unreadable(reason), record: None }
    }

    /// A record of a store whose clients judge expiry, identified by its write.
    pub fn of(record: Record) -> Self {
        let standing = if record.grant.is_none() && record.closed.is_none() {
            Standing::Vacant
        } else {
            Standing::Held(Version::of(&record))
        };
        Self { standing, record: Some(record) }
    }

    /// The stored token, 0 when there is no record.
    pub fn token(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.token)
    }

    /// The current acquisition.
    pub fn grant(&self) -> Option<Grant> {
        self.record.as_ref().and_then(|record| record.grant)
    }
}

/// Which write a record carries. Opaque: only its equality means something. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Identity);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    Write { token: u64, grant: Option<Grant>, version: Option<u64> },
    Tag(Arc<str>),
    Members(Arc<[Option<Version>]>),
}

impl Version {
    /// The identity of the write that a record carries.
    pub fn of(record: &Record) -> Self {
        Self::of_write(record.token, record.grant, record.version)
    }

    /// The identity of a write, an absent part as absent.
    pub fn of_write(token: u64, grant: Option<Grant>, version: Option<u64>) -> Self {
        Self(Identity::Write { token, grant, version })
    }

    /// A tag that the service gives each write of the record, but not each renewal.
    pub fn of_tag(tag: &str) -> Self {
        Self(Identity::Tag(tag.into()))
    }

    /// What each member of a majority showed, in the order of the members.
    pub fn of_members(members: &[Option<Version>]) -> Self {
        Self(Identity::Members(members.into()))
    }

    /// Token, grant and version, where the version is a write's identity.
    pub fn as_write(&self) -> Option<(u64, Option<Grant>, Option<u64>)> {
        match &self.0 {
            Identity::Write { token, grant, version } => Some((*token, *grant, *version)),
            _ => None,
        }
    }

    /// The service's tag, where the version is one.
    pub fn as_tag(&self) -> Option<&str> {
        match &self.0 {
            Identity::Tag(tag) => Some(tag),
            _ => None,
        }
    }

    /// The members' versions, where the version is a majority's.
    pub fn as_members(&self) -> Option<&[Option<Version>]> {
        match &self.0 {
            Identity::Members(members) => Some(members),
            _ => None,
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Version(..)")
    }
}

/// Why a record must not be touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unreadable {
    /// There are fields, but none of ours: not a lease.
    Foreign,
    /// A format that this version of the library does not know.
    Format,
    /// The record is carried by a session, which this version does not know.
    Session,
    /// A field of ours is missing, of a wrong type or out of range.
    Field(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it is not a lease: it has none of the fields of one"),
            Self::Format => f.write_str("its format is not known to this version of leasehold"),
            Self::Session => f.write_str("it belongs to a session, which this version of leasehold does not know"),
            Self::Field(field) => write!(f, "its field {field} is missing, of a wrong type or out of range"),
        }
    }
}
