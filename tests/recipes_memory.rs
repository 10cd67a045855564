//! The recipes on the memory store, on a paused clock; and on one whose clients judge, as of a cloud table.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod recipes;

use std::sync::Arc;
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{MemoryStore, Store};
use recipes::World;

const TTL: Duration = Duration::from_secs(30);

fn world_on(clock: &TestClock, store: &MemoryStore) -> World {
    let store = store.clone();
    World::new(Some(clock.clone()), TTL, move || {
        let store: Arc<dyn Store> = Arc::new(store.clone());
        std::future::ready(store)
    })
}

fn judge() -> (TestClock, MemoryStore) {
    let clock = TestClock::new();
    (clock.clone(), MemoryStore::with_clock(clock.another(99)))
}

fn table() -> (TestClock, MemoryStore) {
    let clock = TestClock::new();
    (clock.clone(), MemoryStore::like_a_table(clock.another(99)))
}

macro_rules! tests {
    ($($module:ident: $case:ident,)*) => {
        mod on_memory {
            $(#[tokio::test(start_paused = true)]
            async fn $case() {
                let (clock, store) = super::judge();
                crate::recipes::$module::$case(super::world_on(&clock, &store)).await;
            })*
        }

        mod on_a_table {
            $(#[tokio::test(start_paused = true)]
            async fn $case() {
                let (clock, store) = super::table();
                crate::recipes::$module::$case(super::world_on(&clock, &store)).await;
            })*
        }
    };
}

recipes::for_each_case!(tests);

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token() {
    for (clock, store) in [judge(), table()] {
        let world = world_on(&clock, &store);
        let delete = || async move { store.delete("leader") };
        recipes::election::a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token(world, delete)
            .await;
    }
}
