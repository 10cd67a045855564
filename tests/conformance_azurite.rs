//! The Azure Blob store conforms on Azurite, but for what Azurite does otherwise than the service.

mod support;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::conformance::{Options, run};
use support::azurite::{ACCOUNT, KEY, container};

#[tokio::test(flavor = "multi_thread")]
async fn azure_blob_conforms_on_azurite() {
    let store = AzureBlobStore::builder(container("conformance"), Credential::shared_key(ACCOUNT, KEY));
    let store = store.create_container().open().await.unwrap();
    // More at once take hardly less time, and on a busy machine Azurite then needs longer for some than a request has.
    let report = run(store, Options::default().at_once(16)).await;
    println!("{report}");
    report.assert_passed();
}
