//! Operators (fault A7), and rivals that have the lease and have not yet said so.

use std::time::Duration;

use leasehold::{ErrorKind, FencingToken, LostReason, State, Status};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::ground::{Ground, SECOND, TTL, lost, reason};
use crate::support::azure::{Auth, Op, State as LeaseState};

// A7
#[tokio::test(start_paused = true)]
async fn a_revoked_holder_works_on_until_its_next_renewal_tells_it_and_others_get_in_at_the_end_of_its_term() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, operator) = (ground.machine("a", 1), ground.machine("b", 2), ground.machine("o", 3));
    let lease = a.acquire().await;
    lease.renew().await.unwrap();
    let renewed = Instant::now();
    sleep(SECOND).await;
    operator.leases.revoke("job", lease.token()).await.unwrap();
    assert_eq!(lease.held().state(), State::Held, "it has not heard of it");
    let found = operator.leases.inspect("job").await.unwrap();
    assert_eq!((found.status, found.revoked, found.token), (Status::Held, true, Some(lease.token())));
    let waits = tokio::spawn(async move { b.acquire().await });
    assert_eq!(reason(&lease).await, LostReason::Revoked);
    assert!(renewed.elapsed() < 6 * SECOND, "with its next renewal");
    let theirs = waits.await.unwrap();
    assert!((TTL..TTL + 2 * SECOND).contains(&renewed.elapsed()), "{:?}", renewed.elapsed());
    assert!(theirs.token() > lease.token());
    assert!(!operator.leases.inspect("job").await.unwrap().revoked);
}

// A7
#[tokio::test(start_paused = true)]
async fn an_ask_is_a_revocation_here() {
    let ground = Ground::with_a_free_lease().await;
    let (a, operator) = (ground.machine("a", 1), ground.machine("o", 3));
    let lease = a.acquire().await;
    operator.leases.ask("job", lease.token(), SECOND).await.unwrap();
    assert_eq!(reason(&lease).await, LostReason::Revoked);
}

// A7
#[tokio::test(start_paused = true)]
async fn with_another_token_nothing_happens() {
    let ground = Ground::with_a_free_lease().await;
    let (a, operator) = (ground.machine("a", 1), ground.machine("o", 3));
    let lease = a.acquire().await;
    let other = FencingToken::new(lease.token().as_u64() - 1).unwrap();
    for error in [
        operator.leases.revoke("job", other).await.unwrap_err(),
        operator.leases.force("job", other).await.unwrap_err(),
        operator.leases.ask("job", other, SECOND).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(&lease.token().to_string()), "{error}");
    }
    assert_eq!(operator.leases.revoke("none", other).await.unwrap_err().kind(), ErrorKind::Refused);
    sleep(2 * TTL).await;
    assert_eq!((lease.held().state(), a.lost()), (State::Held, 0));
}

// A7
#[tokio::test(start_paused = true)]
async fn force_lets_others_in_at_once_with_a_higher_token_and_the_old_holder_learns_it() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, operator) = (ground.machine("a", 1), ground.machine("b", 2), ground.machine("o", 3));
    let lease = a.acquire().await;
    operator.leases.force("job", lease.token()).await.unwrap();
    operator.leases.force("job", lease.token()).await.expect_err("it is free");
    let theirs = b.try_acquire().await.expect("free");
    assert!(theirs.token() > lease.token());
    assert!(matches!(reason(&lease).await, LostReason::Taken { token, .. } if token == theirs.token()));
    let before = ground.job().etag;
    drop(lease);
    sleep(2 * TTL).await;
    assert_eq!(ground.job().etag, before);
    assert!(theirs.held().is_held());
}

// A7
#[tokio::test(start_paused = true)]
async fn an_operators_request_that_loses_its_answer_is_sent_again() {
    for forced in [false, true] {
        for fault in [crate::support::azure::Fault::LoseAnswer, crate::support::azure::Fault::ApplyThen(500)] {
            let ground = Ground::with_a_free_lease().await;
            let (a, operator) = (ground.machine("a", 1), ground.machine("o", 3));
            let lease = a.acquire().await;
            let happened = ground.fake.on(Op::Break).fault(fault);
            match forced {
                true => operator.leases.force("job", lease.token()).await.unwrap(),
                false => operator.leases.revoke("job", lease.token()).await.unwrap(),
            }
            assert_eq!(happened.times(), 1);
            assert_eq!(reason(&lease).await, LostReason::Revoked);
        }
    }
}

/// A rival leases the blob, and has not written its claim yet.
fn rival_leases(ground: &Ground) {
    ground.fake.require(Auth::None);
    assert_eq!(ground.fake.acquire("job", Uuid::from_u128(0x717a), 15).status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_lease_a_rival_has_got_is_lost_to_it_before_the_rival_has_said_who_it_is() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    a.clock.freeze();
    a.way.cut();
    sleep(TTL).await;
    rival_leases(&ground);
    a.way.open();
    a.clock.thaw();
    let lost = lost(&lease).await;
    let LostReason::Taken { holder, token } = lost.reason() else { panic!("{lost}") };
    assert_eq!((holder, *token), (&None, lease.token()), "nobody knows by whom yet");
    ground.forget();
    drop(lease);
    a.leases.flush().await;
    assert!(matches!(ground.job().state, LeaseState::Leased(_)), "it is left alone");
}

#[tokio::test(start_paused = true)]
async fn until_a_rival_has_written_others_see_the_lease_held_and_what_the_last_holder_wrote() {
    let ground = Ground::with_a_free_lease().await;
    let last = ground.machine("last", 1).acquire().await;
    let token = last.token();
    last.release().await.unwrap();
    let b = ground.machine("b", 2);
    assert_eq!(b.leases.inspect("job").await.unwrap().status, Status::Free);
    rival_leases(&ground);
    let found = b.leases.inspect("job").await.unwrap();
    assert_eq!((found.status, found.token), (Status::Held, Some(token)));
    let attempt = b.leases.try_acquire("job").await.unwrap();
    assert!(matches!(attempt, leasehold::Attempt::Held(by) if by.token() == Some(token)));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_that_hits_a_rival_before_it_has_written_is_safe() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, operator) = (ground.machine("a", 1), ground.warm("b", 2).await, ground.warm("o", 3).await);
    let lease = a.acquire().await;
    let token = lease.token();
    let breaks = ground.fake.on(Op::Break).pause_before();
    let leases = operator.leases.clone();
    let revoking = tokio::spawn(async move { leases.revoke("job", token).await });
    breaks.reached().await;
    lease.release().await.unwrap();
    let writes = ground.fake.on(Op::SetMetadata).pause_before();
    let claiming = tokio::spawn(async move { (b.acquire().await, b) });
    writes.reached().await;
    breaks.open();
    revoking.await.unwrap().expect("sent");
    writes.open();
    let (theirs, _b) = claiming.await.unwrap();
    assert!(theirs.held().is_held() && theirs.token() > token, "it holds what is left of its term");
    assert!(a.try_acquire().await.is_none(), "and nobody else gets in");
    assert_eq!(reason(&theirs).await, LostReason::Revoked);
    let begun = Instant::now();
    let next = a.acquire().await;
    assert!(next.token() > theirs.token() && begun.elapsed() < TTL + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_lease_was_broken_before_it_had_written_gives_nobody_a_lease_that_is_not_one() {
    // Forced: the rival's lease is gone before its record is written.
    let ground = Ground::with_a_free_lease().await;
    let (b, c) = (ground.warm("b", 2).await, ground.warm("c", 3).await);
    let writes = ground.fake.on(Op::SetMetadata).pause_before();
    let claiming = tokio::spawn(async move { (b.leases.try_acquire("job").await, b) });
    writes.reached().await;
    ground.fake.require(Auth::None);
    assert_eq!(ground.fake.break_lease("job", Some(0)).status, 202);
    let theirs = c.try_acquire().await.expect("free");
    drop(writes);
    let (attempt, b) = claiming.await.unwrap();
    let attempt = attempt.unwrap();
    assert!(matches!(&attempt, leasehold::Attempt::Held(by) if by.token() == Some(theirs.token())), "{attempt:?}");
    b.leases.flush().await;
    ground.assert_held(theirs.token().as_u64(), "the one who came after it");
    sleep(2 * TTL).await;
    assert!(theirs.held().is_held());
}
