//! What seeds have found, as tests of its own.

use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Leases, MemoryStore};

use super::machine::MachineClock;

/// Found by a client with concurrency 1: the keeper slept for zero, again and again, because a debt was due and
/// its only place was taken by a renewal that hung. [`MachineClock`] ends a loop in which no time passes.
#[tokio::test(start_paused = true)]
async fn a_debt_that_waits_for_room_does_not_make_the_keeper_spin() {
    let clock = MachineClock::new(TestClock::new(), 0);
    let store = MemoryStore::with_clock(clock.clone());
    let leases = Leases::builder(store.clone()).concurrency(1).clock(clock).build().unwrap();
    let lease = leases.acquire("a").await.unwrap();
    let renewals = || leases.stats().requests["renew"];
    store.hang_next();
    while renewals() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (b, c) = (leases.acquire("b").await.unwrap(), leases.acquire("c").await.unwrap());
    store.hang_next();
    drop((b, c));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((leases.stats().owed, renewals()), (2, 1), "one debt is let through and hangs, the other waits for it");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(leases.stats().owed, 0);
    assert!(lease.held().is_held());
}
