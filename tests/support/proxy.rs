//! A fault proxy between a client and its service, which sees what is really on the wire.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};

use super::emulator;
use super::faults::{Fault, Match, Rule, Rules, Script};
use super::loopback::Loopback;
use super::wire::{Upstream, WholeRequest, WholeResponse, first_half};

/// An HTTP/1.1 proxy that records every request and lets scripted faults happen.
///
/// It has threads of its own, so it works from every kind of test. Several proxies before
/// one emulator give each client faults of its own.
pub struct Proxy {
    front: Loopback,
    shared: Arc<Shared>,
    /// Where requests are forwarded: apart from the connections they came by, so that a held
    /// request outlives its client.
    back: Option<Runtime>,
}

impl Proxy {
    /// Starts a proxy that forwards to `upstream`.
    pub fn to(upstream: SocketAddr) -> Self {
        let back = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared::new(upstream, back.handle().clone()));
        let front = Loopback::start({
            let shared = shared.clone();
            move |listener| accept(shared.clone(), listener)
        });
        Self { front, shared, back: Some(back) }
    }

    pub fn addr(&self) -> SocketAddr {
        self.front.addr()
    }

    /// A client that speaks through the proxy, without retries.
    pub fn client(&self) -> Client {
        emulator::client(self.addr())
    }

    /// Begins a fault for the matching requests.
    pub fn on(&self, matching: Match) -> Script<'_> {
        self.shared.rules.script(matching)
    }

    /// Ends all faults; what is held stays held.
    pub fn heal(&self) {
        self.shared.rules.clear();
    }

    /// Delays every request by this much before anything else.
    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock().unwrap() = latency;
    }

    /// Refuses connections and drops the open ones. Requests that have arrived go their way.
    pub fn down(&self) {
        self.front.down();
    }

    /// Accepts connections again, on the same port.
    pub fn up(&self) {
        self.front.up();
    }

    /// How many requests of this operation have arrived.
    pub fn count(&self, operation: &str) -> usize {
        self.shared.seen.lock().unwrap().iter().filter(|seen| seen.operation == operation).count()
    }

    /// How many requests have arrived.
    pub fn total(&self) -> usize {
        self.shared.seen.lock().unwrap().len()
    }

    /// How many connections clients have opened.
    pub fn connections_opened(&self) -> usize {
        let before = self.shared.connections_before_reset.load(Ordering::SeqCst);
        self.shared.connections.load(Ordering::SeqCst) - before
    }

    /// All requests in the order of their arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// All faults that have happened, in their order.
    pub fn happened(&self) -> Vec<Happened> {
        self.shared.happened.lock().unwrap().clone()
    }

    /// Forgets the requests and connections so far.
    pub fn reset_counts(&self) {
        self.shared.seen.lock().unwrap().clear();
        let opened = self.shared.connections.load(Ordering::SeqCst);
        self.shared.connections_before_reset.store(opened, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.front.down();
        if let Some(back) = self.back.take() {
            // Waiting for it is not allowed where a test's runtime drops the proxy.
            back.shutdown_background();
        }
    }
}

/// A fault that a request has met.
#[derive(Clone, Debug)]
pub struct Happened {
    pub at: Instant,
    /// As [`Fault::name`] has it.
    pub fault: &'static str,
    /// As [`Seen::operation`].
    pub operation: String,
}

/// One request as it was on the wire, and what became of it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// From `X-Amz-Target`, for example `UpdateItem`. Elsewhere the method, with the URL's `comp` and the lease action
    /// of the blob service: `PUT lease acquire`.
    pub operation: String,
    pub body: Value,
    /// Numbered in the order in which clients opened them, from 1.
    pub connection: usize,
    pub arrived: Instant,
    /// How often the emulator has answered a copy of it.
    pub forwarded: usize,
    /// The status of the complete answer that was on its way to a client still connected.
    pub answered: Option<u16>,
    id: usize,
}

struct Shared {
    upstream: Upstream,
    back: Handle,
    rules: Rules,
    latency: Mutex<Duration>,
    seen: Mutex<Vec<Seen>>,
    happened: Mutex<Vec<Happened>>,
    next_id: AtomicUsize,
    connections: AtomicUsize,
    connections_before_reset: AtomicUsize,
}

impl Shared {
    fn new(upstream: SocketAddr, back: Handle) -> Self {
        Self {
            upstream: Upstream::new(upstream),
            back,
            rules: Rules::default(),
            latency: Mutex::default(),
            seen: Mutex::default(),
            happened: Mutex::default(),
            next_id: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            connections_before_reset: AtomicUsize::new(0),
        }
    }

    fn record(&self, connection: usize, operation: &str, body: &str) -> usize {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push(Seen {
            operation: operation.into(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
            connection,
            arrived: Instant::now(),
            forwarded: 0,
            answered: None,
            id,
        });
        id
    }

    /// Does nothing for a request that a reset of the counts has forgotten.
    fn update(&self, id: usize, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.lock().unwrap();
        if let Some(seen) = seen.iter_mut().rev().find(|seen| seen.id == id) {
            change(seen);
        }
    }
}

/// How a connection ends early.
#[derive(Debug)]
enum Parting {
    Reset,
    Cut(Vec<u8>),
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script ends this connection")
    }
}

impl Error for Parting {}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let connection = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::spawn(serve(shared.clone(), connection, stream));
    }
}

async fn serve(shared: Arc<Shared>, connection: usize, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| Box::pin(exchange(shared.clone(), connection, request)));
    let mut http = http1::Builder::new()
        // The emulator sends one, and a fault may take it away.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let ended = poll_fn(|cx| http.poll_without_shutdown(cx)).await;
    let stream = http.into_parts().io.into_inner();
    if let Some(parting) = ended.err().as_ref().and_then(Error::source) {
        part(stream, parting.downcast_ref()).await;
    }
}

async fn part(mut stream: TcpStream, parting: Option<&Parting>) {
    match parting {
        Some(Parting::Cut(last_words)) => {
            let _ = stream.write_all(last_words).await;
            let _ = stream.shutdown().await;
        }
        Some(Parting::Reset) => {
            // With a linger time of zero, closing sends RST instead of FIN.
            #[allow(deprecated, reason = "its successor is newer than the oldest tokio we allow")]
            let _ = stream.set_linger(Some(Duration::ZERO));
        }
        None => {}
    }
}

async fn exchange(
    shared: Arc<Shared>,
    connection: usize,
    request: Request<Incoming>,
) -> Result<WholeResponse, Parting> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Parting::Reset)?.to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    let operation = operation(&head);
    let exchange = Exchange {
        id: shared.record(connection, &operation, &text),
        operation: operation.clone(),
        request: Request::from_parts(head, Full::new(body)),
        shared: shared.clone(),
    };
    let id = exchange.id;
    let rule = shared.rules.choose(&operation, &text);
    let outcome = shared.back.spawn(async move { exchange.run(rule).await });
    let response = outcome.await.map_err(|_| Parting::Reset)??;
    shared.update(id, |seen| seen.answered = Some(response.status().as_u16()));
    Ok(response)
}

fn operation(head: &Parts) -> String {
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(target) = header("x-amz-target") {
        return target.rsplit('.').next().unwrap_or_default().into();
    }
    let comp = head.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("comp=")));
    let words = [Some(head.method.as_str()), comp, header("x-ms-lease-action")];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// One request on its way, independent of the connection it came by.
struct Exchange {
    shared: Arc<Shared>,
    id: usize,
    operation: String,
    request: WholeRequest,
}

impl Exchange {
    async fn run(self, rule: Option<Arc<Rule>>) -> Result<WholeResponse, Parting> {
        let latency = *self.shared.latency.lock().unwrap();
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        match rule {
            Some(rule) => self.run_into(rule).await,
            None => self.forward().await,
        }
    }

    /// One arm for each fault, as [`Fault`] describes it.
    async fn run_into(self, rule: Arc<Rule>) -> Result<WholeResponse, Parting> {
        match &rule.fault {
            Fault::LoseRequest => {
                self.meets(&rule);
                Err(Parting::Reset)
            }
            Fault::Stall => {
                self.meets(&rule);
                std::future::pending().await
            }
            Fault::Answer(answer) => {
                self.meets(&rule);
                Ok(answer.to_response())
            }
            Fault::HoldRequest => {
                self.meets(&rule);
                self.forward_late(&rule).await
            }
            Fault::HoldRequestFor(time) => {
                self.meets(&rule);
                let _ = tokio::time::timeout(*time, rule.until_released()).await;
                self.land(&rule).await
            }
            Fault::ResetAndHold => {
                self.meets(&rule);
                tokio::spawn(async move { self.forward_late(&rule).await });
                Err(Parting::Reset)
            }
            _ => self.answer_into(rule).await,
        }
    }

    /// The faults that begin once the request has been applied.
    async fn answer_into(self, rule: Arc<Rule>) -> Result<WholeResponse, Parting> {
        let mut response = self.forward().await?;
        if matches!(rule.fault, Fault::Duplicate) {
            self.forward().await?;
        }
        self.meets(&rule);
        match &rule.fault {
            Fault::LoseAnswer => return Err(Parting::Reset),
            Fault::Truncate => return Err(Parting::Cut(first_half(response).await)),
            Fault::AnswerAfterApply(answer) => return Ok(answer.to_response()),
            Fault::HoldAnswer => rule.until_released().await,
            Fault::HoldAnswerFor(time) => {
                let _ = tokio::time::timeout(*time, rule.until_released()).await;
            }
            Fault::LateDuplicate => {
                tokio::spawn(async move { self.forward_late(&rule).await });
            }
            Fault::WithoutHeader(name) => {
                response.headers_mut().remove(*name);
            }
            Fault::WithHeader(name, value) => {
                let value = HeaderValue::from_str(value).expect("a header value");
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
            Fault::Duplicate => {}
            before => unreachable!("{before:?} happens before the request is applied"),
        }
        Ok(response)
    }

    fn meets(&self, rule: &Rule) {
        let (at, fault) = (Instant::now(), rule.fault.name());
        self.shared.happened.lock().unwrap().push(Happened { at, fault, operation: self.operation.clone() });
        rule.happens();
    }

    async fn forward_late(&self, rule: &Rule) -> Result<WholeResponse, Parting> {
        rule.until_released().await;
        self.land(rule).await
    }

    async fn land(&self, rule: &Rule) -> Result<WholeResponse, Parting> {
        let response = self.forward().await?;
        rule.lands();
        Ok(response)
    }

    /// An emulator that is down looks to the client like a network that is.
    async fn forward(&self) -> Result<WholeResponse, Parting> {
        let sent = self.shared.upstream.send(self.request.clone()).await;
        let response = sent.map_err(|_| Parting::Reset)?;
        self.shared.update(self.id, |seen| seen.forwarded += 1);
        Ok(response)
    }
}
