//! Leases on global tables, on a double that replicates as the documentation says: no emulator does.
#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod ground;
mod home;
mod strong;
