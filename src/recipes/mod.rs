//! What people build on leases, built once.
//!
//! # Which do I need?
//!
//! | you want | take |
//! |---|---|
//! | a piece of work to run at most once per key, and its outcome remembered: idempotent handlers of at-least-once queues | [`Once`] |

mod once;

pub use once::{Failed, Once, OnceError, Outcome};
