//! What can go wrong with a request, scripted: which requests, which fault, and whether it happened.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use http_body_util::Full;
use hyper::Response;
use tokio::sync::watch;

use super::wire::WholeResponse;

/// One fault at one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The request never arrives; the client sees a connection reset.
    LoseRequest,
    /// The request is applied; the client sees a connection reset.
    LoseAnswer,
    /// The request waits for [`Injected::release`] and is then forwarded, also if the client has left.
    HoldRequest,
    /// Like `HoldRequest`, and released by itself after a while.
    HoldRequestFor(Duration),
    /// Like `HoldRequest`, but the client sees a connection reset at once.
    ResetAndHold,
    /// The request is applied; the answer waits for [`Injected::release`].
    HoldAnswer,
    /// Like `HoldAnswer`, and released by itself after a while.
    HoldAnswerFor(Duration),
    /// The request is applied twice; the client sees the first answer.
    Duplicate,
    /// The request is applied and answered; a second copy of it waits for [`Injected::release`].
    LateDuplicate,
    /// The request never arrives and the connection stays open.
    Stall,
    /// The request is applied; half of the answer's body arrives, then the connection ends.
    Truncate,
    /// The request never arrives; the client sees this answer.
    Answer(Answer),
    /// The request is applied; the client sees this answer.
    AnswerAfterApply(Answer),
    /// The answer lacks a header.
    WithoutHeader(&'static str),
    /// The answer has this header with this value.
    WithHeader(&'static str, String),
}

impl Fault {
    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LoseRequest => "request lost",
            Self::LoseAnswer => "answer lost",
            Self::HoldRequest | Self::HoldRequestFor(_) => "request held",
            Self::ResetAndHold => "reset, request held",
            Self::HoldAnswer | Self::HoldAnswerFor(_) => "answer held",
            Self::Duplicate => "duplicated",
            Self::LateDuplicate => "duplicated late",
            Self::Stall => "stalled",
            Self::Truncate => "answer truncated",
            Self::Answer(_) => "error answered",
            Self::AnswerAfterApply(_) => "applied, error answered",
            Self::WithoutHeader(_) | Self::WithHeader(..) => "header changed",
        }
    }
}

/// An error answer of the service.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    kind: &'static str,
    of_blob_service: bool,
}

impl Answer {
    pub fn new(status: u16, kind: &'static str) -> Self {
        Self { status, kind, of_blob_service: false }
    }

    /// One of Azure Blob Storage.
    pub fn of_blob_service(status: u16, kind: &'static str) -> Self {
        Self { status, kind, of_blob_service: true }
    }

    pub fn internal_error() -> Self {
        Self::new(500, "com.amazonaws.dynamodb.v20120810#InternalServerError")
    }

    pub fn forbidden() -> Self {
        Self::new(403, "com.amazon.coral.service#AccessDeniedException")
    }

    pub fn throttled() -> Self {
        let kind = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
        Self::new(400, kind)
    }

    pub fn invalid_signature() -> Self {
        Self::new(400, "com.amazon.coral.service#InvalidSignatureException")
    }

    pub fn to_response(&self) -> WholeResponse {
        let now = DateTime::from(SystemTime::now());
        let answer = Response::builder()
            .status(self.status)
            .header("date", now.fmt(DateTimeFormat::HttpDate).expect("a date of today"));
        let answer = if self.of_blob_service {
            let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}</Code></Error>", self.kind);
            answer
                .header("content-type", "application/xml")
                .header("x-ms-error-code", self.kind)
                .header("x-ms-request-id", "SCRIPTED")
                .body(Full::from(body))
        } else {
            let body = format!(r#"{{"__type":"{}","message":"scripted"}}"#, self.kind);
            answer
                .header("content-type", "application/x-amz-json-1.0")
                .header("x-amzn-requestid", "SCRIPTED")
                .body(Full::from(body))
        };
        answer.expect("valid parts")
    }
}

/// The requests that a fault is for.
#[derive(Clone, Debug, Default)]
pub struct Match {
    operation: Option<String>,
    parts: Vec<String>,
}

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of one operation, for example `UpdateItem`.
    pub fn op(operation: &str) -> Self {
        Self { operation: Some(operation.into()), parts: Vec::new() }
    }

    /// Of those, the ones with this text in their JSON body.
    pub fn containing(mut self, text: &str) -> Self {
        self.parts.push(text.into());
        self
    }

    fn covers(&self, operation: &str, body: &str) -> bool {
        self.operation.as_deref().is_none_or(|wanted| wanted == operation)
            && self.parts.iter().all(|part| body.contains(part))
    }
}

/// A fault in the making: narrow it down, then name the fault.
#[must_use = "nothing goes wrong before `fault` is called"]
pub struct Script<'a> {
    rules: &'a Rules,
    matching: Match,
    pick: Pick,
}

impl Script<'_> {
    /// Only the n-th matching request, counted from 1.
    pub fn nth(mut self, n: usize) -> Self {
        self.pick = Pick::Nth(n);
        self
    }

    /// Only the first n matching requests.
    pub fn first(mut self, n: usize) -> Self {
        self.pick = Pick::First(n);
        self
    }

    /// A share of the matching requests, from 0.0 to 1.0; the same seed picks the same ones.
    pub fn rate(mut self, share: f64, seed: u64) -> Self {
        self.pick = Pick::Rate { share, seed };
        self
    }

    /// Lets the fault happen from now on. Where faults compete for a request, the oldest wins.
    pub fn fault(self, fault: Fault) -> Injected {
        let rule = Arc::new(Rule {
            matching: self.matching,
            pick: self.pick,
            fault,
            matched: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            happened: watch::Sender::new(0),
            landed: watch::Sender::new(0),
            released: watch::Sender::new(false),
        });
        self.rules.0.lock().unwrap().push(rule.clone());
        Injected(rule)
    }
}

/// A fault in place. Dropping this leaves it there.
#[derive(Clone)]
pub struct Injected(Arc<Rule>);

impl Injected {
    /// How many requests have met the fault. A held one counts from when it is held.
    pub fn happened(&self) -> usize {
        *self.0.happened.borrow()
    }

    /// Waits until that many requests have met the fault.
    pub async fn until_happened(&self, n: usize) {
        reached(&self.0.happened, n).await;
    }

    /// Lets held requests and answers go on, also those that are yet to come.
    pub fn release(&self) {
        self.0.released.send_replace(true);
    }

    /// How many held requests or late copies have been applied.
    pub fn landed(&self) -> usize {
        *self.0.landed.borrow()
    }

    /// Waits until that many held requests or late copies have been applied.
    pub async fn until_landed(&self, n: usize) {
        reached(&self.0.landed, n).await;
    }

    /// Ends the fault; what is held stays held.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
    }
}

/// A fault as the proxy sees it.
pub struct Rule {
    pub fault: Fault,
    matching: Match,
    pick: Pick,
    matched: AtomicUsize,
    stopped: AtomicBool,
    happened: watch::Sender<usize>,
    landed: watch::Sender<usize>,
    released: watch::Sender<bool>,
}

impl Rule {
    pub fn happens(&self) {
        self.happened.send_modify(|count| *count += 1);
    }

    pub fn lands(&self) {
        self.landed.send_modify(|count| *count += 1);
    }

    pub async fn until_released(&self) {
        let mut released = self.released.subscribe();
        released.wait_for(|released| *released).await.expect("the rule owns the sender");
    }

    /// Counts the request if it matches, and says whether the fault is for it.
    fn meets(&self, operation: &str, body: &str) -> bool {
        let matches = !self.stopped.load(Ordering::SeqCst) && self.matching.covers(operation, body);
        matches && self.pick.takes(self.matched.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// All faults in place, the oldest first.
#[derive(Default)]
pub struct Rules(Mutex<Vec<Arc<Rule>>>);

impl Rules {
    pub fn script(&self, matching: Match) -> Script<'_> {
        Script { rules: self, matching, pick: Pick::Every }
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Shows the request to every rule, so that each counts its own matches.
    pub fn choose(&self, operation: &str, body: &str) -> Option<Arc<Rule>> {
        let rules = self.0.lock().unwrap();
        let met = rules.iter().filter(|rule| rule.meets(operation, body));
        met.fold(None, |chosen, rule| chosen.or_else(|| Some(rule.clone())))
    }
}

/// Which of the matching requests.
enum Pick {
    Every,
    Nth(usize),
    First(usize),
    Rate { share: f64, seed: u64 },
}

impl Pick {
    fn takes(&self, match_number: usize) -> bool {
        match self {
            Self::Every => true,
            Self::Nth(n) => match_number == *n,
            Self::First(n) => match_number <= *n,
            Self::Rate { share, seed } => chance(*seed, match_number as u64) < *share,
        }
    }
}

/// The `index`-th number of splitmix64 with this seed, in [0, 1).
fn chance(seed: u64, index: u64) -> f64 {
    let mut z = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

async fn reached(count: &watch::Sender<usize>, n: usize) {
    let mut count = count.subscribe();
    count.wait_for(|count| *count >= n).await.expect("the rule owns the sender");
}
