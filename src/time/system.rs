//! The machine's clocks.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reads clocks, draws chance and sleeps")]

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::{Clock, Sleep};
use crate::types::Stamp;

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
compile_error!("leasehold needs a clock that goes on during sleep: only Linux, Android and macOS are supported");

/// The machine's clocks, tokio's timer and the operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCKS: [ClockId; 4] =
    [ClockId::CLOCK_BOOTTIME, ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC_RAW, ClockId::CLOCK_REALTIME];
// On macOS CLOCK_MONOTONIC goes on during sleep.
#[cfg(target_os = "macos")]
const CLOCKS: [ClockId; 4] =
    [ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_REALTIME];

impl Clock for SystemClock {
    fn stamp(&self) -> Stamp {
        let [boot, mono, raw, real] = CLOCKS.map(read);
        Stamp { boot, mono, raw, real }
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}

fn read(clock: ClockId) -> u64 {
    // It fails only for a clock that the kernel does not have, and these have been there since 2.6.39.
    let time = clock_gettime(clock).expect("the kernel has this clock");
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000) + u64::try_from(time.tv_nsec()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_cannot_be_set_never_go_back() {
        let first = SystemClock.stamp();
        let then = SystemClock.stamp();
        assert!(then.boot >= first.boot && then.mono >= first.mono && then.raw >= first.raw);
        assert!(first.real > 1_700_000_000_000_000_000);
    }
}
