//! Which verb a record accepts, and what it leaves. Every store does exactly this, in its own words.
//!
//! No write is unconditional (I8), and none lowers a stored token (I5).

use super::broken::Broken;
use crate::types::{
    Ask, Claim, Closed, Expect, Grant, Record, Renew, Revoke, Revoked, Unreadable, Vacate, Version, View,
};

/// What a store finds under a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    /// Nothing.
    Absent,
    /// A record.
    Record(Record),
    /// Something that must not be touched: no verb is accepted.
    Unreadable(Unreadable),
}

/// What becomes of a verb.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Accepted: write this.
    Write(Record),
    /// An earlier copy of the same body was accepted and its effect still stands: answer as then, write nothing.
    Already,
    /// Refused: write nothing, answer what is there.
    Refuse,
}

impl Stored {
    /// What a store whose clients judge expiry answers of it.
    pub fn view(&self) -> View {
        match self {
            Self::Absent => View::absent(),
            Self::Record(record) => View::of(record.clone()),
            Self::Unreadable(reason) => View::unreadable(reason.clone()),
        }
    }

    fn token(&self) -> u64 {
        match self {
            Self::Record(record) => record.token,
            _ => 0,
        }
    }

    fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }
}

/// A claim (protocol section 2): the token is below, and the one expectation holds.
pub fn claim(stored: &Stored, claim: &Claim) -> Outcome {
    if let Stored::Unreadable(_) = stored {
        return Outcome::Refuse;
    }
    if stored.record().is_some_and(|r| r.grant == Some(claim.grant) && r.token == claim.token) {
        return Outcome::Already;
    }
    let below = stored.token() < claim.token || (Broken::TokenNotAbove.on() && stored.token() == claim.token);
    if below && expected(stored, &claim.expect) { Outcome::Write(claimed(stored, claim)) } else { Outcome::Refuse }
}

/// A renewal: my grant, and no version above mine.
pub fn renew(stored: &Stored, renew: &Renew) -> Outcome {
    let Some(record) = stored.record() else { return Outcome::Refuse };
    let mine = record.grant == Some(renew.grant) || (Broken::RenewalUnconditional.on() && record.grant.is_some());
    let in_order = record.version.unwrap_or(0) <= renew.version || Broken::RenewalWithoutVersionOrder.on();
    if !(mine && in_order) {
        return Outcome::Refuse;
    }
    let kept = if Broken::RenewalKeepsOldExpiresAt.on() { record.expires_at_ms } else { None };
    Outcome::Write(Record {
        grant: Some(renew.grant),
        version: Some(renew.version),
        expires_at_ms: renew.expires_at_ms.or(kept),
        data: renew.data.clone().or_else(|| record.data.clone()),
        ttl_ms: if Broken::RenewalShortensTtl.on() { Some(renew.ttl_ms) } else { record.ttl_ms },
        ..record.clone()
    })
}

/// A release or, with `burn`, the clean-up of a claim.
pub fn vacate(stored: &Stored, vacate: &Vacate) -> Outcome {
    match stored {
        Stored::Unreadable(_) => Outcome::Refuse,
        Stored::Absent if vacate.burn => Outcome::Write(vacated(&Record::default(), vacate)),
        Stored::Absent => Outcome::Refuse,
        Stored::Record(record) if vacatable(record, vacate) => Outcome::Write(vacated(record, vacate)),
        Stored::Record(_) => Outcome::Refuse,
    }
}

/// A revocation: held with the named token and not yet revoked; or, forced, held with it.
pub fn revoke(stored: &Stored, revoke: &Revoke) -> Outcome {
    let Some(record) = stored.record() else { return Outcome::Refuse };
    let named = record.token == revoke.token;
    if revoke.force {
        return match record.grant {
            Some(_) if named => {
                let freed = Record { grant: None, expires_at_ms: None, asked: None, revoked: true, ..record.clone() };
                Outcome::Write(freed)
            }
            _ => Outcome::Refuse,
        };
    }
    if named && record.revoked && record.grant == Some(revoke.fresh) {
        return Outcome::Already;
    }
    if named && record.grant.is_some() && !record.revoked {
        Outcome::Write(Record { grant: Some(revoke.fresh), revoked: true, ..record.clone() })
    } else {
        Outcome::Refuse
    }
}

/// What a refused revocation is told.
pub fn revoke_refused(stored: &Stored, revoke: &Revoke) -> Revoked {
    match stored.record() {
        Some(record) if record.revoked && record.token == revoke.token && record.grant.is_some() => {
            Revoked::AlreadyRevoked
        }
        _ => Revoked::Refused(stored.view()),
    }
}

/// An ask: held with the named token.
pub fn ask(stored: &Stored, ask: &Ask) -> Outcome {
    let named = |record: &Record| record.token == ask.step_down.token;
    match stored.record() {
        Some(record) if record.grant.is_some() && (named(record) || Broken::MajorityWishForAnyGrant.on()) => {
            let bump = u64::from(Broken::AskBumpsVersion.on());
            let version = record.version.map(|version| version + bump);
            Outcome::Write(Record { asked: Some(ask.step_down.clone()), version, ..record.clone() })
        }
        _ => Outcome::Refuse,
    }
}

fn expected(stored: &Stored, expect: &Expect) -> bool {
    match (expect, stored) {
        (_, Stored::Unreadable(_)) => false,
        (Expect::Vacant, Stored::Absent) => true,
        (Expect::Vacant, Stored::Record(record)) => record.grant.is_none() && record.closed.is_none(),
        (Expect::Expired(version), Stored::Record(record)) => is_write(record, version),
        (Expect::Handed(grant), Stored::Record(record)) => record.grant == Some(*grant),
        (_, Stored::Absent) => false,
    }
}

fn is_write(record: &Record, version: &Version) -> bool {
    let now = Version::of(record);
    match (version.as_write(), now.as_write()) {
        (Some((_, _, a)), Some((_, _, b))) if Broken::TakeoverByCounterOnly.on() => a == b,
        (Some((_, None, a)), Some((_, None, b))) if Broken::ClosedIdentityWithoutToken.on() => a == b,
        _ => *version == now,
    }
}

fn claimed(stored: &Stored, claim: &Claim) -> Record {
    let stale = if Broken::ClaimKeepsData.on() { stored.record().and_then(|r| r.data.clone()) } else { None };
    Record {
        token: claim.token,
        grant: Some(claim.grant),
        version: Some(1),
        holder: claim.holder.clone(),
        ttl_ms: Some(claim.ttl_ms),
        expires_at_ms: claim.expires_at_ms,
        closed: None,
        revoked: false,
        asked: None,
        set: claim.set,
        data: claim.data.clone().or(stale),
    }
}

fn vacatable(record: &Record, vacate: &Vacate) -> bool {
    if Broken::CleanupByName.on() && vacate.burn {
        return true;
    }
    let mine = |grant: Option<Grant>| grant == Some(vacate.grant);
    mine(record.grant) || (vacate.burn && record.grant.is_none() && record.token < vacate.token)
}

fn vacated(record: &Record, vacate: &Vacate) -> Record {
    let burnt = vacate.burn && !Broken::CleanupWithoutBurn.on();
    let token = if burnt { vacate.token } else { record.token };
    let freed = Record { token, grant: None, expires_at_ms: None, asked: None, ..record.clone() };
    let by = Some(vacate.token);
    match &vacate.close {
        Some(close) => Record {
            closed: Some(Closed { for_ms: Some(close.for_ms), until_ms: close.until_ms, by }),
            data: match &close.data {
                None if Broken::ClosingKeepsPayload.on() => freed.data.clone(),
                data => data.clone(),
            },
            ..freed
        },
        None if vacate.burn && Broken::BurnClearsClosed.on() => Record { closed: None, ..freed },
        None => freed,
    }
}
