//! A majority over two clouds: two tables and a container, of a strict service in the test process.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::majority::MajorityStore;
use leasehold::store::conformance::{Options, run};
use leasehold::testing::TestClock;
use leasehold::{Attempt, Clock, Leases, MemoryStore, Store, SystemClock};

use crate::support::azure::{ACCOUNT, Fake};

const TTL: Duration = Duration::from_secs(30);

async fn container(fake: &Fake) -> AzureBlobStore {
    AzureBlobStore::builder(fake.container_url(), Credential::shared_key(ACCOUNT, "a2V5"))
        .http_client(fake.http_client())
        .open()
        .await
        .unwrap()
}

async fn two_clouds(fake: &Fake, tables: [MemoryStore; 2], clock: impl Clock) -> MajorityStore {
    let [eu, us] = tables;
    MajorityStore::builder().member(eu).member(us).member(container(fake).await).clock(clock).build().unwrap()
}

/// Terms are 15 seconds here at least, so all cases wait at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_two_tables_and_a_container_conforms() {
    let fake = Fake::new(SystemClock);
    let tables = [MemoryStore::new(), MemoryStore::new()];
    // One whose calls leave nothing behind: the suite compares what two looks show.
    let [eu, us] = tables;
    let majority = MajorityStore::builder().member(eu).member(us).member(container(&fake).await);
    let store = majority.wait_for_all(Duration::from_secs(5)).build().unwrap();
    store.set_up().await.unwrap();
    let report = run(store, Options::default().at_once(100)).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(fake.invalid().len(), 0, "{:?}", fake.invalid().first());
}

#[test]
fn a_majority_with_a_container_has_its_terms() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let fake = Fake::new(SystemClock);
        let about = two_clouds(&fake, [MemoryStore::new(), MemoryStore::new()], SystemClock).await.describe();
        assert_eq!(about.ttl, Duration::from_secs(15)..=Duration::from_secs(60));
        assert_eq!(about.grain, Duration::from_secs(1));
    });
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_the_loss_of_either_cloud_but_not_of_two_members() {
    let clock = TestClock::new();
    let table = |seed| MemoryStore::like_a_table(clock.another(seed));
    let (fake, eu, us) = (Fake::new(clock.another(9)), table(10), table(11));
    let store = two_clouds(&fake, [eu.clone(), us.clone()], clock.another(1)).await;
    store.set_up().await.unwrap();
    let rival = two_clouds(&fake, [eu.clone(), us.clone()], clock.another(2)).await;
    let client = |store, seed| Leases::builder(store).ttl(TTL).clock(clock.another(seed)).build().unwrap();
    let (a, b) = (client(store, 3), client(rival, 4));
    let lease = a.acquire("job").await.unwrap();
    for lost in [&eu, &us] {
        lost.set_available(false);
        for _ in 0..4 {
            tokio::time::sleep(TTL / 2).await;
            assert!(lease.held().is_held());
            assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(_)));
        }
        lost.set_available(true);
        tokio::time::sleep(TTL).await;
    }
    eu.set_available(false);
    us.set_available(false);
    tokio::time::sleep(TTL).await;
    assert!(!lease.held().is_held());
    assert!(b.try_acquire("job").await.is_err());
    eu.set_available(true);
    us.set_available(true);
    std::mem::forget(lease);
    let next = b.acquire_within("job", TTL * 3).await.unwrap();
    assert!(next.held().is_held());
}
