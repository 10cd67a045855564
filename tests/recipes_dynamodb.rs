//! The recipes on an emulator of DynamoDB in the test process, in real time.
#![allow(clippy::disallowed_methods, reason = "sockets have no paused clock")]

mod recipes;
mod support;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::Store;
use leasehold::dynamodb::DynamoDbStore;
use recipes::World;
use support::emulator::{Emulator, create_table, retrying_client};

const TABLE: &str = "leases";
/// Long enough for a busy machine to renew in time: margin 300 ms, an attempt 500 ms, a renewal every second.
const TTL: Duration = Duration::from_secs(3);

async fn world() -> (World, Arc<Emulator>) {
    let emulator = Arc::new(Emulator::start());
    create_table(&emulator.client(), TABLE, "pk").await;
    let addr = emulator.addr();
    let world = World::new(None, TTL, move || async move {
        let store: Arc<dyn Store> = Arc::new(DynamoDbStore::open(retrying_client(addr), TABLE).await.unwrap());
        store
    });
    (World { keeps: emulator.clone(), ..world }, emulator)
}

macro_rules! tests {
    ($($module:ident: $case:ident,)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $case() {
            recipes::$module::$case(world().await.0).await;
        })*
    };
}

recipes::for_each_case!(tests);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token() {
    let (world, emulator) = world().await;
    let delete = || async move {
        let delete = emulator.client().delete_item().table_name(TABLE).key("pk", AttributeValue::S("leader".into()));
        delete.send().await.unwrap();
    };
    recipes::election::a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token(world, delete).await;
}
