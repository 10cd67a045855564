//! Renewals that fail, blobs and containers that are deleted (faults D1 to D4, D6, G1).

use leasehold::{Ended, ErrorKind, LostReason, State};
use tokio::time::{Instant, sleep};

use crate::ground::{Ground, MILLI, SECOND, TERM, TTL, lost, reason};
use crate::support::azure::{Fault, Op};

// D1
#[tokio::test(start_paused = true)]
async fn one_failed_renewal_of_three_is_jeopardy_and_then_held() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    let mut watch = lease.held().watch();
    ground.fake.on(Op::Renew).fault(Fault::Answer(500, "InternalError"));
    assert_eq!(watch.changed().await, Some(State::Jeopardy));
    assert!(lease.held().is_held());
    assert_eq!(watch.changed().await, Some(State::Held));
    assert_eq!(a.lost(), 0);
}

// D2
#[tokio::test(start_paused = true)]
async fn a_holder_whose_credential_is_refused_keeps_trying_and_is_lost_at_its_deadline_with_the_cause() {
    for denied in [Fault::Answer(403, "AuthenticationFailed"), Fault::Answer(401, "NoAuthenticationInformation")] {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.machine("a", 1);
        let lease = a.acquire().await;
        lease.renew().await.unwrap();
        let (renewed, refused) = (Instant::now(), ground.fake.on(Op::Renew).always().fault(denied));
        let lost = lost(&lease).await;
        assert!((TERM..TERM + MILLI).contains(&renewed.elapsed()));
        assert_eq!(lost.reason(), &LostReason::Deadline);
        assert!(lost.cause().is_some_and(|cause| cause.contains("the credential is not valid")), "{:?}", lost.cause());
        assert!(refused.times() >= 3);
    }
}

// D2
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_good_again_in_time_costs_no_lease() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    ground.fake.on(Op::Renew).times(3).fault(Fault::Answer(403, "AuthenticationFailed"));
    sleep(2 * TTL).await;
    assert_eq!((lease.held().state(), a.lost()), (State::Held, 0));
}

// D3
#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_delays_neither_its_loss_nor_another_leases_renewals() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let (lease, other) = (a.acquire().await, a.leases.acquire("other").await.unwrap());
    lease.renew().await.unwrap();
    let renewed = Instant::now();
    ground.fake.on(Op::Renew).of("job").always().fault(Fault::Hang);
    assert_eq!(reason(&lease).await, LostReason::Deadline);
    assert!((TERM..TERM + MILLI).contains(&renewed.elapsed()));
    sleep(2 * TTL).await;
    assert_eq!(other.held().state(), State::Held);
}

// D4
#[tokio::test(start_paused = true)]
async fn after_a_release_that_met_a_renewal_under_way_nothing_is_sent_and_the_lease_stays_free() {
    for fault in [Fault::Delay(SECOND), Fault::AnswerLate(SECOND), Fault::ApplyLate(SECOND), Fault::Twice(SECOND)] {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.machine("a", 1);
        let lease = a.acquire().await;
        let happened = ground.fake.on(Op::Renew).fault(fault);
        let held = lease.held();
        let renewing = tokio::spawn(async move { _ = held.ensure(TERM - 3 * SECOND).await });
        sleep(6 * SECOND).await;
        assert_eq!(lease.release().await.unwrap(), Ended::Released);
        assert!(happened.times() > 0);
        renewing.abort();
        ground.forget();
        sleep(2 * TTL).await;
        assert_eq!((ground.asked(), ground.leased_by()), (vec![], None), "{fault:?}");
    }
}

// D6
#[tokio::test(start_paused = true)]
async fn a_blob_that_is_deleted_by_hand_is_a_loss_is_not_made_again_and_the_next_token_is_higher() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    ground.fake.delete_blob("job");
    assert_eq!(reason(&lease).await, LostReason::Deleted);
    sleep(TTL).await;
    assert!(!ground.fake.names().contains(&"job".to_owned()), "no renewal makes it again");
    let next = b.acquire().await;
    assert!(next.token() > lease.token(), "the service's time is a floor");
    let again = a.leases.acquire_within("job", SECOND).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::TimedOut);
}

// D6
#[tokio::test(start_paused = true)]
async fn a_container_that_is_deleted_is_a_loss_and_a_clear_error_and_the_next_token_is_higher() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    ground.fake.delete_container();
    assert_eq!(reason(&lease).await, LostReason::Deleted);
    ground.forget();
    let error = b.leases.acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("there is no container at https://"), "{error}");
    assert_eq!(ground.asked(), [Op::HeadBlob], "no retry loop");
    sleep(2 * TTL).await;
    ground.fake.require(crate::support::azure::Auth::None);
    assert_eq!(ground.fake.send(&ground.fake.request("PUT", "", "restype=container")).status, 201);
    let next = b.acquire().await;
    assert!(next.token() > lease.token());
}

// D6
#[tokio::test(start_paused = true)]
async fn a_blob_that_was_put_back_by_hand_is_a_loss_and_the_next_token_is_higher() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let older = ground.job().metadata;
    let lease = a.acquire().await;
    let older: Vec<_> = older.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    ground.fake.put_foreign("job", &older);
    assert_eq!(reason(&lease).await, LostReason::Deleted, "restored from an older state");
    sleep(TTL).await;
    assert!(b.acquire().await.token() > lease.token());
}

// G1
#[tokio::test(start_paused = true)]
async fn a_wrong_credential_is_denied_by_an_acquire_after_one_request() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.warm("a", 1).await;
    let auth = crate::support::azure::Auth::Bearer("another".into());
    ground.fake.require(auth);
    let error = a.leases.acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(ground.asked(), [Op::HeadBlob], "no retry loop");
    assert_eq!(a.leases.stats().owed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_has_no_room_is_an_error_and_costs_no_lease() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    lease.held().set_data(b"old").await.unwrap();
    ground.fake.edit_metadata("job", |pairs| _ = pairs.insert("theirs".into(), "x".repeat(5_000)));
    let error = lease.held().set_data([7; 4096]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("8192"), "{error}");
    sleep(3 * TTL).await;
    assert_eq!((lease.held().state(), a.lost()), (State::Held, 0));
    assert_eq!(a.leases.inspect("job").await.unwrap().data.expect("kept").as_bytes(), b"old");
    lease.held().set_data(b"smaller").await.unwrap();
    lease.release().await.unwrap();
    let error = a.leases.request("job").data([7; 4096]).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(a.try_acquire().await.is_some(), "nothing was leased for it");
}
