//! A majority of DynamoDB tables on three emulators, as three regions: it conforms, and outlives the loss of one.
#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]

mod support;

use std::time::Duration;

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::majority::MajorityStore;
use leasehold::store::Store;
use leasehold::store::conformance::{Options, run};
use leasehold::{Attempt, ErrorKind, Lease, Leases};

use crate::support::emulator::Emulator;

const REGIONS: [&str; 3] = ["leases-eu", "leases-us", "leases-ap"];
const TTL: Duration = Duration::from_secs(6);

struct Regions {
    emulators: Vec<Emulator>,
    store: MajorityStore,
}

impl Regions {
    async fn start() -> Self {
        let emulators: Vec<_> = REGIONS.iter().map(|_| Emulator::start()).collect();
        for (emulator, table) in emulators.iter().zip(REGIONS) {
            create_table(&emulator.client(), table).await.expect("created");
        }
        let store = Self::majority(&emulators).await;
        store.set_up().await.expect("all members answer");
        Self { emulators, store }
    }

    async fn majority(emulators: &[Emulator]) -> MajorityStore {
        let mut stores = Vec::new();
        for (emulator, table) in emulators.iter().zip(REGIONS) {
            stores.push(DynamoDbStore::open(emulator.client(), table).await.expect("the table is fit"));
        }
        MajorityStore::new(stores).expect("three stores")
    }

    /// One whose calls leave nothing behind: three emulators share this machine's processors, and the suite compares
    /// what two looks show.
    async fn waiting(&self) -> MajorityStore {
        let mut builder = MajorityStore::builder().wait_for_all(Duration::from_secs(5));
        for (emulator, table) in self.emulators.iter().zip(REGIONS) {
            builder = builder.member(DynamoDbStore::open(emulator.client(), table).await.expect("the table is fit"));
        }
        builder.build().expect("three stores")
    }

    fn client(&self, holder: &str) -> Leases {
        Leases::builder(self.store.clone()).holder(holder).ttl(TTL).build().expect("the options fit")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_three_regions_conforms() {
    let regions = Regions::start().await;
    let why = "its members are judged by the store's time or by watching, and a revocation is another write";
    let options = Options::default().at_once(2).excuse("a revocation does not prolong the term", why);
    let report = run(regions.waiting().await, options).await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loss_of_a_region_loses_none_of_twenty_leases_and_grants_none_twice() {
    let regions = Regions::start().await;
    let service = regions.client("service");
    let mut leases = Vec::new();
    for number in 0..20 {
        leases.push(service.acquire(format!("job {number}")).await.expect("granted"));
    }
    // A process of its own, which was there before.
    let rival = Leases::builder(Regions::majority(&regions.emulators).await).ttl(TTL).build().expect("the options fit");
    for region in &regions.emulators {
        region.down();
        tokio::time::sleep(TTL).await;
        assert_eq!(leases.iter().filter(|lease| lease.held().is_held()).count(), 20);
        for number in 0..20 {
            let attempt = rival.try_acquire(format!("job {number}")).await.expect("two of three answer");
            assert!(matches!(attempt, Attempt::Held(_)), "job {number} was granted twice");
        }
        region.up();
        tokio::time::sleep(TTL / 2).await;
    }
    regions.emulators[0].down();
    regions.emulators[1].down();
    tokio::time::sleep(TTL).await;
    assert!(leases.iter().all(|lease| !lease.held().is_held()), "one of three holds nothing");
    assert_eq!(
        rival.try_acquire("job 0").await.expect_err("one of three grants nothing").kind(),
        ErrorKind::Unavailable
    );
    regions.emulators[0].up();
    regions.emulators[1].up();
    leases.into_iter().for_each(std::mem::forget);
    let next: Lease = rival.acquire_within("job 0", TTL * 3).await.expect("somebody goes on");
    next.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_on_a_thread_of_its_own_runs_over_isolated_members() {
    let regions = Regions::start().await;
    assert!(regions.store.isolated().is_some());
    let leases = Leases::builder(regions.store.clone()).renewal(leasehold::Renewal::Thread).ttl(TTL).build().unwrap();
    let lease = leases.acquire("job").await.expect("granted");
    tokio::time::sleep(TTL).await;
    assert!(lease.held().is_held());
    lease.release().await.expect("released");
}
