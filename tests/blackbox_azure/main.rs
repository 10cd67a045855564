//! Black box runs on the strict blob service of the tests, over loopback; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
mod listener;
#[path = "../blackbox/on_blobs.rs"]
mod on_blobs;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{Ground, Verdict};
use leasehold::SystemClock;
use on_blobs::{plan, run_all};
use support::azure::{ACCOUNT, Fake};
use support::loopback::Loopback;

const AT_ONCE: usize = 4;

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    blackbox::assert_clean(&run_seeds(&blackbox::seeds(501..=504)));
}

#[test]
fn workers_that_never_look_whether_they_hold_are_seen_to_overlap() {
    let service = service();
    on_blobs::shows_that_overlaps_are_seen(&ground(&service));
}

#[test]
#[ignore = "the longer matrix: ten minutes"]
fn nothing_is_violated_in_the_longer_matrix() {
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(505..=536), AT_ONCE, run_seeds));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_blobs::work_if_worker();
}

fn run_seeds(seeds: &[u64]) -> Vec<Verdict> {
    let service = service();
    let ground = ground(&service);
    let plans = seeds.iter().map(|seed| plan(&ground, *seed)).collect();
    run_all(&ground, plans)
}

fn service() -> Loopback {
    listener::serve(Fake::new(SystemClock))
}

fn ground(service: &Loopback) -> Ground {
    on_blobs::ground("azure", service.addr(), format!("/{ACCOUNT}/blackbox"), "blackbox_azure")
}
