//! What the recipes' shared suite leaves to the memory store: crowds, a thousand kills, what each recipe costs, and edges.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../recipes/mod.rs"]
#[allow(unused_imports, unused_macros, reason = "the suite's cases run elsewhere")]
mod recipes;

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod crowds;
mod edges;
mod ticks;

use std::sync::Arc;
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{MemoryStore, Store};

use crate::recipes::World;

const TTL: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_secs(1);

/// A store that judges expiry itself.
fn judge() -> (World, MemoryStore) {
    let clock = TestClock::new();
    let store = MemoryStore::with_clock(clock.another(99));
    (on(clock, &store), store)
}

/// A store like a cloud table: its clients judge.
fn table() -> (World, MemoryStore) {
    let clock = TestClock::new();
    let store = MemoryStore::like_a_table(clock.another(99));
    (on(clock, &store), store)
}

fn on(clock: TestClock, store: &MemoryStore) -> World {
    let store = store.clone();
    World::new(Some(clock), TTL, move || {
        let store: Arc<dyn Store> = Arc::new(store.clone());
        std::future::ready(store)
    })
}
