//! Renewals. Only one with a payload writes the record.

use super::call::{Call, ROUNDS};
use super::client::Refusal;
use super::metadata::{self, Found};
use crate::types::{Applied, Data, Renew, Renewed, StoreError, StoreErrorKind};

impl Call<'_> {
    /// No condition on the tag: the holder's own writes move it.
    pub(super) async fn renew(&mut self, renew: &Renew) -> Result<Renewed, StoreError> {
        if renew.data.is_some() {
            self.shared.notes.brings(renew.grant, renew.version);
        }
        let answer = self.shared.link.renew(self.name, renew.grant).await;
        match (self.heard(answer)?, &renew.data) {
            (Ok(()), None) => Ok(Renewed::Renewed(None)),
            (Ok(()), Some(data)) => self.set_data(renew, data).await,
            (Err(_), _) => self.view_without(renew.grant).await.map(Renewed::Refused),
        }
    }

    async fn set_data(&mut self, renew: &Renew, data: &Data) -> Result<Renewed, StoreError> {
        let mut known = self.own(renew);
        for _ in 0..ROUNDS {
            let found = match known.take() {
                Some(found) => found,
                None => match self.look().await? {
                    Some(found) if found.carries(renew.grant, renew.token) => found,
                    // The lease was there a moment ago; what has become of it the next renewal tells.
                    _ => return self.view_without(renew.grant).await.map(Renewed::Refused),
                },
            };
            // The record has no version, so only its sender can tell which payload is the newer one, should this call
            // not have been driven for a while.
            if self.shared.notes.is_outdated(renew.grant, renew.version) {
                return Err(self.outdated());
            }
            let pairs = metadata::with_data(&found.pairs, Some(data));
            match self.set_metadata(&found, &pairs, Some(renew.grant)).await? {
                Ok(found) => {
                    self.shared.notes.saw(self.name, found);
                    return Ok(Renewed::Renewed(None));
                }
                Err(Refusal::Moved) => {}
                Err(_) => return self.view_without(renew.grant).await.map(Renewed::Refused),
            }
        }
        Err(self.contended())
    }

    fn outdated(&self) -> StoreError {
        let what = format!("a newer payload of lease {} is on its way and replaces this one", self.name);
        StoreError::new(StoreErrorKind::Contended, Applied::No, what)
    }

    /// The newest write of this grant's own, if it is remembered.
    fn own(&self, renew: &Renew) -> Option<Found> {
        self.shared.notes.take(self.name).flatten().filter(|found| found.carries(renew.grant, renew.token))
    }
}
