//! Where the examples find Azure, or Azurite: in the environment. `examples/azure_blob.rs` says how.

#![allow(dead_code, unreachable_pub, reason = "each example uses its own part")]

use std::env;

use leasehold::Error;
use leasehold::azure_blob::{AzureBlobStore, Credential, FencedBlob};

/// A container, and what opens it.
pub struct Place {
    container: String,
    credential: Credential,
    has_key: bool,
}

impl Place {
    pub fn find() -> Result<Self, &'static str> {
        let container =
            env::var("AZURE_STORAGE_CONTAINER_URL").map_err(|_| "AZURE_STORAGE_CONTAINER_URL is not set")?;
        let key = (env::var("AZURE_STORAGE_ACCOUNT"), env::var("AZURE_STORAGE_KEY"));
        if let (Ok(account), Ok(key)) = key {
            return Ok(Self { container, credential: Credential::shared_key(account, key), has_key: true });
        }
        let credential = match env::var("AZURE_STORAGE_SAS_TOKEN") {
            Ok(token) => Credential::sas(token),
            Err(_) => Credential::in_url(),
        };
        Ok(Self { container, credential, has_key: false })
    }

    /// Leases in the container.
    pub async fn store(&self) -> Result<AzureBlobStore, Error> {
        let builder = AzureBlobStore::builder(self.container.clone(), self.credential.clone());
        if self.has_key {
            return builder.create_container().open().await; // in production your infrastructure creates it
        }
        // A signature of one container may not look at the container itself, as `open` does.
        builder.unverified()
    }

    /// A blob beside them.
    pub fn blob(&self, name: &str) -> Result<FencedBlob, Error> {
        let (container, signature) = self.container.split_once('?').unwrap_or((&self.container, ""));
        let signature = if signature.is_empty() { String::new() } else { format!("?{signature}") };
        FencedBlob::at(format!("{container}/{name}{signature}"), self.credential.clone())
    }
}
