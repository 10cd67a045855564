//! Black box runs on Azurite; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_blobs.rs"]
mod on_blobs;
#[path = "../support/mod.rs"]
mod support;

use std::ops::RangeInclusive;

use blackbox::Ground;
use support::azurite::container;

const ORDINARY: RangeInclusive<u64> = 1..=4;
const LONGER: RangeInclusive<u64> = 401..=432;

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_blobs::work_if_worker();
}

/// In containers that have this in their names.
fn on_ground<T>(name: &str, run: impl FnOnce(&Ground) -> T) -> T {
    let url = container(&format!("blackbox-{name}"));
    let (addr, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("http://ADDRESS/PATH");
    let addr = addr.parse().expect("an address and a port");
    run(&on_blobs::ground("azurite", addr, format!("/{path}"), "blackbox_azurite"))
}
