//! A clock that counts how often somebody sleeps on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Clock, Sleep, Stamp};

#[derive(Clone, Debug)]
pub struct CountingSleeps(pub TestClock, pub Arc<AtomicUsize>);

impl Clock for CountingSleeps {
    fn stamp(&self) -> Stamp {
        self.0.stamp()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sleep(duration)
    }

    fn random(&self) -> u128 {
        self.0.random()
    }
}
