//! The client on Azure Blob Storage, on a Blob service that keeps to the documentation and on a paused clock.
//!
//! The term is 15 s: a holder believes for 12.2 s after it has sent its claim or renewal, the service lets others in
//! after 15 s. A renewal is sent every 5 s, and one attempt may take 2.5 s.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod cancelled;
mod ground;
mod handover;
mod lost_answers;
mod operators;
mod outages;
mod permissions;
mod records;
mod requests;
mod secrets;
mod two_owners;
mod waiting;
