//! The only place that reads clocks, draws chance or sleeps.

#[cfg(any(test, feature = "testing"))]
mod runtime;
mod system;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

#[cfg(any(test, feature = "testing"))]
pub(crate) use runtime::RuntimeMoment;
pub use system::SystemClock;

use crate::types::Stamp;

/// A pause that is under way.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time and chance come from.
pub trait Clock: Send + Sync + Debug + 'static {
    /// Reads all local clocks.
    fn stamp(&self) -> Stamp;

    /// Sleeps for so long on the runtime of the caller. May end late, never early by more than a millisecond.
    fn sleep(&self, duration: Duration) -> Sleep;

    /// 128 random bits.
    fn random(&self) -> u128;
}

/// How far the rates of two local clocks are assumed to differ at the most, in per cent.
#[cfg(target_os = "linux")]
pub(crate) const RHO_PERCENT: u64 = 1;
/// Without a clock that is not slewed, the rate may be off by what NTP slews at the most.
#[cfg(not(target_os = "linux"))]
pub(crate) const RHO_PERCENT: u64 = 10;

/// The answer of `work`, or `None` when it takes longer than `limit`.
pub(crate) async fn within<T>(clock: &dyn Clock, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        answer = work => Some(answer),
        () = clock.sleep(limit) => None,
    }
}
