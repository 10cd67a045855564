//! Fenced writes to blobs on Azurite: a blob of the caller's own, the lease's own blob, and the late writes of a process
//! that was frozen.

#![allow(unreachable_pub, reason = "the modules of a test share what they have")]

#[path = "../support/mod.rs"]
mod support;

mod blobs;
mod frozen;
mod ground;
mod plain;
