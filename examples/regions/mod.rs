//! The scene of the examples with several regions: a service runs in all of them, and the settlement job in one of
//! them at a time. The region that runs it is killed at a bad moment, between a holder's last check and its write;
//! another one takes over; the old one comes back, and its write that was on the way is refused.
//!
//! - `scene.rs`: what happens, in order, and the table at the end.
//! - `worker.rs`: a service in one region, a process of its own. `process.rs`: how it is started and frozen.
//! - `ledger.rs`: what the job writes to, which checks tokens.
//! - `way.rs`: the way to a region's store, which is cut when the region is killed.
//! - `environment.rs`: where the stores are.
#![allow(unreachable_pub, dead_code, reason = "every example uses its own part")]
#![allow(clippy::disallowed_methods, reason = "real processes and real terms")]

pub mod environment;
mod ledger;
mod process;
mod scene;
mod way;
mod worker;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;

pub use self::environment::Region;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
pub type Preparing = Pin<Box<dyn Future<Output = Result<()>>>>;
pub type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>>>>>;

/// What the examples differ in.
pub struct Example {
    pub title: &'static str,
    /// Where the store is, or the stores are.
    pub regions: fn() -> Result<Vec<Region>>,
    /// Done once, before any service starts.
    pub prepare: fn(Vec<Region>) -> Preparing,
    /// The store as a service in the region of this index sees it. `home` is the index of the home region.
    pub open: fn(regions: Vec<Region>, own: usize, home: usize) -> Opening,
    /// Whether the store is gone with its home, until an operator has moved it.
    pub has_home: bool,
    pub ttl: Duration,
}

/// Runs the example; the processes that it starts run one service each.
pub fn run(example: &Example) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match process::role() {
        Some(role) => runtime.block_on(worker::serve(example, role)),
        None => runtime.block_on(scene::play(example)),
    }
}
