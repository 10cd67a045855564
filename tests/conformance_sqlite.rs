//! The SQLite store conforms.
#![cfg(all(feature = "sqlite", feature = "conformance"))]

use leasehold::sqlite::SqliteStore;
use leasehold::store::conformance::{Options, run};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_conforms() {
    let folder = std::env::temp_dir().join(format!("leasehold-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = SqliteStore::open(folder.join("leases.db")).await.unwrap();
    // More than one page of its listing.
    let report = run(store, Options::default().crowd(1100)).await;
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{report}");
    report.assert_passed();
}
