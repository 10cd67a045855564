//! Fenced writes to blobs, on a service that keeps to the documentation and checks every signature: a blob of the
//! caller's own, and the lease's own blob.

#![allow(unreachable_pub, reason = "the modules of a test share what they have")]

#[path = "../support/mod.rs"]
mod support;

mod errors;
mod ground;
mod lease_blob;
mod own_blob;
