//! Leases in an Azure Blob container: the service's own blob leases, with the record in the blobs' metadata.

mod call;
mod claim;
mod client;
mod content;
mod credential;
mod error;
mod fenced;
mod list;
mod metadata;
mod names;
mod notes;
mod open;
mod operator;
mod renew;
mod shared_key;
mod token;
mod vacate;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::credential::Credential;
pub use self::fenced::{FencedBlob, FencedBlobBuilder, RaisedBlob};
pub use self::open::AzureBlobStoreBuilder;

use self::call::Call;
use self::client::Link;
use self::error::no_container;
use self::metadata::Found;
use self::notes::Notes;
use crate::store::Store;
use crate::types::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Description, ExpiryJudge, FencingToken, ListPage, Name, Page, Renew,
    Renewed, Revoke, Revoked, StoreError, StoreErrorKind, Timed, Vacate, Vacated, View,
};

const KIND: &str = "azure-blob";

/// The terms that the service gives, in whole seconds.
const SHORTEST_TERM: Duration = Duration::from_secs(15);
const LONGEST_TERM: Duration = Duration::from_secs(60);

/// Leases in an Azure Blob container. Clones share one way to it.
///
/// The service judges expiry: a lease is a native lease of a blob, 15 to 60 seconds long, whose id is the grant. The
/// rest of the record is in the blob's metadata; pairs of the caller's own survive. Blobs are never deleted.
///
/// An acquire makes 3 requests; 2 where this store has last seen the blob free, or 4 if somebody else has used it
/// since; 4 for the first ever of a name. A try that is refused makes 1, or 2 where this store has last seen the blob
/// free; a renewal 1, and 2 with a payload; a release 1, and 2 when it closes.
#[derive(Clone)]
pub struct AzureBlobStore {
    shared: Arc<Shared>,
}

struct Shared {
    link: Link,
    notes: Notes,
}

impl AzureBlobStore {
    fn call<'a>(&'a self, name: &'a Name) -> Call<'a> {
        Call::new(&self.shared, name)
    }

    async fn renew_one(&self, renew: &Renew) -> Answer<Renewed> {
        let mut call = self.call(&renew.name);
        let renewed = call.renew(renew).await;
        call.end(renewed)
    }

    async fn end_grant(&self, name: &Name, token: u64, force: bool) -> Answer<Revoked> {
        let mut call = self.call(name);
        let revoked = call.revoke(token, force).await;
        call.end(revoked)
    }
}

#[async_trait]
impl Store for AzureBlobStore {
    fn describe(&self) -> Description {
        Description {
            ttl: SHORTEST_TERM..=LONGEST_TERM,
            grain: Duration::from_secs(1),
            judge: ExpiryJudge::Store,
            has_store_time: true,
            ..Description::new(KIND, self.shared.link.place.container.clone())
        }
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        check(claim)?;
        let mut call = self.call(&claim.name);
        let claimed = call.claim(claim).await;
        call.end(claimed)
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let mut answers = Vec::with_capacity(renewals.len());
        for renew in renewals {
            answers.push(self.renew_one(renew).await);
        }
        answers
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        if vacate.burn {
            token_in_range(vacate.token)?;
        }
        let mut call = self.call(&vacate.name);
        let vacated = call.vacate(vacate).await;
        call.end(vacated)
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.end_grant(&revoke.name, revoke.token, revoke.force).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let revoked = self.end_grant(&ask.name, ask.step_down.token, false).await?;
        Ok(revoked.map(|revoked| match revoked {
            Revoked::Revoked | Revoked::AlreadyRevoked => Asked::Asked,
            Revoked::Refused(view) => Asked::Refused(view),
        }))
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let mut call = self.call(name);
        let view = call.look().await.map(|found| {
            let view = found.as_ref().map_or_else(View::absent, Found::view);
            self.shared.notes.saw(name, found);
            view
        });
        call.end(view)
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        let link = &self.shared.link;
        let marker = page.as_ref().map(|page| page.0.as_str());
        let Timed { value, date_ms } = link.list(&names::blobs_start_with(prefix), marker).await?;
        let body = value.map_err(|_| no_container(&link.place).at(date_ms))?;
        let page = list::page(&body, prefix).ok_or_else(|| {
            let what = "Azure Blob List Blobs: the answer could not be read; try again later";
            StoreError::new(StoreErrorKind::Unavailable, Applied::No, what).at(date_ms)
        })?;
        Ok(Timed::dated(page, date_ms))
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        let shared = Shared { link: self.shared.link.isolated(), notes: Notes::default() };
        Some(Arc::new(Self { shared: Arc::new(shared) }))
    }
}

impl fmt::Debug for AzureBlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureBlobStore").field("container", &self.shared.link.place.container).finish_non_exhaustive()
    }
}

/// What the service would refuse, or would round, is never sent.
fn check(claim: &Claim) -> Result<(), StoreError> {
    token_in_range(claim.token)?;
    let ttl = Duration::from_millis(claim.ttl_ms);
    if !(SHORTEST_TERM..=LONGEST_TERM).contains(&ttl) || ttl.subsec_nanos() != 0 {
        return Err(invalid(format!("a term on Azure Blob is 15 to 60 whole seconds, not {ttl:?}")));
    }
    Ok(())
}

fn token_in_range(token: u64) -> Result<(), StoreError> {
    match token {
        1..=FencingToken::MAX => Ok(()),
        _ => Err(invalid(format!("the token {token} is not in 1 to {}", FencingToken::MAX))),
    }
}

fn invalid(what: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Applied::No, what)
}
