//! Members that lack a grant: when they are joined again, and from when they count.

use std::time::Duration;

use leasehold::{Attempt, Claimed, ErrorKind, Expect, Grant, Renewed, State, Store, Vacated};

use crate::ground::{Fault, Ground, TTL, Verb, release, renewal, settle};

#[tokio::test(start_paused = true)]
async fn a_member_that_was_away_is_joined_by_a_renewal_and_then_carries_the_lease() {
    let ground = Ground::new().await;
    ground.set_available(2, false);
    let lease = ground.client(1).acquire("job").await.unwrap();
    ground.set_available(2, true);
    assert_eq!(ground.held_at("job").await, [true, true, false]);
    tokio::time::sleep(TTL * 2 / 3).await;
    assert_eq!(ground.held_at("job").await, [true, true, true]);
    assert_eq!(grants(&ground).await.len(), 1, "the same grant");
    ground.set_available(0, false);
    tokio::time::sleep(TTL * 2).await;
    assert!(lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_does_not_count_in_its_call() {
    let ground = Ground::new().await;
    ground.set_available(2, false);
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    ground.set_available(2, true);
    ground.set_available(1, false);
    // One accepts, one is away, one lacks the grant and is joined.
    let answer = store.renew(&[renewal(&claim, 2)]).await.remove(0);
    assert!(answer.is_err(), "{answer:?}");
    settle().await;
    assert_eq!(ground.record(2, "job").await.unwrap().grant, Some(claim.grant));
    assert!(matches!(store.renew(&[renewal(&claim, 3)]).await.remove(0).unwrap().value, Renewed::Renewed(_)));
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_token_is_not_below_stays_out_until_the_next_grant() {
    let ground = Ground::new().await;
    ground.set_available(2, false);
    let a = ground.client(1);
    let lease = a.acquire("job").await.unwrap();
    let token = lease.token().as_u64();
    ground.set_available(2, true);
    // The burn of a claim that came between.
    let burnt = leasehold::Vacate { burn: true, ..release(&ground.claim(token + 1, Expect::Vacant)) };
    ground.members[2].inner().vacate(&burnt).await.unwrap();
    tokio::time::sleep(TTL * 2).await;
    assert!(lease.held().is_held());
    assert_eq!(ground.held_at("job").await, [true, true, false]);
    lease.release().await.unwrap();
    let lease = a.acquire("job").await.unwrap();
    settle().await;
    assert!(lease.token().as_u64() > token + 1);
    assert_eq!(ground.held_at("job").await, [true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn while_a_grant_is_held_no_member_is_cleaned_up() {
    let ground = Ground::new().await;
    let happened = ground.members[1].on(Verb::Claim).fault(Fault::LoseAnswer);
    let lease = ground.client(1).acquire("job").await.unwrap();
    tokio::time::sleep(TTL).await;
    assert_eq!(happened.times(), 1);
    assert!(ground.members.iter().all(|member| burns(member) == 0));
    assert_eq!(ground.held_at("job").await, [true, true, true], "the one without an answer carries it too");
    assert!(lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_release_burns_the_claim_wherever_it_may_have_arrived() {
    let ground = Ground::new().await;
    ground.members[1].on(Verb::Claim).fault(Fault::ApplyLate(Duration::from_secs(5)));
    ground.members[1].on(Verb::Renew).always().fault(Fault::LoseRequest);
    let lease = ground.client(1).acquire("job").await.unwrap();
    let token = lease.token().as_u64();
    lease.release().await.unwrap();
    settle().await;
    assert_eq!(ground.record(1, "job").await.unwrap().token, token, "burnt before the claim came");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ground.held_at("job").await, [false; 3], "the late copy was refused");
}

#[tokio::test(start_paused = true)]
async fn after_the_first_burn_a_grant_is_neither_claimed_nor_renewed_nor_joined_again() {
    let ground = Ground::new().await;
    ground.set_available(2, false);
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    // Its release reaches nobody.
    ground.set_available(0, false);
    ground.set_available(1, false);
    assert!(store.vacate(&release(&claim)).await.is_err());
    (0..3).for_each(|member| ground.set_available(member, true));
    settle().await;
    ground.members.iter().for_each(|member| member.forget_calls());
    assert!(matches!(store.renew(&[renewal(&claim, 2)]).await.remove(0).unwrap().value, Renewed::Refused(_)));
    assert!(matches!(store.claim(&claim).await.unwrap().value, Claimed::Refused(_)));
    settle().await;
    let sent = |verb| ground.members.iter().map(|member| member.count(verb)).sum::<usize>();
    assert_eq!((sent(Verb::Claim), sent(Verb::Renew)), (0, 0));
    // To claim it again has given it back.
    assert_eq!(ground.held_at("job").await, [false; 3]);
    assert!(matches!(store.vacate(&release(&claim)).await.unwrap().value, Vacated::Refused(_)));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_was_deleted_on_a_majority_is_lost_and_not_made_again() {
    let ground = Ground::new().await;
    let lease = ground.client(1).acquire("job").await.unwrap();
    settle().await;
    ground.members.iter().for_each(|member| member.inner().delete("job"));
    tokio::time::sleep(TTL / 2).await;
    assert!(!lease.held().is_held());
    assert!(format!("{:?}", lease.held().lost().await).contains("Deleted"));
    assert_eq!(ground.held_at("job").await, [false; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_resumed_once_and_only_where_a_majority_shows_its_grant() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let lease = a.acquire("job").await.unwrap();
    let token = lease.token();
    settle().await;
    let handover = serde_json::to_string(&lease.into_handover().await.unwrap()).unwrap();
    let resume = || b.resume(serde_json::from_str(&handover).unwrap());
    let next = resume().await.unwrap();
    assert!(next.token() > token && next.held().is_held());
    assert_eq!(resume().await.unwrap_err().kind(), ErrorKind::Refused);
    // A minority that still shows a handed grant is not enough, and nothing is sent.
    let (store, claim) = (
        ground.store(3),
        leasehold::Claim { name: leasehold::Name::new("other").unwrap(), ..ground.claim(5, Expect::Vacant) },
    );
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    ground.members[0].inner().delete("other");
    ground.members[1].inner().delete("other");
    let resumed =
        leasehold::Claim { token: 9, grant: Grant::from_bits(3), expect: Expect::Handed(claim.grant), ..claim.clone() };
    ground.members.iter().for_each(|member| member.forget_calls());
    assert!(matches!(ground.store(4).claim(&resumed).await.unwrap().value, Claimed::Refused(_)));
    assert!(ground.members.iter().all(|member| member.count(Verb::Claim) == 0));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_an_ask_and_a_payload_need_a_majority() {
    let ground = Ground::new().await;
    let (a, operator) = (ground.client(1), ground.client(2));
    let lease = a.acquire("job").await.unwrap();
    ground.set_available(0, false);
    operator.ask("job", lease.token(), Duration::from_secs(9)).await.unwrap();
    lease.held().set_data("checkpoint").await.unwrap();
    assert_eq!(lease.held().asked().unwrap().grace_ms, 9000);
    assert_eq!(operator.inspect("job").await.unwrap().data.unwrap().as_bytes(), b"checkpoint");
    ground.set_available(1, false);
    assert_eq!(operator.revoke("job", lease.token()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    ground.set_available(0, true);
    ground.set_available(1, true);
    tokio::time::sleep(TTL / 2).await;
    assert_eq!(lease.held().state(), State::Held, "one member alone was revoked");
    operator.revoke("job", lease.token()).await.unwrap();
    tokio::time::sleep(TTL / 2).await;
    assert!(format!("{:?}", lease.held().lost().await).contains("Revoked"));
    assert!(matches!(operator.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    tokio::time::sleep(TTL * 2).await;
    assert!(matches!(operator.try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
}

fn burns(member: &crate::support::scripted::Scripted) -> usize {
    member.calls().iter().filter(|call| call.verb == Verb::Burn && call.name == "job").count()
}

async fn grants(ground: &Ground) -> std::collections::BTreeSet<Option<Grant>> {
    let mut grants = std::collections::BTreeSet::new();
    for member in 0..3 {
        grants.insert(ground.record(member, "job").await.and_then(|record| record.grant));
    }
    grants
}
