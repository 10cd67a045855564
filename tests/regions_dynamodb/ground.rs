//! A service in three regions.

use std::time::Duration;

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::{Lease, Leases};

use crate::support::global_table::{GlobalTable, Replication};

pub const FRANKFURT: &str = "eu-central-1";
pub const VIRGINIA: &str = "us-east-1";
pub const TOKYO: &str = "ap-northeast-1";
pub const REGIONS: [&str; 3] = [FRANKFURT, VIRGINIA, TOKYO];
pub const TABLE: &str = "leases";
/// Margin 150 ms, an attempt 250 ms, a renewal every 500 ms.
pub const TTL: Duration = Duration::from_millis(1500);
pub const MARGIN: Duration = Duration::from_millis(150);
/// What takes longer than this does not happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub async fn table(replication: Replication) -> GlobalTable {
    let table = GlobalTable::start(&REGIONS, replication);
    create_table(&table.client(FRANKFURT), TABLE).await.expect("created");
    table
}

/// A client whose holder is called as its region.
pub fn leases(store: DynamoDbStore, region: &str) -> Leases {
    Leases::builder(store).holder(region).ttl(TTL).margin(MARGIN).build().expect("fits")
}

pub async fn try_acquire(leases: &Leases) -> Option<Lease> {
    leases.try_acquire("settlement").await.expect("answered").acquired()
}

pub async fn acquire(leases: &Leases) -> Lease {
    leases.acquire_within("settlement", PATIENCE).await.expect("in time")
}
