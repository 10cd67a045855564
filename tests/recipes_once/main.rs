//! A piece of work once per key, and closing releases, which it is built on: whatever is lost, crashes or is cancelled,
//! one outcome is remembered.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod cancelled;
mod closing;
mod crashes;
mod deliveries;
mod functions;
mod ground;
