//! The one place that speaks to the service: one attempt a request, under a time-out, with the service's time.
//!
//! The requests are built on the SDK's own pipeline rather than on its blob client, because that client writes lease
//! ids into its logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::headers::Headers;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{
    ClientOptions, Context, HttpClient, HttpClientOptions, Method, Pipeline, PipelineSendOptions, RawResponse, Request,
    RetryOptions, Transport, Url, new_http_client,
};
use azure_core::time::parse_rfc7231;

use super::content::Kept;
use super::credential::Credential;
use super::error::{Failure, Op, Place, failed};
use super::metadata::{Found, LeaseState, Pairs};
use super::names;
use crate::protocol::broken::Broken;
use crate::time::{SystemClock, within};
use crate::types::{Answer, Grant, Name, StoreError, Timed};

/// The hard end of one request; a verb makes some. The client bounds each call as a whole; this is for others who call
/// the store.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a request that carries content of the caller's.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Old enough for every emulator, new enough for all that is used here.
const API_VERSION: &str = "2021-12-02";

const META: &str = "x-ms-meta-";

/// A container, and a way to it.
#[derive(Clone)]
pub(super) struct Link {
    pipeline: Pipeline,
    container: Url,
    pub(super) place: Place,
    setup: Setup,
}

/// What a way to a container is made of.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) container: Url,
    pub(super) credential: Credential,
    pub(super) http_client: Option<Arc<dyn HttpClient>>,
}

/// The service's definite "no" to one request: nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such blob.
    NoBlob,
    /// There is no such container.
    NoContainer,
    /// Somebody else has created the blob.
    Exists,
    /// The blob has been written since: its tag is another one.
    Moved,
    /// The blob is leased, and the request named no lease.
    LeaseIdMissing,
    /// The blob's lease is not the named one, or is over, or does not allow this.
    NotYours,
}

/// What became of one request that has a definite answer.
pub(super) type Said<T> = Result<T, Refusal>;

impl Link {
    /// Says what is wrong when the credential cannot be used.
    pub(super) fn new(setup: Setup) -> Result<Self, String> {
        let mut container = setup.container.clone();
        let mut place = container.clone();
        place.set_query(None);
        place.set_fragment(None);
        let place = Place { container: place.to_string() };
        let authorisation = setup.credential.apply(&mut container)?;
        let http_client = setup
            .http_client
            .clone()
            .unwrap_or_else(|| new_http_client(Some(HttpClientOptions { automatic_decompression: false })));
        // No retries: the SDK would send a conditional write again after a lost answer, and report the failed
        // condition of the second copy for our own success.
        let options = ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(http_client)),
            ..ClientOptions::default()
        };
        let (crate_name, version) = (option_env!("CARGO_PKG_NAME"), option_env!("CARGO_PKG_VERSION"));
        let per_try = authorisation.into_iter().chain([Arc::new(Leaving) as Arc<dyn Policy>]).collect();
        let pipeline = Pipeline::new(crate_name, version, options, Vec::new(), per_try, None);
        Ok(Self { pipeline, container, place, setup })
    }

    /// The same container over connections that nobody else uses: they are driven by the runtime that opens them, so
    /// a thread with a runtime of its own must not borrow any. (An HTTP client of the caller's own is shared.)
    pub(super) fn isolated(&self) -> Self {
        Self::new(self.setup.clone()).unwrap_or_else(|_| self.clone())
    }

    /// What is there.
    pub(super) async fn head(&self, name: &Name) -> Answer<Said<Found>> {
        self.head_at(self.blob(name)).await
    }

    pub(super) async fn head_at(&self, blob: Url) -> Answer<Said<Found>> {
        let op = Op::GetProperties;
        let reply = self.send(op, Request::new(blob, Method::Head)).await?;
        let found = match &reply.said {
            Ok(response) => Ok(found(response.headers()).ok_or_else(|| self.garbled(op, &reply))?),
            Err(no) => Err(*no),
        };
        Ok(Timed::dated(found, reply.date_ms))
    }

    /// Creates the blob, and only creates it. Its tag.
    pub(super) async fn create(&self, name: &Name, pairs: &Pairs) -> Answer<Said<Arc<str>>> {
        let mut request = Request::new(self.blob(name), Method::Put);
        request.insert_header("x-ms-blob-type", "BlockBlob");
        request.insert_header("if-none-match", "*");
        insert_pairs(&mut request, pairs);
        self.write(Op::PutBlob, request).await
    }

    /// Replaces all metadata of the blob with this tag: under this lease, or of a blob that nobody has leased. Its
    /// new tag.
    pub(super) async fn set_metadata(
        &self,
        name: &Name,
        pairs: &Pairs,
        tag: &str,
        lease: Option<Grant>,
    ) -> Answer<Said<Arc<str>>> {
        self.set_metadata_at(self.blob(name), pairs, tag, lease).await
    }

    pub(super) async fn set_metadata_at(
        &self,
        blob: Url,
        pairs: &Pairs,
        tag: &str,
        lease: Option<Grant>,
    ) -> Answer<Said<Arc<str>>> {
        let mut request = Request::new(with(blob, &[("comp", "metadata")]), Method::Put);
        if !Broken::AzureWriteWithoutIfMatch.on() {
            request.insert_header("if-match", tag.to_owned());
        }
        if let Some(lease) = lease {
            request.insert_header("x-ms-lease-id", lease.to_text());
        }
        insert_pairs(&mut request, pairs);
        self.write(Op::SetMetadata, request).await
    }

    /// Leases the blob with this tag under this id.
    pub(super) async fn acquire(&self, name: &Name, grant: Grant, ttl_s: u64, tag: &str) -> Answer<Said<()>> {
        let mut request = self.lease(name, "acquire");
        request.insert_header("x-ms-lease-duration", ttl_s.to_string());
        request.insert_header("x-ms-proposed-lease-id", grant.to_text());
        if !Broken::AzureAcquireWithoutIfMatch.on() {
            request.insert_header("if-match", tag.to_owned());
        }
        self.hold(Op::AcquireLease, request, grant).await
    }

    /// Begins a new term of this lease.
    pub(super) async fn renew(&self, name: &Name, grant: Grant) -> Answer<Said<()>> {
        let mut request = self.lease(name, "renew");
        request.insert_header("x-ms-lease-id", grant.to_text());
        self.hold(Op::RenewLease, request, grant).await
    }

    /// Gives the lease another id. Extends nothing.
    pub(super) async fn change(&self, name: &Name, from: Grant, to: Grant) -> Answer<Said<()>> {
        let mut request = self.lease(name, "change");
        request.insert_header("x-ms-lease-id", from.to_text());
        request.insert_header("x-ms-proposed-lease-id", to.to_text());
        self.hold(Op::ChangeLease, request, to).await
    }

    pub(super) async fn release(&self, name: &Name, grant: Grant) -> Answer<Said<()>> {
        let mut request = self.lease(name, "release");
        request.insert_header("x-ms-lease-id", grant.to_text());
        self.send(Op::ReleaseLease, request).await.map(Reply::bare)
    }

    /// Ends whatever lease the blob with this tag has: when the rest of its term is over, or at once.
    pub(super) async fn break_lease(&self, name: &Name, tag: &str, at_once: bool) -> Answer<Said<()>> {
        let mut request = self.lease(name, "break");
        if at_once {
            request.insert_header("x-ms-lease-break-period", "0");
        }
        request.insert_header("if-match", tag.to_owned());
        self.send(Op::BreakLease, request).await.map(Reply::bare)
    }

    /// One page of the blobs whose names start with `prefix`, as XML.
    pub(super) async fn list(&self, prefix: &str, marker: Option<&str>) -> Answer<Said<Vec<u8>>> {
        let mut query = vec![("restype", "container"), ("comp", "list"), ("include", "metadata"), ("prefix", prefix)];
        query.extend(marker.map(|marker| ("marker", marker)));
        let request = Request::new(with(self.container.clone(), &query), Method::Get);
        let reply = self.send(Op::ListBlobs, request).await?;
        Ok(reply.map(|response| response.into_body().as_ref().to_vec()))
    }

    /// Whether the container is there.
    pub(super) async fn look_at_container(&self) -> Answer<Said<()>> {
        let url = with(self.container.clone(), &[("restype", "container")]);
        self.send(Op::GetContainer, Request::new(url, Method::Head)).await.map(Reply::bare)
    }

    /// Creates the container; "no" if it is there.
    pub(super) async fn create_container(&self) -> Answer<Said<()>> {
        let url = with(self.container.clone(), &[("restype", "container")]);
        self.send(Op::CreateContainer, Request::new(url, Method::Put)).await.map(Reply::bare)
    }

    /// Sends a write. The blob's new tag.
    pub(super) async fn write(&self, op: Op, request: Request) -> Answer<Said<Arc<str>>> {
        let reply = self.send(op, request).await?;
        let tag = match &reply.said {
            Ok(response) => Ok(header(response.headers(), "etag").ok_or_else(|| self.garbled(op, &reply))?.into()),
            Err(no) => Err(*no),
        };
        Ok(Timed::dated(tag, reply.date_ms))
    }

    /// A success counts only if the lease that it tells of is ours: Azurite renews with a foreign id what has expired.
    async fn hold(&self, op: Op, request: Request, grant: Grant) -> Answer<Said<()>> {
        let reply = self.send(op, request).await?;
        let said = match &reply.said {
            Ok(response) => {
                let held = header(response.headers(), "x-ms-lease-id").ok_or_else(|| self.garbled(op, &reply))?;
                let ours = held.eq_ignore_ascii_case(&grant.to_text()) || Broken::AzureAnyLeaseId.on();
                if ours { Ok(()) } else { Err(Refusal::NotYours) }
            }
            Err(refusal) => Err(*refusal),
        };
        Ok(Timed::dated(said, reply.date_ms))
    }

    fn lease(&self, name: &Name, action: &'static str) -> Request {
        let mut request = Request::new(with(self.blob(name), &[("comp", "lease")]), Method::Put);
        request.insert_header("x-ms-lease-action", action);
        request
    }

    /// The URL that this was made with, for a way to one blob.
    pub(super) fn whole(&self) -> Url {
        self.container.clone()
    }

    pub(super) fn blob(&self, name: &Name) -> Url {
        let mut url = self.container.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(names::blob_of(name).split('/'));
        }
        url
    }

    /// One attempt: a definite answer, or the error that says what it means that there is none.
    pub(super) async fn send(&self, op: Op, mut request: Request) -> Result<Reply, StoreError> {
        request.insert_header("x-ms-version", API_VERSION);
        let left = Arc::new(AtomicBool::new(false));
        let context = Context::new().with_value(Left(Arc::clone(&left)));
        let options = PipelineSendOptions { skip_checks: true, ..PipelineSendOptions::default() };
        let limit = if op.moves_content() { CONTENT_TIMEOUT } else { REQUEST_TIMEOUT };
        let sent = within(&SystemClock, limit, self.pipeline.send(&context, &mut request, Some(options)));
        let answered = sent.await;
        let left = left.load(Ordering::Relaxed);
        let response = match answered {
            Some(Ok(response)) => response,
            Some(Err(error)) => return Err(failed(op, &self.place, Failure::NoAnswer { error, left })),
            None => return Err(failed(op, &self.place, Failure::TimedOut { left })),
        };
        let date_ms = date_ms(response.headers());
        let status = u16::from(response.status());
        let by_the_service = is_by_the_service(response.headers());
        let said = match status {
            200..=299 if by_the_service => Ok(response),
            _ => {
                let code = header(response.headers(), "x-ms-error-code").unwrap_or_default();
                let refused = Failure::Refused { status, code: code.to_owned(), by_the_service };
                Err(Refusal::of(op, status, code, by_the_service)
                    .ok_or_else(|| failed(op, &self.place, refused).at(date_ms))?)
            }
        };
        Ok(Reply { said, date_ms })
    }

    fn garbled(&self, op: Op, reply: &Reply) -> StoreError {
        failed(op, &self.place, Failure::Garbled).at(reply.date_ms)
    }
}

/// A definite answer.
pub(super) struct Reply {
    said: Said<RawResponse>,
    date_ms: Option<u64>,
}

impl Reply {
    pub(super) fn map<T>(self, read: impl FnOnce(RawResponse) -> T) -> Timed<Said<T>> {
        Timed::dated(self.said.map(read), self.date_ms)
    }

    fn bare(self) -> Timed<Said<()>> {
        self.map(|_| ())
    }
}

impl Refusal {
    /// What a refusal means, where it is a definite one. By the status where it can be: the codes of one refusal
    /// differ between operations, and between the service and Azurite.
    fn of(op: Op, status: u16, code: &str, by_the_service: bool) -> Option<Self> {
        if !by_the_service {
            return None;
        }
        match (status, code) {
            (404, "ContainerNotFound") => Some(Self::NoContainer),
            (404, _) => Some(Self::NoBlob),
            (409, "BlobAlreadyExists" | "ContainerAlreadyExists") => Some(Self::Exists),
            // If-None-Match: * of an existing blob that is leased.
            (412, _) if op == Op::PutBlob => Some(Self::Exists),
            (412, "ConditionNotMet") => Some(Self::Moved),
            (412, "LeaseIdMissing") => Some(Self::LeaseIdMissing),
            (412, _) => Some(Self::NotYours),
            (409, code) if code.starts_with("Lease") => Some(Self::NotYours),
            _ => None,
        }
    }
}

/// Notes that a request is about to be handed to the connection: until then nothing has happened, whatever the reason.
#[derive(Debug)]
struct Leaving;

/// Where it is noted.
#[derive(Clone)]
struct Left(Arc<AtomicBool>);

#[async_trait]
impl Policy for Leaving {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        if let Some(Left(left)) = context.value::<Left>() {
            left.store(true, Ordering::Relaxed);
        }
        next[0].send(context, request, &next[1..]).await
    }
}

fn with(mut url: Url, query: &[(&str, &str)]) -> Url {
    url.query_pairs_mut().extend_pairs(query);
    url
}

pub(super) fn insert_pairs(request: &mut Request, pairs: &Pairs) {
    for (name, value) in pairs {
        request.insert_header(format!("{META}{name}"), value.clone());
    }
}

fn found(headers: &Headers) -> Option<Found> {
    let tag = header(headers, "etag")?.into();
    let state = LeaseState::parse(header(headers, "x-ms-lease-state")?)?;
    let pairs = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(META)?.to_owned(), value.as_str().to_owned())))
        .collect();
    Some(Found { tag, state, pairs, kept: Kept::of(headers) })
}

pub(super) fn header<'a>(headers: &'a Headers, name: &'static str) -> Option<&'a str> {
    headers.get_optional_str(&name.into()).filter(|value| !value.is_empty())
}

/// An answer without the service's request id was made on the way, by a proxy with a clock of its own.
fn is_by_the_service(headers: &Headers) -> bool {
    header(headers, "x-ms-request-id").is_some()
}

/// The service's time, of an answer that it has made itself.
fn date_ms(headers: &Headers) -> Option<u64> {
    let text = header(headers, "date").filter(|_| is_by_the_service(headers))?;
    let seconds = parse_rfc7231(text).ok()?.unix_timestamp();
    u64::try_from(seconds).ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&'static str, &'static str)]) -> Headers {
        let mut all = Headers::new();
        headers.iter().for_each(|(name, value)| all.insert(*name, *value));
        all
    }

    #[test]
    fn a_date_counts_only_on_an_answer_of_the_service() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_ms(&answer(&[date, ("x-ms-request-id", "7")])), Some(784_111_777_000));
        assert_eq!(date_ms(&answer(&[date])), None);
        assert_eq!(date_ms(&answer(&[("date", "yesterday"), ("x-ms-request-id", "7")])), None);
    }

    #[test]
    fn refusals_of_a_proxy_say_nothing_about_the_blob() {
        assert_eq!(Refusal::of(Op::RenewLease, 404, "BlobNotFound", false), None);
        assert_eq!(Refusal::of(Op::RenewLease, 404, "BlobNotFound", true), Some(Refusal::NoBlob));
        assert_eq!(Refusal::of(Op::RenewLease, 503, "ServerBusy", true), None);
        assert_eq!(Refusal::of(Op::RenewLease, 409, "SomethingNew", true), None);
    }

    #[test]
    fn all_codes_of_a_lease_that_is_not_ours_are_taken_alike() {
        for (status, code) in [
            (409, "LeaseIdMismatchWithLeaseOperation"),
            (409, "LeaseNotPresentWithLeaseOperation"),
            (409, "LeaseIsBrokenAndCannotBeRenewed"),
            (412, "LeaseIdMismatchWithBlobOperation"),
            (412, "LeaseNotPresentWithBlobOperation"),
            (412, "LeaseLost"),
        ] {
            assert_eq!(Refusal::of(Op::SetMetadata, status, code, true), Some(Refusal::NotYours), "{code}");
        }
    }

    #[cfg(feature = "__proptest")]
    mod hostile {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn no_date_header_makes_it_panic(
                text in ".{0,40}", shaped in "[A-Z][a-z]{2}, [0-9 -]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            ) {
                for date in [text, shaped] {
                    let mut headers = answer(&[("x-ms-request-id", "7")]);
                    headers.insert("date", date);
                    date_ms(&headers);
                }
            }

            #[test]
            fn a_date_is_read_to_the_second(seconds in 0..253_402_300_800i64) {
                let date = azure_core::time::OffsetDateTime::from_unix_timestamp(seconds).expect("before the year 10000");
                let mut headers = answer(&[("x-ms-request-id", "7")]);
                headers.insert("date", azure_core::time::to_rfc7231(&date));
                prop_assert_eq!(date_ms(&headers), Some(seconds.unsigned_abs() * 1000));
            }
        }
    }
}
