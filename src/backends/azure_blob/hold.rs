//! Renewals. Only one with a payload writes the record.

use super::client::Refusal;
use super::metadata::{self, Found};
use super::talk::{ROUNDS, Talk};
use crate::types::{Data, Renew, Renewed, StoreError};

impl Talk<'_> {
    /// No condition on the tag: the holder's own writes move it.
    pub(super) async fn renew(&mut self, renew: &Renew) -> Result<Renewed, StoreError> {
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

    /// The newest write of this grant's own, if it is remembered.
    fn own(&self, renew: &Renew) -> Option<Found> {
        self.shared.notes.take(self.name).filter(|found| found.carries(renew.grant, renew.token))
    }
}
