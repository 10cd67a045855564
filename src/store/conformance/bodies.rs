//! The bodies that the cases send, and what is left of a record when one was accepted.

use crate::time::{Clock, SystemClock};
use crate::types::{Ask, Claim, Closed, Data, Grant, Label, Name, Record, Renew, Revoke, StepDown, Vacate};

/// A grant that nobody has.
pub(super) fn new_grant() -> Grant {
    Grant::from_bits(SystemClock.random())
}

pub(super) fn data(bytes: &[u8]) -> Option<Data> {
    Some(Data::new(bytes).expect("the suite's payloads are small"))
}

pub(super) fn label(text: &str) -> Option<Label> {
    Some(Label::new(text).expect("the suite's labels are short"))
}

/// What an accepted claim leaves.
pub(super) fn record_of(claim: &Claim) -> Record {
    Record {
        token: claim.token,
        grant: Some(claim.grant),
        version: Some(1),
        holder: claim.holder.clone(),
        ttl_ms: Some(claim.ttl_ms),
        expires_at_ms: claim.expires_at_ms,
        set: claim.set,
        data: claim.data.clone(),
        ..Record::new()
    }
}

/// What a release leaves of a held record.
pub(super) fn freed(held: &Record) -> Record {
    Record { grant: None, expires_at_ms: None, asked: None, ..held.clone() }
}

/// How a closing release or burn leaves the record closed.
pub(super) fn closed_by(vacate: &Vacate) -> Option<Closed> {
    let close = vacate.close.as_ref()?;
    Some(Closed { for_ms: Some(close.for_ms), until_ms: close.until_ms, by: Some(vacate.token) })
}

/// A renewal that brings neither an end nor a payload.
pub(super) fn renewal(claim: &Claim, version: u64) -> Renew {
    Renew {
        name: claim.name.clone(),
        token: claim.token,
        grant: claim.grant,
        version,
        ttl_ms: claim.ttl_ms,
        expires_at_ms: None,
        holder: claim.holder.clone(),
        data: None,
        set: claim.set,
    }
}

pub(super) fn revoke(name: &Name, token: u64) -> Revoke {
    Revoke { name: name.clone(), token, fresh: new_grant(), force: false }
}

pub(super) fn force(name: &Name, token: u64) -> Revoke {
    Revoke { force: true, ..revoke(name, token) }
}

pub(super) fn ask(name: &Name, token: u64) -> Ask {
    Ask { name: name.clone(), step_down: StepDown { token, grace_ms: 12_345, by: label("another") } }
}
