//! The decisions of `src/lease`, one at a time: what a caller is told, what is sent, and when.
//!
//! The other tests of a client tell of whole stories. What a story passes by (which text an error has, what a time-out cut
//! to the rest of the caller's time says, a status at the very end of a term) is held here.
#![allow(clippy::disallowed_methods, reason = "tests read and sleep on a paused clock")]

#[path = "../support/mod.rs"]
mod support;

mod acquire;
mod admin;
mod builder;
mod client;
mod core;
mod debts;
mod keeper;
mod line;
mod release;
mod request;
mod told;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// 30 s less 1 % less the margin of 3 s.
const TERM: Duration = Duration::from_millis(26_700);
