//! The memory store, in each of its three ways to judge, conforms.

use leasehold::store::conformance::{Options, run};
use leasehold::{MemoryStore, SystemClock};

/// More than one page of a memory store's listing.
fn options() -> Options {
    Options::default().crowd(1100)
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_conforms_when_it_judges_by_itself() {
    run(MemoryStore::new(), options()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_conforms_when_it_is_like_a_table() {
    run(MemoryStore::like_a_table(SystemClock), options()).await.assert_passed();
}

#[tokio::test]
async fn memory_conforms_when_its_clients_judge() {
    run(MemoryStore::judged_by_clients(SystemClock), options()).await.assert_passed();
}
