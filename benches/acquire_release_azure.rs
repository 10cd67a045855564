//! An acquire and a release on Azurite, beside the same requests made with the official client.
//!
//! `LEASEHOLD_AZURITE_ENDPOINT=http://127.0.0.1:10000/devstoreaccount1
//! cargo bench --features __bench,__azure-sdk --bench acquire_release_azure`
//!
//! The two sides take turns within every iteration, so that a busy machine slows both; only the ratio means anything.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use azure_core::http::{
    AsyncRawResponse, ClientOptions, Etag, HttpClient, HttpClientOptions, Request, RetryOptions, Transport, Url,
    new_http_client,
};
use azure_storage_blob::models::{
    BlobClientAcquireLeaseOptions, BlobClientGetPropertiesResultHeaders as _, BlobClientSetMetadataOptions,
};
use azure_storage_blob::{BlobClient, BlobClientOptions};
use criterion::Criterion;
use leasehold::Leases;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use support::azurite::{SAS, container};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// What an acquire knows of the blob beforehand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// The tag that the last release of the same client has left.
    Cached,
    /// Nothing, as in a process that has just begun.
    Fresh,
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(30);
    for (latency_name, latency) in [("no latency", Duration::ZERO), ("5 ms a request", Duration::from_millis(5))] {
        for (path_name, path, requests) in [("tag known", Path::Cached, 3), ("fresh client", Path::Fresh, 4)] {
            compare(&mut criterion, &format!("{path_name}, {latency_name}"), latency, path, requests);
        }
    }
    criterion.final_summary();
}

fn compare(criterion: &mut Criterion, name: &str, latency: Duration, path: Path, requests: usize) {
    let runtime = Runtime::new().unwrap();
    let way = Arc::new(Way::new(latency));
    let (ours, theirs) = runtime.block_on(async { sides(&way).await });
    let (our_times, their_times) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let take_turns = |counted: fn(Duration, Duration) -> Duration, rounds: u64| {
        runtime.block_on(async {
            let mut sum = Duration::ZERO;
            for _ in 0..rounds {
                let theirs = way.time(requests, theirs.acquire_and_release(path)).await;
                let leases = ours.leases(path);
                let ours = way.time(requests, acquire_and_release(&leases)).await;
                their_times.borrow_mut().push(theirs);
                our_times.borrow_mut().push(ours);
                sum += counted(theirs, ours);
            }
            sum
        })
    };
    let mut group = criterion.benchmark_group(format!("acquire and release on Azurite, {name}"));
    group.bench_function("official client", |bencher| bencher.iter_custom(|rounds| take_turns(|it, _| it, rounds)));
    group.bench_function("leasehold", |bencher| bencher.iter_custom(|rounds| take_turns(|_, it| it, rounds)));
    group.finish();
    let (theirs, ours) = (median(&their_times), median(&our_times));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let more = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1e6 / requests as f64;
    println!(
        "medians, {name}, {requests} requests: official client {theirs:?}, leasehold {ours:?}: ratio {ratio:.3}, \
         {more:+.0} us a request\n"
    );
}

/// The way of both sides to the service: it is as much longer as is asked for, and counts.
#[derive(Debug)]
struct Way {
    http: Arc<dyn HttpClient>,
    latency: Duration,
    sent: AtomicUsize,
}

impl Way {
    fn new(latency: Duration) -> Self {
        let http = new_http_client(Some(HttpClientOptions { automatic_decompression: false }));
        Self { http, latency, sent: AtomicUsize::new(0) }
    }

    /// How long it takes, if it takes so many requests.
    async fn time(&self, requests: usize, work: impl Future<Output = ()>) -> Duration {
        let before = self.sent.load(Ordering::Relaxed);
        let begin = Instant::now();
        work.await;
        let took = begin.elapsed();
        assert_eq!(self.sent.load(Ordering::Relaxed) - before, requests);
        took
    }
}

#[async_trait]
impl HttpClient for Way {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.http.execute_request(request).await
    }
}

/// Both sides, after one round of each, with a blob of its own each.
async fn sides(way: &Arc<Way>) -> (Ours, Theirs) {
    let container = container("bench");
    let builder = || AzureBlobStore::builder(&container, Credential::sas(SAS)).http_client(Arc::clone(way) as _);
    let store = builder().create_container().open().await.unwrap();
    let leases = Leases::builder(store).holder("bench").build().unwrap();
    acquire_and_release(&leases).await;
    leases.acquire("theirs").await.unwrap().release().await.unwrap();
    let theirs = Theirs::new(&format!("{container}/theirs?{SAS}"), way).await;
    (Ours { container, way: Arc::clone(way), known: leases }, theirs)
}

struct Ours {
    container: String,
    way: Arc<Way>,
    known: Leases,
}

impl Ours {
    fn leases(&self, path: Path) -> Leases {
        if path == Path::Cached {
            return self.known.clone();
        }
        let builder = AzureBlobStore::builder(&self.container, Credential::sas(SAS));
        let store = builder.http_client(Arc::clone(&self.way) as _).unverified().unwrap();
        Leases::builder(store).holder("bench").build().unwrap()
    }
}

async fn acquire_and_release(leases: &Leases) {
    leases.acquire("ours").await.unwrap().release().await.unwrap();
}

/// The same requests without a library around them, with the metadata that leasehold writes.
struct Theirs {
    blob: BlobClient,
    pairs: HashMap<String, String>,
    tag: RefCell<Etag>,
    token: Cell<u64>,
}

impl Theirs {
    async fn new(url: &str, way: &Arc<Way>) -> Self {
        let client_options = ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(Arc::clone(way) as _)),
            ..ClientOptions::default()
        };
        // The version that leasehold asks for; Azurite does not know the client's own.
        let options = BlobClientOptions { client_options, version: "2021-12-02".into() };
        let blob = BlobClient::new(Url::parse(url).unwrap(), None, Some(options)).unwrap();
        let seen = blob.get_properties(None).await.unwrap();
        let (pairs, tag) = (seen.metadata().unwrap(), RefCell::new(seen.etag().unwrap().unwrap()));
        Self { blob, pairs, tag, token: Cell::new(1_900_000_000_000) }
    }

    async fn acquire_and_release(&self, path: Path) {
        let (token, grant) = (self.token.get() + 1, Uuid::new_v4().to_string());
        self.token.set(token);
        let tag = match path {
            Path::Cached => self.tag.borrow().clone(),
            Path::Fresh => self.blob.get_properties(None).await.unwrap().etag().unwrap().unwrap(),
        };
        let options = BlobClientAcquireLeaseOptions {
            proposed_lease_id: Some(grant.clone()),
            if_match: Some(tag.clone()),
            ..Default::default()
        };
        self.blob.acquire_lease(30, Some(options)).await.unwrap();
        let mut pairs = self.pairs.clone();
        pairs.insert("lh_token".into(), token.to_string());
        pairs.insert("lh_grant".into(), grant.clone());
        let options =
            BlobClientSetMetadataOptions { lease_id: Some(grant.clone()), if_match: Some(tag), ..Default::default() };
        let written = self.blob.set_metadata(&pairs, Some(options)).await.unwrap();
        let tag = written.headers().get_optional_str(&"etag".into()).expect("every write is told its tag");
        self.tag.replace(Etag::from(tag.to_owned()));
        self.blob.release_lease(grant, None).await.unwrap();
    }
}

fn median(times: &RefCell<Vec<Duration>>) -> Duration {
    let mut times = times.borrow_mut();
    times.sort_unstable();
    times[times.len() / 2]
}
