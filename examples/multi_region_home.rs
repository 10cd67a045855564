//! An eventually consistent global table (MREC): the replica of one region is the store, and services in all regions
//! call it. When the home is lost, an operator moves it.
//!
//! No emulator replicates with a lag; `localstack/up regions` starts a double that behaves as the documentation says.
//!
//! ```sh
//! localstack/up regions && source localstack/.env
//! cargo run --example multi_region_home --features dynamodb,sqlite
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
        title: "An eventually consistent global table, and its home",
        regions: || environment::regions("LEASEHOLD_EVENTUAL_REGIONS", "localstack/up regions; source localstack/.env"),
        prepare: |regions| {
            Box::pin(async move { Ok(create_table(&environment::client(&regions[0]), "leases").await?) })
        },
        open,
        has_home: true,
        ttl: Duration::from_secs(3),
    })
}

fn open(regions: Vec<Region>, _own: usize, home: usize) -> Opening {
    Box::pin(async move {
        // Without the pinned home the table would be refused: two regions could hold one lease.
        let home = &regions[home];
        let store = DynamoDbStore::builder(environment::client(home), "leases").home_region(&home.name).open().await?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    })
}
