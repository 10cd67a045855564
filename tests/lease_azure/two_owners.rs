//! Whatever is paused, lost or set wrong, two owners never believe at once (faults C1 to C10).

use std::time::Duration;

use leasehold::{Clock, Ended, ErrorKind, Event, Fence, Lease, LostReason, Renewal, State};
use tokio::time::{Instant, sleep, timeout};

use crate::ground::{Ground, MILLI, Machine, SECOND, TERM, TTL, lost, reason};
use crate::support::azure::{Fault, Op};

fn manual(ground: &Ground, seed: u64) -> Machine {
    ground.machine_with("a", seed, |builder| builder.renewal(Renewal::Manual))
}

// C1
#[tokio::test(start_paused = true)]
async fn a_holder_that_wakes_after_its_term_does_not_hold_before_any_request_and_the_fence_refuses_it() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b, fence) = (manual(&ground, 1), ground.machine("b", 2), Fence::new());
    let old = a.acquire().await;
    fence.raise(old.token()).unwrap();
    let sent = a.way.sent();
    let new = b.acquire().await;
    fence.raise(new.token()).unwrap();
    assert!(!old.held().is_held());
    assert!(fence.admit(old.token()).is_err() && fence.admit(new.token()).is_ok());
    assert_eq!(old.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(a.way.sent(), sent, "it asked nobody");
}

// C1
#[tokio::test(start_paused = true)]
async fn a_holder_whose_machine_slept_does_not_hold_before_any_request() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let old = a.acquire().await;
    a.clock.freeze();
    // Nothing of a machine that sleeps is sent.
    a.way.silence();
    let new = b.acquire().await;
    let slept = Duration::from_nanos(b.clock.stamp().boot - a.clock.stamp().boot);
    let sent = a.way.sent();
    a.clock.thaw();
    a.clock.suspend(slept);
    assert!(!old.held().is_held());
    assert_eq!(a.way.sent(), sent, "it asked nobody");
    a.way.open();
    assert!(matches!(reason(&old).await, LostReason::Deadline));
    assert!(new.held().is_held() && new.token() > old.token());
}

// C2
#[tokio::test(start_paused = true)]
async fn a_release_a_drop_and_a_shutdown_after_a_takeover_leave_the_new_holder_alone() {
    for how in ["release", "drop", "shutdown"] {
        let ground = Ground::with_a_free_lease().await;
        let (a, b) = (manual(&ground, 1), ground.machine("b", 2));
        let old = a.acquire().await;
        let new = b.acquire().await;
        let before = ground.job();
        match how {
            "release" => assert!(matches!(old.release().await.unwrap(), Ended::Lost(_))),
            "drop" => drop(old),
            _ => drop(old),
        }
        a.leases.shutdown(SECOND).await.unwrap();
        let after = ground.job();
        assert_eq!((after.state, after.etag), (before.state, before.etag), "{how}");
        sleep(2 * TTL).await;
        assert!(new.held().is_held(), "{how}");
    }
}

// C2
#[tokio::test(start_paused = true)]
async fn a_release_does_not_make_a_blob_that_is_gone() {
    for drops in [false, true] {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.machine("a", 1);
        let lease = a.acquire().await;
        ground.fake.delete_blob("job");
        match drops {
            true => drop(lease),
            false => assert!(
                matches!(lease.release().await.unwrap(), Ended::Lost(lost) if lost.reason() == &LostReason::Deleted)
            ),
        }
        a.leases.flush().await;
        sleep(TTL).await;
        assert_eq!(ground.fake.peek("job").map(|peek| peek.etag), None);
    }
}

// C3
#[tokio::test(start_paused = true)]
async fn a_refused_contender_that_goes_away_writes_nothing() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    let before = ground.job();
    for _ in 0..3 {
        assert!(b.try_acquire().await.is_none());
    }
    drop(timeout(2 * SECOND, b.leases.acquire("job")).await);
    b.leases.acquire_within("job", SECOND).await.unwrap_err();
    b.leases.flush().await;
    b.leases.shutdown(SECOND).await.unwrap();
    assert_eq!(ground.job().etag, before.etag);
    let written: Vec<_> = ground.asked().into_iter().filter(|op| !matches!(op, Op::HeadBlob | Op::Renew)).collect();
    assert_eq!(written, [Op::Acquire, Op::SetMetadata], "those of the holder");
    assert!(lease.held().is_held());
}

// C6
#[tokio::test(start_paused = true)]
async fn without_the_service_a_lease_is_lost_at_its_deadline_and_before_the_service_lets_others_in() {
    for way in [crate::ground::Way::cut, crate::ground::Way::silence] {
        let ground = Ground::with_a_free_lease().await;
        let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
        let mut events = a.leases.events();
        let lease = a.acquire().await;
        lease.renew().await.unwrap();
        let renewed = Instant::now();
        way(&a.way);
        let waits = tokio::spawn(async move {
            let lease = b.acquire().await;
            (lease, Instant::now())
        });
        let lost = lost(&lease).await;
        let after = renewed.elapsed();
        assert!((TERM..TERM + MILLI).contains(&after), "{after:?}");
        assert_eq!((lost.reason(), lease.held().is_held()), (&LostReason::Deadline, false));
        assert!(lost.cause().is_some(), "it says what the last renewals met");
        let (_theirs, at) = waits.await.unwrap();
        assert!(at - renewed >= TTL, "not before the service says so");
        let mut told = Vec::new();
        while let Ok(Some(event)) = timeout(MILLI, events.next()).await {
            told.push(event);
        }
        assert!(told.iter().any(|event| matches!(event, Event::Lost(_))), "{told:?}");
    }
}

// C7
#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_when_its_term_is_nearly_over_is_given_back() {
    for op in [Op::Acquire, Op::SetMetadata] {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.warm("a", 1).await;
        let clock = a.clock.clone();
        // The machine sleeps while the answer is under way.
        let slept = ground.fake.on(op).then(move |_| clock.suspend(Duration::from_secs(9)));
        let lease = a.acquire().await;
        assert_eq!(slept.times(), 1, "{op:?}");
        assert!(lease.held().remaining() > TERM - SECOND, "it is another grant: {op:?}");
        a.leases.flush().await;
        let asked = ground.asked();
        assert_eq!(asked.iter().filter(|asked| **asked == Op::Acquire).count(), 2, "{op:?}: {asked:?}");
        assert!(asked.contains(&Op::Release), "{op:?}: {asked:?}");
        ground.assert_held(lease.token().as_u64(), "the second");
    }
}

// C8
#[tokio::test(start_paused = true)]
async fn a_renewal_that_the_service_accepts_after_the_end_revives_nothing_here() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    let late = ground.fake.on(Op::Renew).always().fault(Fault::Delay(TTL));
    assert!(matches!(reason(&lease).await, LostReason::Deadline));
    sleep(TTL).await;
    ground.fake.heal();
    let id = ground.job().state.id().expect("the service still knows the lease");
    ground.fake.require(crate::support::azure::Auth::None);
    assert_eq!(ground.fake.renew("job", id).status, 200, "the service would renew it");
    assert!(late.times() > 0);
    assert!(!lease.held().is_held());
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
}

// C8
#[tokio::test(start_paused = true)]
async fn an_answer_to_a_renewal_that_comes_after_the_deadline_revives_nothing() {
    let ground = Ground::with_a_free_lease().await;
    let a = manual(&ground, 1);
    let lease = a.acquire().await;
    sleep(TERM - SECOND).await;
    ground.fake.on(Op::Renew).fault(Fault::AnswerLate(2 * SECOND));
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(!lease.held().is_held());
}

/// How long the holder believes and when the rival gets in, both counted from the last renewal.
async fn ends(ground: &Ground, a: &Machine, lease: &Lease) -> (Duration, Duration) {
    let b = ground.machine("b", 2);
    lease.renew().await.unwrap();
    let renewed = Instant::now();
    a.way.silence();
    let waits = tokio::spawn(async move {
        let lease = b.acquire().await;
        drop(lease);
        Instant::now()
    });
    while lease.held().is_held() {
        sleep(10 * MILLI).await;
    }
    (renewed.elapsed(), waits.await.unwrap() - renewed)
}

// C9
#[tokio::test(start_paused = true)]
async fn with_clocks_that_are_off_by_one_per_cent_a_holder_stops_a_margin_before_the_service_lets_others_in() {
    for (holder, service) in [(-10_000, 10_000), (10_000, -10_000), (0, 10_000), (-10_000, 0)] {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.machine("a", 1);
        a.clock.set_rate(holder);
        ground.services_clock.set_rate(service);
        let lease = a.acquire().await;
        let (stopped, let_in) = ends(&ground, &a, &lease).await;
        let margin = Duration::from_millis(1_500);
        assert!(stopped + margin <= let_in, "{holder} {service}: {stopped:?} {let_in:?}");
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_wrong_or_jumps_makes_no_early_takeover_and_costs_no_lease() {
    let hour = Duration::from_secs(3600);
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    b.clock.set_wall_forward(hour);
    let lease = a.acquire().await;
    assert!(b.try_acquire().await.is_none());
    a.clock.set_wall_forward(hour);
    sleep(TTL).await;
    assert_eq!(lease.held().state(), State::Held);
    a.clock.set_wall_back(2 * hour);
    sleep(2 * TTL).await;
    assert_eq!((lease.held().state(), a.lost()), (State::Held, 0));
    assert!(b.try_acquire().await.is_none());
}

// C10
#[tokio::test(start_paused = true)]
async fn a_second_client_with_the_same_label_is_a_rival_like_any_other() {
    let ground = Ground::with_a_free_lease().await;
    let (one, other) = (ground.machine("twin", 1), ground.machine("twin", 2));
    let lease = one.acquire().await;
    assert!(other.try_acquire().await.is_none());
    assert!(lease.held().is_held());
}
