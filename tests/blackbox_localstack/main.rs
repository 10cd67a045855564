//! Black box runs on LocalStack; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_dynamodb.rs"]
mod on_dynamodb;
#[path = "../support/mod.rs"]
mod support;

use blackbox::{Limits, Verdict};
use on_dynamodb::{ground, plan, tables};
use support::gateway::Gateway;

/// Its gateway answers a tenth of what the emulator does alone, and works off also what nobody waits for any more: with
/// shorter terms and time-outs it falls behind and never catches up.
const LIMITS: Limits = Limits { ttl_ms: &[8000, 10_000], poll_ms: 800, windows: 33, least_grants: 10 };
/// As many as its gateway carries, which is a Python process.
const AT_ONCE: usize = 2;

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    blackbox::assert_clean(&run_seeds(&blackbox::seeds(301..=302)));
}

#[test]
#[ignore = "the longer matrix: ten minutes"]
fn nothing_is_violated_in_the_longer_matrix() {
    blackbox::assert_clean(&blackbox::run_in_batches(&blackbox::seeds(303..=322), AT_ONCE, run_seeds));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_dynamodb::work_if_worker();
}

fn run_seeds(seeds: &[u64]) -> Vec<Verdict> {
    let gateway = Gateway::named_by("LEASEHOLD_LOCALSTACK_ENDPOINT");
    let ground = ground("localstack", gateway.addr(), &gateway.table, LIMITS, "blackbox_localstack");
    tables(&ground, seeds.len());
    blackbox::run_all(&ground, seeds.iter().map(|seed| plan(&ground, *seed)).collect())
}
