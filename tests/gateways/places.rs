//! Regions and accounts are places of their own, and a global table is seen for what it is.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{CreateReplicationGroupMemberAction, ReplicationGroupUpdate};
use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::{ErrorKind, Leases};

use crate::ENDPOINT;
use crate::support::gateway::Gateway;

async fn leases(client: Client, table: &str) -> Leases {
    create_table(&client, table).await.expect("created");
    let store = DynamoDbStore::open(client, table).await.expect("the table is fit");
    Leases::builder(store).build().expect("fits")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_in_one_region_or_account_is_free_in_another_under_the_same_table_and_name() {
    let gateway = Gateway::named_by(ENDPOINT);
    let places = [
        gateway.client(),
        gateway.client_in("us-east-1"),
        gateway.client_in("ap-southeast-2"),
        gateway.client_of_account("123456789012"),
    ];
    let mut held = Vec::new();
    for client in places {
        let leases = leases(client, &gateway.table).await;
        held.push(leases.try_acquire("job").await.expect("answered").acquired().expect("free here"));
        assert!(leases.try_acquire("job").await.expect("answered").acquired().is_none(), "and held here now");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_gets_an_eventually_consistent_replica_is_refused_unless_its_home_is_named() {
    let gateway = Gateway::named_by(ENDPOINT);
    let (client, table) = (gateway.client(), &gateway.table);
    create_table(&client, table).await.expect("created");
    let replica = CreateReplicationGroupMemberAction::builder().region_name("us-east-1").build().expect("complete");
    let update = ReplicationGroupUpdate::builder().create(replica).build();
    client.update_table().table_name(table).replica_updates(update).send().await.expect("a replica is made");

    let refused = DynamoDbStore::open(client.clone(), table).await.expect_err("a global table");
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("home_region"), "{refused}");
    let at_home = DynamoDbStore::builder(client, table).home_region("eu-central-1").open().await.expect("pinned");

    let lease = Leases::builder(at_home).build().expect("fits").acquire("job").await.expect("free");
    let elsewhere = DynamoDbStore::builder(gateway.client_in("us-east-1"), table).unverified().expect("fine");
    let seen = Leases::builder(elsewhere).build().expect("fits").inspect("job").await.expect("answered");
    assert_eq!(seen.token, Some(lease.token()), "the replica shows the same record");
}
