//! The lease of one blob as a pure state machine: the state is computed from the time, never kept.
//!
//! The specification is the table in "Lease Blob" (REST API), "Outcomes of lease operations on blobs by lease state"
//! and "Outcomes of use attempts on blobs by lease state". Where it gives a status only, the code is the one that the
//! .NET SDK's tests expect of the service (azure-storage-net, `LeaseTests.cs`).

use std::time::Duration;

use uuid::Uuid;

use super::codes::{
    LEASE_ALREADY_PRESENT, LEASE_ID_MISMATCH_WITH_BLOB_OPERATION, LEASE_ID_MISMATCH_WITH_LEASE_OPERATION,
    LEASE_ID_MISSING, LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED, LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED,
    LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED, LEASE_LOST, LEASE_NOT_PRESENT_WITH_BLOB_OPERATION,
    LEASE_NOT_PRESENT_WITH_LEASE_OPERATION, Refused,
};

/// The service's time, since any fixed moment.
pub type Moment = Duration;

/// How long a lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    Fixed(Duration),
    Infinite,
}

/// The state of a blob's lease, and whose it is. A GUID compares without its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Available,
    Leased(Uuid),
    Breaking(Uuid),
    Broken(Uuid),
    Expired(Uuid),
}

/// What the service may do within its documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leeway {
    /// "If a lease expires rather than being explicitly released, a client may need to wait up to one minute before a
    /// new lease can be acquired."
    pub busy_after_expiry: Duration,
    /// A term ends so much after its duration: the service works in whole seconds. Never before it.
    pub term_ends_late_by: Duration,
}

/// The lease of one blob.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    kept: Option<Kept>,
}

/// What the service keeps of the newest lease, until it is released, or the blob is written after its end.
#[derive(Clone, Copy, Debug)]
struct Kept {
    id: Uuid,
    term: Term,
    /// None for an infinite lease.
    ends: Option<Moment>,
    /// Set by a break: when the lease is broken.
    breaks: Option<Moment>,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Available => "available",
            State::Leased(_) => "leased",
            State::Breaking(_) => "breaking",
            State::Broken(_) => "broken",
            State::Expired(_) => "expired",
        }
    }

    /// `x-ms-lease-status`.
    pub fn status(self) -> &'static str {
        match self {
            State::Leased(_) | State::Breaking(_) => "locked",
            State::Available | State::Broken(_) | State::Expired(_) => "unlocked",
        }
    }

    pub fn id(self) -> Option<Uuid> {
        match self {
            State::Available => None,
            State::Leased(id) | State::Breaking(id) | State::Broken(id) | State::Expired(id) => Some(id),
        }
    }
}

impl Lease {
    pub fn state(&self, now: Moment) -> State {
        let Some(kept) = self.kept else { return State::Available };
        match (kept.breaks, kept.ends) {
            (Some(breaks), _) if now < breaks => State::Breaking(kept.id),
            (Some(_), _) => State::Broken(kept.id),
            (None, Some(ends)) if now >= ends => State::Expired(kept.id),
            (None, _) => State::Leased(kept.id),
        }
    }

    /// The term, which is shown while the blob is leased.
    pub fn term(&self, now: Moment) -> Option<Term> {
        let kept = self.kept?;
        matches!(self.state(now), State::Leased(_)).then_some(kept.term)
    }

    pub fn acquire(&mut self, now: Moment, proposed: Uuid, term: Term, leeway: Leeway) -> Result<Uuid, Refused> {
        match self.state(now) {
            State::Leased(id) if id != proposed => return Err(LEASE_ALREADY_PRESENT),
            State::Breaking(id) if id != proposed => return Err(LEASE_ALREADY_PRESENT),
            State::Breaking(_) => return Err(LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED),
            State::Expired(_) if self.is_busy(now, leeway) => return Err(LEASE_ALREADY_PRESENT),
            State::Available | State::Leased(_) | State::Broken(_) | State::Expired(_) => {}
        }
        self.kept = Some(Kept { id: proposed, term, ends: end_of(now, term, leeway), breaks: None });
        Ok(proposed)
    }

    /// A renewal of an expired lease is good as long as the service still keeps its id: a write after the end, or
    /// another lease, has made it forget the id.
    pub fn renew(&mut self, now: Moment, id: Uuid, leeway: Leeway) -> Result<Uuid, Refused> {
        match self.state(now) {
            State::Breaking(kept) | State::Broken(kept) if kept == id => {
                return Err(LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED);
            }
            State::Leased(kept) | State::Expired(kept) if kept == id => {}
            _ => return Err(LEASE_ID_MISMATCH_WITH_LEASE_OPERATION),
        }
        if let Some(kept) = &mut self.kept {
            kept.ends = end_of(now, kept.term, leeway);
        }
        Ok(id)
    }

    /// Extends nothing. If the lease has the proposed id already, the change was made before, whatever `id` is.
    pub fn change(&mut self, now: Moment, id: Uuid, proposed: Uuid) -> Result<Uuid, Refused> {
        match self.state(now) {
            State::Available | State::Broken(_) | State::Expired(_) => {
                return Err(LEASE_NOT_PRESENT_WITH_LEASE_OPERATION);
            }
            State::Breaking(kept) if kept == id => return Err(LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED),
            State::Leased(kept) if kept == id || kept == proposed => {}
            State::Leased(_) | State::Breaking(_) => return Err(LEASE_ID_MISMATCH_WITH_LEASE_OPERATION),
        }
        if let Some(kept) = &mut self.kept {
            kept.id = proposed;
        }
        Ok(proposed)
    }

    pub fn release(&mut self, now: Moment, id: Uuid) -> Result<(), Refused> {
        if self.state(now).id() != Some(id) {
            return Err(LEASE_ID_MISMATCH_WITH_LEASE_OPERATION);
        }
        self.kept = None;
        Ok(())
    }

    /// The time that is left of the lease. Without a period: the rest of the term, and of an infinite lease nothing.
    pub fn break_it(&mut self, now: Moment, period: Option<Duration>) -> Result<Duration, Refused> {
        let state = self.state(now);
        let Some(kept) = &mut self.kept else { return Err(LEASE_NOT_PRESENT_WITH_LEASE_OPERATION) };
        let latest = match state {
            State::Breaking(_) => kept.breaks,
            State::Leased(_) => kept.ends,
            State::Available | State::Broken(_) | State::Expired(_) => Some(now),
        };
        let proposed = period.map(|period| now + period);
        let breaks = match (latest, proposed) {
            (Some(latest), Some(proposed)) => latest.min(proposed),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => now,
        };
        kept.breaks = Some(breaks);
        Ok(breaks.saturating_sub(now))
    }

    /// Whether a write with this lease id, or with none, is good.
    pub fn may_write(&self, now: Moment, id: Option<Uuid>) -> Result<(), Refused> {
        match (self.state(now), id) {
            (State::Leased(_) | State::Breaking(_), None) => Err(LEASE_ID_MISSING),
            (_, None) => Ok(()),
            (_, Some(id)) => self.names(now, id),
        }
    }

    /// Whether a read with this lease id, or with none, is good.
    pub fn may_read(&self, now: Moment, id: Option<Uuid>) -> Result<(), Refused> {
        id.map_or(Ok(()), |id| self.names(now, id))
    }

    /// The blob was written: the id of a lease that has ended is forgotten.
    pub fn written(&mut self, now: Moment) {
        if matches!(self.state(now), State::Broken(_) | State::Expired(_)) {
            self.kept = None;
        }
    }

    fn names(&self, now: Moment, id: Uuid) -> Result<(), Refused> {
        match self.state(now) {
            State::Available => Err(LEASE_NOT_PRESENT_WITH_BLOB_OPERATION),
            State::Leased(kept) | State::Breaking(kept) if kept == id => Ok(()),
            State::Broken(kept) | State::Expired(kept) if kept == id => Err(LEASE_LOST),
            _ => Err(LEASE_ID_MISMATCH_WITH_BLOB_OPERATION),
        }
    }

    fn is_busy(&self, now: Moment, leeway: Leeway) -> bool {
        let ends = self.kept.and_then(|kept| kept.ends);
        ends.is_some_and(|ends| now < ends + leeway.busy_after_expiry)
    }
}

fn end_of(now: Moment, term: Term, leeway: Leeway) -> Option<Moment> {
    match term {
        Term::Fixed(duration) => Some(now + duration + leeway.term_ends_late_by),
        Term::Infinite => None,
    }
}
