//! A strict Blob service inside the test's process: it keeps to the documentation where the emulator does not, runs
//! on a test clock, counts its requests, and misbehaves by script.
//!
//! `leases` is the state machine of one blob's lease, `service` the REST API over it, `transport` makes it the
//! transport of an `azure_core` client. `exchange` is all that a listener would need.

pub mod auth;
pub mod checks;
pub mod codes;
pub mod faults;
pub mod http;
pub mod leases;
pub mod listing;
pub mod metadata;
pub mod rival;
pub mod service;
pub mod transport;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leasehold::{Clock, Sleep, Stamp, SystemClock};
use uuid::Uuid;

pub use self::auth::Auth;
pub use self::faults::{Broken, Fault, Gate, Happened, On};
pub use self::http::{Op, Request, Response};
pub use self::leases::State;
pub use self::metadata::Metadata;
pub use self::service::Knobs;

use self::faults::Rules;
use self::http::Call;
use self::leases::Lease;
use self::service::{Blob, Now, Service};

/// The account of every fake.
pub const ACCOUNT: &str = "leaseholdfake";
/// The container that [`Fake::new`] has.
pub const CONTAINER: &str = "leases";
/// How far the clock of a proxy is ahead.
const FOREIGN_CLOCK: Duration = Duration::from_secs(3600);

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct Fake {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// What the hooks for operators act on.
    container: String,
}

#[derive(Default)]
struct Shared {
    service: Mutex<Service>,
    rules: Rules,
    seen: Mutex<Vec<Seen>>,
    serial: AtomicU64,
}

/// One request as it arrived at the client's transport.
#[derive(Clone, Debug)]
pub struct Seen {
    pub op: Op,
    /// The blob's name, or the container's.
    pub name: String,
    pub method: String,
    pub request: Request,
    /// When it was sent, by the service's clocks.
    pub at: Stamp,
    /// What the client was answered, if anything.
    pub answered: Option<(u16, Option<String>)>,
    serial: u64,
}

/// A blob as an operator sees it.
#[derive(Clone, Debug)]
pub struct Peek {
    pub state: State,
    pub lease_id: Option<Uuid>,
    pub metadata: Metadata,
    pub etag: String,
    pub body: Vec<u8>,
}

/// Everything by one function for milliseconds.
struct Milliseconds<F>(F);

impl Fake {
    /// A service with the container [`CONTAINER`], on these clocks. Give it a machine of its own.
    pub fn new(clock: impl Clock) -> Self {
        let fake = Self::without_container(clock);
        let created = fake.service().create_container(CONTAINER, fake.now());
        created.expect("a new service has no container");
        fake
    }

    pub fn without_container(clock: impl Clock) -> Self {
        Self { shared: Arc::default(), clock: Arc::new(clock), container: CONTAINER.to_owned() }
    }

    /// A service whose time is this function, in milliseconds since 1970.
    pub fn on_time(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::new(Milliseconds(now))
    }

    /// The same service, whose operators act on another container.
    pub fn of_container(&self, container: &str) -> Self {
        Self { container: container.to_owned(), ..self.clone() }
    }

    /// The account's address.
    pub fn endpoint(&self) -> String {
        format!("https://{ACCOUNT}.blob.core.windows.net")
    }

    /// The address of the container.
    pub fn container_url(&self) -> String {
        format!("{}/{}", self.endpoint(), self.container)
    }

    /// Decides what the service does where it may do one thing or another.
    pub fn set(&self, change: impl FnOnce(&mut Knobs)) {
        change(&mut self.service().knobs);
    }

    /// Every request has to carry this from now on.
    pub fn require(&self, auth: Auth) {
        self.set(|knobs| knobs.auth = auth);
    }

    /// Scripts what happens to the next requests of this kind.
    pub fn on(&self, op: Op) -> On<'_> {
        self.shared.rules.on(op)
    }

    /// Forgets all that was scripted.
    pub fn heal(&self) {
        self.shared.rules.clear();
    }

    /// A request of somebody else: past the script, and not counted.
    pub fn send(&self, request: &Request) -> Response {
        let now = self.now();
        self.service().answer(request, now)
    }
}

/// What was asked.
impl Fake {
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub fn count(&self, op: Op) -> usize {
        self.requests().iter().filter(|seen| seen.op == op).count()
    }

    pub fn count_of(&self, op: Op, name: &str) -> usize {
        self.requests().iter().filter(|seen| seen.op == op && seen.name == name).count()
    }

    pub fn total(&self) -> usize {
        self.requests().len()
    }

    pub fn forget_requests(&self) {
        self.shared.seen.lock().unwrap().clear();
    }

    /// The requests that were answered 400: no client of ours should send one.
    pub fn invalid(&self) -> Vec<Seen> {
        let is_invalid = |seen: &Seen| seen.op == Op::Unknown || matches!(seen.answered, Some((400, _)));
        self.requests().into_iter().filter(is_invalid).collect()
    }
}

/// What an operator may do, past every lease.
impl Fake {
    pub fn peek(&self, name: &str) -> Option<Peek> {
        let now = self.now();
        let service = self.service();
        let blob = service.containers.get(&self.container)?.blobs.get(name)?;
        let state = blob.lease.state(now.steady);
        let (metadata, etag, body) = (blob.metadata.clone(), blob.etag.clone(), blob.body.clone());
        Some(Peek { state, lease_id: state.id(), metadata, etag, body })
    }

    /// The names of all blobs.
    pub fn names(&self) -> Vec<String> {
        let service = self.service();
        let container = service.containers.get(&self.container);
        container.map(|container| container.blobs.keys().cloned().collect()).unwrap_or_default()
    }

    /// Whether there was one.
    pub fn delete_blob(&self, name: &str) -> bool {
        let mut service = self.service();
        let container = service.containers.get_mut(&self.container);
        container.is_some_and(|container| container.blobs.remove(name).is_some())
    }

    /// With all its blobs, leased or not. Whether there was one.
    pub fn delete_container(&self) -> bool {
        let now = self.now();
        self.service().delete_container(&self.container, now)
    }

    /// A write with whatever lease id it needs: it moves the ETag. Whether there is such a blob.
    pub fn edit_metadata(&self, name: &str, edit: impl FnOnce(&mut Metadata)) -> bool {
        let now = self.now();
        let mut service = self.service();
        let etag = service.etag();
        let container = service.containers.get_mut(&self.container);
        let Some(blob) = container.and_then(|container| container.blobs.get_mut(name)) else { return false };
        edit(&mut blob.metadata);
        (blob.etag, blob.modified) = (etag, now.wall);
        blob.lease.written(now.steady);
        true
    }

    /// A blob that somebody else has put there, in place of any other and its lease.
    pub fn put_foreign(&self, name: &str, metadata: &[(&str, &str)]) {
        let now = self.now();
        let mut service = self.service();
        let etag = service.etag();
        let blob = Blob {
            metadata: metadata.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: b"foreign".to_vec(),
            content_type: "text/plain".to_owned(),
            headers: BTreeMap::new(),
            etag,
            created: now.wall,
            modified: now.wall,
            lease: Lease::default(),
        };
        let container = service.containers.get_mut(&self.container).expect("the container is there");
        container.blobs.insert(name.to_owned(), blob);
    }
}

/// The way of a request.
impl Fake {
    /// Takes a request from the client and brings back its answer, if the script lets it.
    pub async fn exchange(&self, request: Request) -> Result<Response, Broken> {
        let call = request.call();
        let plan = self.shared.rules.plan(&call);
        let seen = self.note(&call, &request);
        for act in &plan.before {
            act.perform(self).await;
        }
        let outcome = self.suffer(&request, plan.fault).await;
        for act in &plan.after {
            act.perform(self).await;
        }
        if let Some(Fault::AnswerLate(late)) = plan.fault {
            self.clock.sleep(late).await;
        }
        if plan.fault == Some(Fault::ApplyThenHang) {
            return std::future::pending().await;
        }
        if let Ok(answer) = &outcome {
            self.note_answer(seen, answer);
        }
        outcome
    }

    async fn suffer(&self, request: &Request, fault: Option<Fault>) -> Result<Response, Broken> {
        match fault {
            None | Some(Fault::AnswerLate(_) | Fault::ApplyThenHang) => Ok(self.send(request)),
            Some(Fault::RefuseConnection) => Err(Broken::NotConnected),
            Some(Fault::LoseRequest) => Err(Broken::Lost),
            Some(Fault::LoseAnswer) => {
                self.send(request);
                Err(Broken::Lost)
            }
            Some(Fault::ApplyLate(late)) => {
                self.send_late(request, late);
                Err(Broken::Lost)
            }
            Some(Fault::Delay(late)) => {
                self.clock.sleep(late).await;
                Ok(self.send(request))
            }
            Some(Fault::Twice(late)) => {
                let answer = self.send(request);
                self.send_late(request, late);
                Ok(answer)
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Answer(status, code)) => Ok(self.answer_with(request, status, code)),
            Some(Fault::ApplyThen(status)) => {
                self.send(request);
                Ok(self.answer_with(request, status, usual_code(status)))
            }
            Some(Fault::AnswerForeign) => Ok(self.foreign(502)),
            Some(Fault::AnswerForeignStatus(status)) => Ok(self.foreign(status)),
        }
    }

    fn send_late(&self, request: &Request, late: Duration) {
        let (fake, request) = (self.clone(), request.clone());
        tokio::spawn(async move {
            fake.clock.sleep(late).await;
            fake.send(&request);
        });
    }

    /// What the service says in place of an answer that means something.
    pub fn answer_with(&self, request: &Request, status: u16, code: &str) -> Response {
        let now = self.now();
        self.service().answer_with(request, status, code, now)
    }

    /// What a proxy says in the service's place.
    pub fn foreign(&self, status: u16) -> Response {
        let date = service::http_date(self.now().wall + FOREIGN_CLOCK);
        let mut answer =
            Response::new(status).with("date", date).with("content-type", "text/html").with("via", "1.1 proxy");
        answer.body = b"<html><body>The proxy says so.</body></html>".to_vec();
        answer
    }

    /// Its number.
    fn note(&self, call: &Call, request: &Request) -> u64 {
        let serial = self.shared.serial.fetch_add(1, Ordering::SeqCst);
        let (name, method, request) = (call.name.clone(), request.method.clone(), request.clone());
        let seen = Seen { op: call.op, name, method, request, at: self.clock.stamp(), answered: None, serial };
        self.shared.seen.lock().unwrap().push(seen);
        serial
    }

    fn note_answer(&self, serial: u64, answer: &Response) {
        let mut seen = self.shared.seen.lock().unwrap();
        if let Some(seen) = seen.iter_mut().find(|seen| seen.serial == serial) {
            seen.answered = Some((answer.status, answer.code().map(str::to_owned)));
        }
    }

    fn now(&self) -> Now {
        let stamp = self.clock.stamp();
        Now { steady: Duration::from_nanos(stamp.boot), wall: Duration::from_nanos(stamp.real) }
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.shared.service.lock().unwrap()
    }
}

impl Debug for Fake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fake").field("container", &self.container).finish_non_exhaustive()
    }
}

impl<F> Debug for Milliseconds<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Milliseconds")
    }
}

impl<F: Fn() -> u64 + Send + Sync + 'static> Clock for Milliseconds<F> {
    fn stamp(&self) -> Stamp {
        let now = (self.0)() * 1_000_000;
        Stamp { boot: now, mono: now, raw: now, real: now }
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        SystemClock.sleep(duration)
    }

    fn random(&self) -> u128 {
        0
    }
}

fn usual_code(status: u16) -> &'static str {
    match status {
        500 => "InternalError",
        503 => "ServerBusy",
        408 | 504 => "OperationTimedOut",
        _ => "ScriptedByTheTest",
    }
}
