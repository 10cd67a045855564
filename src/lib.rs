#![forbid(unsafe_code)]
//! Leases on managed cloud stores.

mod backends;
#[doc(hidden)]
pub mod protocol;
pub mod store;
mod time;
mod types;

pub use backends::memory::MemoryStore;
pub use time::{Clock, Sleep, SystemClock};
pub use types::*;

/// the answer
#[derive(Debug)]
pub struct Attempt;
