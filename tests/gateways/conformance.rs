//! The suite of all stores.

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::store::conformance::{Options, run};

use crate::ENDPOINT;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn dynamodb_conforms_through_the_gateway() {
    let gateway = Gateway::named_by(ENDPOINT);
    create_table(&gateway.client(), &gateway.table).await.expect("created");
    let store = DynamoDbStore::open(gateway.client(), &gateway.table).await.expect("the table is fit");
    run(store, Options::default()).await.assert_passed();
}
