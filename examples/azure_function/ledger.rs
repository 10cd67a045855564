//! The message, and its effect: a line for each charge in a blob of the order, which refuses stale tokens.
//!
//! A second charge is to be seen here, so the effect does not look first. Yours should: what is read after the raise is
//! all that was ever charged, and a run that has charged and was killed before this was remembered is followed by another.

use std::env;
use std::time::Duration;

use leasehold::FencingToken;
use leasehold::azure_blob::{Credential, FencedBlob};
use serde::Deserialize;

use crate::Error;

/// The message's meaning, and so the key: not the message's id, since a producer may send it twice.
#[derive(Deserialize)]
pub struct Order {
    pub order: String,
    /// To try out what happens in the middle.
    #[serde(default)]
    bank_takes_ms: u64,
}

impl Order {
    /// The slow part of the work.
    pub async fn bank(&self) {
        tokio::time::sleep(Duration::from_millis(self.bank_takes_ms)).await;
    }
}

pub struct Ledger {
    pub container: String,
    pub credential: Credential,
}

impl Ledger {
    /// By environment. In production `Credential::token` of a managed identity, from the crate azure_identity.
    pub fn new() -> Result<Self, Error> {
        let variable = |name: &str| env::var(name).map_err(|_| format!("{name} is not set"));
        let credential = match (env::var("AZURE_STORAGE_ACCOUNT"), env::var("AZURE_STORAGE_KEY")) {
            (Ok(account), Ok(key)) => Credential::shared_key(account, key),
            _ => Credential::sas(variable("AZURE_STORAGE_SAS_TOKEN")?),
        };
        Ok(Self { container: variable("LEASES_CONTAINER_URL")?, credential })
    }

    pub async fn charge(&self, order: &str, token: FencingToken) -> Result<(), Error> {
        // What else would be special in a URL `at` refuses.
        let order = order.replace('%', "%25");
        let blob = FencedBlob::at(format!("{}/ledger-{order}", self.container), self.credential.clone())?;
        let mut charges = blob.raise(token).await?;
        let mut lines = charges.read().await?;
        lines.extend_from_slice(format!("{token}\n").as_bytes());
        Ok(charges.write(lines).await?)
    }
}
