//! Hand-overs and manual renewal (faults F1 to F4).

use leasehold::{ErrorKind, Handover, LostReason, Renewal, State};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::ground::{Ground, MILLI, Machine, SECOND, TERM, TTL, reason};
use crate::support::azure::Op;

fn manual(ground: &Ground, holder: &str, seed: u64) -> Machine {
    ground.machine_with(holder, seed, |builder| builder.renewal(Renewal::Manual))
}

/// As it goes from one invocation to the next.
fn sent(handover: &Handover) -> String {
    serde_json::to_string(handover).expect("it has a form")
}

fn received(text: &str) -> Handover {
    serde_json::from_str(text).expect("it was sent like this")
}

// F1
#[tokio::test(start_paused = true)]
async fn a_function_frozen_for_three_terms_does_not_hold_before_any_request_where_a_clock_ran_on() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, "a", 1);
    let lease = a.acquire().await;
    let sent = a.way.sent();
    a.clock.suspend(3 * TTL);
    assert!(!lease.held().is_held());
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(a.way.sent(), sent);
}

// F1
#[tokio::test(start_paused = true)]
async fn a_function_frozen_with_all_clocks_learns_from_its_first_renewal_that_a_rival_has_taken_over() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (manual(&ground, "a", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    a.clock.freeze();
    let theirs = b.acquire().await;
    a.clock.thaw();
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(matches!(reason(&lease).await, LostReason::Taken { token, .. } if token == theirs.token()));
    assert!(theirs.held().is_held());
}

// F1
#[tokio::test(start_paused = true)]
async fn a_function_frozen_with_all_clocks_that_nobody_has_replaced_holds_a_new_term_after_its_first_renewal() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, "a", 1);
    let lease = a.acquire().await;
    a.clock.freeze();
    sleep(3 * TTL).await;
    a.clock.thaw();
    // The service still knows the lease, and nobody has had it since: no token was granted in between.
    lease.renew().await.unwrap();
    assert!(lease.held().remaining() > TERM - SECOND);
    ground.assert_held(lease.token().as_u64(), "renewed");
    assert!(ground.machine("b", 2).try_acquire().await.is_none());
}

// F2
#[tokio::test(start_paused = true)]
async fn with_manual_renewal_nothing_runs_and_nothing_is_sent_by_itself() {
    let ground = Ground::new();
    let a = manual(&ground, "a", 1);
    let lease = a.acquire().await;
    lease.renew().await.unwrap();
    ground.forget();
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    sleep(TERM - SECOND).await;
    assert!(lease.held().is_held());
    sleep(2 * SECOND).await;
    assert!(!lease.held().is_held());
    assert_eq!(ground.asked(), []);
}

// F2
#[tokio::test(start_paused = true)]
async fn a_manual_lease_is_held_as_long_as_it_is_renewed_in_time() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, "a", 1);
    let lease = a.acquire().await;
    for _ in 0..10 {
        sleep(TERM - SECOND).await;
        lease.renew().await.unwrap();
    }
    assert!(lease.held().is_held());
    assert!(ground.machine("b", 2).try_acquire().await.is_none());
}

// F3
#[tokio::test(start_paused = true)]
async fn a_lease_goes_from_one_invocation_to_the_next_with_a_higher_token_and_its_payload() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (manual(&ground, "a", 1), manual(&ground, "b", 2));
    let lease = a.leases.request("job").data("first").acquire().await.unwrap();
    lease.held().set_data(b"checkpoint").await.unwrap();
    let old = lease.token();
    let text = sent(&lease.into_handover().await.unwrap());
    assert!(ground.machine("c", 3).try_acquire().await.is_none(), "it is not free in between");
    let lease = b.leases.resume(received(&text)).await.unwrap();
    assert!(lease.token() > old && lease.held().is_held());
    ground.assert_held(lease.token().as_u64(), "taken up");
    let found = b.leases.inspect("job").await.unwrap();
    assert_eq!(found.data.expect("it went along").as_bytes(), b"checkpoint");
    assert_eq!(found.holder.as_ref().map(|holder| holder.as_str()), Some("b"));
}

// F4
#[tokio::test(start_paused = true)]
async fn of_a_hand_over_that_is_delivered_twice_one_wins() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, c) = (manual(&ground, "a", 1), ground.warm("b", 2).await, ground.warm("c", 3).await);
    let text = sent(&a.acquire().await.into_handover().await.unwrap());
    let lease = b.leases.resume(received(&text)).await.unwrap();
    for late in [&c, &b] {
        let error = late.leases.resume(received(&text)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    sleep(2 * TTL).await;
    assert_eq!((lease.held().state(), b.lost()), (State::Held, 0));
}

// F4
#[tokio::test(start_paused = true)]
async fn of_a_hand_over_that_is_delivered_twice_at_once_one_wins_at_every_point() {
    for op in [Op::HeadBlob, Op::Change, Op::Renew, Op::SetMetadata] {
        let ground = Ground::with_a_free_lease().await;
        let (a, b, c) = (manual(&ground, "a", 1), ground.warm("b", 2).await, ground.warm("c", 3).await);
        let text = sent(&a.acquire().await.into_handover().await.unwrap());
        let gate = ground.fake.on(op).pause_before();
        let (first, handover) = (b.leases.clone(), received(&text));
        let first = tokio::spawn(async move { first.resume(handover).await });
        gate.reached().await;
        let second = c.leases.resume(received(&text)).await;
        drop(gate);
        let first = first.await.unwrap();
        assert!(first.is_ok() != second.is_ok(), "{op:?}: {first:?} {second:?}");
        let lease = first.or(second).unwrap();
        b.leases.flush().await;
        c.leases.flush().await;
        sleep(2 * TTL).await;
        assert!(lease.held().is_held(), "{op:?}");
        ground.assert_held(lease.token().as_u64(), &format!("{op:?}"));
    }
}

// F3
#[tokio::test(start_paused = true)]
async fn after_the_term_a_hand_over_is_refused_and_the_lease_is_free() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (manual(&ground, "a", 1), ground.machine("b", 2));
    let handover = a.acquire().await.into_handover().await.unwrap();
    let old = handover.token();
    sleep(TTL).await;
    let error = b.leases.resume(handover).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("its term is over"), "{error}");
    b.leases.flush().await;
    assert!(b.try_acquire().await.expect("free").token() > old);
}

// F3
#[tokio::test(start_paused = true)]
async fn the_term_after_a_hand_over_counts_from_its_taking_up_at_both_ends() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, c) = (manual(&ground, "a", 1), manual(&ground, "b", 2), ground.machine("c", 3));
    let handover = a.acquire().await.into_handover().await.unwrap();
    sleep(TTL - SECOND).await;
    let taken_up = Instant::now();
    let lease = b.leases.resume(handover).await.unwrap();
    assert!(lease.held().remaining() > TERM - MILLI);
    let waits = tokio::spawn(async move {
        let lease = c.acquire().await;
        drop(lease);
        Instant::now()
    });
    while lease.held().is_held() {
        sleep(10 * MILLI).await;
    }
    let believed = taken_up.elapsed();
    let let_in = waits.await.unwrap() - taken_up;
    assert!(believed >= TERM && believed < let_in, "{believed:?} {let_in:?}");
    assert!(let_in >= TTL, "{let_in:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_to_a_client_with_another_term_gets_that_term() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, "a", 1);
    let b = ground.machine_with("b", 2, |builder| builder.ttl(2 * TTL).renewal(Renewal::Manual));
    let handover = a.acquire().await.into_handover().await.unwrap();
    let lease = b.leases.resume(handover).await.unwrap();
    sleep(2 * TTL - 6 * SECOND).await;
    assert!(lease.held().is_held());
    ground.assert_held(lease.token().as_u64(), "for the longer term");
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_good_for_the_same_container_only() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, "a", 1);
    let text = sent(&a.acquire().await.into_handover().await.unwrap());
    let elsewhere = text.replace("/leases", "/others");
    assert_ne!(text, elsewhere);
    let error = a.leases.resume(received(&elsewhere)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let _lease = a.leases.resume(received(&text)).await.expect("still there");
}
