#![forbid(unsafe_code)]
//! Leases on managed cloud stores.

mod backends;
mod fence;
mod lease;
#[doc(hidden)]
pub mod protocol;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod types;

pub use backends::memory::MemoryStore;
pub use fence::{Fence, Stale};
pub use lease::*;
pub use store::Store;
pub use time::{Clock, Sleep, SystemClock};
pub use types::*;
