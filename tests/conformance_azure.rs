//! The Azure Blob store conforms on a Blob service that keeps to the documentation.

mod support;

use leasehold::SystemClock;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::conformance::{Options, run};

use crate::support::azure::{ACCOUNT, Fake};

/// A term is 15 seconds here at least, so all cases wait at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn azure_blob_conforms_on_a_strict_service() {
    let fake = Fake::new(SystemClock);
    let store = AzureBlobStore::builder(fake.container_url(), Credential::shared_key(ACCOUNT, "a2V5"))
        .http_client(fake.http_client())
        .open()
        .await
        .unwrap();
    let report = run(store, Options::default().at_once(100)).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(fake.invalid().len(), 0, "{:?}", fake.invalid().first());
}
