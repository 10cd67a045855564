//! The client on DynamoDB: real sockets, a real SDK, an emulator, and a proxy that counts and spoils requests.
//!
//! Over sockets the clocks are real. So terms are short where one has to end, and long where nothing must happen by
//! itself; no bound asserted here is tighter than the protocol's own.
#![allow(clippy::disallowed_methods, reason = "sockets have no paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod blocked;
mod cancelled;
mod crowd;
mod fence;
mod ground;
mod items;
mod lost_answers;
mod outages;
mod permissions;
mod requests;
mod runtimes;
mod secrets;
mod tables;
