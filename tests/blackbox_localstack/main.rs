//! Black box runs on LocalStack; see `tests/blackbox`.
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

#[path = "../blackbox/mod.rs"]
mod blackbox;
#[path = "../blackbox/on_dynamodb.rs"]
mod on_dynamodb;
#[path = "../support/mod.rs"]
mod support;

use on_dynamodb::{ground, plan, tables};
use support::gateway::Gateway;

const REPLAY: &str = "LEASEHOLD_BLACKBOX_SEEDS={seed} cargo test --features $STORES --test blackbox_localstack \
                      nothing_is_violated -- --nocapture";

#[test]
fn nothing_is_violated_whatever_happens_to_processes_and_their_requests() {
    let gateway = Gateway::named_by("LEASEHOLD_LOCALSTACK_ENDPOINT");
    let ground = ground("localstack", gateway.addr(), &gateway.table, REPLAY);
    let plans: Vec<_> = blackbox::seeds(301..=302).into_iter().map(|seed| plan(&ground, seed)).collect();
    tables(&ground, plans.len());
    blackbox::assert_clean(&blackbox::run_all(&ground, plans));
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    on_dynamodb::work_if_worker();
}
