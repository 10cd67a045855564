//! What each operation costs, counted at the service.

use leasehold::Attempt;
use tokio::time::sleep;

use crate::ground::{Ground, SECOND, TTL};
use crate::support::azure::Op::{Acquire, Break, Change, HeadBlob, ListBlobs, PutBlob, Release, Renew, SetMetadata};

#[tokio::test(start_paused = true)]
async fn an_acquire_is_three_requests_also_of_a_client_that_has_just_begun() {
    let ground = Ground::with_a_free_lease().await;
    let lease = ground.machine("a", 1).leases.acquire("job").await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata], "it looks for the service's time, and uses the look");
    lease.release().await.unwrap();
    ground.forget();
    let lease = ground.machine("b", 2).try_acquire().await.expect("free");
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata], "a try as well");
    lease.release().await.unwrap();
    let c = ground.warm("c", 3).await;
    let _lease = c.acquire().await;
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata], "and one that knows the time");
}

#[tokio::test(start_paused = true)]
async fn an_acquire_after_its_own_release_is_two_requests() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    for _ in 0..3 {
        a.acquire().await.release().await.unwrap();
    }
    let three = [HeadBlob, Acquire, SetMetadata, Release];
    assert_eq!(ground.asked(), [&three[..], &three[1..], &three[1..]].concat());
}

#[tokio::test(start_paused = true)]
async fn the_first_acquire_ever_of_a_name_is_four_requests_also_of_a_client_that_has_just_begun() {
    let ground = Ground::new();
    let a = ground.warm("a", 1).await;
    let _lease = a.acquire().await;
    assert_eq!(ground.asked(), [HeadBlob, PutBlob, Acquire, SetMetadata]);
    let ground = Ground::new();
    let _lease = ground.machine("a", 1).acquire().await;
    assert_eq!(
        ground.asked(),
        [HeadBlob, PutBlob, Acquire, SetMetadata],
        "its look for the time is the look for the blob"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_claims_in_two_requests_what_its_look_has_shown_free() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    let waits = tokio::spawn(async move { b.acquire().await });
    sleep(2 * SECOND).await;
    lease.release().await.unwrap();
    ground.forget();
    let _theirs = waits.await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_try_is_one_request_and_none_for_a_name_that_is_held_here() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let _lease = a.acquire().await;
    ground.forget();
    assert!(matches!(a.leases.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    assert_eq!(ground.asked(), []);
    let b = ground.machine("b", 2);
    for what in ["without the service's time", "with it"] {
        assert!(b.try_acquire().await.is_none());
        assert_eq!(ground.asked(), [HeadBlob], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_three_requests() {
    let ground = Ground::with_a_free_lease().await;
    let dead = ground.machine_with("dead", 1, |builder| builder.renewal(leasehold::Renewal::Manual));
    let _lease = dead.acquire().await;
    sleep(TTL).await;
    ground.forget();
    assert!(ground.machine("b", 2).try_acquire().await.is_some());
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata], "of a client that has just begun");
}

#[tokio::test(start_paused = true)]
async fn while_a_lease_is_held_it_costs_one_request_every_third_of_its_term() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    ground.forget();
    sleep(10 * TTL).await;
    let asked = ground.asked();
    assert!(asked.iter().all(|op| *op == Renew));
    assert!((29..=32).contains(&asked.len()), "{} in ten terms", asked.len());
    assert!(lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn renewal_payload_release_and_looks_cost_what_the_store_says() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    ground.forget();
    lease.renew().await.unwrap();
    assert_eq!(ground.asked(), [Renew]);
    lease.held().set_data(b"payload").await.unwrap();
    assert_eq!(ground.asked(), [Renew, SetMetadata]);
    b.leases.inspect("job").await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob]);
    b.leases.list("").all().await.unwrap();
    assert_eq!(ground.asked(), [ListBlobs]);
    lease.release().await.unwrap();
    assert_eq!(ground.asked(), [Release]);
}

#[tokio::test(start_paused = true)]
async fn a_revocation_and_an_ask_are_two_requests() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    ground.forget();
    b.leases.ask("job", lease.token(), SECOND).await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob, Break]);
    b.leases.force("job", lease.token()).await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob, Break]);
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_no_request_and_taking_it_up_four() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    ground.forget();
    let handover = lease.into_handover().await.unwrap();
    assert_eq!(ground.asked(), []);
    let _lease = b.leases.resume(handover).await.unwrap();
    assert_eq!(ground.asked(), [HeadBlob, Change, Renew, SetMetadata]);
}
