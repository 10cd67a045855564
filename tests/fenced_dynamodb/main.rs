//! Fencing at DynamoDB: the caller's own writes under a token, or under the lease itself.
#![allow(clippy::disallowed_methods, reason = "sockets and processes have no paused clock")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod dice;
mod example_lambda;
mod frozen;
mod ground;
mod lease_check;
mod merging;
mod transactions;
mod writes;

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    if let Some(role) = support::worker::role() {
        frozen::work(&role);
    }
}
