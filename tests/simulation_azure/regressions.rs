//! What seeds have found, as tests of its own.

use std::sync::Arc;
use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::testing::TestClock;
use leasehold::{Attempt, Lease, Leases, Renewal};

use super::support::azure::{Fake, State};

const NAME: &str = "a";

/// A service, and a client of it that renews only when it is told to.
struct Bench {
    service: Fake,
    clock: TestClock,
}

impl Bench {
    fn new() -> Self {
        let clock = TestClock::new();
        Self { service: Fake::new(clock.clone()), clock }
    }

    fn store(&self) -> AzureBlobStore {
        let builder = AzureBlobStore::builder(self.service.container_url(), Credential::sas("sv=1&sig=any"));
        builder.http_client(self.service.http_client()).unverified().unwrap()
    }

    fn client(&self, ttl: u64, seed: u64) -> Leases {
        let builder = Leases::builder(Arc::new(self.store())).ttl(Duration::from_secs(ttl)).margin(Duration::ZERO);
        builder.renewal(Renewal::Manual).clock(self.clock.another(seed)).build().unwrap()
    }

    fn is_leased(&self) -> bool {
        matches!(self.service.peek(NAME).unwrap().state, State::Leased(_))
    }
}

async fn acquired(leases: &Leases) -> Lease {
    match leases.try_acquire(NAME).await.unwrap() {
        Attempt::Acquired(lease) => lease,
        Attempt::Held(by) => panic!("held: {by}"),
    }
}

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Found by seed 83: a renewal is for as long as the first holder had asked, and the second believed for its own term.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_handed_over_has_the_term_of_whoever_takes_it_up() {
    for (first, second) in [(15, 60), (60, 15)] {
        let bench = Bench::new();
        let handover = acquired(&bench.client(first, 2)).await.into_handover().await.unwrap();
        let lease = bench.client(second, 3).resume(handover).await.unwrap();
        // The service's second and twice the rate are taken off.
        wait(second - 3).await;
        assert!(lease.held().is_held() && bench.is_leased());
        wait(4).await;
        assert!(!lease.held().is_held() && !bench.is_leased());
    }
}
