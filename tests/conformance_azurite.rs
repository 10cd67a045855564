//! The Azure Blob store conforms on Azurite, but for what Azurite does otherwise than the service.

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::conformance::{Options, run};

/// The account that every Azurite has, and its published key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[tokio::test(flavor = "multi_thread")]
async fn azure_blob_conforms_on_azurite() {
    let endpoint = std::env::var("LEASEHOLD_AZURITE_ENDPOINT")
        .expect("LEASEHOLD_AZURITE_ENDPOINT is not set: start Azurite with `localstack/up azurite`");
    let container = format!("{}/conformance-{}", endpoint.trim_end_matches('/'), std::process::id());
    let store = AzureBlobStore::builder(container, Credential::shared_key(ACCOUNT, KEY));
    let store = store.create_container().open().await.unwrap();
    let report = run(store, Options::default().at_once(100)).await;
    println!("{report}");
    report.assert_passed();
}
