//! What a client keeps of names that it is through with: nothing, by the bytes that are allocated.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

use std::alloc::System;
use std::ops::Range;
use std::time::Duration;

use leasehold::{Leases, MemoryStore};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// After so many names it forgets those before: what it remembers of names that others hold.
const GENERATION: usize = 10_000;

#[tokio::test(start_paused = true)]
async fn a_client_keeps_nothing_of_names_that_it_is_through_with() {
    let store = MemoryStore::new();
    let leases = Leases::builder(store.clone()).build().unwrap();
    // What grows with the first names has grown then.
    names(&store, &leases, 0..2 * GENERATION).await;
    let region = Region::new(ALLOCATOR);
    names(&store, &leases, 2 * GENERATION..3 * GENERATION).await;
    let change = region.change();
    let kept = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    assert!(kept < 10 * GENERATION as i64, "{kept} bytes after {GENERATION} names");
}

/// They are held, and waited for in vain.
async fn names(store: &MemoryStore, leases: &Leases, numbers: Range<usize>) {
    for number in numbers {
        let name = format!("job-{number:08}");
        let lease = leases.acquire(&name).await.unwrap();
        let waits = leases.acquire_within(&name, Duration::from_millis(1));
        assert!(waits.await.is_err());
        lease.release().await.unwrap();
        store.delete(&name);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
}
