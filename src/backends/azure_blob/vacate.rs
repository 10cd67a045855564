//! Releases, plain and closing, and the clean-up of claims that were given up.

use super::call::{Call, ROUNDS, halfway};
use super::client::Refusal;
use super::error::no_container;
use super::metadata::{self, Found, LeaseState, Pairs};
use crate::protocol::broken::Broken;
use crate::types::{Close, Grant, StoreError, Vacate, Vacated, View};

impl Call<'_> {
    pub(super) async fn vacate(&mut self, vacate: &Vacate) -> Result<Vacated, StoreError> {
        let vacated = match (vacate.burn, &vacate.close) {
            (true, _) => self.burn(vacate).await?,
            (false, None) => self.release(vacate).await?,
            (false, Some(close)) => self.close(vacate, close).await?,
        };
        self.shared.notes.settled(vacate.grant);
        Ok(vacated)
    }

    async fn release(&mut self, vacate: &Vacate) -> Result<Vacated, StoreError> {
        let known = self.known(vacate.grant);
        if self.give_back(vacate.grant).await? {
            // The next claim of this client need not look: the tag tells whether anybody has written since.
            if let Some(found) = known {
                self.shared.notes.saw(self.name, Found { state: LeaseState::Available, ..found });
            }
            return Ok(Vacated::Vacated);
        }
        self.view_without(vacate.grant).await.map(Vacated::Refused)
    }

    /// Closes the record under the lease, then gives the lease back.
    async fn close(&mut self, vacate: &Vacate, close: &Close) -> Result<Vacated, StoreError> {
        let mut known = self.known(vacate.grant);
        for _ in 0..ROUNDS {
            let found = match known.take() {
                Some(found) => found,
                None => match self.look().await? {
                    Some(found) if found.carries(vacate.grant, vacate.token) && found.state.is_held() => found,
                    _ => return self.view_without(vacate.grant).await.map(Vacated::Refused),
                },
            };
            let pairs = metadata::closed(&found.pairs, close, vacate.token);
            match self.set_metadata(&found, &pairs, Some(vacate.grant)).await? {
                Ok(_) => {
                    // Recorded; whether the lease is given back now or runs out, nobody claims before the time is over.
                    self.give_back(vacate.grant).await.map_err(halfway)?;
                    return Ok(Vacated::Vacated);
                }
                // By a payload of ours that came late.
                Err(Refusal::Moved) => {}
                Err(_) => return self.view_without(vacate.grant).await.map(Vacated::Refused),
            }
        }
        Err(self.contended())
    }

    /// Raises the token of a blob that nobody holds, which moves its tag: no late copy of the claim can lease it then.
    /// A blob that is leased by the claim itself is freed first.
    async fn burn(&mut self, vacate: &Vacate) -> Result<Vacated, StoreError> {
        if Broken::AzureCleanupWithoutBurn.on() || Broken::CleanupWithoutBurn.on() {
            return self.release(vacate).await;
        }
        let mut asked_of = self.shared.notes.asked_of(vacate.grant);
        let mut freed = false;
        for _ in 0..ROUNDS {
            let first = asked_of.is_some();
            let found = match asked_of.take() {
                Some(found) => found,
                None => match self.look().await? {
                    Some(found) => found,
                    None => match self.create(closed_if(metadata::fresh(vacate.token), vacate)).await? {
                        Some(_) => return Ok(Vacated::Vacated),
                        None => continue,
                    },
                },
            };
            let Ok(record) = found.record() else { return Ok(Vacated::Refused(found.view())) };
            if !first {
                if found.state.is_held() {
                    if self.give_back(vacate.grant).await? {
                        freed = true;
                    } else if let Some(view) = self.view_of_another(vacate).await? {
                        return Ok(Vacated::Refused(view));
                    }
                    continue;
                }
                let mine = record.grant == Some(vacate.grant) && (freed || found.state == LeaseState::Expired);
                if record.token > vacate.token || (record.token == vacate.token && !mine) {
                    return Ok(Vacated::Refused(found.view()));
                }
                if mine && vacate.close.is_none() && found.state != LeaseState::Expired {
                    return Ok(Vacated::Vacated);
                }
            }
            let pairs = closed_if(metadata::burnt(&found.pairs, vacate.token), vacate);
            match self.set_metadata(&found, &pairs, None).await? {
                Ok(_) => return Ok(Vacated::Vacated),
                // The tag that the claim asked for is gone, so no copy of it can lease the blob any more; one that
                // has leased it before is freed.
                Err(Refusal::Moved) if first && vacate.close.is_none() => {
                    self.give_back(vacate.grant).await?;
                    return Ok(Vacated::Vacated);
                }
                Err(Refusal::NoContainer) => return Err(no_container(&self.shared.link.place)),
                // Leased, moved or gone meanwhile: look again.
                Err(_) => {}
            }
        }
        Err(self.contended())
    }

    /// What is there, unless it is the claim itself, of which a late copy has got in since the last look.
    async fn view_of_another(&mut self, vacate: &Vacate) -> Result<Option<View>, StoreError> {
        Ok(match self.look().await? {
            Some(found) if found.state.is_held() && found.carries(vacate.grant, vacate.token) => None,
            Some(found) => Some(found.view_without(vacate.grant)),
            None => Some(View::absent()),
        })
    }

    fn known(&self, grant: Grant) -> Option<Found> {
        let found = self.shared.notes.take(self.name).flatten()?;
        found.record().is_ok_and(|record| record.grant == Some(grant)).then_some(found)
    }
}

/// For a majority's closing release, which burns the members that it did not hold.
fn closed_if(pairs: Pairs, vacate: &Vacate) -> Pairs {
    match &vacate.close {
        Some(close) => metadata::closed(&pairs, close, vacate.token),
        None => pairs,
    }
}
