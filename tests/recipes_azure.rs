//! The recipes on a Blob service that keeps to the documentation, on a paused clock.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod recipes;
mod support;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::Store;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::recipes::{Election, Schedule, Semaphore};
use leasehold::testing::TestClock;
use recipes::World;
use support::azure::{ACCOUNT, Fake, Op};

fn world() -> (World, Fake) {
    let clock = TestClock::new();
    let fake = Fake::new(clock.another(99));
    let service = fake.clone();
    let world = World::new(Some(clock), Duration::from_secs(30), move || {
        let store = AzureBlobStore::builder(service.container_url(), Credential::shared_key(ACCOUNT, "a2V5"));
        let store: Arc<dyn Store> = Arc::new(store.http_client(service.http_client()).unverified().unwrap());
        std::future::ready(store)
    });
    (World { asks: false, ..world }, fake)
}

macro_rules! tests {
    ($($module:ident: $case:ident,)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $case() {
            let (world, fake) = world();
            recipes::$module::$case(world).await;
            assert_eq!(fake.invalid().len(), 0, "{:?}", fake.invalid().first());
        })*
    };
}

recipes::for_each_case!(tests);

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token() {
    let (world, fake) = world();
    let delete = || async move { assert!(fake.delete_blob("leader")) };
    recipes::election::a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token(world, delete).await;
}

/// What each recipe costs at the service, for a name that was used before, by clients that know it.
#[tokio::test(start_paused = true)]
async fn each_recipe_costs_what_the_docs_say() {
    let (world, fake) = world();
    let a = world.process("a").await;
    let asked = || {
        let asked: Vec<_> = fake.requests().iter().map(|seen| seen.op).collect();
        fake.forget_requests();
        asked
    };
    for round in 0..2 {
        a.leases.inspect("some other").await.unwrap(); // an hour later it does not know the time any more
        asked();
        let election = Election::new(&a.leases, "leader");
        election.lead(async |_| Ok::<_, Error>(())).await.unwrap();
        let term = asked();
        let permit = Semaphore::new(&a.leases, "permits", 1).unwrap();
        permit.acquire().await.unwrap().release().await.unwrap();
        let permit = asked();
        let tick = Schedule::new(&a.leases, "report", Duration::from_secs(3600)).unwrap();
        tick.try_turn().await.unwrap().unwrap().run(async |_| Ok::<_, Error>(())).await.unwrap();
        let ran = asked();
        assert!(tick.try_turn().await.unwrap().is_none());
        let over = asked();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        if round == 1 {
            assert_eq!(term, [Op::Acquire, Op::SetMetadata, Op::Release]);
            assert_eq!(permit, [Op::Acquire, Op::SetMetadata, Op::Release]);
            let closing = [Op::SetMetadata, Op::Release];
            assert_eq!(ran, [&[Op::HeadBlob, Op::Acquire, Op::SetMetadata][..], &closing].concat());
            assert_eq!(over, [Op::HeadBlob]);
        }
    }
}
