//! Black box runs on Azurite; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_blobs.rs"]
mod on_blobs;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{Ground, Verdict};
use on_blobs::{plan, run_all};
use support::azurite::container;

const AT_ONCE: usize = 4;

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    blackbox::assert_clean(&run_seeds(&blackbox::seeds(1..=4)));
}

#[test]
fn workers_that_never_look_whether_they_hold_are_seen_to_overlap() {
    on_blobs::shows_that_overlaps_are_seen(&ground("control"));
}

#[test]
#[ignore = "the longer matrix: ten minutes"]
fn nothing_is_violated_in_the_longer_matrix() {
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(401..=432), AT_ONCE, run_seeds));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_blobs::work_if_worker();
}

/// In containers that no batch before has used.
fn run_seeds(seeds: &[u64]) -> Vec<Verdict> {
    let ground = ground(&format!("seed-{}", seeds[0]));
    let plans = seeds.iter().map(|seed| plan(&ground, *seed)).collect();
    run_all(&ground, plans)
}

fn ground(name: &str) -> Ground {
    let url = container(&format!("blackbox-{name}"));
    let (addr, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("http://ADDRESS/PATH");
    on_blobs::ground("azurite", addr.parse().expect("an address and a port"), format!("/{path}"), "blackbox_azurite")
}
