//! Where the service may do one thing or another, the fake does what it is told.

use std::time::Duration;

use crate::ground::{A, B, BLOB, Ground, refusal};
use crate::support::azure::State;

#[test]
fn a_term_ends_exactly_after_its_duration() {
    let ground = Ground::leased();
    ground.wait(14_999);
    assert_eq!(refusal(&ground.fake.acquire(BLOB, B, 15)), (409, "LeaseAlreadyPresent"));
    ground.wait(1);
    assert_eq!(ground.fake.acquire(BLOB, B, 15).status, 201);
}

#[test]
fn a_term_may_end_late_but_not_later_than_that() {
    let ground = Ground::new();
    ground.fake.set(|knobs| knobs.leeway.term_ends_late_by = Duration::from_millis(999));
    ground.fake.acquire(BLOB, A, 15);
    ground.wait(15_998);
    assert_eq!(ground.state(), State::Leased(A));
    ground.fake.renew(BLOB, A);
    ground.wait(15_998);
    assert_eq!(ground.state(), State::Leased(A));
    ground.wait(1);
    assert_eq!(ground.state(), State::Expired(A));
}

#[test]
fn after_an_expiry_a_new_lease_may_have_to_wait() {
    let ground = Ground::leased();
    ground.fake.set(|knobs| knobs.leeway.busy_after_expiry = Duration::from_secs(60));
    ground.wait(15_000);
    assert_eq!(ground.state(), State::Expired(A));
    ground.wait(59_999);
    assert_eq!(refusal(&ground.fake.acquire(BLOB, B, 15)), (409, "LeaseAlreadyPresent"));
    assert_eq!(refusal(&ground.fake.acquire(BLOB, A, 15)), (409, "LeaseAlreadyPresent"));
    ground.wait(1);
    assert_eq!(ground.fake.acquire(BLOB, B, 15).status, 201);
}

#[test]
fn a_busy_blob_can_be_renewed_released_and_written() {
    for act in 0..3 {
        let ground = Ground::leased();
        ground.fake.set(|knobs| knobs.leeway.busy_after_expiry = Duration::from_secs(60));
        ground.wait(15_000);
        let answer = match act {
            0 => ground.fake.renew(BLOB, A),
            1 => ground.fake.release(BLOB, A),
            _ => ground.fake.set_metadata(BLOB, None, &[]),
        };
        assert_eq!(answer.status, 200);
        // What was released or written has no expired lease any more.
        assert_eq!(ground.fake.acquire(BLOB, B, 15).status, if act == 0 { 409 } else { 201 });
    }
}

#[test]
fn a_lease_that_was_released_or_broken_does_not_make_the_blob_busy() {
    let ground = Ground::leased();
    ground.fake.set(|knobs| knobs.leeway.busy_after_expiry = Duration::from_secs(60));
    ground.fake.release(BLOB, A);
    assert_eq!(ground.fake.acquire(BLOB, A, 15).status, 201);
    ground.fake.break_lease(BLOB, None);
    ground.wait(15_000);
    assert_eq!(ground.fake.acquire(BLOB, B, 15).status, 201);
}

#[test]
fn a_set_wall_clock_ends_no_lease() {
    use leasehold::testing::TestClock;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = TestClock::new();
        let fake = crate::support::azure::Fake::new(clock.clone());
        fake.put_blob(BLOB, None, &[]);
        fake.acquire(BLOB, A, 15);
        clock.set_wall_forward(Duration::from_secs(3600));
        assert_eq!(fake.peek(BLOB).unwrap().state, State::Leased(A));
        assert_eq!(fake.head_blob(BLOB).header("date"), Some("Mon, 21 Sep 2026 15:13:20 GMT"));
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!(fake.peek(BLOB).unwrap().state, State::Expired(A));
    });
}
