//! Three tables in three regions, none of which knows of the others, keep a lease together: two of them are enough.
//!
//! ```sh
//! localstack/up localstack && source localstack/.env     # or: localstack/up ministack
//! cargo run --example majority_three_regions --features dynamodb,sqlite
//! ```
#![allow(missing_docs, reason = "an example")]

mod regions;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::majority::MajorityStore;
use regions::environment::{client, regions_of_a_gateway};
use regions::{Example, Opening, Preparing, Region, Result};

const REGIONS: [&str; 3] = ["eu-central-1", "us-east-1", "ap-northeast-1"];

fn main() -> Result<()> {
    regions::run(&Example {
        title: "A majority of three tables, one in each region",
        regions: || regions_of_a_gateway("LEASEHOLD_MAJORITY_REGIONS", &REGIONS),
        prepare,
        open: |regions, _own, _home| open(regions),
        has_home: false,
        ttl: Duration::from_secs(6),
    })
}

/// What an administrator does once.
fn prepare(regions: Vec<Region>) -> Preparing {
    Box::pin(async move {
        for region in &regions {
            create_table(&client(region), table(region)).await?;
        }
        Ok(majority(&regions).await?.set_up().await?)
    })
}

fn open(regions: Vec<Region>) -> Opening {
    Box::pin(async move { Ok(Arc::new(majority(&regions).await?) as Arc<dyn Store>) })
}

async fn majority(regions: &[Region]) -> Result<MajorityStore> {
    let mut majority = MajorityStore::builder();
    for region in regions {
        // `open` would ask each region, and a service has to start while one is away.
        majority = majority.member(DynamoDbStore::builder(client(region), table(region)).unverified()?);
    }
    Ok(majority.build()?)
}

/// A name of its own in each region: the tables are three stores.
fn table(region: &Region) -> String {
    format!("leases-{}", region.name)
}
