//! The DynamoDB store conforms, on the emulator.

mod support;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use leasehold::dynamodb::{DynamoDbStore, SortKey, create_table};
use leasehold::store::Store;
use leasehold::store::conformance::{Options, run};

use crate::support::emulator::Emulator;

/// A page is 1 MB of items, and the suite's are small: the case about pages has one of its own in
/// `dynamodb_store`, with larger items.
fn options() -> Options {
    Options::default()
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamodb_conforms_on_a_table_of_its_own() {
    let emulator = Emulator::start();
    create_table(&emulator.client(), "leases").await.expect("created");
    let store = DynamoDbStore::open(emulator.client(), "leases").await.expect("the table is fit");
    run(store, options()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamodb_conforms_isolated_and_unverified() {
    let emulator = Emulator::start();
    create_table(&emulator.client(), "leases").await.expect("created");
    let store = DynamoDbStore::builder(emulator.client(), "leases").unverified().expect("the options are fine");
    run(store.isolated().expect("it has connections"), options()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamodb_conforms_on_a_shared_table_with_a_sort_key() {
    let emulator = Emulator::start();
    create_shared_table(&emulator.client()).await;
    let sort_key = SortKey::constant("sort.key", "LEASE");
    let builder = DynamoDbStore::builder(emulator.client(), "shared").sort_key(sort_key);
    run(builder.open().await.expect("the table is fit"), options()).await.assert_passed();
}

async fn create_shared_table(client: &Client) {
    let mut create = client.create_table().table_name("shared").billing_mode(BillingMode::PayPerRequest);
    for (key, role) in [("hash", KeyType::Hash), ("sort.key", KeyType::Range)] {
        let defined = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(role);
        create = create
            .attribute_definitions(defined.build().expect("complete"))
            .key_schema(element.build().expect("complete"));
    }
    create.send().await.expect("the table is created");
}
