//! The recipes on a Blob service that keeps to the documentation, on a paused clock.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod recipes;
mod support;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::testing::TestClock;
use recipes::World;
use support::azure::{ACCOUNT, Fake};

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
