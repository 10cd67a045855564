//! Acquires that were given up after their claim had left.

use std::time::{Duration, Instant};

use leasehold::{Attempt, ErrorKind, Leases, Takeover, Written};
use tokio::task::JoinHandle;

use crate::ground::{BURN, CLAIM, Ground, TTL, number, soon};
use crate::support::faults::{Fault, Match};

fn acquiring(leases: &Leases) -> JoinHandle<()> {
    let leases = leases.clone();
    tokio::spawn(async move {
        let _lease = leases.acquire("job").await;
    })
}

async fn given_up(task: JoinHandle<()>) {
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

async fn free_and_takeable(ground: &Ground) {
    let item = ground.item("job").await.expect("the burn has left its token");
    assert!(!item.contains_key("lh_grant"), "locked by nobody");
    let rival = ground.bystander("b").await;
    let lease = rival.try_acquire("job").await.unwrap().acquired().expect("it is free");
    assert!(lease.token().as_u64() > number(&item, "lh_token"));
}

#[tokio::test]
async fn an_acquire_that_is_dropped_after_its_claim_was_applied_locks_nobody_out() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let applied = ground.next(CLAIM, Fault::HoldAnswer);
    let task = acquiring(&leases);
    soon("the claim is applied", applied.until_happened(1)).await;
    given_up(task).await;
    soon("the clean-up", leases.flush()).await;
    assert_eq!(leases.stats().owed, 0);
    free_and_takeable(&ground).await;
}

#[tokio::test]
async fn a_clean_up_that_overtakes_its_claim_keeps_it_out() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let held_back = ground.next(CLAIM, Fault::HoldRequest);
    let task = acquiring(&leases);
    soon("the claim is on its way", held_back.until_happened(1)).await;
    given_up(task).await;
    soon("the clean-up", leases.flush()).await;
    held_back.release();
    soon("the claim lands", held_back.until_landed(1)).await;
    free_and_takeable(&ground).await;
}

#[tokio::test]
async fn a_try_whose_copies_are_all_under_way_is_unknown_and_none_of_them_locks_the_name() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let held_back = ground.every(CLAIM, Fault::ResetAndHold);
    let error = leases.try_acquire("job").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown));
    assert_eq!((held_back.happened(), ground.sent(CLAIM).len()), (3, 3));
    soon("the clean-up", leases.flush()).await;
    held_back.release();
    soon("all of them land", held_back.until_landed(3)).await;
    free_and_takeable(&ground).await;
}

#[tokio::test]
async fn an_acquire_that_times_out_with_its_claim_under_way_says_so_and_cleans_up() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let held_back = ground.next(CLAIM, Fault::HoldRequest);
    let error = leases.acquire_within("job", Duration::from_millis(200)).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::TimedOut, Written::Unknown));
    soon("the clean-up", leases.flush()).await;
    held_back.release();
    soon("the claim lands", held_back.until_landed(1)).await;
    free_and_takeable(&ground).await;
}

#[tokio::test]
async fn where_the_clean_up_cannot_get_through_others_wait_out_the_term_and_no_more() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let applied = ground.next(CLAIM, Fault::HoldAnswer);
    let burns = ground.proxy.on(Match::op("UpdateItem").containing(BURN)).fault(Fault::LoseRequest);
    let task = acquiring(&leases);
    soon("the claim is applied", applied.until_happened(1)).await;
    given_up(task).await;
    let builder = Leases::builder(ground.rival().await).takeover(Takeover::ObservedOnly);
    let waiter = builder.build().unwrap();
    let begun = Instant::now();
    assert!(matches!(waiter.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    let lease = soon("its term ends", waiter.acquire("job")).await.unwrap();
    assert!(begun.elapsed() >= TTL, "nobody takes over before the term is over");
    assert!(burns.happened() >= 1);
    soon("the debt ends with its term", leases.flush()).await;
    assert!(lease.held().is_held());
}
