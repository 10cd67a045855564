//! One verb's requests about one blob, and what the verbs share.

use super::Shared;
use super::client::{Refusal, Said};
use super::content::Kept;
use super::error::no_container;
use super::metadata::{self, Found, LeaseState, Pairs};
use crate::types::{Answer, Applied, Grant, Name, StoreError, StoreErrorKind, Timed, View};

/// How often one call looks again after others have written in between.
pub(super) const ROUNDS: u32 = 4;

/// The requests of one call about one blob. Keeps the newest time that the service has told.
pub(super) struct Call<'a> {
    pub(super) shared: &'a Shared,
    pub(super) name: &'a Name,
    date_ms: Option<u64>,
}

impl<'a> Call<'a> {
    pub(super) fn new(shared: &'a Shared, name: &'a Name) -> Self {
        Self { shared, name, date_ms: None }
    }

    /// The end of the call.
    pub(super) fn end<T>(self, value: Result<T, StoreError>) -> Answer<T> {
        let date_ms = self.date_ms;
        value.map(|value| Timed::dated(value, date_ms)).map_err(|error| {
            let date_ms = error.date_ms.or(date_ms);
            error.at(date_ms)
        })
    }

    /// Takes in the answer of one request.
    pub(super) fn heard<T>(&mut self, answer: Answer<T>) -> Result<T, StoreError> {
        let answer = answer?;
        self.date_ms = answer.date_ms.or(self.date_ms);
        Ok(answer.value)
    }

    /// What is there, for whoever wants to hold it; `None` is no blob. Without a container nothing can be held.
    pub(super) async fn look(&mut self) -> Result<Option<Found>, StoreError> {
        let answer = self.shared.link.head(self.name).await.map_err(only_read);
        match self.heard(answer)? {
            Ok(found) => Ok(Some(found)),
            Err(Refusal::NoContainer) => Err(no_container(&self.shared.link.place)),
            Err(_) => Ok(None),
        }
    }

    /// What is there, for whoever has just been told that the lease of his grant is not there: even if the metadata
    /// still name it. A container that is gone has taken the record with it.
    pub(super) async fn view_without(&mut self, grant: Grant) -> Result<View, StoreError> {
        let answer = self.shared.link.head(self.name).await.map_err(only_read);
        match self.heard(answer)? {
            Ok(found) => Ok(found.view_without(grant)),
            Err(_) => Ok(View::absent()),
        }
    }

    /// What the service would refuse is not sent.
    pub(super) fn check_size(&self, pairs: &Pairs) -> Result<(), StoreError> {
        let (all, foreign) = metadata::size(pairs);
        if all <= metadata::LARGEST {
            return Ok(());
        }
        let what = format!(
            "the blob of lease {} would have {all} bytes of metadata, and the service takes {}; {foreign} of them are \
             pairs of others: remove some of these, or store a smaller payload",
            self.name,
            metadata::LARGEST
        );
        Err(StoreError::new(StoreErrorKind::Invalid, Applied::No, what))
    }

    pub(super) async fn set_metadata(
        &mut self,
        found: &Found,
        pairs: &Pairs,
        lease: Option<Grant>,
    ) -> Result<Said<Found>, StoreError> {
        self.check_size(pairs)?;
        let answer = self.shared.link.set_metadata(self.name, pairs, &found.tag, lease).await;
        let state = if lease.is_some() { LeaseState::Leased } else { LeaseState::Available };
        Ok(self.heard(answer)?.map(|tag| Found { tag, state, pairs: pairs.clone(), kept: found.kept.clone() }))
    }

    /// Creates the blob. `None`: it is there already.
    pub(super) async fn create(&mut self, pairs: Pairs) -> Result<Option<Found>, StoreError> {
        let answer = self.shared.link.create(self.name, &pairs).await;
        match self.heard(answer)? {
            Ok(tag) => Ok(Some(Found { tag, state: LeaseState::Available, pairs, kept: Kept::default() })),
            // "No such blob" of a blob that was to be created is about what is above it.
            Err(Refusal::NoContainer | Refusal::NoBlob) => Err(no_container(&self.shared.link.place)),
            Err(_) => Ok(None),
        }
    }

    /// Gives the lease with this id back. Whether it was there.
    pub(super) async fn give_back(&mut self, grant: Grant) -> Result<bool, StoreError> {
        let answer = self.shared.link.release(self.name, grant).await;
        Ok(self.heard(answer)?.is_ok())
    }

    /// Others have written so often in between that this call makes an end.
    pub(super) fn contended(&self) -> StoreError {
        let what = format!("others keep writing the blob of lease {}; try again", self.name);
        StoreError::new(StoreErrorKind::Contended, Applied::No, what)
    }
}

/// Of a request that follows one that was applied: the whole may be applied, whatever has become of its end.
pub(super) fn halfway(error: StoreError) -> StoreError {
    StoreError { applied: Applied::Unknown, ..error }
}

/// Of a look: without an answer nothing of the call is applied that was not before.
pub(super) fn only_read(error: StoreError) -> StoreError {
    StoreError { applied: Applied::No, ..error }
}
