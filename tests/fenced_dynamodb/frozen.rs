//! A holder that is frozen as a process, past its term, and writes when it wakes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ConditionCheck, ReturnValue, TransactWriteItem, Update};
use leasehold::dynamodb::{DynamoDbStore, Fenced, FencedError, Refusal};
use leasehold::{Error, FencingToken, Leases};

use crate::ground::{FENCE, Ground, LEASES, TABLE, n, s};
use crate::support::emulator::client;
use crate::support::worker::{Worker, tell};

const TTL: Duration = Duration::from_millis(1500);
const ADDR: &str = "LEASEHOLD_TEST_ADDR";

#[tokio::test]
async fn the_late_write_of_a_frozen_process_is_refused_by_dynamodb() {
    let ground = Ground::new().await;
    let worker = Worker::start("fenced", [(ADDR, ground.emulator.addr().to_string())]);
    let mine: u64 = worker.says("holds").parse().unwrap();
    worker.says("wrote");
    worker.freeze();

    let lease = leases(&store(&ground.client).await).acquire("account/42").await.unwrap();
    let raised = update(&ground.client).return_values(ReturnValue::AllNew).fenced(FENCE, lease.token()).send();
    let seen = raised.await.unwrap().attributes.unwrap();
    assert!(seen["written"].as_s().unwrap().starts_with("by the frozen"), "{seen:?}");
    write(&ground.client, "by the next").fenced(FENCE, lease.token()).send().await.unwrap();

    worker.thaw();
    assert_eq!(worker.says("refused"), format!("{mine} {}", lease.token()));
    let expected = HashMap::from([("id", s("42")), ("written", s("by the next")), (FENCE, n(lease.token()))]);
    let expected = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(ground.item("42").await, Some(expected));
}

#[tokio::test]
async fn the_late_transaction_of_a_frozen_process_is_refused_by_dynamodb_for_its_lease() {
    let ground = Ground::new().await;
    let worker = Worker::start("under its lease", [(ADDR, ground.emulator.addr().to_string())]);
    worker.says("wrote");
    worker.freeze();

    let _lease = leases(&store(&ground.client).await).acquire("account/42").await.unwrap();
    write(&ground.client, "by the next").send().await.unwrap();

    worker.thaw();
    assert_eq!(worker.says("refused"), "not held");
    assert_eq!(ground.item("42").await.unwrap()["written"], s("by the next"));
}

/// The control: the very same story without the fence, in which the late write does its harm.
#[tokio::test]
async fn without_the_fence_the_same_late_write_overwrites_the_next_holders() {
    let ground = Ground::new().await;
    let worker = Worker::start("unfenced", [(ADDR, ground.emulator.addr().to_string())]);
    worker.says("wrote");
    worker.freeze();

    let _lease = leases(&store(&ground.client).await).acquire("account/42").await.unwrap();
    write(&ground.client, "by the next").send().await.unwrap();

    worker.thaw();
    worker.says("late");
    let left = ground.item("42").await.unwrap();
    assert!(left["written"].as_s().unwrap().starts_with("by the frozen"), "{left:?}");
}

/// What the worker process does: it writes on and on, as a holder does that looks at no clock.
pub fn work(role: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let addr: SocketAddr = std::env::var(ADDR).unwrap().parse().unwrap();
        let client = client(addr);
        let store = store(&client).await;
        let lease = leases(&store).acquire("account/42").await.unwrap();
        tell("holds", lease.token());
        for count in 0.. {
            let text = format!("by the frozen, {count}");
            let refused = match role {
                "fenced" => fenced(&client, &text, lease.token()).await,
                "under its lease" => {
                    under_the_lease(&client, &text, store.condition_check(&lease.held().proof())).await
                }
                _ => unfenced(&client, &text).await,
            };
            if let Some(refused) = refused {
                return tell("refused", refused);
            }
            tell("wrote", count);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

async fn fenced(client: &Client, text: &str, token: FencingToken) -> Option<String> {
    match write(client, text).fenced(FENCE, token).send().await {
        Ok(_) => None,
        Err(FencedError::Refused(Refusal::Stale(stale))) => Some(format!("{} {}", stale.token, stale.highest)),
        Err(error) => panic!("{error:?}"),
    }
}

async fn under_the_lease(client: &Client, text: &str, check: Result<ConditionCheck, Error>) -> Option<String> {
    let update = Update::builder().table_name(TABLE).key("id", s("42")).update_expression("SET written = :w");
    let update = update.expression_attribute_values(":w", s(text)).build().unwrap();
    let members = vec![
        TransactWriteItem::builder().condition_check(check.unwrap()).build(),
        TransactWriteItem::builder().update(update).build(),
    ];
    let error = client.transact_write_items().set_transact_items(Some(members.clone())).send().await.err()?;
    assert_eq!(Refusal::of_transaction(&error, &members), [Some(Refusal::NotHeld), None], "{error:?}");
    Some("not held".into())
}

async fn unfenced(client: &Client, text: &str) -> Option<String> {
    let old = write(client, text).return_values(ReturnValue::AllOld).send().await.unwrap().attributes;
    if old.is_some_and(|old| old.get("written") == Some(&s("by the next"))) {
        tell("late", text);
    }
    None
}

async fn store(client: &Client) -> DynamoDbStore {
    DynamoDbStore::open(client.clone(), LEASES).await.unwrap()
}

fn leases(store: &DynamoDbStore) -> Leases {
    Leases::builder(store.clone()).ttl(TTL).margin(TTL / 10).build().unwrap()
}

fn update(client: &Client) -> UpdateItemFluentBuilder {
    client.update_item().table_name(TABLE).key("id", s("42"))
}

fn write(client: &Client, text: &str) -> UpdateItemFluentBuilder {
    update(client).update_expression("SET written = :w").expression_attribute_values(":w", s(text))
}
