//! Acquires that were given up at each of their awaits (fault B4): nobody is locked out longer than the clean-up needs.

use std::time::Duration;

use leasehold::{ErrorKind, Renewal, Written};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::ground::{Ground, MILLI, Machine, SECOND, TTL};
use crate::support::azure::{Fault, Gate, Op};

/// The requests of the first acquire ever, in their order.
const OF_AN_ACQUIRE: [Op; 4] = [Op::HeadBlob, Op::PutBlob, Op::Acquire, Op::SetMetadata];

fn acquiring(machine: &Machine) -> JoinHandle<()> {
    let leases = machine.leases.clone();
    tokio::spawn(async move {
        let _lease = leases.acquire("job").await;
    })
}

async fn give_up_at(gate: &Gate, task: JoinHandle<()>) {
    gate.reached().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

/// Another machine gets it with its first try, with a token that is above that of the claim.
async fn assert_free(ground: &Ground, machine: &Machine, what: &str) {
    assert_eq!((ground.leased_by(), machine.leases.stats().owed), (None, 0), "{what}");
    let burnt: u64 = ground.pair("lh_token").expect("a token").parse().expect("a number");
    let lease = ground.machine("b", 2).try_acquire().await.expect(what);
    assert!(lease.token().as_u64() > burnt, "{what}");
    lease.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_dropped_at_any_of_its_requests_locks_nobody_out() {
    for op in OF_AN_ACQUIRE {
        for applied in [false, true] {
            let (ground, what) = (Ground::new(), format!("{op:?}, applied: {applied}"));
            let a = ground.warm("a", 1).await;
            let gate = match applied {
                true => ground.fake.on(op).pause_after(),
                false => ground.fake.on(op).pause_before(),
            };
            let begun = Instant::now();
            give_up_at(&gate, acquiring(&a)).await;
            a.leases.flush().await;
            assert!(begun.elapsed() < SECOND, "{what}");
            if ground.fake.names().is_empty() {
                continue; // Nothing was written, and nothing had to be cleaned up.
            }
            assert_free(&ground, &a, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_its_acquire_was_cleaned_up_changes_nothing() {
    let late = 5 * SECOND;
    for op in &OF_AN_ACQUIRE[1..] {
        for fault in [Fault::ApplyLate(late), Fault::Twice(late)] {
            let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}"));
            let a = ground.warm("a", 1).await;
            ground.fake.on(*op).fault(fault);
            // Whatever comes next is never answered, so that the call is given up with the late one under way.
            let next = ground.fake.on(Op::HeadBlob).after(1).pause_before();
            let acquire = acquiring(&a);
            tokio::select! {
                () = next.reached() => {}
                () = sleep(SECOND) => {}
            }
            acquire.abort();
            _ = acquire.await;
            drop(next);
            a.leases.flush().await;
            let before = ground.job();
            sleep(2 * late).await;
            let after = ground.job();
            assert_eq!((after.state, after.etag), (before.state, before.etag), "{what}");
            assert_free(&ground, &a, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_whose_copies_are_all_late_is_unknown_and_none_of_them_locks_the_name() {
    for op in &OF_AN_ACQUIRE[1..] {
        let (ground, what) = (Ground::new(), format!("{op:?}"));
        let a = ground.warm("a", 1).await;
        let late = ground.fake.on(*op).times(3).fault(Fault::ApplyLate(5 * SECOND));
        let error = a.leases.try_acquire("job").await.unwrap_err();
        assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown), "{what}");
        a.leases.flush().await;
        sleep(10 * SECOND).await;
        assert_eq!(late.times(), 3, "{what}");
        assert_free(&ground, &a, &what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_times_out_with_a_request_under_way_says_so_and_cleans_up() {
    let ground = Ground::new();
    let a = ground.warm("a", 1).await;
    ground.fake.on(Op::Acquire).fault(Fault::Delay(2 * SECOND));
    let error = a.leases.acquire_within("job", SECOND).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::TimedOut, Written::Unknown));
    a.leases.flush().await;
    sleep(5 * SECOND).await;
    assert_free(&ground, &a, "timed out").await;
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_that_loses_an_answer_anywhere_goes_on_until_it_is_settled() {
    for op in [Op::HeadBlob, Op::Release, Op::SetMetadata] {
        for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::Hang] {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            let a = ground.warm("a", 1).await;
            let applied = ground.fake.on(Op::Acquire).pause_after();
            let acquire = acquiring(&a);
            applied.reached().await;
            let happened = ground.fake.on(op).fault(fault);
            acquire.abort();
            _ = acquire.await;
            a.leases.flush().await;
            assert_eq!(happened.times(), 1, "{what}");
            assert_free(&ground, &a, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_clean_up_cannot_get_through_others_wait_out_the_term_and_no_more() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.warm("a", 1).await, ground.machine("b", 2));
    let applied = ground.fake.on(Op::Acquire).pause_after();
    let begun = Instant::now();
    let acquire = acquiring(&a);
    applied.reached().await;
    a.way.cut();
    acquire.abort();
    _ = acquire.await;
    let lease = b.acquire().await;
    let waited = begun.elapsed();
    assert!((TTL..TTL + 2 * SECOND).contains(&waited), "{waited:?}");
    a.leases.flush().await;
    assert_eq!(a.leases.stats().owed, 0, "the debt ends with its term");
    a.way.open();
    sleep(TTL).await;
    assert!(lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_the_next_call_cleans_up_and_nothing_is_sent_before() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine_with("a", 1, |builder| builder.renewal(Renewal::Manual));
    a.leases.inspect("another").await.unwrap();
    let applied = ground.fake.on(Op::Acquire).pause_after();
    give_up_at(&applied, acquiring(&a)).await;
    ground.forget();
    sleep(5 * SECOND).await;
    assert_eq!((ground.asked(), a.leases.stats().owed), (vec![], 1));
    let _other = a.leases.acquire("other").await.unwrap();
    assert_free(&ground, &a, "cleaned up by the next call").await;
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_whose_resume_is_dropped_at_any_of_its_requests_locks_nobody_out_after_its_term() {
    for op in [Op::HeadBlob, Op::Change, Op::Renew, Op::SetMetadata] {
        for applied in [false, true] {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?}, applied: {applied}"));
            let (a, b, c) = (ground.machine("a", 1), ground.warm("b", 2).await, ground.machine("c", 3));
            let begun = Instant::now();
            let handover = a.acquire().await.into_handover().await.unwrap();
            let gate = match applied {
                true => ground.fake.on(op).pause_after(),
                false => ground.fake.on(op).pause_before(),
            };
            let leases = b.leases.clone();
            let resuming = tokio::spawn(async move { drop(leases.resume(handover).await) });
            give_up_at(&gate, resuming).await;
            let lease = c.acquire().await;
            let waited = begun.elapsed();
            assert!(waited < TTL + 2 * SECOND, "{what}: {waited:?}");
            b.leases.flush().await;
            sleep(TTL).await;
            assert!(lease.held().is_held(), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_is_free_at_once() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    drop(a.acquire().await);
    sleep(100 * MILLI).await;
    assert_free(&ground, &a, "dropped").await;
    let _: Duration = TTL;
}
