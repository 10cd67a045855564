//! One strongly consistent global table (MRSC) for services in three regions: each uses the endpoint of its own region.
//!
//! No emulator has such tables; `localstack/up regions` starts a double that behaves as the documentation says.
//!
//! ```sh
//! localstack/up regions && source localstack/.env
//! cargo run --example multi_region_strong --features dynamodb,sqlite
//! ```
#![allow(missing_docs, reason = "an example")]

mod regions;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use regions::{Example, Opening, Region, environment};

fn main() -> regions::Result<()> {
    regions::run(&Example {
        title: "One strongly consistent global table, three regions",
        regions: || environment::regions("LEASEHOLD_STRONG_REGIONS", "localstack/up regions; source localstack/.env"),
        prepare: |regions| {
            Box::pin(async move { Ok(create_table(&environment::client(&regions[0]), "leases").await?) })
        },
        open,
        has_home: false,
        ttl: Duration::from_secs(3),
    })
}

fn open(regions: Vec<Region>, own: usize, _home: usize) -> Opening {
    Box::pin(async move {
        // `open` sees that the table is strongly consistent, and so that all of its replicas are one store.
        let store = DynamoDbStore::open(environment::client(&regions[own]), "leases").await?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    })
}
