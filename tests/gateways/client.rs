//! The whole client, with clocks and renewals as they are.

use std::time::Duration;

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::{
    Attempt, Claim, Claimed, Ended, ErrorKind, Expect, FencingToken, Grant, Label, Leases, LeasesBuilder, Name, Status,
    Store,
};

use crate::ENDPOINT;
use crate::support::gateway::Gateway;

/// Long enough for a gateway that is slow and busy with other tests.
const TERM: Duration = Duration::from_secs(10);
/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(30);

async fn store() -> DynamoDbStore {
    let gateway = Gateway::named_by(ENDPOINT);
    create_table(&gateway.client(), &gateway.table).await.expect("created");
    DynamoDbStore::open(gateway.client(), &gateway.table).await.expect("the table is fit")
}

fn client(store: &DynamoDbStore, holder: &str) -> LeasesBuilder {
    Leases::builder(store.clone()).prefix("jobs/").holder(holder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_lease_is_renewed_past_its_term_and_refused_to_others_until_its_release() {
    let store = store().await;
    let first = client(&store, "first").ttl(TERM).build().expect("fits");
    let lease = first.acquire("nightly").await.expect("free");
    let rival = client(&store, "rival").build().expect("fits");

    // A rival that watches an unrenewed record has it after 1.01 terms.
    let refused = rival.acquire_within("nightly", TERM + TERM / 2).await.expect_err("it is renewed");
    assert_eq!(refused.kind(), ErrorKind::TimedOut, "{refused}");
    let Attempt::Held(by) = rival.try_acquire("nightly").await.expect("answered") else { panic!("it is held") };
    assert!(by.to_string().contains("first"), "{by}");
    assert!(lease.held().is_held());

    let token = lease.token();
    assert!(matches!(lease.release().await.expect("answered"), Ended::Released));
    let taken = rival.try_acquire("nightly").await.expect("answered").acquired().expect("free");
    assert!(taken.token() > token, "{} after {token}", taken.token());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_in_line_gets_the_lease_after_its_release() {
    let store = store().await;
    let lease = client(&store, "first").build().expect("fits").acquire("nightly").await.expect("free");
    let next = client(&store, "next").build().expect("fits");
    let waiting = tokio::spawn(async move { next.acquire_within("nightly", PATIENCE).await });
    let token = lease.token();
    lease.release().await.expect("answered");
    let got = waiting.await.expect("no panic").expect("released, so granted");
    assert!(got.token() > token, "{} after {token}", got.token());
}

/// The term is a minute longer than anybody waits, so nobody learns of its end by watching.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_holder_is_replaced_by_the_stores_time_without_watching_for_a_term() {
    let store = store().await;
    let name = Name::new("jobs/nightly").expect("good");
    let now = store.read(&name).await.expect("answered").date_ms.expect("the gateway says its time");
    let dead = Claim {
        name,
        token: 7,
        grant: Grant::from_bits(77),
        ttl_ms: 90_000,
        expires_at_ms: Some(now - 60_000),
        holder: Some(Label::new("dead").expect("good")),
        data: None,
        set: None,
        expect: Expect::Vacant,
    };
    assert_eq!(store.claim(&dead).await.expect("answered").value, Claimed::Granted);

    let heir = client(&store, "heir").build().expect("fits");
    let lease = heir.acquire_within("nightly", PATIENCE).await.expect("its term is over");
    assert!(lease.token() > FencingToken::new(7).expect("good"), "{}", lease.token());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_shows_what_is_held_and_what_is_free() {
    let store = store().await;
    let leases = client(&store, "first").build().expect("fits");
    let held = leases.acquire("held").await.expect("free");
    leases.acquire("free").await.expect("free").release().await.expect("answered");

    let mut found: Vec<_> = leases.list("").all().await.expect("answered");
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let found: Vec<_> = found.iter().map(|found| (found.name.as_str(), &found.status)).collect();
    assert_eq!(found, [("jobs/free", &Status::Free), ("jobs/held", &Status::Held)]);
    drop(held);
}
