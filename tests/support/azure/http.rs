//! Requests and answers as plain values, and what a request is about. Nothing here knows a client library.

use std::collections::BTreeMap;

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// "https" or "http".
    pub scheme: String,
    pub host: String,
    /// As it was sent, with its percent signs.
    pub path: String,
    /// As it was sent, without the question mark.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// An answer as it goes out.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    HeadBlob,
    GetBlob,
    PutBlob,
    Acquire,
    Renew,
    Change,
    Release,
    Break,
    SetMetadata,
    DeleteBlob,
    GetContainer,
    CreateContainer,
    ListBlobs,
    /// What the fake does not know: it is answered 400.
    Unknown,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub op: Op,
    pub container: String,
    /// The blob's name, decoded; of a request about a container, the container's.
    pub name: String,
}

/// Query parameters of a shared access signature.
const SAS: &[&str] = &[
    "sv", "ss", "srt", "sr", "sp", "st", "se", "spr", "sip", "si", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv",
    "saoid", "suoid", "scid", "sdd", "ses",
];

/// Headers that change what a request means; those of them that the fake knows.
const X_MS: &[&str] = &[
    "x-ms-version",
    "x-ms-date",
    "x-ms-client-request-id",
    "x-ms-lease-id",
    "x-ms-lease-action",
    "x-ms-lease-duration",
    "x-ms-lease-break-period",
    "x-ms-proposed-lease-id",
    "x-ms-blob-type",
    "x-ms-blob-content-type",
    "x-ms-blob-content-encoding",
    "x-ms-blob-content-language",
    "x-ms-blob-content-disposition",
    "x-ms-blob-cache-control",
    "x-ms-access-tier",
];

impl Request {
    /// A header without the blanks around it, as HTTP reads it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.trim_matches([' ', '\t']))
    }

    /// The query, decoded, in its order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
            })
            .collect()
    }

    pub fn parameter(&self, name: &str) -> Option<String> {
        self.pairs().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Container and blob as they were sent. An emulator's address begins its path with the account.
    pub fn target(&self) -> (&str, &str) {
        let path = self.path.strip_prefix('/').unwrap_or(&self.path);
        let path = if self.has_account_in_host() { path } else { path.split_once('/').map_or("", |(_, rest)| rest) };
        path.split_once('/').unwrap_or((path, ""))
    }

    pub fn call(&self) -> Call {
        let (container, blob) = self.target();
        let op = if self.has_unknown_parts() { Op::Unknown } else { self.op(!blob.is_empty()) };
        let name = if blob.is_empty() { container.to_owned() } else { decoded(blob) };
        Call { op, container: container.to_owned(), name }
    }

    fn has_account_in_host(&self) -> bool {
        self.host.contains(".blob.")
    }

    fn op(&self, is_blob: bool) -> Op {
        let comp = self.parameter("comp");
        let of_container = self.parameter("restype").as_deref() == Some("container");
        match (self.method.as_str(), is_blob, of_container, comp.as_deref()) {
            ("HEAD", true, false, None) => Op::HeadBlob,
            ("GET", true, false, None) => Op::GetBlob,
            ("PUT", true, false, None) => Op::PutBlob,
            ("DELETE", true, false, None) => Op::DeleteBlob,
            ("PUT", true, false, Some("metadata")) => Op::SetMetadata,
            ("PUT", true, false, Some("lease")) => self.lease_op(),
            ("PUT", false, true, None) => Op::CreateContainer,
            ("GET" | "HEAD", false, true, None) => Op::GetContainer,
            ("GET", false, true, Some("list")) => Op::ListBlobs,
            _ => Op::Unknown,
        }
    }

    fn lease_op(&self) -> Op {
        match self.header("x-ms-lease-action") {
            Some("acquire") => Op::Acquire,
            Some("renew") => Op::Renew,
            Some("change") => Op::Change,
            Some("release") => Op::Release,
            Some("break") => Op::Break,
            _ => Op::Unknown,
        }
    }

    fn has_unknown_parts(&self) -> bool {
        let listing = self.parameter("comp").as_deref() == Some("list");
        let known = |name: &str| match name {
            "comp" | "restype" | "timeout" => true,
            "prefix" | "marker" | "maxresults" | "include" => listing,
            other => SAS.contains(&other),
        };
        let understood = |name: &str| match name {
            "if-modified-since" | "if-unmodified-since" => false,
            name if name.starts_with("x-ms-meta-") => true,
            name if name.starts_with("x-ms-") => X_MS.contains(&name),
            _ => true,
        };
        !self.pairs().iter().all(|(name, _)| known(name)) || !self.headers.keys().all(|name| understood(name))
    }
}

impl Response {
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.insert(name.to_owned(), value.into());
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn code(&self) -> Option<&str> {
        self.header("x-ms-error-code")
    }
}

/// Text for an element or an attribute.
pub fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Percent signs decoded; what is not UTF-8 then is replaced.
pub fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
