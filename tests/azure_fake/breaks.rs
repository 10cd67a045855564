//! Break Lease: what is left, and whose period counts.

use crate::ground::{A, B, BLOB, Ground};
use crate::support::azure::{Response, State};

#[test]
fn a_break_without_a_period_leaves_the_rest_of_the_term() {
    let ground = Ground::leased();
    ground.wait(5_000);
    assert_eq!(left(&ground.fake.break_lease(BLOB, None)), (202, "10"));
    assert_eq!(ground.state(), State::Breaking(A));
    ground.wait(9_999);
    assert_eq!(ground.state(), State::Breaking(A));
    ground.wait(1);
    assert_eq!(ground.state(), State::Broken(A));
}

#[test]
fn a_shorter_period_ends_the_lease_sooner() {
    let ground = Ground::leased();
    assert_eq!(left(&ground.fake.break_lease(BLOB, Some(4))), (202, "4"));
    ground.wait(4_000);
    assert_eq!(ground.state(), State::Broken(A));
    assert_eq!(ground.fake.acquire(BLOB, B, 15).status, 201);
}

#[test]
fn a_longer_period_does_not_outlast_the_term() {
    let ground = Ground::leased();
    assert_eq!(left(&ground.fake.break_lease(BLOB, Some(60))), (202, "15"));
    ground.wait(15_000);
    assert_eq!(ground.state(), State::Broken(A));
}

#[test]
fn a_second_break_does_not_prolong_the_first() {
    let ground = Ground::leased();
    ground.fake.break_lease(BLOB, Some(5));
    ground.wait(2_000);
    assert_eq!(left(&ground.fake.break_lease(BLOB, Some(10))), (202, "3"));
    assert_eq!(left(&ground.fake.break_lease(BLOB, None)), (202, "3"));
    ground.wait(3_000);
    assert_eq!(ground.state(), State::Broken(A));
}

#[test]
fn an_infinite_lease_is_broken_at_once_unless_a_period_is_given() {
    let ground = Ground::new();
    ground.fake.acquire(BLOB, A, -1);
    assert_eq!(left(&ground.fake.break_lease(BLOB, None)), (202, "0"));
    assert_eq!(ground.state(), State::Broken(A));

    ground.fake.acquire(BLOB, A, -1);
    assert_eq!(left(&ground.fake.break_lease(BLOB, Some(60))), (202, "60"));
    assert_eq!(ground.state(), State::Breaking(A));
}

#[test]
fn nothing_is_left_of_a_lease_that_is_over() {
    let ground = Ground::leased();
    ground.wait(15_000);
    assert_eq!(left(&ground.fake.break_lease(BLOB, Some(10))), (202, "0"));
    assert_eq!(left(&ground.fake.break_lease(BLOB, None)), (202, "0"));
}

#[test]
fn a_part_of_a_second_counts_as_a_whole_one() {
    let ground = Ground::leased();
    ground.wait(14_999);
    assert_eq!(left(&ground.fake.break_lease(BLOB, None)), (202, "1"));
}

#[test]
fn a_period_over_a_minute_is_refused() {
    let ground = Ground::leased();
    let answer = ground.fake.break_lease(BLOB, Some(61));
    assert_eq!((answer.status, answer.code()), (400, Some("InvalidHeaderValue")));
    assert_eq!(ground.state(), State::Leased(A));
}

/// Any authorized request can break a lease; it need not name its id.
#[test]
fn anybody_may_break_and_the_holder_may_still_write_and_release() {
    let ground = Ground::leased();
    ground.fake.break_lease(BLOB, None);
    assert_eq!(ground.fake.set_metadata(BLOB, Some(A), &[("lh_token", "2")]).status, 200);
    assert_eq!(ground.fake.release(BLOB, A).status, 200);
    assert_eq!(ground.fake.acquire(BLOB, B, 15).status, 201);
}

fn left(answer: &Response) -> (u16, &str) {
    (answer.status, answer.header("x-ms-lease-time").expect("the time that is left"))
}
