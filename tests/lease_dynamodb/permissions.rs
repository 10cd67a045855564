//! What docs/permissions.md says a role needs is what goes over the wire, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::{Attempt, Ended, ErrorKind, Leases, LostReason};
use serde_json::Value;

use crate::ground::{BURN, CLAIM, Ground, RELEASE, TABLE, loss, until};
use crate::support::emulator::retrying_client;
use crate::support::faults::Fault;

const PAGE: &str = include_str!("../../docs/permissions.md");

type Actions = BTreeSet<String>;

#[tokio::test]
async fn a_holder_needs_what_its_policy_allows_and_no_more() {
    assert_eq!(holders_calls().await, policy("Holder"));
}

#[tokio::test]
async fn an_operator_needs_what_its_policy_allows_and_no_more() {
    assert_eq!(operators_calls().await, policy("Operator"));
}

#[tokio::test]
async fn an_observer_needs_what_its_policy_allows_and_no_more() {
    assert_eq!(observers_calls().await, policy("Observer"));
}

#[tokio::test]
async fn creating_a_table_needs_what_its_policy_allows_and_no_more() {
    assert_eq!(creators_calls().await, policy("First steps"));
}

#[tokio::test]
async fn without_verification_a_holder_needs_no_description_of_the_table() {
    let ground = Ground::new().await;
    let store = DynamoDbStore::builder(retrying_client(ground.proxy.addr()), TABLE).unverified().unwrap();
    hold(&ground, &client(store.clone(), "a"), &client(store, "b")).await;
    let mut expected = policy("Holder");
    assert!(expected.remove("dynamodb:DescribeTable"));
    assert_eq!(called(&ground), expected);
}

#[tokio::test]
async fn the_table_of_actions_lists_all_that_the_store_calls_and_nothing_else() {
    let calls = [holders_calls().await, operators_calls().await, observers_calls().await, creators_calls().await];
    let listed: Actions =
        rows_of("### Calls and actions").filter_map(|row| row.split('`').nth(1)).map(String::from).collect();
    assert_eq!(calls.into_iter().flatten().collect::<Actions>(), listed);
}

#[test]
fn every_policy_and_role_on_the_page_is_json() {
    let blocks: Vec<_> = PAGE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        serde_json::from_str::<Value>(block).unwrap_or_else(|error| panic!("{error}: {block}"));
    }
}

async fn holders_calls() -> Actions {
    let ground = Ground::new().await;
    let (a, b) = (client(ground.store().await, "a"), client(ground.store().await, "b"));
    hold(&ground, &a, &b).await;
    called(&ground)
}

/// All that a client does with leases of its own, on a table that it shares with another.
async fn hold(ground: &Ground, a: &Leases, b: &Leases) {
    let lease = a.request("job").data("begun").acquire().await.unwrap();
    lease.renew().await.unwrap();
    lease.held().set_data("half").await.unwrap();
    lease.held().ensure(Duration::from_secs(40)).await.unwrap();
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    let waited = b.acquire_within("job", Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(waited.kind(), ErrorKind::TimedOut);
    let lease = b.resume(lease.into_handover().await.unwrap()).await.unwrap();
    ground.next(RELEASE, Fault::LoseAnswer);
    assert_eq!(lease.release().await.unwrap(), Ended::Released);

    ground.dead_rival("dead", 5).await;
    drop(a.try_acquire("dead").await.unwrap().acquired().expect("its term is over"));
    a.flush().await;
    let stalled = ground.next(CLAIM, Fault::Stall);
    let leases = a.clone();
    let acquire = tokio::spawn(async move { leases.acquire("cancelled").await.map(drop) });
    until("the claim is sent", async || stalled.happened() == 1).await;
    acquire.abort();
    assert!(acquire.await.unwrap_err().is_cancelled());
    a.shutdown(Duration::from_secs(5)).await.unwrap();
    assert_eq!(ground.sent(BURN).len(), 1);
}

async fn operators_calls() -> Actions {
    let ground = Ground::new().await;
    let holder = ground.bystander("holder").await;
    let (first, second) = (holder.acquire("first").await.unwrap(), holder.acquire("second").await.unwrap());
    let operator = client(ground.store().await, "operator");
    operator.ask("first", first.token(), Duration::from_secs(5)).await.unwrap();
    operator.revoke("first", first.token()).await.unwrap();
    operator.force("second", second.token()).await.unwrap();
    let nobody = operator.revoke("nobody", first.token()).await.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::Refused);
    look(&operator, "first").await;
    let lost = loss(first.release().await.unwrap());
    assert_eq!(lost.reason(), &LostReason::Revoked);
    called(&ground)
}

async fn observers_calls() -> Actions {
    let ground = Ground::new().await;
    let observer = client(ground.store().await, "observer");
    look(&observer, "job").await;
    called(&ground)
}

async fn look(leases: &Leases, name: &str) {
    leases.inspect(name).await.unwrap();
    leases.list("").all().await.unwrap();
}

async fn creators_calls() -> Actions {
    let ground = Ground::new().await;
    create_table(&retrying_client(ground.proxy.addr()), "another").await.unwrap();
    called(&ground)
}

/// Nothing is sent by itself, so that each story sends what it says.
fn client(store: DynamoDbStore, holder: &str) -> Leases {
    Leases::builder(store).holder(holder).ttl(Duration::from_secs(60)).build().unwrap()
}

/// What went over the wire, as IAM calls it.
fn called(ground: &Ground) -> Actions {
    ground.operations().into_iter().map(|operation| format!("dynamodb:{operation}")).collect()
}

/// The actions of the policy below this heading.
fn policy(heading: &str) -> Actions {
    let (_, below) = PAGE.split_once(&format!("\n### {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    let json = below.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a policy");
    let policy: Value = serde_json::from_str(json).expect("JSON");
    let statements = policy["Statement"].as_array().expect("statements").iter();
    statements
        .flat_map(|statement| match &statement["Action"] {
            Value::Array(actions) => actions.clone(),
            action => vec![action.clone()],
        })
        .map(|action| action.as_str().expect("an action").to_owned())
        .collect()
}

fn rows_of(heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, below) = PAGE.split_once(heading).expect("the heading");
    below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'))
}
