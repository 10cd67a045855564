//! Content in the lease's own blob, which the service itself guards: it refuses whoever does not hold the lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_core::http::headers::Headers;
use azure_core::http::{Method, Request, Url};

use super::call::{Call, ROUNDS, only_read};
use super::client::{Link, Refusal, Said, header, insert_pairs};
use super::error::Op;
use super::metadata::{Found, LeaseState, Pairs};
use super::{AzureBlobStore, KIND};
use crate::types::{Answer, Error, ErrorKind, Grant, Operation, Proof, StoreError};

/// What a blob has besides content and metadata, and would lose by `Put Blob`, as headers of the next one.
/// <https://learn.microsoft.com/rest/api/storageservices/put-blob>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) headers: BTreeMap<&'static str, String>,
    /// An append or page blob: `Put Blob` would make another kind of blob of it.
    pub(super) is_no_block_blob: bool,
}

/// A header of an answer, and the one of a request that sets it.
const KEPT: [(&str, &str); 5] = [
    ("content-type", "x-ms-blob-content-type"),
    ("content-encoding", "x-ms-blob-content-encoding"),
    ("content-language", "x-ms-blob-content-language"),
    ("content-disposition", "x-ms-blob-content-disposition"),
    ("cache-control", "x-ms-blob-cache-control"),
];
const TIER: &str = "x-ms-access-tier";

impl Kept {
    /// Of the answer to a HEAD.
    pub(super) fn of(headers: &Headers) -> Self {
        let kept = KEPT.into_iter().filter_map(|(of, to)| Some((to, header(headers, of)?.to_owned())));
        // A tier that is inferred follows the account's, as before.
        let tier = header(headers, TIER).filter(|_| header(headers, "x-ms-access-tier-inferred") != Some("true"));
        Self {
            headers: kept.chain(tier.map(|tier| (TIER, tier.to_owned()))).collect(),
            is_no_block_blob: header(headers, "x-ms-blob-type").is_some_and(|kind| kind != "BlockBlob"),
        }
    }
}

/// What a write of content depends on.
#[derive(Clone, Copy)]
pub(super) enum Condition<'a> {
    /// There is no blob.
    Absent,
    /// The blob has this tag.
    Tag(&'a str),
    /// The blob has this tag, and is leased under this id.
    Lease(&'a str, Grant),
}

impl Link {
    /// The content, if the blob has this tag or is leased under this id.
    pub(super) async fn get_at(&self, blob: Url, tag: Option<&str>, lease: Option<Grant>) -> Answer<Said<Vec<u8>>> {
        let mut request = Request::new(blob, Method::Get);
        if let Some(tag) = tag {
            request.insert_header("if-match", tag.to_owned());
        }
        if let Some(lease) = lease {
            request.insert_header("x-ms-lease-id", lease.to_text());
        }
        let reply = self.send(Op::GetBlob, request).await?;
        Ok(reply.map(|response| response.into_body().as_ref().to_vec()))
    }

    /// Replaces the content, and with it all metadata and all that is kept. The new tag.
    pub(super) async fn put_at(
        &self,
        blob: Url,
        content: &[u8],
        pairs: &Pairs,
        kept: &Kept,
        on: Condition<'_>,
    ) -> Answer<Said<Arc<str>>> {
        let mut request = Request::new(blob, Method::Put);
        request.insert_header("x-ms-blob-type", "BlockBlob");
        for (name, value) in &kept.headers {
            request.insert_header(*name, value.clone());
        }
        insert_pairs(&mut request, pairs);
        let op = match on {
            Condition::Absent => {
                request.insert_header("if-none-match", "*");
                Op::PutBlob
            }
            Condition::Tag(tag) => {
                request.insert_header("if-match", tag.to_owned());
                Op::PutContent
            }
            Condition::Lease(tag, lease) => {
                request.insert_header("if-match", tag.to_owned());
                request.insert_header("x-ms-lease-id", lease.to_text());
                Op::PutContent
            }
        };
        request.set_body(content.to_vec());
        self.write(op, request).await
    }
}

impl AzureBlobStore {
    /// Stores content in the lease's own blob, as long as the lease is held: nothing else can be as sure.
    ///
    /// The write names the lease's id, and the service refuses it in the same step as it would store it: after the
    /// term, even if nobody has taken over; after a release; after a hand-over, whose receiver has an id of its own;
    /// while somebody else holds. So there is no fence to raise, and whoever has acquired may read at once. The record in
    /// the metadata, foreign metadata and the blob's content headers are carried over (index tags are not).
    ///
    /// `Ok`: the content is stored, and no write of this lease that was sent earlier can be stored over it any more.
    /// One request, or two if this store has not written the blob last (it keeps the newest tag: a payload that
    /// [`Held::set_data`](crate::Held::set_data) writes moves it, and that of a client with
    /// [`Renewal::Thread`](crate::Renewal::Thread) is not seen here); more if others write in between.
    ///
    /// For contents of some megabytes: it is one `Put Blob`, within a minute.
    ///
    /// ```no_run
    /// # use leasehold::azure_blob::AzureBlobStore;
    /// # use leasehold::{Error, Leases};
    /// # async fn example(store: AzureBlobStore, leases: Leases) -> Result<(), Error> {
    /// // leases: built from this store, or a clone of it
    /// let lease = leases.acquire("orders/eu").await?;
    /// let proof = lease.held().proof();
    /// let mut state = store.read_content(&proof).await?;
    /// state.extend_from_slice(b"one more line\n");
    /// store.write_content(&proof, &state).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Refused`]: the lease is not held by this grant any more. Nothing was written; stop the work.
    /// [`ErrorKind::Invalid`]: the proof is of a lease in another store. [`ErrorKind::Denied`],
    /// [`ErrorKind::Misconfigured`] and [`ErrorKind::Unavailable`] as for a renewal; they say whether it was written,
    /// and the same content may be stored again.
    ///
    /// # Cancel safety
    /// A write whose future is dropped may be stored, or not; the next one that is `Ok` is stored over it.
    pub async fn write_content(&self, proof: &Proof, content: impl AsRef<[u8]>) -> Result<(), Error> {
        self.check_proof(proof)?;
        let mut call = self.call(proof.name());
        match call.write_content(proof, content.as_ref()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(not_held(proof)),
            Err(error) => Err(fenced(error, proof)),
        }
    }

    /// Reads the content of the lease's own blob, as long as the lease is held. Empty, if nobody has written any.
    ///
    /// What is read stays as it is until this lease writes it or ends: the service has refused every other writer since
    /// the lease was acquired. One request.
    ///
    /// # Errors
    /// As [`write_content`](Self::write_content).
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn read_content(&self, proof: &Proof) -> Result<Vec<u8>, Error> {
        self.check_proof(proof)?;
        let link = &self.shared.link;
        match link.get_at(link.blob(proof.name()), None, Some(proof.grant())).await.map_err(only_read) {
            Ok(answer) => answer.value.map_err(|_| not_held(proof)),
            Err(error) => Err(fenced(error, proof)),
        }
    }

    /// A store must not vouch for a lease of another one: there may be a blob of the same name.
    fn check_proof(&self, proof: &Proof) -> Result<(), Error> {
        let here = &self.shared.link.place.container;
        if proof.store() == here {
            return Ok(());
        }
        let what = format!("the lease is in the store {}, and this one is {here}; take that", proof.store());
        Err(Error::new(ErrorKind::Invalid, Operation::Fence, what).on(KIND).for_name(proof.name()))
    }
}

impl Call<'_> {
    /// Whether the lease was held.
    async fn write_content(&mut self, proof: &Proof, content: &[u8]) -> Result<bool, StoreError> {
        let (grant, token) = (proof.grant(), proof.token().as_u64());
        let mut known = self.shared.notes.take(self.name).flatten().filter(|found| found.carries(grant, token));
        for _ in 0..ROUNDS {
            let found = match known.take() {
                Some(found) => found,
                None => match self.look().await? {
                    Some(found) if found.carries(grant, token) => found,
                    _ => return Ok(false),
                },
            };
            let link = &self.shared.link;
            let on = Condition::Lease(&found.tag, grant);
            let answer = link.put_at(link.blob(self.name), content, &found.pairs, &found.kept, on).await;
            match self.heard(answer)? {
                Ok(tag) => {
                    self.shared.notes.saw(self.name, Found { tag, state: LeaseState::Leased, ..found });
                    return Ok(true);
                }
                // By a payload of the same lease, or an earlier write of it that was late.
                Err(Refusal::Moved) => {}
                Err(_) => return Ok(false),
            }
        }
        Err(self.contended())
    }
}

fn not_held(proof: &Proof) -> Error {
    let what = "the lease is not held by this grant any more; this holder must stop";
    Error::new(ErrorKind::Refused, Operation::Fence, what).on(KIND).for_name(proof.name())
}

fn fenced(error: StoreError, proof: &Proof) -> Error {
    Error::of_store(Operation::Fence, KIND, error).for_name(proof.name())
}
