//! Requests of somebody else: past the script, and not counted. For hooks, and for tests of the fake itself.

use uuid::Uuid;

use super::Fake;
use super::http::{Request, Response};

impl Fake {
    /// A request to a blob of the container; without a name, to the container.
    pub fn request(&self, method: &str, name: &str, query: &str) -> Request {
        let host = self.endpoint().trim_start_matches("https://").to_owned();
        let path = if name.is_empty() { format!("/{}", self.container) } else { format!("/{}/{name}", self.container) };
        let request = Request {
            method: method.to_owned(),
            scheme: "https".to_owned(),
            host,
            path,
            query: query.to_owned(),
            ..Request::default()
        };
        request.with("x-ms-version", "2026-02-06")
    }

    /// A lease of `seconds`, or without end if they are -1.
    pub fn acquire(&self, name: &str, proposed: Uuid, seconds: i64) -> Response {
        let request = self.lease_request(name, "acquire").with("x-ms-lease-duration", &seconds.to_string());
        self.send(&request.with("x-ms-proposed-lease-id", &proposed.to_string()))
    }

    pub fn renew(&self, name: &str, id: Uuid) -> Response {
        self.send(&self.lease_request(name, "renew").with("x-ms-lease-id", &id.to_string()))
    }

    pub fn change(&self, name: &str, id: Uuid, proposed: Uuid) -> Response {
        let request = self.lease_request(name, "change").with("x-ms-lease-id", &id.to_string());
        self.send(&request.with("x-ms-proposed-lease-id", &proposed.to_string()))
    }

    pub fn release(&self, name: &str, id: Uuid) -> Response {
        self.send(&self.lease_request(name, "release").with("x-ms-lease-id", &id.to_string()))
    }

    pub fn break_lease(&self, name: &str, period: Option<u64>) -> Response {
        let request = self.lease_request(name, "break");
        self.send(&match period {
            Some(seconds) => request.with("x-ms-lease-break-period", &seconds.to_string()),
            None => request,
        })
    }

    pub fn set_metadata(&self, name: &str, lease_id: Option<Uuid>, metadata: &[(&str, &str)]) -> Response {
        self.send(&self.request("PUT", name, "comp=metadata").with_metadata(metadata).with_lease(lease_id))
    }

    pub fn put_blob(&self, name: &str, lease_id: Option<Uuid>, metadata: &[(&str, &str)]) -> Response {
        self.send(&self.put_request(name).with_metadata(metadata).with_lease(lease_id))
    }

    pub fn head_blob(&self, name: &str) -> Response {
        self.send(&self.request("HEAD", name, ""))
    }

    pub fn lease_request(&self, name: &str, action: &str) -> Request {
        self.request("PUT", name, "comp=lease").with("x-ms-lease-action", action)
    }

    pub fn put_request(&self, name: &str) -> Request {
        self.request("PUT", name, "").with("x-ms-blob-type", "BlockBlob")
    }
}

impl Request {
    pub fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.insert(header.to_owned(), value.to_owned());
        self
    }

    pub fn with_lease(self, id: Option<Uuid>) -> Self {
        match id {
            Some(id) => self.with("x-ms-lease-id", &id.to_string()),
            None => self,
        }
    }

    pub fn with_metadata(self, metadata: &[(&str, &str)]) -> Self {
        metadata.iter().fold(self, |request, (name, value)| request.with(&format!("x-ms-meta-{name}"), value))
    }
}
