//! The switches of `protocol::broken` reach the store itself: what its tests rely on turns out otherwise with a rule broken.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

#[path = "majority_members/ground.rs"]
#[allow(dead_code, reason = "this target uses a part")]
mod ground;

use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;
use leasehold::{Claim, Claimed, Expect, Grant, Renewed, Revoke, Store};

use crate::ground::{Fault, Ground, Verb, release, renewal, settle};

/// Whether a renewal that one of three accepts counts.
async fn counts_on_a_minority() -> bool {
    let (ground, claim) = held().await;
    let store = claim.0;
    ground.members[0].on(Verb::Renew).fault(Fault::LoseRequest);
    ground.members[1].on(Verb::Renew).fault(Fault::LoseRequest);
    store.renew(&[renewal(&claim.1, 2)]).await.remove(0).is_ok()
}

/// Whether a second renewal counts whose first half was accepted by another member.
async fn counts_over_calls() -> bool {
    let (ground, (store, claim)) = held().await;
    for (version, accepts) in [(2, 0), (3, 1)] {
        for away in (0..3).filter(|member| *member != accepts) {
            ground.members[away].on(Verb::Renew).fault(Fault::LoseRequest);
        }
        if store.renew(&[renewal(&claim, version)]).await.remove(0).is_ok() {
            return true;
        }
        settle().await;
    }
    false
}

/// Whether a member is burnt from which no answer came, while the grant is held.
async fn cleans_up_while_held() -> bool {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    ground.members[1].on(Verb::Claim).fault(Fault::LoseAnswer);
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    ground.members[1].calls().iter().any(|call| call.verb == Verb::Burn && call.name == "job")
}

/// Whether a stale hand-over takes members over that another holds.
async fn resumes_without_the_gate() -> bool {
    let (ground, (store, claim)) = held().await;
    let next = Claim { grant: Grant::from_bits(8), token: 6, expect: Expect::Handed(claim.grant), ..claim.clone() };
    assert_eq!(store.claim(&next).await.unwrap().value, Claimed::Granted);
    settle().await;
    let stale = Claim { grant: Grant::from_bits(9), token: 7, expect: Expect::Handed(claim.grant), ..claim };
    ground.store(2).claim(&stale).await.unwrap().value == Claimed::Granted
}

/// Whether a closing that others have overtaken on two members is reported as done.
async fn closes_on_answers() -> bool {
    let (ground, (store, claim)) = held().await;
    let set = ground.record(0, "job").await.unwrap().set;
    for member in &ground.members[..2] {
        let next =
            Claim { set, grant: Grant::from_bits(8), token: 6, expect: Expect::Handed(claim.grant), ..claim.clone() };
        assert_eq!(member.inner().claim(&next).await.unwrap().value, Claimed::Granted);
    }
    let close = Some(leasehold::Close { for_ms: 1000, until_ms: None, data: None });
    store.vacate(&leasehold::Vacate { close, ..release(&claim) }).await.is_ok()
}

/// Whether a revocation that one of three accepts counts.
async fn revokes_on_a_minority() -> bool {
    let (ground, (store, claim)) = held().await;
    ground.members[0].on(Verb::Revoke).fault(Fault::LoseRequest);
    ground.members[1].on(Verb::Revoke).fault(Fault::LoseRequest);
    let (name, fresh) = (claim.name.clone(), Grant::from_bits(8));
    store.revoke(&Revoke { name, token: claim.token, fresh, force: false }).await.is_ok()
}

/// Whether a client with another list of members takes part.
async fn lists_are_mixed() -> bool {
    let (ground, (_, claim)) = held().await;
    let other = with_new_members(&ground, 2);
    other.store(2).set_up_again().await.unwrap();
    other.store(3).claim(&Claim { grant: Grant::from_bits(8), token: 6, ..claim }).await.is_ok()
}

/// Whether a member without its mark counts.
async fn counts_without_its_mark() -> bool {
    let ground = Ground::new().await;
    ground.members[1].inner().delete(ground::MARK);
    ground.set_available(2, false);
    ground.store(1).claim(&ground.claim(5, Expect::Vacant)).await.is_ok()
}

/// Whether one of three old members is enough for a move.
async fn moves_from_a_minority() -> bool {
    let (ground, (old, _)) = held().await;
    ground.set_available(0, false);
    ground.set_available(1, false);
    with_new_members(&ground, 1).store(2).move_from(&old).await.is_ok()
}

/// The last of the members, and new ones.
fn with_new_members(ground: &Ground, old: usize) -> Ground {
    let mut members = ground.members[3 - old..].to_vec();
    members.extend_from_slice(&Ground::others_bare().members[..3 - old]);
    members.sort_by_key(|member| member.describe().identity);
    Ground { clock: ground.clock.clone(), members }
}

async fn held() -> (Ground, (leasehold::majority::MajorityStore, Claim)) {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    assert!(matches!(store.renew(&[renewal(&claim, 1)]).await.remove(0).unwrap().value, Renewed::Renewed(_)));
    settle().await;
    (ground, (store, claim))
}

macro_rules! controls {
    ($($test:ident: $broken:ident, $happens:ident;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                {
                    let _guard = Guard::nothing_broken();
                    assert!(!$happens().await, "with nothing broken");
                }
                let _guard = Broken::$broken.switch_on();
                assert!($happens().await, "with the rule broken");
            }
        )*
    };
}
controls! {
    a_renewal_on_a_minority_is_noticed: MajorityRenewalOnMinority, counts_on_a_minority;
    acceptances_of_different_calls_are_noticed: MajorityCountsOverCalls, counts_over_calls;
    a_clean_up_while_held_is_noticed: MajorityCleanUpWhileHeld, cleans_up_while_held;
    a_resume_without_the_gate_is_noticed: MajorityResumeWithoutGate, resumes_without_the_gate;
    a_revocation_on_a_minority_is_noticed: MajorityVoteOnMinority, revokes_on_a_minority;
    a_list_that_is_not_compared_is_noticed: MajorityListNotCompared, lists_are_mixed;
    a_mark_that_is_not_checked_is_noticed: MajorityMarkNotChecked, counts_without_its_mark;
    a_move_from_a_minority_is_noticed: MajorityMoveReadsMinority, moves_from_a_minority;
    a_closing_on_answers_is_noticed: MajorityClosingOkOnAnswers, closes_on_answers;
}
