//! A small Blob service: containers, blobs, metadata and leases behind the REST API. A pure function of the request
//! and the time; it knows no client library, no socket and no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_core::time::{OffsetDateTime, to_rfc7231};
use uuid::Uuid;

use super::auth::{self, Auth};
use super::checks::{
    break_period, check_blob_name, check_conditions, check_container_name, check_content_length, guid, part_of, term,
};
use super::codes::{
    BLOB_ALREADY_EXISTS, BLOB_NOT_FOUND, CONDITION_NOT_MET, CONTAINER_ALREADY_EXISTS, CONTAINER_BEING_DELETED,
    CONTAINER_NOT_FOUND, LEASE_NOT_PRESENT_WITH_BLOB_OPERATION, MISSING_REQUIRED_HEADER, NOT_MODIFIED, Refused,
    UNKNOWN_TO_THE_FAKE,
};
use super::http::{Call, Op, Request, Response, xml};
use super::leases::{Lease, Leeway, Moment, Term};
use super::listing;
use super::metadata::{self, Metadata};

/// "When a container is deleted, a container with the same name can't be created for at least 30 seconds."
const BEING_DELETED: Duration = Duration::from_secs(30);

const TIER: &str = "x-ms-access-tier";

/// Headers of "Put Blob" that stay with the blob, and those that show them.
const SET_BY: [(&str, &str); 5] = [
    ("x-ms-blob-content-encoding", "content-encoding"),
    ("x-ms-blob-content-language", "content-language"),
    ("x-ms-blob-content-disposition", "content-disposition"),
    ("x-ms-blob-cache-control", "cache-control"),
    (TIER, TIER),
];

/// The service's time.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Never set: leases end by it.
    pub steady: Moment,
    /// Since 1970: for dates.
    pub wall: Duration,
}

/// What a service may do one way or another.
#[derive(Clone, Debug)]
pub struct Knobs {
    pub leeway: Leeway,
    /// The documentation does not say whether a lease or a condition is judged first. A client has to live with both.
    pub lease_before_conditions: bool,
    /// A page of a listing may be shorter than was asked for.
    pub longest_page: usize,
    pub auth: Auth,
}

impl Default for Knobs {
    fn default() -> Self {
        Self { leeway: Leeway::default(), lease_before_conditions: false, longest_page: 5000, auth: Auth::None }
    }
}

/// The service of one account.
#[derive(Debug, Default)]
pub struct Service {
    pub knobs: Knobs,
    pub containers: BTreeMap<String, Container>,
    deleted: BTreeMap<String, Moment>,
    /// Of requests, lease ids and ETags that the service gives out.
    serial: u64,
}

#[derive(Debug)]
pub struct Container {
    pub blobs: BTreeMap<String, Blob>,
    etag: String,
    modified: Duration,
}

#[derive(Debug)]
pub struct Blob {
    pub metadata: Metadata,
    pub body: Vec<u8>,
    pub content_type: String,
    /// What a write of the content sets and resets, by the header that an answer shows it in.
    pub headers: BTreeMap<&'static str, String>,
    /// In its quotes.
    pub etag: String,
    pub created: Duration,
    pub modified: Duration,
    pub lease: Lease,
}

impl Service {
    pub fn answer(&mut self, request: &Request, now: Now) -> Response {
        let call = request.call();
        let answer = self.decide(request, &call, now);
        let answer = answer.unwrap_or_else(|refused| self.refuse(request, refused, now));
        self.sign(request, answer, now)
    }

    /// An answer of the service that is not its decision, for faults.
    pub fn answer_with(&mut self, request: &Request, status: u16, code: &str, now: Now) -> Response {
        let answer = self.error(request, status, code, now);
        self.sign(request, answer, now)
    }

    pub fn create_container(&mut self, name: &str, now: Now) -> Result<(), Refused> {
        if self.containers.contains_key(name) {
            return Err(CONTAINER_ALREADY_EXISTS);
        }
        if self.deleted.get(name).is_some_and(|deleted| now.steady < *deleted + BEING_DELETED) {
            return Err(CONTAINER_BEING_DELETED);
        }
        let etag = self.etag();
        self.containers.insert(name.to_owned(), Container { blobs: BTreeMap::new(), etag, modified: now.wall });
        Ok(())
    }

    /// Leased blobs do not keep a container.
    pub fn delete_container(&mut self, name: &str, now: Now) -> bool {
        self.deleted.insert(name.to_owned(), now.steady);
        self.containers.remove(name).is_some()
    }

    /// The next ETag.
    pub fn etag(&mut self) -> String {
        self.serial += 1;
        format!("\"0x8DD{:012X}\"", 0x1_0000_0000 + self.serial)
    }

    fn decide(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        auth::check(&self.knobs.auth, request)?;
        if call.op == Op::Unknown {
            return Err(UNKNOWN_TO_THE_FAKE);
        }
        if request.header("x-ms-version").is_none() {
            return Err(MISSING_REQUIRED_HEADER);
        }
        check_container_name(&call.container)?;
        match call.op {
            Op::CreateContainer => self.put_container(call, now),
            Op::GetContainer => self.get_container(call),
            Op::ListBlobs => {
                listing::list(self.container(call)?, &call.container, request, self.knobs.longest_page, now)
            }
            _ => {
                check_blob_name(request.target().1)?;
                self.decide_on_blob(request, call, now)
            }
        }
    }

    fn decide_on_blob(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        match call.op {
            Op::HeadBlob | Op::GetBlob => self.get_blob(request, call, now),
            Op::PutBlob => self.put_blob(request, call, now),
            Op::SetMetadata => self.set_metadata(request, call, now),
            Op::DeleteBlob => self.delete_blob(request, call, now),
            _ => self.lease_blob(request, call, now),
        }
    }

    fn put_container(&mut self, call: &Call, now: Now) -> Result<Response, Refused> {
        self.create_container(&call.container, now)?;
        let container = self.container(call)?;
        Ok(dated(Response::new(201), &container.etag, container.modified))
    }

    fn get_container(&mut self, call: &Call) -> Result<Response, Refused> {
        let container = self.container(call)?;
        let answer = dated(Response::new(200), &container.etag, container.modified);
        Ok(answer.with("x-ms-lease-state", "available").with("x-ms-lease-status", "unlocked"))
    }

    fn get_blob(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        let lease_id = guid(request, "x-ms-lease-id")?;
        let blob = self.blob(call)?;
        check_conditions(request, Some(&blob.etag), NOT_MODIFIED)?;
        blob.lease.may_read(now.steady, lease_id)?;
        let (status, part, range) = part_of(&blob.body, request)?;
        let mut answer = dated(Response::new(status), &blob.etag, blob.modified);
        if let Some(range) = range {
            answer = answer.with("content-range", range);
        }
        answer = answer.with("content-length", part.len().to_string()).with("content-type", &blob.content_type);
        answer = answer.with("x-ms-creation-time", http_date(blob.created)).with("x-ms-blob-type", "BlockBlob");
        answer = with_lease(answer, &blob.lease, now.steady);
        if !blob.headers.contains_key(TIER) {
            answer = answer.with(TIER, "Hot").with("x-ms-access-tier-inferred", "true");
        }
        for (name, value) in &blob.headers {
            answer = answer.with(name, value);
        }
        for (name, value) in &blob.metadata {
            answer = answer.with(&format!("x-ms-meta-{name}"), value);
        }
        if call.op == Op::GetBlob {
            answer.body = part.to_vec();
        }
        Ok(answer)
    }

    fn put_blob(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        let metadata = metadata::of(request)?;
        let lease_id = guid(request, "x-ms-lease-id")?;
        if request.header("x-ms-blob-type").ok_or(MISSING_REQUIRED_HEADER)? != "BlockBlob" {
            return Err(UNKNOWN_TO_THE_FAKE);
        }
        check_content_length(request)?;
        let (etag, lease_first) = (self.etag(), self.knobs.lease_before_conditions);
        let container = self.containers.get_mut(&call.container).ok_or(CONTAINER_NOT_FOUND)?;
        let (created, lease) = match container.blobs.get_mut(&call.name) {
            Some(blob) => {
                blob.admit_write(request, lease_id, lease_first, BLOB_ALREADY_EXISTS, now.steady)?;
                (blob.created, std::mem::take(&mut blob.lease))
            }
            None if lease_id.is_some() => return Err(LEASE_NOT_PRESENT_WITH_BLOB_OPERATION),
            None => {
                check_conditions(request, None, CONDITION_NOT_MET)?;
                (now.wall, Lease::default())
            }
        };
        let content_type = request.header("x-ms-blob-content-type").or_else(|| request.header("content-type"));
        let content_type = content_type.unwrap_or("application/octet-stream").to_owned();
        let answer = dated(Response::new(201), &etag, now.wall).with("x-ms-request-server-encrypted", "true");
        let body = request.body.clone();
        let headers = SET_BY.iter().filter_map(|(by, shown)| Some((*shown, request.header(by)?.to_owned()))).collect();
        let blob = Blob { metadata, body, content_type, headers, etag, created, modified: now.wall, lease };
        container.blobs.insert(call.name.clone(), blob);
        Ok(answer)
    }

    fn set_metadata(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        let metadata = metadata::of(request)?;
        let lease_id = guid(request, "x-ms-lease-id")?;
        let (etag, lease_first) = (self.etag(), self.knobs.lease_before_conditions);
        let blob = self.blob(call)?;
        blob.admit_write(request, lease_id, lease_first, CONDITION_NOT_MET, now.steady)?;
        (blob.metadata, blob.etag, blob.modified) = (metadata, etag, now.wall);
        Ok(dated(Response::new(200), &blob.etag, blob.modified).with("x-ms-request-server-encrypted", "true"))
    }

    fn delete_blob(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        let lease_id = guid(request, "x-ms-lease-id")?;
        let lease_first = self.knobs.lease_before_conditions;
        let blob = self.blob(call)?;
        blob.admit_write(request, lease_id, lease_first, CONDITION_NOT_MET, now.steady)?;
        self.containers.get_mut(&call.container).and_then(|container| container.blobs.remove(&call.name));
        Ok(Response::new(202).with("x-ms-delete-type-permanent", "true"))
    }

    /// A lease operation moves neither the ETag nor the date.
    fn lease_blob(&mut self, request: &Request, call: &Call, now: Now) -> Result<Response, Refused> {
        let id = guid(request, "x-ms-lease-id")?;
        let proposed = guid(request, "x-ms-proposed-lease-id")?;
        let term = term(request, call.op)?;
        let period = break_period(request)?;
        let of_service = self.lease_id();
        let leeway = self.knobs.leeway;
        let blob = self.blob(call)?;
        check_conditions(request, Some(&blob.etag), CONDITION_NOT_MET)?;
        let lease = &mut blob.lease;
        let must = |id: Option<Uuid>| id.ok_or(MISSING_REQUIRED_HEADER);
        let (status, header, value) = match call.op {
            Op::Acquire => {
                let term = term.ok_or(MISSING_REQUIRED_HEADER)?;
                let id = lease.acquire(now.steady, proposed.unwrap_or(of_service), term, leeway)?;
                (201, "x-ms-lease-id", id.to_string())
            }
            Op::Renew => (200, "x-ms-lease-id", lease.renew(now.steady, must(id)?, leeway)?.to_string()),
            Op::Change => (200, "x-ms-lease-id", lease.change(now.steady, must(id)?, must(proposed)?)?.to_string()),
            Op::Release => {
                lease.release(now.steady, must(id)?)?;
                return Ok(dated(Response::new(200), &blob.etag, blob.modified));
            }
            Op::Break => {
                let left = lease.break_it(now.steady, period)?;
                (202, "x-ms-lease-time", whole_seconds(left).to_string())
            }
            _ => return Err(UNKNOWN_TO_THE_FAKE),
        };
        Ok(dated(Response::new(status), &blob.etag, blob.modified).with(header, value))
    }

    fn container(&self, call: &Call) -> Result<&Container, Refused> {
        self.containers.get(&call.container).ok_or(CONTAINER_NOT_FOUND)
    }

    fn blob(&mut self, call: &Call) -> Result<&mut Blob, Refused> {
        let container = self.containers.get_mut(&call.container).ok_or(CONTAINER_NOT_FOUND)?;
        container.blobs.get_mut(&call.name).ok_or(BLOB_NOT_FOUND)
    }

    fn lease_id(&mut self) -> Uuid {
        self.serial += 1;
        Uuid::from_u128(0x5e4f_0000_0000_4000_8000_0000_0000_0000 | u128::from(self.serial))
    }

    fn refuse(&self, request: &Request, refused: Refused, now: Now) -> Response {
        self.error(request, refused.status, refused.code, now)
    }

    /// HEAD and 304 have no body, whatever went wrong.
    fn error(&self, request: &Request, status: u16, code: &str, now: Now) -> Response {
        let mut answer = Response::new(status).with("x-ms-error-code", code);
        if request.method != "HEAD" && status != 304 {
            let (code, time) = (xml(code), http_date(now.wall));
            let message = format!("The fake refuses this request.\nTime:{time}");
            let body = format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
            );
            answer = answer.with("content-type", "application/xml");
            answer.body = body.into_bytes();
        }
        answer
    }

    fn sign(&mut self, request: &Request, mut answer: Response, now: Now) -> Response {
        self.serial += 1;
        let id = Uuid::from_u128(0x4e01_0000_0000_4000_8000_0000_0000_0000 | u128::from(self.serial));
        answer = answer.with("date", http_date(now.wall)).with("x-ms-request-id", id.to_string());
        answer = answer.with("server", "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0");
        for echoed in ["x-ms-version", "x-ms-client-request-id"] {
            if let Some(value) = request.header(echoed) {
                answer = answer.with(echoed, value);
            }
        }
        answer
    }
}

impl Blob {
    /// Judges lease and conditions of a write, and lets the service forget what a write makes it forget.
    fn admit_write(
        &mut self,
        request: &Request,
        lease_id: Option<Uuid>,
        lease_first: bool,
        exists: Refused,
        now: Moment,
    ) -> Result<(), Refused> {
        let conditions = check_conditions(request, Some(&self.etag), exists);
        let lease = self.lease.may_write(now, lease_id);
        if lease_first { lease.and(conditions) } else { conditions.and(lease) }?;
        self.lease.written(now);
        Ok(())
    }
}

fn with_lease(answer: Response, lease: &Lease, now: Moment) -> Response {
    let state = lease.state(now);
    let answer = answer.with("x-ms-lease-state", state.word()).with("x-ms-lease-status", state.status());
    match lease.term(now) {
        Some(Term::Fixed(_)) => answer.with("x-ms-lease-duration", "fixed"),
        Some(Term::Infinite) => answer.with("x-ms-lease-duration", "infinite"),
        None => answer,
    }
}

fn dated(answer: Response, etag: &str, modified: Duration) -> Response {
    answer.with("etag", etag).with("last-modified", http_date(modified))
}

fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

/// In whole seconds, like the service's.
pub fn http_date(wall: Duration) -> String {
    let seconds = i64::try_from(wall.as_secs()).unwrap_or(0);
    OffsetDateTime::from_unix_timestamp(seconds).map(|date| to_rfc7231(&date)).unwrap_or_default()
}
