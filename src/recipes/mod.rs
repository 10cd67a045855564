//! What people build on leases, built once.
//!
//! # Which do I need?
//!
//! | you want | take |
//! |---|---|
//! | a piece of work run once per key, and its outcome remembered: idempotent handlers of at-least-once queues | [`Once`] |
//! | a name that nobody may acquire for a while after its release | no recipe: [`Lease::close`](crate::Lease::close) |
//! | a job that one of many machines does now | no recipe: [`Leases::try_acquire`](crate::Leases::try_acquire) |
//! | work that waits for its turn, and stops when its lease is lost | no recipe: [`Leases::acquire`](crate::Leases::acquire), then [`Lease::run`](crate::Lease::run) |
//!
//! `docs/recipes.md` says more: what to do with a message in each case, how long to remember, what each store costs.

mod once;

pub use once::{Failed, Once, OnceError, Outcome};
