//! A list of members that is changed, or a wiped member brought back, with errors in the middle.

use std::time::Duration;

use leasehold::{Attempt, Data, ErrorKind, StoreErrorKind};

use crate::ground::{Fault, Ground, MARK, TTL, Verb, settle};

/// A lease that was closed with an outcome, and one that was released; then a member is wiped.
async fn closed_and_wiped(wiped: usize) -> Ground {
    let ground = Ground::new().await;
    let a = ground.client(1);
    a.acquire("done").await.unwrap().close(TTL * 100, Data::new(b"outcome")).await.unwrap();
    settle().await;
    a.shutdown(Duration::from_secs(1)).await.unwrap();
    for name in [MARK, "done", "job"] {
        ground.members[wiped].inner().delete(name);
    }
    tokio::time::sleep(TTL * 2).await;
    ground
}

#[tokio::test(start_paused = true)]
async fn a_move_that_is_made_again_after_an_error_keeps_the_outcomes() {
    for (wiped, failing, verb) in every_place() {
        let ground = closed_and_wiped(wiped).await;
        ground.members[failing].on(verb).of("done").fault(Fault::Fail(StoreErrorKind::Unavailable));
        ground.store(3).move_from(&ground.store(4)).await.unwrap_err();
        tokio::time::sleep(TTL * 2).await;
        ground.store(5).move_from(&ground.store(6)).await.unwrap();
        ground.store(5).set_up_again().await.unwrap();
        let told = ground.client(7).try_acquire("done").await.unwrap();
        let Attempt::Held(by) = told else { panic!("forgotten: {wiped} wiped, {verb:?} failed at {failing}") };
        assert_eq!((by.is_closed(), by.data()), (true, Some(&b"outcome"[..])), "{wiped} {failing} {verb:?}");
    }
}

fn every_place() -> Vec<(usize, usize, Verb)> {
    let places = (0..3).flat_map(|wiped| (0..3).map(move |failing| (wiped, failing)));
    places.flat_map(|(wiped, failing)| [Verb::Claim, Verb::Burn].map(|verb| (wiped, failing, verb))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_wiped_member_of_the_old_list_does_not_count_for_its_majority() {
    let ground = closed_and_wiped(2).await;
    let mut members = vec![ground.members[0].clone(), ground.members[2].clone()];
    members.extend_from_slice(&Ground::others_bare().members[..1]);
    members.sort_by_key(|member| leasehold::Store::describe(member).identity);
    let next = Ground { clock: ground.clock.clone(), members };
    ground.set_available(1, false);
    // One that has forgotten everything, and one that may have been away, cannot tell what was granted last.
    let error = next.store(3).move_from(&ground.store(4)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Misconfigured), "{error}");
}
