//! Two tables in two regions of one cloud, and a container of another one: a lease that outlives the loss of either.
//!
//! ```sh
//! localstack/up localstack azurite && source localstack/.env     # or ministack for localstack
//! cargo run --example majority_two_clouds --features dynamodb,azure-blob,sqlite
//! ```
#![allow(missing_docs, reason = "an example")]

mod regions;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::majority::MajorityStore;
use regions::environment::{client, container, regions_of_a_gateway};
use regions::{Example, Opening, Preparing, Region, Result};

const REGIONS: [&str; 2] = ["eu-central-1", "us-east-1"];
const AZURE: &str = "azure";

fn main() -> Result<()> {
    regions::run(&Example {
        title: "A majority of two tables and a container, in two clouds",
        regions: places,
        prepare,
        open: |places, _own, _home| Box::pin(open(places)) as Opening,
        has_home: false,
        ttl: Duration::from_secs(15), // the shortest of a container
    })
}

fn places() -> Result<Vec<Region>> {
    let mut places = regions_of_a_gateway("LEASEHOLD_MAJORITY_REGIONS", &REGIONS)?;
    places.truncate(REGIONS.len());
    places.push(container("leases-of-two-clouds")?);
    Ok(places)
}

/// What an administrator does once.
fn prepare(places: Vec<Region>) -> Preparing {
    Box::pin(async move {
        for region in places.iter().filter(|place| place.name != AZURE) {
            create_table(&client(region), table(region)).await?;
        }
        let blobs = places.iter().find(|place| place.name == AZURE).ok_or("there is no container")?;
        AzureBlobStore::builder(&blobs.endpoint, credential()?).create_container().open().await?;
        Ok(majority(&places)?.set_up().await?)
    })
}

async fn open(places: Vec<Region>) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(majority(&places)?))
}

fn majority(places: &[Region]) -> Result<MajorityStore> {
    let mut majority = MajorityStore::builder();
    for place in places {
        // Nobody is asked here: a service has to start while one of them is away.
        majority = match place.name.as_str() {
            AZURE => majority.member(AzureBlobStore::builder(&place.endpoint, credential()?).unverified()?),
            _ => majority.member(DynamoDbStore::builder(client(place), table(place)).unverified()?),
        };
    }
    Ok(majority.build()?)
}

fn table(region: &Region) -> String {
    format!("leases-{}", region.name)
}

fn credential() -> Result<Credential> {
    Ok(Credential::shared_key(std::env::var("LEASEHOLD_AZURITE_ACCOUNT")?, std::env::var("LEASEHOLD_AZURITE_KEY")?))
}
