//! A service, and clients of it on machines of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use leasehold::azure_blob::azure_core::error::ErrorKind as SdkKind;
use leasehold::azure_blob::azure_core::http::{AsyncRawResponse, HttpClient, Request};
use leasehold::azure_blob::azure_core::{Error, Result};
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::testing::TestClock;
use leasehold::{Ended, Grant, Lease, Leases, LeasesBuilder, Lost, LostReason};
use tokio::time::timeout;

use crate::support::azure::{ACCOUNT, Auth, Fake, Op, Peek, State};

pub const TTL: Duration = Duration::from_secs(15);
/// For how long a holder believes after its last send that was answered: 15 s, less 2 % and a second for the
/// service's clock, less the margin.
pub const TERM: Duration = Duration::from_millis(12_200);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MILLI: Duration = Duration::from_millis(1);
/// The account's key. Every request is signed with it, and the service checks each signature.
pub const KEY: &str = "a2V5IG9mIGEgdGVzdA==";

/// A service. No request of any test may be one that it finds invalid.
pub struct Ground {
    pub fake: Fake,
    clock: TestClock,
    /// The service's own.
    pub services_clock: TestClock,
}

/// A client on a machine of its own, with its own way to the service.
pub struct Machine {
    pub clock: TestClock,
    pub way: Arc<Way>,
    pub leases: Leases,
}

/// A way to the service that can be cut, and that counts what goes over it.
#[derive(Debug)]
pub struct Way {
    service: Arc<dyn HttpClient>,
    state: AtomicU8,
    sent: AtomicUsize,
}

const OPEN: u8 = 0;
const CUT: u8 = 1;
const SILENT: u8 = 2;

impl Ground {
    pub fn new() -> Self {
        let clock = TestClock::new();
        let services_clock = clock.another(99);
        let fake = Fake::new(services_clock.clone());
        fake.require(Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() });
        Self { fake, clock, services_clock }
    }

    /// With a lease "job" that somebody has had before.
    pub async fn with_a_free_lease() -> Self {
        let ground = Self::new();
        ground.machine("somebody", 77).acquire().await.release().await.expect("answered");
        ground.forget();
        ground
    }

    /// A machine that knows nothing yet.
    pub fn machine(&self, holder: &str, seed: u64) -> Machine {
        self.machine_with(holder, seed, |builder| builder)
    }

    pub fn machine_with(
        &self,
        holder: &str,
        seed: u64,
        options: impl FnOnce(LeasesBuilder) -> LeasesBuilder,
    ) -> Machine {
        let clock = self.clock.another(seed);
        let way =
            Arc::new(Way { service: self.fake.http_client(), state: AtomicU8::new(OPEN), sent: AtomicUsize::new(0) });
        let store = self.store(Arc::clone(&way) as Arc<dyn HttpClient>);
        let builder = Leases::builder(store).holder(holder).ttl(TTL).clock(clock.clone());
        Machine { clock, way, leases: options(builder).build().expect("the options fit") }
    }

    /// A machine that has heard the service's time.
    pub async fn warm(&self, holder: &str, seed: u64) -> Machine {
        let machine = self.machine(holder, seed);
        machine.leases.inspect("another").await.expect("answered");
        self.forget();
        machine
    }

    pub fn store(&self, http_client: Arc<dyn HttpClient>) -> AzureBlobStore {
        let builder = AzureBlobStore::builder(self.fake.container_url(), Credential::shared_key(ACCOUNT, KEY));
        builder.http_client(http_client).unverified().expect("good")
    }

    /// What the service was asked since the last time.
    pub fn asked(&self) -> Vec<Op> {
        let asked = self.fake.requests().iter().map(|seen| seen.op).collect();
        self.forget();
        asked
    }

    pub fn forget(&self) {
        self.assert_valid();
        self.fake.forget_requests();
    }

    pub fn job(&self) -> Peek {
        self.fake.peek("job").expect("the blob is there")
    }

    pub fn pair(&self, name: &str) -> Option<String> {
        self.job().metadata.get(name).cloned()
    }

    /// Whose the lease is, if anybody is kept out.
    pub fn leased_by(&self) -> Option<Grant> {
        match self.job().state {
            State::Leased(id) | State::Breaking(id) => Some(Grant::from_bits(id.as_u128())),
            _ => None,
        }
    }

    /// The service has leased the blob to the grant in its metadata, whose token is this.
    pub fn assert_held(&self, token: u64, what: &str) {
        let leased_by = self.leased_by().map(Grant::to_text);
        assert!(leased_by.is_some() && leased_by == self.pair("lh_grant"), "{what}: {:?}", self.job().state);
        assert_eq!(self.pair("lh_token"), Some(token.to_string()), "{what}");
    }

    fn assert_valid(&self) {
        assert_eq!(self.fake.invalid().len(), 0, "answered 400: {:?}", self.fake.invalid().first());
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_valid();
        }
    }
}

impl Machine {
    pub async fn acquire(&self) -> Lease {
        self.leases.acquire_within("job", 10 * TTL).await.expect("in time")
    }

    pub async fn try_acquire(&self) -> Option<Lease> {
        self.leases.try_acquire("job").await.expect("answered").acquired()
    }

    /// How many leases it has lost so far.
    pub fn lost(&self) -> u64 {
        self.leases.stats().lost.values().sum()
    }
}

impl Way {
    /// Connections break.
    pub fn cut(&self) {
        self.state.store(CUT, Ordering::SeqCst);
    }

    /// Nothing arrives and nothing is answered.
    pub fn silence(&self) {
        self.state.store(SILENT, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
    }

    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl HttpClient for Way {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        match self.state.load(Ordering::SeqCst) {
            OPEN => self.service.execute_request(request).await,
            CUT => Err(Error::with_message(SdkKind::Io, "the way is cut")),
            _ => std::future::pending().await,
        }
    }
}

pub async fn lost(lease: &Lease) -> Lost {
    match timeout(10 * TTL, lease.held().lost()).await.expect("it ends") {
        Ended::Lost(lost) => lost,
        ended => panic!("not lost: {ended:?}"),
    }
}

pub async fn reason(lease: &Lease) -> LostReason {
    lost(lease).await.reason().clone()
}
