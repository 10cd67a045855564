//! A service, blobs and leases on it.

use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential, FencedBlob};
use leasehold::testing::TestClock;
use leasehold::{FencingToken, Lease, Leases, Renewal};

use crate::support::azure::{ACCOUNT, Auth, Fake, Peek, Request, Response};

/// The shortest that the service gives.
pub const TERM: Duration = Duration::from_secs(15);
pub const BLOB: &str = "state";
const KEY: &str = "a2V5IG9mIGEgdGVzdA==";

pub struct Ground {
    pub fake: Fake,
    clock: TestClock,
    auth: Auth,
}

impl Ground {
    pub fn new() -> Self {
        let clock = TestClock::seeded(99);
        let fake = Fake::new(clock.clone());
        let auth = Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() };
        fake.require(auth.clone());
        Self { fake, clock, auth }
    }

    /// A blob of the caller's own.
    pub fn blob(&self) -> FencedBlob {
        self.blob_in(&self.fake.container_url())
    }

    pub fn blob_in(&self, container: &str) -> FencedBlob {
        let url = format!("{container}/{BLOB}");
        FencedBlob::builder(url, credential()).http_client(self.fake.http_client()).build().unwrap()
    }

    /// A store of a process of its own.
    pub async fn store(&self) -> AzureBlobStore {
        let builder = AzureBlobStore::builder(self.fake.container_url(), credential());
        builder.http_client(self.fake.http_client()).open().await.unwrap()
    }

    /// A client on the machine with this number.
    pub fn leases(&self, store: &AzureBlobStore, machine: u64) -> Leases {
        let clock = self.clock.another(machine);
        Leases::builder(store.clone()).ttl(TERM).renewal(Renewal::Manual).clock(clock).build().unwrap()
    }

    pub async fn lease(&self, store: &AzureBlobStore, machine: u64) -> Lease {
        self.leases(store, machine).acquire(BLOB).await.unwrap()
    }

    pub fn peek(&self) -> Peek {
        self.fake.peek(BLOB).expect("the blob is there")
    }

    pub fn content(&self) -> String {
        String::from_utf8(self.peek().body).unwrap()
    }

    /// Of the caller's own blob.
    pub fn fence(&self) -> u64 {
        let fence = self.peek().metadata["lh_fence"].clone();
        fence.split('.').next().unwrap().parse().unwrap()
    }

    /// The request of somebody else, who needs no signature.
    pub fn unsigned(&self, request: &Request) -> Response {
        self.fake.require(Auth::None);
        let answer = self.fake.send(request);
        self.fake.require(self.auth.clone());
        answer
    }
}

impl Drop for Ground {
    /// No request of ours may be one that the service finds wrong.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.fake.invalid().len(), 0, "{:?}", self.fake.invalid().first());
        }
    }
}

pub fn credential() -> Credential {
    Credential::shared_key(ACCOUNT, KEY)
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}
