//! The verbs of a store: their bodies and their answers.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Data, Grant, Label, MemberSet, Name, StepDown, Version, View};

/// What a store can do, and who judges there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The kind of store, for logs and errors: `"dynamodb"`.
    pub kind: &'static str,
    /// Which store it is among its kind, stable over processes: a hand-over is only good for the same one.
    pub identity: String,
    /// The shortest and longest term.
    pub ttl: RangeInclusive<Duration>,
    /// The term's resolution.
    pub grain: Duration,
    /// Who judges that a term is over.
    pub judge: ExpiryJudge,
    /// Whether answers carry the store's time.
    pub has_store_time: bool,
    /// How many renewals one call of `renew` takes at most; at least 1.
    pub renew_batch: usize,
    /// Whether conditional writes to one name are linearizable. Nothing here is safe without.
    pub linearizable: bool,
    /// Whether every renewal body must carry the newest payload (a majority's members may have missed it).
    pub data_in_every_renewal: bool,
    /// Whether it is one of several copies that are written apart and made equal later, as a replica of an eventually
    /// consistent global table is even where everybody uses the same one. It is no member of a majority.
    pub replica: bool,
    /// Whether calls leave requests behind that go on in tasks after they have returned: not for manual renewal.
    pub goes_on: bool,
}

impl Description {
    /// A store of this kind and identity with the widest limits, judged by its clients, without a time of its own.
    pub fn new(kind: &'static str, identity: impl Into<String>) -> Self {
        Self {
            kind,
            identity: identity.into(),
            ttl: Duration::from_millis(1)..=Duration::from_millis(super::MAX_TTL_MS),
            grain: Duration::from_millis(1),
            judge: ExpiryJudge::Client,
            has_store_time: false,
            renew_batch: 1,
            linearizable: true,
            data_in_every_renewal: false,
            replica: false,
            goes_on: false,
        }
    }
}

/// The lowest token that may be proposed, where the store knows it better than its answers' dates tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFloor {
    /// The store has no say in it.
    None,
    /// It has, and does not know it yet: a read makes it known.
    Unknown,
    /// Not below this.
    At(u64),
}

/// Who judges that a term is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryJudge {
    /// The client, by watching the record or by the store's time in it.
    Client,
    /// The store: it answers [`Standing::Expired`](super::Standing::Expired).
    Store,
}

/// A wish to become the holder.
///
/// Accepted only if the stored token is below `token` and the expectation holds. The same body sent again is
/// answered `Granted` while the record carries its grant and token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The lease.
    pub name: Name,
    /// The proposed token.
    pub token: u64,
    /// The new grant.
    pub grant: Grant,
    /// The term in milliseconds.
    pub ttl_ms: u64,
    /// The end of the term on the store's clock.
    pub expires_at_ms: Option<u64>,
    /// The holder's label.
    pub holder: Option<Label>,
    /// The payload; `None` removes an older one.
    pub data: Option<Data>,
    /// The majority's member list.
    pub set: Option<MemberSet>,
    /// What the record has to be.
    pub expect: Expect,
}

/// What a claim expects of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expect {
    /// Absent, or free and not closed.
    Vacant,
    /// Exactly this write is still there.
    Expired(Version),
    /// It still carries exactly this grant, which was handed over.
    Handed(Grant),
}

/// A renewal. Accepted only if the stored grant is the caller's and the stored version is not above its own.
///
/// It carries all that a claim carries, because a majority may have to rejoin a member by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renew {
    /// The lease.
    pub name: Name,
    /// The grant's token.
    pub token: u64,
    /// The caller's grant.
    pub grant: Grant,
    /// One more than any version sent before for this grant.
    pub version: u64,
    /// The grant's term in milliseconds; it never changes within a grant.
    pub ttl_ms: u64,
    /// The end of the term on the store's clock; `None` removes the stored one.
    pub expires_at_ms: Option<u64>,
    /// The holder's label.
    pub holder: Option<Label>,
    /// A new payload; `None` leaves the stored one.
    pub data: Option<Data>,
    /// The majority's member list.
    pub set: Option<MemberSet>,
}

/// A release, or with `burn` the clean-up of a claim that has been given up.
///
/// A release is accepted if the stored grant is the caller's, and keeps token and version. A burn is accepted
/// then too, or if the record is free or absent with a lower token; it leaves the caller's token, so that a late
/// copy of the claim is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vacate {
    /// The lease.
    pub name: Name,
    /// The grant's token.
    pub token: u64,
    /// The caller's grant.
    pub grant: Grant,
    /// Whether this is a clean-up.
    pub burn: bool,
    /// Close the record for a while.
    pub close: Option<Close>,
    /// The store's late end now in milliseconds since 1970, for stores that sweep old records.
    pub now_ms: Option<u64>,
}

/// For how long a release keeps everybody out, and what it leaves for them to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Close {
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// Until when on the store's clock, milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// The outcome to keep; `None` removes the payload.
    pub data: Option<Data>,
}

/// An operator's end to a grant. Accepted if the record is held with that token and, without `force`, not yet
/// revoked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Revoke {
    /// The lease.
    pub name: Name,
    /// The token of the grant to end.
    pub token: u64,
    /// The grant that takes the place of the holder's, so that its renewals are refused. Part of the body.
    pub fresh: Grant,
    /// Free the record at once, although its holder may still believe in its term.
    pub force: bool,
}

/// A wish that the holder finish. Accepted only if the record is held with `step_down.token`; changes nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The lease.
    pub name: Name,
    /// Whom, how soon, and who asks.
    pub step_down: StepDown,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claimed {
    /// The record carries the claim's grant and token.
    Granted,
    /// The condition did not hold; this is what is there.
    Refused(View),
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Renewed {
    /// Accepted. Whether somebody has asked the holder to finish.
    Renewed(Option<StepDown>),
    /// The condition did not hold; this is what is there.
    Refused(View),
}

/// The answer to a release or clean-up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Vacated {
    /// Accepted.
    Vacated,
    /// The condition did not hold; this is what is there.
    Refused(View),
}

/// The answer to a revocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// Accepted, now or by an earlier copy of the same body.
    Revoked,
    /// The record was already revoked by somebody else.
    AlreadyRevoked,
    /// Not held, or with another token; this is what is there.
    Refused(View),
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// Accepted.
    Asked,
    /// Not held, or with another token; this is what is there.
    Refused(View),
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// The records, in no particular order; unreadable ones are counted only.
    pub leases: Vec<Listed>,
    /// How many items were skipped because they are not leases or not readable.
    pub skipped: usize,
    /// Where the next page starts; `None` after the last one.
    pub next: Option<Page>,
}

/// One record of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: Name,
    /// What is there.
    pub view: View,
}

/// Where a page of a listing starts. Opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page(pub String);

/// A store's answer, or why there is none.
pub type Answer<T> = Result<Timed<T>, StoreError>;

/// A value with the store's time of the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timed<T> {
    /// What the store answered.
    pub value: T,
    /// The store's time in milliseconds since 1970 as it stands in the answer; only from an answer that the
    /// service itself has made.
    pub date_ms: Option<u64>,
}

impl<T> Timed<T> {
    /// An answer without a time.
    pub fn undated(value: T) -> Self {
        Self { value, date_ms: None }
    }

    /// An answer with the store's time.
    pub fn dated(value: T, date_ms: Option<u64>) -> Self {
        Self { value, date_ms }
    }

    /// The same answer with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Timed<U> {
        Timed { value: change(self.value), date_ms: self.date_ms }
    }
}

/// A call to a store that has no answer of its verb.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StoreError {
    /// Whether the write may have happened.
    pub applied: Applied,
    /// What to do about it.
    pub kind: StoreErrorKind,
    /// What happened, for people; no secrets.
    pub message: String,
    /// The store's time, where the service itself has answered.
    pub date_ms: Option<u64>,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error without a time or a cause.
    pub fn new(kind: StoreErrorKind, applied: Applied, message: impl Into<String>) -> Self {
        Self { applied, kind, message: message.into(), date_ms: None, source: None }
    }

    /// The same error with its cause.
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with the store's time.
    pub fn at(mut self, date_ms: Option<u64>) -> Self {
        self.date_ms = date_ms;
        self
    }
}

/// Whether a write may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Applied {
    /// It has certainly not, and no copy of the request can still arrive.
    No,
    /// It may have happened, or may happen yet.
    Unknown,
}

/// What to do about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store wants fewer requests: later.
    Throttled,
    /// The store is away or has failed: later.
    Unavailable,
    /// No answer in time: later.
    TimedOut,
    /// Another write was in the way and this one was not applied: soon again.
    Contended,
    /// The credentials lack a permission, or have expired.
    Denied,
    /// There is no such table or container, or it has another shape.
    Misconfigured,
    /// The request itself is wrong.
    Invalid,
}

impl StoreErrorKind {
    /// Whether the same request can succeed later without anybody changing anything.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable | Self::TimedOut | Self::Contended)
    }
}
