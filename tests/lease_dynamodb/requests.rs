//! What each operation costs, counted at the wire.

use leasehold::Attempt;

use crate::ground::{Ground, number};

#[tokio::test]
async fn acquire_refused_try_renewal_and_release_are_one_request_each() {
    let ground = Ground::new().await;
    let (a, b) = (ground.quiet("a").await, ground.quiet("b").await);

    let lease = a.acquire("job").await.unwrap();
    assert_eq!(ground.operations(), ["UpdateItem"], "an acquire");

    ground.proxy.reset_counts();
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.holder() == Some("a")));
    assert_eq!(ground.operations(), ["UpdateItem"], "a refused try");

    ground.proxy.reset_counts();
    lease.renew().await.unwrap();
    assert_eq!(ground.operations(), ["UpdateItem"], "a renewal");

    ground.proxy.reset_counts();
    lease.release().await.unwrap();
    assert_eq!(ground.operations(), ["UpdateItem"], "a release");
}

#[tokio::test]
async fn a_name_that_this_client_holds_is_refused_without_a_request() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    ground.proxy.reset_counts();
    assert!(matches!(leases.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.token() == Some(lease.token())));
    assert_eq!(ground.proxy.total(), 0);
}

#[tokio::test]
async fn a_client_that_knows_no_store_time_reads_once_before_its_first_claim() {
    let ground = Ground::new().await;
    let leases = ground.builder("a").await.build().unwrap();
    ground.proxy.reset_counts();
    let lease = leases.acquire("job").await.unwrap();
    assert_eq!(ground.operations(), ["GetItem", "UpdateItem"]);
    ground.proxy.reset_counts();
    let other = leases.acquire("other").await.unwrap();
    assert_eq!(ground.operations(), ["UpdateItem"], "now it knows");
    drop((lease, other));
}

#[tokio::test]
async fn a_fresh_client_takes_over_from_a_dead_rival_in_two_requests() {
    let ground = Ground::new().await;
    ground.dead_rival("job", 5).await;
    let leases = ground.builder("a").await.build().unwrap();
    ground.proxy.reset_counts();
    let lease = leases.try_acquire("job").await.unwrap().acquired().expect("its term ended a minute ago");
    assert_eq!(ground.operations(), ["GetItem", "UpdateItem"]);
    assert!(lease.token().as_u64() > 5);
    let item = ground.item("job").await.unwrap();
    assert_eq!(number(&item, "lh_token"), lease.token().as_u64());
}

#[tokio::test]
async fn a_client_that_knows_the_store_time_takes_over_in_two_writes() {
    let ground = Ground::new().await;
    ground.dead_rival("job", 5).await;
    let leases = ground.quiet("a").await;
    let lease = leases.try_acquire("job").await.unwrap().acquired().expect("its term ended a minute ago");
    assert_eq!(ground.operations(), ["UpdateItem", "UpdateItem"], "the refusal says all that the second needs");
    drop(lease);
}

#[tokio::test]
async fn looking_costs_one_read_and_listing_one_scan() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    ground.proxy.reset_counts();
    assert_eq!(leases.inspect("job").await.unwrap().token, Some(lease.token()));
    assert_eq!(leases.list("").all().await.unwrap().len(), 1);
    assert_eq!(ground.operations(), ["GetItem", "Scan"]);
}
