//! Which tables are taken, and what is said of the others.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType as Type,
};
use leasehold::dynamodb::{DynamoDbStore, SortKey, create_table};
use leasehold::store::Store;
use leasehold::{Applied, Claimed, ErrorKind, Renewed, StoreErrorKind, Vacated};

use crate::bodies::{a, claim, release, renew};
use crate::support::emulator::Emulator;

/// A table whose keys have these names and types.
async fn table(client: &Client, keys: &[(&str, Type)]) {
    let kinds = [KeyType::Hash, KeyType::Range];
    let mut create = client.create_table().table_name("odd").billing_mode(BillingMode::PayPerRequest);
    for ((name, kind), role) in keys.iter().zip(kinds) {
        let defined = AttributeDefinition::builder().attribute_name(*name).attribute_type(kind.clone());
        let element = KeySchemaElement::builder().attribute_name(*name).key_type(role);
        create = create
            .attribute_definitions(defined.build().expect("complete"))
            .key_schema(element.build().expect("complete"));
    }
    create.send().await.expect("created");
}

async fn refused(keys: &[(&str, Type)], open: impl AsyncFnOnce(Client) -> Option<leasehold::Error>) -> String {
    let emulator = Emulator::start();
    table(&emulator.client(), keys).await;
    let error = open(emulator.client()).await.expect("refused");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    error.to_string()
}

#[tokio::test]
async fn key_attributes_may_be_called_anything() {
    for key in ["key", "owner", "data", "ttl", "hash", "a.b", "a-b", "pk", "token", "set", "1", "grant"] {
        let emulator = Emulator::start();
        table(&emulator.client(), &[(key, Type::S), ("sort.key-1", Type::S)]).await;
        for sort in [SortKey::constant("sort.key-1", "LEASE"), SortKey::lease_name("sort.key-1")] {
            let builder = DynamoDbStore::builder(emulator.client(), "odd").sort_key(sort);
            let store = builder.open().await.expect("fit");
            assert_eq!(store.claim(&claim(1, a())).await.expect("answered").value, Claimed::Granted, "{key}");
            let renewed = store.renew(&[renew(a(), 2)]).await.remove(0).expect("answered").value;
            assert_eq!(renewed, Renewed::Renewed(None));
            assert_eq!(store.vacate(&release(1, a())).await.expect("answered").value, Vacated::Vacated);
            let page = store.list("jo", None).await.expect("answered").value;
            assert_eq!((page.leases.len(), page.skipped), (1, 0), "the other sort key's item is not of this store");
        }
    }
}

#[tokio::test]
async fn a_missing_table_is_named_with_its_region() {
    let emulator = Emulator::start();
    let error = DynamoDbStore::open(emulator.client(), "nowhere").await.expect_err("missing");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("there is no table `nowhere` in eu-central-1"), "{error}");

    let store = DynamoDbStore::builder(emulator.client(), "nowhere").unverified().expect("fine");
    let error = store.claim(&claim(1, a())).await.expect_err("missing");
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Misconfigured));
}

#[tokio::test]
async fn another_key_than_the_named_one_is_refused_with_both_names() {
    let text = refused(&[("id", Type::S)], async |client| {
        DynamoDbStore::builder(client, "odd").partition_key("pk").open().await.err()
    });
    let text = text.await;
    assert!(text.contains("`id`") && text.contains("`pk` was expected"), "{text}");
}

#[tokio::test]
async fn a_key_of_another_type_is_refused_with_both_types() {
    let text = refused(&[("pk", Type::N)], async |client| DynamoDbStore::open(client, "odd").await.err()).await;
    assert!(text.contains("`pk` has the type N, and S (string) was expected"), "{text}");
    let keys = [("pk", Type::S), ("sk", Type::N)];
    let text = refused(&keys, async |client| {
        DynamoDbStore::builder(client, "odd").sort_key(SortKey::constant("sk", "x")).open().await.err()
    });
    assert!(text.await.contains("`sk` has the type N"));
}

#[tokio::test]
async fn a_sort_key_has_to_be_expected_and_to_be_there() {
    let keys = [("pk", Type::S), ("sk", Type::S)];
    let text = refused(&keys, async |client| DynamoDbStore::open(client, "odd").await.err()).await;
    assert!(text.contains("it has the sort key `sk`, and none was expected"), "{text}");
    let text = refused(&keys[..1], async |client| {
        DynamoDbStore::builder(client, "odd").sort_key(SortKey::lease_name("sk")).open().await.err()
    });
    assert!(text.await.contains("it has no sort key, and `sk` was expected"));
}

#[tokio::test]
async fn a_key_attribute_that_looks_like_a_field_of_ours_is_refused() {
    let text = refused(&[("lh_token", Type::S)], async |client| DynamoDbStore::open(client, "odd").await.err()).await;
    assert!(text.contains("`lh_token` starts with `lh_`"), "{text}");
    let emulator = Emulator::start();
    let builder = DynamoDbStore::builder(emulator.client(), "odd").sort_key(SortKey::constant("lh_x", "y"));
    assert_eq!(builder.unverified().expect_err("refused").kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn an_unverified_store_on_another_key_says_what_to_name() {
    let emulator = Emulator::start();
    table(&emulator.client(), &[("id", Type::S)]).await;
    let store = DynamoDbStore::builder(emulator.client(), "odd").unverified().expect("fine");
    let error = store.claim(&claim(1, a())).await.expect_err("wrong key");
    assert_eq!((error.applied, error.kind), (Applied::No, StoreErrorKind::Misconfigured), "{error}");
    assert!(error.to_string().contains("`partition_key`"), "{error}");
}

#[tokio::test]
async fn a_created_table_is_fit_and_creating_it_again_is_fine() {
    let emulator = Emulator::start();
    create_table(&emulator.client(), "leases").await.expect("created");
    create_table(&emulator.client(), "leases").await.expect("there already");
    DynamoDbStore::open(emulator.client(), "leases").await.expect("fit");
}

#[tokio::test]
async fn a_table_of_another_shape_is_not_taken_for_a_created_one() {
    let emulator = Emulator::start();
    table(&emulator.client(), &[("id", Type::S)]).await;
    let error = create_table(&emulator.client(), "odd").await.expect_err("another shape");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("exists already"), "{error}");
}

#[tokio::test]
async fn a_home_region_has_to_be_the_clients_also_unverified() {
    let emulator = Emulator::start();
    create_table(&emulator.client(), "leases").await.expect("created");
    let builder = || DynamoDbStore::builder(emulator.client(), "leases");
    builder().home_region("eu-central-1").open().await.expect("fit");
    let error = builder().home_region("us-east-1").open().await.expect_err("elsewhere");
    assert!(error.to_string().contains("us-east-1") && error.to_string().contains("eu-central-1"), "{error}");
    builder().home_region("us-east-1").unverified().expect_err("elsewhere");
}

#[tokio::test]
async fn a_retention_below_a_day_is_refused() {
    let emulator = Emulator::start();
    let builder = DynamoDbStore::builder(emulator.client(), "leases").retention(Duration::from_secs(3600));
    assert!(builder.unverified().expect_err("short").to_string().contains("24 hours"));
}
