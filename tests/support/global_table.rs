//! Global tables of DynamoDB as its documentation describes them: replication with a lag, and conflicts between
//! regions. No emulator has either.
//!
//! It knows what leases and fenced updates need: `CreateTable`, `DescribeTable`, `UpdateItem`, `GetItem`, `Scan`. Any
//! other write is refused, rather than applied in one region only.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Plain};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Region;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, watch};

use super::emulator::{self, Emulator};
use super::loopback::Loopback;
use super::wire::{Upstream, WholeRequest, WholeResponse};

/// The tables of one account in several regions, all of them replicated to each.
///
/// It has threads of its own, so it works from every kind of test.
pub struct GlobalTable {
    regions: Vec<Front>,
    shared: Arc<Shared>,
    back: Option<Runtime>,
}

/// How the replicas of a table keep together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// MREC: a condition is judged on the region's own data. A write arrives in the other regions so much later; of two
    /// writes to one item the one that was made last wins, and the other is gone without a word.
    Eventual { lag: Duration },
    /// MRSC: one set of data. A write takes so long, and one to an item that another region is writing is refused.
    Strong { write: Duration },
}

struct Front {
    name: String,
    server: Loopback,
}

struct Shared {
    replication: Replication,
    names: Vec<String>,
    replicas: Vec<Replica>,
    /// Numbers writes in the order in which they were made, over all regions.
    writes: AtomicUsize,
    /// The region that is writing an item.
    writing: Plain<HashMap<String, usize>>,
    conflicts: Plain<Vec<usize>>,
}

/// What one region has.
struct Replica {
    data: Upstream,
    /// The write that each item shows. Held while an item is written.
    newest: Mutex<HashMap<String, usize>>,
    /// Whether the region is cut off: nothing leaves it and nothing arrives.
    cut: watch::Sender<bool>,
    _emulator: Arc<Emulator>,
}

impl GlobalTable {
    pub fn start(names: &[&str], replication: Replication) -> Self {
        let one = Arc::new(Emulator::start());
        let replicas = names.iter().map(|_| match replication {
            Replication::Eventual { .. } => Replica::of(Arc::new(Emulator::start())),
            Replication::Strong { .. } => Replica::of(one.clone()),
        });
        let shared = Arc::new(Shared {
            replication,
            names: names.iter().map(ToString::to_string).collect(),
            replicas: replicas.collect(),
            writes: AtomicUsize::new(0),
            writing: Plain::default(),
            conflicts: Plain::new(vec![0; names.len()]),
        });
        let back = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let front = |(region, name): (usize, &&str)| {
            let way = Way { shared: shared.clone(), region, back: back.handle().clone() };
            Front { name: name.to_string(), server: Loopback::start(move |listener| accept(way.clone(), listener)) }
        };
        Self { regions: names.iter().enumerate().map(front).collect(), shared: shared.clone(), back: Some(back) }
    }

    pub fn addr(&self, region: &str) -> SocketAddr {
        self.front(region).server.addr()
    }

    /// All regions and their endpoints, as the examples take them.
    pub fn regions(&self) -> String {
        let each = |front: &Front| format!("{}=http://{}", front.name, front.server.addr());
        self.regions.iter().map(each).collect::<Vec<_>>().join(",")
    }

    /// A client of the region's endpoint, without retries.
    pub fn client(&self, region: &str) -> Client {
        let config = emulator::config(self.addr(region)).region(Region::new(region.to_owned()));
        Client::from_conf(config.retry_config(RetryConfig::disabled()).build())
    }

    /// The region is gone: it answers nobody, nothing that was written there leaves it, and nothing arrives.
    pub fn down(&self, region: &str) {
        self.front(region).server.down();
        self.replica(region).cut.send_replace(true);
    }

    /// The region is back, with the data that it had. What is due arrives now.
    pub fn up(&self, region: &str) {
        self.replica(region).cut.send_replace(false);
        self.front(region).server.up();
    }

    /// How many writes of clients of the region were refused because another one was writing.
    pub fn conflicts(&self, region: &str) -> usize {
        self.shared.conflicts.lock().unwrap()[self.index(region)]
    }

    fn index(&self, region: &str) -> usize {
        self.regions.iter().position(|front| front.name == region).unwrap_or_else(|| panic!("no region {region}"))
    }

    fn front(&self, region: &str) -> &Front {
        &self.regions[self.index(region)]
    }

    fn replica(&self, region: &str) -> &Replica {
        &self.shared.replicas[self.index(region)]
    }
}

impl Drop for GlobalTable {
    fn drop(&mut self) {
        self.regions.clear();
        if let Some(back) = self.back.take() {
            // Waiting for it is not allowed where a test's runtime drops this.
            back.shutdown_background();
        }
    }
}

impl Replica {
    fn of(emulator: Arc<Emulator>) -> Self {
        let data = Upstream::new(emulator.addr());
        Self { data, newest: Mutex::default(), cut: watch::Sender::new(false), _emulator: emulator }
    }

    async fn until_reached(&self) {
        let mut cut = self.cut.subscribe();
        let _ = cut.wait_for(|cut| !cut).await;
    }
}

/// The way into one region.
#[derive(Clone)]
struct Way {
    shared: Arc<Shared>,
    region: usize,
    /// Where writes go on when their client has left, and where they travel to the other regions.
    back: tokio::runtime::Handle,
}

async fn accept(way: Way, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(way.clone(), stream));
    }
}

async fn serve(way: Way, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let way = way.clone();
        async move {
            let back = way.back.clone();
            let (head, body) = request.into_parts() as (_, Incoming);
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let request = Request::from_parts(head, Full::new(body.clone()));
            back.spawn(way.exchange(request, body)).await.map_err(io::Error::other)?
        }
    });
    let http = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service);
    let _ = http.await;
}

impl Way {
    async fn exchange(self, request: WholeRequest, body: Bytes) -> io::Result<WholeResponse> {
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        match target(&request).as_str() {
            "CreateTable" => self.create_table(request).await,
            "DescribeTable" => self.describe_table(request).await,
            "GetItem" | "Scan" => self.replica().data.send(request).await,
            "UpdateItem" => match self.shared.replication {
                Replication::Eventual { lag } => self.write_here(request, &body, lag).await,
                Replication::Strong { write } => self.write_everywhere(request, &body, write).await,
            },
            other => Ok(refusal(400, "com.amazon.coral.validate#ValidationException", &unknown(other))),
        }
    }

    fn replica(&self) -> &Replica {
        &self.shared.replicas[self.region]
    }

    async fn create_table(&self, request: WholeRequest) -> io::Result<WholeResponse> {
        if let Replication::Eventual { .. } = self.shared.replication {
            for replica in self.others() {
                replica.data.send(request.clone()).await?;
            }
        }
        self.replica().data.send(request).await
    }

    async fn describe_table(&self, request: WholeRequest) -> io::Result<WholeResponse> {
        let shared = &self.shared;
        edit(self.replica().data.send(request).await?, |answer| {
            let Some(table) = answer.get_mut("Table") else { return };
            let region = |name: &String| json!({ "RegionName": name, "ReplicaStatus": "ACTIVE" });
            table["Replicas"] = shared.names.iter().map(region).collect();
            table["GlobalTableVersion"] = json!("2019.11.21");
            let strong = matches!(shared.replication, Replication::Strong { .. });
            table["MultiRegionConsistency"] = json!(if strong { "STRONG" } else { "EVENTUAL" });
            let name = table["TableName"].as_str().unwrap_or_default();
            table["TableArn"] =
                json!(format!("arn:aws:dynamodb:{}:000000000000:table/{name}", shared.names[self.region]));
        })
        .await
    }

    /// Judged here, answered, and taken to the other regions.
    async fn write_here(&self, request: WholeRequest, body: &Value, lag: Duration) -> io::Result<WholeResponse> {
        let mut newest = self.replica().newest.lock().await;
        let response = self.replica().data.send(request.clone()).await?;
        if response.status() == StatusCode::OK {
            let write = self.shared.writes.fetch_add(1, Ordering::SeqCst);
            newest.insert(item_of(body), write);
            let read = json!({ "TableName": body["TableName"], "Key": body["Key"], "ConsistentRead": true });
            let item = self.replica().data.send(call(&request, "GetItem", &read)).await?;
            let item: Value = serde_json::from_slice(&bytes(item).await).map_err(io::Error::other)?;
            let put = json!({ "TableName": body["TableName"], "Item": item["Item"] });
            for region in (0..self.shared.replicas.len()).filter(|region| *region != self.region) {
                let journey =
                    self.clone().replicate(region, item_of(body), write, call(&request, "PutItem", &put), lag);
                self.back.spawn(journey);
            }
        }
        Ok(response)
    }

    async fn replicate(self, to: usize, item: String, write: usize, put: WholeRequest, lag: Duration) {
        tokio::time::sleep(lag).await;
        self.replica().until_reached().await;
        let replica = &self.shared.replicas[to];
        replica.until_reached().await;
        let mut newest = replica.newest.lock().await;
        if newest.get(&item).is_none_or(|there| *there < write) && replica.data.send(put).await.is_ok() {
            newest.insert(item, write);
        }
    }

    /// One region at a time writes an item.
    async fn write_everywhere(
        &self,
        request: WholeRequest,
        body: &Value,
        takes: Duration,
    ) -> io::Result<WholeResponse> {
        let item = item_of(body);
        let writer = *self.shared.writing.lock().unwrap().entry(item.clone()).or_insert(self.region);
        if writer != self.region {
            self.shared.conflicts.lock().unwrap()[self.region] += 1;
            let code = "com.amazonaws.dynamodb.v20120810#ReplicatedWriteConflictException";
            return Ok(refusal(409, code, "One or more items in this request are being modified in another Region."));
        }
        tokio::time::sleep(takes).await;
        let response = self.replica().data.send(request).await;
        self.shared.writing.lock().unwrap().remove(&item);
        response
    }

    fn others(&self) -> impl Iterator<Item = &Replica> {
        let others = self.shared.replicas.iter().enumerate().filter(|(region, _)| *region != self.region);
        others.map(|(_, replica)| replica)
    }
}

fn target(request: &WholeRequest) -> String {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
    target.and_then(|target| target.rsplit('.').next()).unwrap_or_default().into()
}

fn item_of(body: &Value) -> String {
    format!("{}{}", body["TableName"], body["Key"])
}

/// The same client's call of another operation.
fn call(like: &WholeRequest, operation: &str, body: &Value) -> WholeRequest {
    let body = body.to_string();
    let (mut head, _) = like.clone().into_parts();
    head.headers.insert("x-amz-target", format!("DynamoDB_20120810.{operation}").parse().expect("a header value"));
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    Request::from_parts(head, Full::new(body.into()))
}

async fn bytes(response: WholeResponse) -> Bytes {
    response.into_body().collect().await.expect("a full body cannot fail").to_bytes()
}

/// The answer with another body. Its checksum would not fit any more.
async fn edit(response: WholeResponse, change: impl FnOnce(&mut Value)) -> io::Result<WholeResponse> {
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.expect("a full body cannot fail").to_bytes();
    let mut answer: Value = serde_json::from_slice(&body).map_err(io::Error::other)?;
    change(&mut answer);
    let body = answer.to_string();
    head.headers.remove("x-amz-crc32");
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    Ok(Response::from_parts(head, Full::new(body.into())))
}

fn refusal(status: u16, code: &str, message: &str) -> WholeResponse {
    let body = json!({ "__type": code, "message": message }).to_string();
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    response.header("x-amzn-requestid", "GLOBALTABLE").body(Full::new(body.into())).expect("a response")
}

fn unknown(operation: &str) -> String {
    format!("{operation} is not supported by this double of a global table")
}
