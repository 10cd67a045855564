//! A blob of the caller's own, fenced by a token in its metadata.

use std::fmt;
use std::sync::Arc;

use azure_core::http::{HttpClient, Url};

use super::KIND;
use super::call::only_read;
use super::client::{Link, Refusal, Said, Setup};
use super::content::{Condition, Kept};
use super::credential::Credential;
use super::metadata::Pairs;
use super::open;
use crate::fence::{FenceError, Found, Put, Raised, Tagged, WriteId, raise};
use crate::types::{Answer, Error, ErrorKind, FencingToken, Operation, Written};

/// The pair that the fence is kept in, unless the caller says otherwise.
const FIELD: &str = "lh_fence";

/// How often a read looks again after this holder's own late write.
const READS: u32 = 4;

/// A blob of the caller's own, whose writes are fenced by a token in its metadata. Clones are the same one.
///
/// The lease may be in any store. For what fits into the lease's own blob,
/// [`AzureBlobStore::write_content`](super::AzureBlobStore::write_content) needs no fence at all.
///
/// ```no_run
/// use leasehold::azure_blob::{Credential, FencedBlob};
/// use leasehold::{Error, Leases};
///
/// # async fn example(leases: Leases, credential: Credential) -> Result<(), Box<dyn std::error::Error>> {
/// let report = FencedBlob::at("https://acct.blob.core.windows.net/reports/orders.csv", credential)?;
///
/// let lease = leases.acquire("reports/orders").await?;
/// let mut report = report.raise(lease.token()).await?; // from here on a late write of a former holder is refused
/// let mut lines = report.read().await?;
/// lines.extend_from_slice(b"42;shipped\n");
/// report.write(&lines).await?;
/// # Ok(())
/// # }
/// ```
///
/// # What is kept, and what is not
///
/// A write keeps the other metadata (their names come back in lower case), content type, encoding, language, disposition,
/// cache control, and an access tier that was set. It does not keep index tags. Only block blobs are written.
///
/// # Who else writes it
///
/// Whoever writes the blob past the fence undoes it: a tool that sets metadata replaces all pairs, and a deletion takes
/// the fence with it, so that a late write is then accepted, or brings the blob back. Instead of deleting write empty
/// content. A blob that somebody has leased is not written: a fenced write names no lease.
#[derive(Clone)]
pub struct FencedBlob {
    blob: Blob,
}

/// Options for a [`FencedBlob`].
#[derive(Clone)]
#[must_use = "nothing happens before `build`"]
pub struct FencedBlobBuilder {
    url: String,
    credential: Credential,
    field: String,
    http_client: Option<Arc<dyn HttpClient>>,
}

/// A blob whose fence is raised to the holder's token; see [`FencedBlob::raise`].
#[derive(Debug)]
pub struct RaisedBlob {
    raised: Raised<Blob>,
}

impl FencedBlob {
    /// The blob with this URL, `https://<account>.blob.core.windows.net/<container>/<blob>`. It need not exist; the
    /// container must. Nothing is sent. As in every URL, what is special in one is written as `%XX` in the name.
    ///
    /// # Errors
    /// [`ErrorKind::Misconfigured`]: URL and credential do not fit, or the URL would be read as that of another blob
    /// (`a?b`, `a#b`, `a/../b`).
    pub fn at(url: impl Into<String>, credential: Credential) -> Result<Self, Error> {
        Self::builder(url, credential).build()
    }

    /// Options for a blob.
    pub fn builder(url: impl Into<String>, credential: Credential) -> FencedBlobBuilder {
        FencedBlobBuilder { url: url.into(), credential, field: FIELD.into(), http_client: None }
    }

    /// Raises the fence to this token: the new holder's first act, before it reads anything. The content stays as it
    /// is; a blob that does not exist is made, and empty.
    ///
    /// From then on no write is stored that was sent before, by anybody, so what [`RaisedBlob::read`] shows stays until
    /// this holder writes. It takes 2 requests; more, if others write in between.
    ///
    /// # Errors
    /// [`FenceError`]; none of them has changed the content. [`FenceError::Stale`]: this holder was replaced already.
    /// [`FenceError::Store`] has the store's own error: throttled or away (`Unavailable`), `Denied`, `Misconfigured`
    /// (there is no such container), `Refused` (somebody has leased the blob), `Invalid` (it is no block blob).
    ///
    /// # Cancel safety
    /// Safe: the fence may have been raised.
    pub async fn raise(&self, token: FencingToken) -> Result<RaisedBlob, FenceError<Error>> {
        raise(self.blob.clone(), token).await.map(|raised| RaisedBlob { raised })
    }
}

impl FencedBlobBuilder {
    /// The name of the metadata pair that the fence is kept in. Default: `lh_fence`. All holders must use the same.
    pub fn fence_in(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// The HTTP client to send requests with, for proxies or certificates of one's own. It must not retry.
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.http_client = Some(client);
        self
    }

    /// The blob. Nothing is sent.
    ///
    /// # Errors
    /// [`ErrorKind::Misconfigured`]: URL and credential do not fit. [`ErrorKind::Invalid`]: the name of the pair is not
    /// one that metadata can have.
    pub fn build(self) -> Result<FencedBlob, Error> {
        let Self { url, credential, field, http_client } = self;
        if !is_identifier(&field) {
            let what =
                format!("{field:?} is no name for metadata: take letters, digits and underscores, no digit first");
            return Err(Error::new(ErrorKind::Invalid, Operation::Open, what).on(KIND));
        }
        let misconfigured = |what: String| Error::new(ErrorKind::Misconfigured, Operation::Open, what).on(KIND);
        let text = url;
        let url = open::url(&text, "blob").map_err(misconfigured)?;
        if names_another(&text, &url, &credential) {
            return Err(misconfigured(
                "the URL would be read as that of another blob: in a blob's name write `?`, `#`, `\\`, a space at the end \
                 and control characters as %XX, and have no part of it be `.` or `..`"
                    .into(),
            ));
        }
        let parts: Vec<_> = url.path_segments().into_iter().flatten().collect();
        if parts.len() <= open::parts_of_container(&url) || parts.last() == Some(&"") {
            return Err(misconfigured("the URL names no blob: it ends with a container, `/` and a name".into()));
        }
        let link = Link::new(Setup { container: url, credential, http_client }).map_err(misconfigured)?;
        // The service does not tell names apart by their case, and they come back in lower case.
        Ok(FencedBlob { blob: Blob { link, field: field.to_ascii_lowercase().into() } })
    }
}

impl RaisedBlob {
    /// The token that the fence was raised to.
    pub fn token(&self) -> FencingToken {
        self.raised.token()
    }

    /// Which write has stored the content that was there at the raise; see [`Raised::found_is_of`].
    pub fn found_is_of(&self) -> Option<&WriteId> {
        self.raised.found_is_of()
    }

    /// The content, as this holder has left it or found it.
    ///
    /// # Errors
    /// As [`write`](Self::write): what somebody else has written is not shown.
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn read(&mut self) -> Result<Vec<u8>, FenceError<Error>> {
        for _ in 0..READS {
            let blob = self.raised.object();
            let tag = self.raised.tag().map(|tag| &**tag);
            let answer = blob.link.get_at(blob.url(), tag, None).await.map_err(only_read);
            match blob.said(answer).map_err(FenceError::Store)? {
                Ok(content) => return Ok(content),
                // By a late write of this holder's own, or else there is nothing to read any more.
                Err(Refusal::Moved | Refusal::NoBlob) => self.check().await?,
                Err(refusal) => return Err(FenceError::Store(blob.refused(refusal))),
            }
        }
        Err(FenceError::Contended { rounds: READS })
    }

    /// Stores new content, unless anybody else has written since the raise. One request.
    ///
    /// `Ok`: it is stored, and no earlier write of this holder's can be stored over it any more. What becomes of a lost
    /// answer says [`Raised::write`]. For contents of some megabytes: it is one `Put Blob`, within a minute.
    ///
    /// # Errors
    /// [`FenceError`], each with what to do. After [`FenceError::Stale`], stop. Throttled or away
    /// (`Unavailable`) and `Denied` are errors of the store's in [`FenceError::Store`] or [`FenceError::InDoubt`].
    ///
    /// # Cancel safety
    /// As [`Raised::write`].
    pub async fn write(&mut self, content: impl AsRef<[u8]>) -> Result<(), FenceError<Error>> {
        self.raised.write(content.as_ref()).await
    }

    /// Looks again, and goes on only if nobody else has written since the raise; see [`Raised::check`].
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn check(&mut self) -> Result<(), FenceError<Error>> {
        self.raised.check().await
    }
}

/// The two operations.
#[derive(Clone)]
struct Blob {
    /// The way to this one blob.
    link: Link,
    field: Arc<str>,
}

/// What a blob has besides its content.
#[derive(Default)]
struct Properties {
    pairs: Pairs,
    kept: Kept,
}

impl Tagged for Blob {
    type Tag = Arc<str>;
    type Seen = Properties;
    type New = [u8];
    type Error = Error;

    async fn read(&self) -> Result<Found<Arc<str>, Properties>, Error> {
        match self.said(self.link.head_at(self.url()).await.map_err(only_read))? {
            Ok(found) if found.kept.is_no_block_blob => Err(self.error(ErrorKind::Invalid, "it is no block blob")),
            Ok(found) => Ok(Found {
                tag: Some(found.tag),
                fence: found.pairs.get(&*self.field).cloned(),
                seen: Properties { pairs: found.pairs, kept: found.kept },
            }),
            Err(Refusal::NoBlob) => Ok(Found { tag: None, fence: None, seen: Properties::default() }),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    async fn write(
        &self,
        over: &Found<Arc<str>, Properties>,
        fence: &str,
        new: Option<&[u8]>,
    ) -> Result<Put<Arc<str>>, Error> {
        let Properties { pairs, kept } = &over.seen;
        let mut pairs = pairs.clone();
        pairs.insert(self.field.to_string(), fence.to_owned());
        let answer = match (&over.tag, new) {
            (None, new) => self.link.put_at(self.url(), new.unwrap_or_default(), &pairs, kept, Condition::Absent).await,
            (Some(tag), None) => self.link.set_metadata_at(self.url(), &pairs, tag, None).await,
            (Some(tag), Some(new)) => self.link.put_at(self.url(), new, &pairs, kept, Condition::Tag(tag)).await,
        };
        match self.said(answer)? {
            Ok(tag) => Ok(Put::Written(tag)),
            // "No such blob" of a blob that was to be created is about what is above it.
            Err(Refusal::NoBlob) if over.tag.is_none() => Err(self.refused(Refusal::NoContainer)),
            Err(Refusal::Moved | Refusal::Exists | Refusal::NoBlob) => Ok(Put::Moved),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    fn is_definite(&self, error: &Error) -> bool {
        error.written() == Written::No
    }
}

impl Blob {
    fn url(&self) -> Url {
        self.link.whole()
    }

    fn said<T>(&self, answer: Answer<Said<T>>) -> Result<Said<T>, Error> {
        answer.map(|answer| answer.value).map_err(|error| Error::of_store(Operation::Fence, KIND, error))
    }

    /// A definite no that is not the fence's.
    fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::NoContainer => self.error(ErrorKind::Misconfigured, "there is no such container; create it"),
            Refusal::LeaseIdMissing | Refusal::NotYours => {
                self.error(ErrorKind::Refused, "somebody has leased it, and a fenced write names no lease")
            }
            Refusal::NoBlob | Refusal::Exists | Refusal::Moved => {
                self.error(ErrorKind::Refused, "it has changed meanwhile")
            }
        }
    }

    fn error(&self, kind: ErrorKind, what: &str) -> Error {
        let what = format!("the blob {}: {what}", self.link.place.container);
        Error::new(kind, Operation::Fence, what).on(KIND)
    }
}

impl fmt::Debug for FencedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedBlob").field("blob", &self.blob.link.place.container).finish_non_exhaustive()
    }
}

/// Without the URL, in which there may be a signature.
impl fmt::Debug for FencedBlobBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedBlobBuilder").field("field", &self.field).finish_non_exhaustive()
    }
}

/// Whether a URL is another one than it seems: what comes from elsewhere, an order's number say, was put into it as it
/// is. Two names would be one blob then, and one's fence the other's.
fn names_another(text: &str, url: &Url, credential: &Credential) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |part: &str| matches!(&*part.to_ascii_lowercase().replace("%2e", "."), "." | "..");
    let is_dropped = |character: char| character == '\\' || character.is_control();
    let has_query = url.query().is_some() && !credential.is_in_url();
    has_query
        || url.fragment().is_some()
        || text.trim() != text
        || path.contains(is_dropped)
        || path.split('/').any(is_dots)
}

/// <https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>
fn is_identifier(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(good) && !name.as_bytes()[0].is_ascii_digit()
}
