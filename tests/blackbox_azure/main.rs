//! Black box runs on the strict blob service of the tests, over loopback; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
mod listener;
#[path = "../blackbox/on_blobs.rs"]
mod on_blobs;
#[path = "../support/mod.rs"]
mod support;

use std::ops::RangeInclusive;

use blackbox::Ground;
use leasehold::SystemClock;
use support::azure::{ACCOUNT, Fake};

const ORDINARY: RangeInclusive<u64> = 501..=504;
const LONGER: RangeInclusive<u64> = 505..=536;

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_blobs::work_if_worker();
}

/// Each service is another one.
fn on_ground<T>(_: &str, run: impl FnOnce(&Ground) -> T) -> T {
    let service = listener::serve(Fake::new(SystemClock));
    run(&on_blobs::ground("azure", service.addr(), format!("/{ACCOUNT}/blackbox"), "blackbox_azure"))
}
