//! Answers that were lost, at every place of every operation (faults B1 to B3, B5 to B7).

use std::time::Duration;

use leasehold::{Attempt, Ended, ErrorKind, State, Written};
use tokio::time::sleep;

use crate::ground::{Ground, SECOND, TTL};
use crate::support::azure::{Fault, Op};

/// Applied or not, and without an answer that says so. Each hang costs one attempt.
const FAULTS: [Fault; 6] = [
    Fault::LoseRequest,
    Fault::LoseAnswer,
    Fault::ApplyThen(500),
    Fault::AnswerForeign,
    Fault::Hang,
    Fault::ApplyThenHang,
];

// B1, B5
#[tokio::test(start_paused = true)]
async fn an_acquire_that_loses_one_answer_anywhere_gets_its_lease_and_nobody_else_does() {
    for op in [Op::PutBlob, Op::Acquire, Op::SetMetadata] {
        for fault in FAULTS {
            let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}"));
            let (a, b) = (ground.warm("a", 1).await, ground.machine("b", 2));
            let happened = ground.fake.on(op).fault(fault);
            let lease = a.try_acquire().await.expect("nobody else has it");
            assert_eq!(happened.times(), 1, "{what}");
            ground.assert_held(lease.token().as_u64(), &what);
            assert!(
                matches!(b.leases.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.token() == Some(lease.token()))
            );
            assert_eq!(a.leases.stats().owed, 0, "a granted claim is owed no clean-up: {what}");
            sleep(2 * TTL).await;
            assert_eq!((lease.held().state(), a.lost()), (State::Held, 0), "{what}");
        }
    }
}

// B1
#[tokio::test(start_paused = true)]
async fn a_lost_answer_costs_the_look_and_what_was_not_known_to_be_applied() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.warm("a", 1).await;
    ground.fake.on(Op::SetMetadata).fault(Fault::LoseAnswer);
    let _lease = a.acquire().await;
    assert_eq!(ground.asked(), [Op::HeadBlob, Op::Acquire, Op::SetMetadata, Op::HeadBlob]);
}

// B2
#[tokio::test(start_paused = true)]
async fn a_renewal_that_loses_its_answer_costs_no_loss_and_no_look() {
    for fault in FAULTS {
        let ground = Ground::with_a_free_lease().await;
        let a = ground.machine("a", 1);
        let lease = a.acquire().await;
        ground.forget();
        ground.fake.on(Op::Renew).fault(fault);
        lease.renew().await.unwrap();
        assert_eq!(ground.asked(), [Op::Renew, Op::Renew], "{fault:?}");
        assert_eq!((lease.held().state(), a.lost()), (State::Held, 0), "{fault:?}");
    }
}

// B2
#[tokio::test(start_paused = true)]
async fn a_payload_that_loses_an_answer_anywhere_is_stored() {
    for op in [Op::Renew, Op::SetMetadata] {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
            let lease = a.acquire().await;
            ground.fake.on(op).fault(fault);
            lease.held().set_data(b"payload").await.unwrap();
            assert_eq!(b.leases.inspect("job").await.unwrap().data.expect("stored").as_bytes(), b"payload", "{what}");
            assert_eq!((lease.held().state(), a.lost()), (State::Held, 0), "{what}");
        }
    }
}

// B3
#[tokio::test(start_paused = true)]
async fn a_release_that_loses_its_answer_is_a_success_whatever_the_second_answer_says() {
    for fault in FAULTS {
        let ground = Ground::with_a_free_lease().await;
        let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
        let lease = a.acquire().await;
        ground.fake.on(Op::Release).fault(fault);
        assert_eq!(lease.release().await.unwrap(), Ended::Released, "{fault:?}");
        assert_eq!(ground.leased_by(), None, "{fault:?}");
        assert!(b.try_acquire().await.is_some(), "{fault:?}");
    }
}

// B3
#[tokio::test(start_paused = true)]
async fn a_repeated_release_leaves_the_rival_alone_that_has_come_meanwhile() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    ground.fake.on(Op::Release).fault(Fault::LoseAnswer);
    let second = ground.fake.on(Op::Release).after(1).pause_before();
    let release = tokio::spawn(lease.release());
    second.reached().await;
    let theirs = b.try_acquire().await.expect("free");
    second.open();
    assert_eq!(release.await.unwrap().unwrap(), Ended::Released);
    ground.assert_held(theirs.token().as_u64(), "the rival's");
}

// B3
#[tokio::test(start_paused = true)]
async fn the_works_own_result_is_what_run_gives_when_no_release_is_answered() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    ground.fake.on(Op::Release).always().fault(Fault::LoseAnswer);
    let output = lease.run(|_| async { Ok::<_, leasehold::Error>("done") }).await;
    assert_eq!(output.unwrap(), "done");
}

// B5
#[tokio::test(start_paused = true)]
async fn a_hand_over_that_loses_an_answer_anywhere_is_taken_up() {
    for op in [Op::Change, Op::Renew, Op::SetMetadata] {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
            let handover = a.acquire().await.into_handover().await.unwrap();
            let old = handover.token();
            let happened = ground.fake.on(op).fault(fault);
            let lease = b.leases.resume(handover).await.expect(&what);
            assert_eq!(happened.times(), 1, "{what}");
            assert!(lease.token() > old);
            ground.assert_held(lease.token().as_u64(), &what);
            sleep(2 * TTL).await;
            assert_eq!((lease.held().state(), b.lost()), (State::Held, 0), "{what}");
        }
    }
}

// B6
#[tokio::test(start_paused = true)]
async fn late_copies_of_everything_leave_the_next_holder_alone() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let twice: Vec<_> = [Op::Acquire, Op::SetMetadata, Op::Renew, Op::Release]
        .map(|op| ground.fake.on(op).fault(Fault::Twice(3 * SECOND)))
        .into();
    let lease = a.acquire().await;
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    let theirs = b.try_acquire().await.expect("free");
    let before = ground.job();
    sleep(4 * SECOND).await;
    assert!(twice.iter().all(|twice| twice.times() == 1));
    let after = ground.job();
    assert_eq!((after.state, after.etag), (before.state, before.etag));
    sleep(2 * TTL).await;
    assert!(theirs.held().is_held());
}

// B6
#[tokio::test(start_paused = true)]
async fn late_copies_of_everything_do_not_lock_a_free_name() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    for op in [Op::Acquire, Op::SetMetadata, Op::Renew, Op::Release] {
        ground.fake.on(op).fault(Fault::Twice(3 * SECOND));
    }
    let lease = a.acquire().await;
    lease.held().set_data(b"payload").await.unwrap();
    lease.release().await.unwrap();
    sleep(4 * SECOND).await;
    assert_eq!(ground.leased_by(), None);
    assert!(ground.machine("b", 2).try_acquire().await.is_some());
}

// B7
#[tokio::test(start_paused = true)]
async fn a_try_makes_three_calls_of_one_request_each_while_the_service_is_busy() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.warm("a", 1).await;
    for (op, written) in [(Op::HeadBlob, Written::No), (Op::Acquire, Written::Unknown)] {
        ground.fake.on(op).times(3).fault(Fault::Answer(503, "ServerBusy"));
        ground.forget();
        let error = a.leases.try_acquire("job").await.unwrap_err();
        assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, written), "{op:?}");
        assert_eq!(ground.fake.count(op), 3, "{op:?}");
        a.leases.flush().await;
        ground.forget();
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_cannot_look_owes_nothing_and_writes_nothing() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.warm("a", 1).await;
    ground.fake.on(Op::HeadBlob).times(3).fault(Fault::LoseAnswer);
    let error = a.leases.try_acquire("job").await.unwrap_err();
    assert_eq!((error.written(), a.leases.stats().owed), (Written::No, 0));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ground.asked(), [Op::HeadBlob; 3]);
}
