//! Claims: lease the blob exactly as it was found, then write the record under the lease.
//!
//! The lease is asked for with the tag of the blob that was looked at. So the token that was compared is still the
//! stored one, and a late copy of the request cannot lease a blob that somebody has held, released or burnt since: each
//! of them has moved the tag. A hand-over changes the lease's id instead, and renews it, because a change extends nothing.

use super::call::{Call, ROUNDS, halfway};
use super::client::Refusal;
use super::metadata::{self, Found, LeaseState};
use crate::protocol::broken::Broken;
use crate::types::{Claim, Claimed, Expect, Grant, Record, StoreError, View};

/// What a blob that was looked at means for a claim.
enum Ruling {
    /// It carries this very claim: an earlier copy was applied.
    Mine,
    /// Ask for its lease.
    Lease,
    /// Change the id of its lease from this one.
    TakeUp(Grant),
    Refuse,
}

/// How a round ends that does not end the call.
enum Round {
    Over(Claimed),
    /// The blob has changed meanwhile: look again.
    Again,
}

impl Call<'_> {
    pub(super) async fn claim(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        // An earlier copy of this body, whose answer was lost, may have got the lease.
        let in_doubt = self.shared.notes.is_in_doubt(claim.grant);
        if self.shared.notes.is_given_up(claim.grant) {
            // A release of this grant is on its way, and must not find it granted.
            return self.view_without(claim.grant).await.map(Claimed::Refused);
        }
        let mut known = self.shared.notes.take(self.name).filter(|seen| !in_doubt && serves(seen.as_ref(), claim));
        for _ in 0..ROUNDS {
            let seen = match known.take() {
                Some(seen) => seen,
                None => self.look().await?,
            };
            let found = match seen {
                Some(found) => found,
                None if claim.expect != Expect::Vacant => return Ok(Claimed::Refused(View::absent())),
                // Created free, with token 0: that grants nothing yet.
                None => match self.create(metadata::fresh(0)).await? {
                    Some(found) => found,
                    None => continue,
                },
            };
            let ruling = rule(&found, claim, in_doubt);
            if matches!(ruling, Ruling::Lease | Ruling::TakeUp(_)) {
                self.check_size(&metadata::claimed(&found.pairs, claim))?;
            }
            let round = match ruling {
                Ruling::Mine => Round::Over(self.confirmed(claim, found)),
                Ruling::Refuse => Round::Over(self.refused(claim, found)),
                Ruling::Lease => self.lease(claim, found, in_doubt).await?,
                Ruling::TakeUp(from) => self.take_up(claim, from, found, in_doubt).await?,
            };
            if let Round::Over(claimed) = round {
                return Ok(claimed);
            }
        }
        Err(self.contended())
    }

    async fn lease(&mut self, claim: &Claim, found: Found, in_doubt: bool) -> Result<Round, StoreError> {
        self.shared.notes.proposes(claim.grant, &found);
        let ttl_s = claim.ttl_ms / 1000;
        let answer = self.shared.link.acquire(self.name, claim.grant, ttl_s, &found.tag).await;
        match self.heard(answer)? {
            Ok(()) => self.write(claim, found, None).await,
            // Not this copy; an earlier one may be the reason that the tag has moved, and a look tells.
            Err(Refusal::Moved | Refusal::NoBlob | Refusal::NoContainer) => {
                if !in_doubt {
                    self.shared.notes.settled(claim.grant);
                }
                Ok(Round::Again)
            }
            Err(_) => {
                self.shared.notes.settled(claim.grant);
                self.view_without(claim.grant).await.map(|view| Round::Over(Claimed::Refused(view)))
            }
        }
    }

    async fn take_up(&mut self, claim: &Claim, from: Grant, found: Found, in_doubt: bool) -> Result<Round, StoreError> {
        self.shared.notes.asks_to_take_up(claim.grant);
        let answer = self.shared.link.change(self.name, from, claim.grant).await;
        if self.heard(answer)?.is_err() && !in_doubt {
            self.shared.notes.settled(claim.grant);
            let view = self.view_without(claim.grant).await?;
            return Ok(Round::Over(Claimed::Refused(view)));
        }
        if Broken::AzureHandoverWithoutRenewal.on() {
            return self.write(claim, found, Some(from)).await;
        }
        // Also where an earlier copy has changed it: this names my id, and its success says that the lease is mine.
        let answer = self.shared.link.renew(self.name, claim.grant).await;
        if self.heard(answer).map_err(halfway)?.is_err() {
            return self.give_up(claim, None).await;
        }
        // A renewal is for as long as the lease was asked for first. Asked for again by its own id it is for longer, or
        // for less.
        if found.record().is_ok_and(|record| record.ttl_ms != Some(claim.ttl_ms)) {
            let answer = self.shared.link.acquire(self.name, claim.grant, claim.ttl_ms / 1000, &found.tag).await;
            if self.heard(answer).map_err(halfway)?.is_err() {
                return self.give_up(claim, Some(found)).await;
            }
        }
        self.write(claim, found, Some(from)).await
    }

    /// The lease is ours. Only the record is missing. `from` is the grant that was handed over, if it was.
    async fn write(&mut self, claim: &Claim, mut found: Found, from: Option<Grant>) -> Result<Round, StoreError> {
        for _ in 0..ROUNDS {
            let pairs = metadata::claimed(&found.pairs, claim);
            match self.set_metadata(&found, &pairs, Some(claim.grant)).await.map_err(halfway)? {
                Ok(found) => return Ok(Round::Over(self.confirmed(claim, found))),
                Err(Refusal::Moved) => match self.look().await.map_err(halfway)? {
                    // An earlier copy of the same write was late.
                    Some(now) if matches!(rule(&now, claim, true), Ruling::Mine) => {
                        return Ok(Round::Over(self.confirmed(claim, now)));
                    }
                    // A payload of whoever has handed it over has come late, before the lease had another id.
                    Some(now) if from.is_some_and(|from| is_handed(&now, from, claim)) => found = now,
                    _ => return self.give_up(claim, None).await,
                },
                Err(_) => return self.give_up(claim, Some(found)).await,
            }
        }
        self.give_up(claim, None).await
    }

    /// The lease was had and is of no use. Where the blob may still have the tag under which it was asked for, that is
    /// moved: a late copy of the request must not get it again for nobody.
    async fn give_up(&mut self, claim: &Claim, unmoved: Option<Found>) -> Result<Round, StoreError> {
        self.shared.notes.gives_up(claim.grant);
        self.give_back(claim.grant).await.map_err(halfway)?;
        if let Some(found) = unmoved {
            let pairs = metadata::burnt(&found.pairs, claim.token);
            let moved = self.set_metadata(&found, &pairs, None).await.map_err(halfway)?;
            if matches!(moved, Err(Refusal::LeaseIdMissing)) {
                // A rival's lease is in the way, and may end unused: a clean-up is owed.
                return Err(halfway(self.contended()));
            }
        }
        let view = self.view_without(claim.grant).await.map_err(halfway)?;
        self.shared.notes.settled(claim.grant);
        Ok(Round::Over(Claimed::Refused(view)))
    }

    fn confirmed(&self, claim: &Claim, found: Found) -> Claimed {
        self.shared.notes.settled(claim.grant);
        self.shared.notes.saw(self.name, found);
        Claimed::Granted
    }

    fn refused(&self, claim: &Claim, found: Found) -> Claimed {
        self.shared.notes.settled(claim.grant);
        let view = found.view();
        self.shared.notes.saw(self.name, found);
        Claimed::Refused(view)
    }
}

/// Whether what was seen earlier may be claimed without looking again: there was no blob, or it was free, and the tag
/// tells whether it has been written since. (Not whether it has been leased; but then the lease is refused.)
fn serves(seen: Option<&Found>, claim: &Claim) -> bool {
    match seen {
        Some(found) => !found.state.is_held() && matches!(rule(found, claim, false), Ruling::Lease),
        None => claim.expect == Expect::Vacant,
    }
}

fn rule(found: &Found, claim: &Claim, in_doubt: bool) -> Ruling {
    let Ok(record) = found.record() else { return Ruling::Refuse };
    if record.grant == Some(claim.grant) && record.token == claim.token {
        return if found.state == LeaseState::Leased { Ruling::Mine } else { Ruling::Refuse };
    }
    let below = record.token < claim.token || (Broken::TokenNotAbove.on() && record.token == claim.token);
    if !below {
        return Ruling::Refuse;
    }
    match &claim.expect {
        Expect::Handed(from) => handed(found, &record, *from),
        Expect::Vacant if record.closed.is_some() => Ruling::Refuse,
        Expect::Vacant => lease_if(matches!(found.state, LeaseState::Available | LeaseState::Broken), found, in_doubt),
        Expect::Expired(version) if version.as_tag() != Some(&*found.tag) => Ruling::Refuse,
        Expect::Expired(_) => {
            let opened = record.closed.is_some() && !found.state.is_held();
            let over = matches!(found.state, LeaseState::Expired | LeaseState::Broken);
            lease_if(opened || over, found, in_doubt)
        }
    }
}

/// A blob that is leased may be leased by an earlier copy of the same claim; asking again with the same id tells.
fn lease_if(free: bool, found: &Found, in_doubt: bool) -> Ruling {
    if free || (in_doubt && found.state == LeaseState::Leased) { Ruling::Lease } else { Ruling::Refuse }
}

fn is_handed(found: &Found, from: Grant, claim: &Claim) -> bool {
    found.record().is_ok_and(|record| record.grant == Some(from) && record.token < claim.token)
}

fn handed(found: &Found, record: &Record, from: Grant) -> Ruling {
    match found.state {
        LeaseState::Leased if record.grant == Some(from) => Ruling::TakeUp(from),
        _ => Ruling::Refuse,
    }
}
