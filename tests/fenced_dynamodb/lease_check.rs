//! `condition_check`: a transaction of the application's that DynamoDB refuses without the lease.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use leasehold::dynamodb::{DynamoDbStore, Refusal, SortKey};
use leasehold::{Claim, Claimed, ErrorKind, Expect, Grant, Lease, Leases, Operation, Proof, Standing, Store};

use crate::ground::{Ground, Item, LEASES, TABLE, n, s};
use crate::support::faults::{Answer, Fault, Match};

/// Writes under the lease. `false`: DynamoDB has refused it, for the lease.
async fn writes(ground: &Ground, store: &DynamoDbStore, proof: &Proof) -> bool {
    let update = Update::builder().table_name(TABLE).key("id", s("42"));
    let update = update.update_expression("ADD writes :one").expression_attribute_values(":one", n(1));
    let members = vec![
        TransactWriteItem::builder().update(update.build().unwrap()).build(),
        TransactWriteItem::builder().condition_check(store.condition_check(proof).unwrap()).build(),
    ];
    let before = ground.item("42").await;
    let sent = ground.client.transact_write_items().set_transact_items(Some(members.clone())).send().await;
    let written = ground.item("42").await != before;
    match sent {
        Ok(_) => assert!(written),
        Err(error) => {
            assert_eq!(Refusal::of_transaction(&error, &members), [None, Some(Refusal::NotHeld)], "{error:?}");
            assert!(!written);
        }
    }
    written
}

struct Stage {
    ground: Ground,
    store: DynamoDbStore,
    leases: Leases,
    lease: Lease,
    proof: Proof,
}

impl Stage {
    async fn new() -> Self {
        let ground = Ground::new().await;
        let store = ground.store().await;
        let leases = ground.quiet(store.clone()).await;
        let lease = leases.acquire("job").await.unwrap();
        let proof = lease.held().proof();
        Self { ground, store, leases, lease, proof }
    }

    async fn writes(&self) -> bool {
        writes(&self.ground, &self.store, &self.proof).await
    }

    async fn item(&self) -> Item {
        let get = self.ground.client.get_item().table_name(LEASES).key("pk", s("job")).consistent_read(true);
        get.send().await.unwrap().item.unwrap()
    }

    /// A rival takes over, as if the term had ended. Its grant.
    async fn taken_over(&self) -> Grant {
        let view = self.store.read(self.lease.name()).await.unwrap().value;
        let Standing::Held(version) = &view.standing else { panic!("{view:?}") };
        let grant = Grant::from_bits(77);
        let claim = Claim {
            name: self.lease.name().clone(),
            token: view.token() + 1,
            grant,
            ttl_ms: 60_000,
            expires_at_ms: None,
            holder: None,
            data: None,
            set: None,
            expect: Expect::Expired(version.clone()),
        };
        assert_eq!(self.store.claim(&claim).await.unwrap().value, Claimed::Granted);
        grant
    }
}

#[tokio::test]
async fn a_holder_writes_under_its_lease_through_renewals_and_requests_to_finish() {
    let stage = Stage::new().await;
    assert!(stage.writes().await);
    stage.lease.renew().await.unwrap();
    assert!(stage.writes().await);
    stage.leases.ask("job", stage.lease.token(), Duration::from_secs(5)).await.unwrap();
    assert!(stage.writes().await);
    assert_eq!(stage.ground.item("42").await.unwrap()["writes"], n(3));
}

#[tokio::test]
async fn after_a_takeover_dynamodb_refuses_the_old_holders_transaction() {
    let stage = Stage::new().await;
    stage.taken_over().await;
    assert!(stage.lease.held().is_held(), "its own clocks do not know yet");
    assert!(!stage.writes().await);
}

#[tokio::test]
async fn after_a_release_dynamodb_refuses_the_transaction() {
    let Stage { ground, store, lease, proof, .. } = Stage::new().await;
    lease.release().await.unwrap();
    assert!(!writes(&ground, &store, &proof).await);
}

#[tokio::test]
async fn after_a_revoke_or_a_forced_release_dynamodb_refuses_the_transaction() {
    let stage = Stage::new().await;
    stage.leases.revoke("job", stage.lease.token()).await.unwrap();
    assert!(!stage.writes().await);

    let stage = Stage::new().await;
    stage.leases.force("job", stage.lease.token()).await.unwrap();
    assert!(!stage.writes().await);
}

#[tokio::test]
async fn after_a_hand_over_only_the_next_holder_may_write() {
    let Stage { ground, store, leases, lease, proof } = Stage::new().await;
    let next = leases.resume(lease.into_handover().await.unwrap()).await.unwrap();
    assert!(!writes(&ground, &store, &proof).await);
    assert!(writes(&ground, &store, &next.held().proof()).await);
}

#[tokio::test]
async fn after_the_record_was_deleted_dynamodb_refuses_the_transaction() {
    let stage = Stage::new().await;
    stage.ground.client.delete_item().table_name(LEASES).key("pk", s("job")).send().await.unwrap();
    assert!(!stage.writes().await);
}

#[tokio::test]
async fn each_part_of_the_record_that_the_lease_stands_on_is_checked() {
    let stage = Stage::new().await;
    let held = stage.item().await;
    let truth = AttributeValue::Bool;
    let spoilt: [(&str, Option<AttributeValue>); 9] = [
        ("lh_grant", None),
        ("lh_grant", Some(s("00000000-0000-4000-8000-000000000000"))),
        ("lh_token", Some(n(stage.lease.token().as_u64() + 1))),
        ("lh_token", Some(n(stage.lease.token().as_u64() - 1))),
        ("lh_revoked", Some(truth(true))),
        ("lh_format", Some(n(2))),
        ("lh_session", Some(s("one"))),
        ("lh_version", None),
        ("lh_ttl_ms", None),
    ];
    for (attribute, value) in spoilt {
        let mut item = held.clone();
        match value.clone() {
            Some(value) => item.insert(attribute.into(), value),
            None => item.remove(attribute),
        };
        stage.ground.put_into(LEASES, item).await;
        assert!(!stage.writes().await, "{attribute} {value:?}");
    }
    let mut item = held;
    item.insert("lh_revoked".into(), truth(false));
    item.insert("mine".into(), s("the application's"));
    stage.ground.put_into(LEASES, item).await;
    assert!(stage.writes().await, "nothing of this ends the lease");
}

#[tokio::test]
async fn a_lease_of_another_store_is_refused_before_anything_is_sent() {
    let ground = Ground::new().await;
    let store = ground.store().await;
    let lease = ground.quiet(store.clone()).await.acquire("job").await.unwrap();
    let other_table = DynamoDbStore::builder(ground.client.clone(), "other").unverified().unwrap();
    let same_table = || DynamoDbStore::builder(ground.client.clone(), LEASES);
    let other_key = same_table().sort_key(SortKey::constant("sk", "LEASE")).unverified().unwrap();
    for other in [other_table, other_key, same_table().unverified().unwrap()] {
        let error = other.condition_check(&lease.held().proof()).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, Operation::Fence), "{error}");
        assert_eq!(error.lease(), Some(lease.name()));
    }
    let memory = Leases::builder(leasehold::MemoryStore::new()).build().unwrap().acquire("job").await.unwrap();
    assert_eq!(store.condition_check(&memory.held().proof()).unwrap_err().kind(), ErrorKind::Invalid);
    store.clone().condition_check(&lease.held().proof()).unwrap();
}

#[tokio::test]
async fn a_table_with_a_sort_key_is_checked_at_the_right_item() {
    let ground = Ground::new().await;
    let client = &ground.client;
    let key = SortKey::constant("sk", "LEASE");
    create_table_with_sort_key(client, "shared").await;
    let store = DynamoDbStore::builder(client.clone(), "shared").sort_key(key).open().await.unwrap();
    let lease = ground.quiet(store.clone()).await.acquire("job").await.unwrap();
    let proof = lease.held().proof();
    assert!(writes(&ground, &store, &proof).await);
    lease.release().await.unwrap();
    assert!(!writes(&ground, &store, &proof).await);
}

#[tokio::test]
async fn the_refusal_does_not_show_the_successors_grant() {
    let stage = Stage::new().await;
    let grant = stage.taken_over().await;
    let check = stage.store.condition_check(&stage.proof).unwrap();
    let member = TransactWriteItem::builder().condition_check(check).build();
    let error = stage.ground.client.transact_write_items().transact_items(member).send().await.unwrap_err();
    let stored = stage.item().await["lh_grant"].clone();
    assert!(format!("{stored:?}").contains("0000-00000000004d"), "{grant:?}: {stored:?}");
    assert!(!format!("{error:?}").contains("00000000004d"), "{error:?}");
}

/// What DynamoDB says to a renewal that meets a transaction; the emulator runs one after the other.
#[tokio::test]
async fn a_renewal_that_meets_a_transaction_is_sent_again_and_the_lease_is_kept() {
    let ground = Ground::new().await;
    let leases = Leases::builder(ground.store().await)
        .ttl(Duration::from_secs(3))
        .margin(Duration::from_millis(300))
        .build()
        .unwrap();
    let lease = leases.acquire("job").await.unwrap();
    let conflict = Fault::Answer(Answer::new(400, "TransactionConflictException"));
    let met = ground.proxy.on(Match::op("UpdateItem").containing("SET #version")).first(2).fault(conflict);
    let until = std::time::Instant::now() + Duration::from_secs(5);
    while std::time::Instant::now() < until {
        assert!(lease.held().is_held());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(met.happened(), 2);
    lease.release().await.unwrap();
}

async fn create_table_with_sort_key(client: &aws_sdk_dynamodb::Client, table: &str) {
    use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
    let mut create = client.create_table().table_name(table).billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(name).key_type(kind);
        create = create.attribute_definitions(attribute.build().unwrap()).key_schema(element.build().unwrap());
    }
    create.send().await.unwrap();
}
