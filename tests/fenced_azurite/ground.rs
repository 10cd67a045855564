//! A container of this run's own.

use leasehold::FencingToken;
use leasehold::azure_blob::{AzureBlobStore, Credential, FencedBlob};

use crate::support::azurite::{ACCOUNT, KEY};

pub const BLOB: &str = "state.json";

/// A store on the container, which is made if it is not there.
pub async fn store(container: &str) -> AzureBlobStore {
    AzureBlobStore::builder(container, credential()).create_container().open().await.expect("Azurite answers")
}

pub fn blob(container: &str) -> FencedBlob {
    FencedBlob::at(format!("{container}/{BLOB}"), credential()).expect("fits")
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn credential() -> Credential {
    Credential::shared_key(ACCOUNT, KEY)
}
