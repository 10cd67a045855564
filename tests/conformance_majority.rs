//! A majority of memory stores conforms: of three that judge by themselves, of five, and isolated in nothing.

use leasehold::majority::MajorityStore;
use leasehold::store::conformance::{Options, run};
use leasehold::{MemoryStore, SystemClock};

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_three_memory_stores_conforms() {
    let store = MajorityStore::new([MemoryStore::new(), MemoryStore::new(), MemoryStore::new()]).unwrap();
    store.set_up().await.unwrap();
    let report = run(store, Options::default()).await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_five_that_waits_for_all_conforms() {
    let builder = (0..5).fold(MajorityStore::builder(), |builder, _| builder.member(MemoryStore::new()));
    let store = builder.wait_for_all(std::time::Duration::from_millis(50)).build().unwrap();
    store.set_up().await.unwrap();
    run(store, Options::default()).await.assert_passed();
}

/// Who watches has to watch again what a revocation has changed.
#[tokio::test]
async fn a_majority_of_tables_that_are_watched_conforms() {
    let table = || MemoryStore::judged_by_clients(SystemClock);
    let store = MajorityStore::new([table(), table(), table()]).unwrap();
    store.set_up().await.unwrap();
    let why = "its members are watched, and a revocation is another write: its term is watched anew";
    let options = Options::default().excuse("a revocation does not prolong the term", why);
    run(store, options).await.assert_passed();
}
