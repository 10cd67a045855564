//! Change Lease.

use uuid::{Uuid, uuid};

use crate::ground::{A, B, BLOB, Ground, refusal};
use crate::support::azure::State;

const C: Uuid = uuid!("cccccccc-0000-4000-8000-00000000000c");

#[test]
fn a_change_gives_the_lease_another_id_and_extends_nothing() {
    let ground = Ground::leased();
    ground.wait(10_000);
    let answer = ground.fake.change(BLOB, A, B);
    assert_eq!((answer.status, answer.header("x-ms-lease-id")), (200, Some(&*B.to_string())));
    assert_eq!(ground.state(), State::Leased(B));
    ground.wait(4_999);
    assert_eq!(ground.state(), State::Leased(B));
    ground.wait(1);
    assert_eq!(ground.state(), State::Expired(B));
}

#[test]
fn the_old_id_is_nobodys_after_a_change() {
    let ground = Ground::leased();
    ground.fake.change(BLOB, A, B);
    assert_eq!(refusal(&ground.fake.renew(BLOB, A)), (409, "LeaseIdMismatchWithLeaseOperation"));
    assert_eq!(refusal(&ground.fake.set_metadata(BLOB, Some(A), &[])), (412, "LeaseIdMismatchWithBlobOperation"));
    assert_eq!(ground.fake.renew(BLOB, B).status, 200);
}

#[test]
fn a_change_that_was_made_already_is_answered_like_the_first() {
    let ground = Ground::leased();
    ground.fake.change(BLOB, A, B);
    let again = ground.fake.change(BLOB, A, B);
    assert_eq!((again.status, again.header("x-ms-lease-id")), (200, Some(&*B.to_string())));
    // Whatever id it names.
    assert_eq!(ground.fake.change(BLOB, C, B).status, 200);
    assert_eq!(ground.state(), State::Leased(B));
}

#[test]
fn a_change_of_another_lease_is_refused() {
    let ground = Ground::leased();
    assert_eq!(refusal(&ground.fake.change(BLOB, B, C)), (409, "LeaseIdMismatchWithLeaseOperation"));
    assert_eq!(ground.state(), State::Leased(A));
}

#[test]
fn a_free_blob_has_no_lease_to_change() {
    let ground = Ground::new();
    assert_eq!(refusal(&ground.fake.change(BLOB, A, B)), (409, "LeaseNotPresentWithLeaseOperation"));
}

#[test]
fn a_breaking_lease_is_not_changed() {
    let ground = Ground::leased();
    ground.fake.break_lease(BLOB, Some(10));
    assert_eq!(refusal(&ground.fake.change(BLOB, A, B)), (409, "LeaseIsBreakingAndCannotBeChanged"));
    assert_eq!(refusal(&ground.fake.change(BLOB, B, C)), (409, "LeaseIdMismatchWithLeaseOperation"));
}

#[test]
fn a_broken_lease_is_not_changed() {
    let ground = Ground::leased();
    ground.fake.break_lease(BLOB, Some(0));
    assert_eq!(refusal(&ground.fake.change(BLOB, A, B)), (409, "LeaseNotPresentWithLeaseOperation"));
    assert_eq!(refusal(&ground.fake.change(BLOB, A, A)), (409, "LeaseNotPresentWithLeaseOperation"));
}

#[test]
fn an_expired_lease_is_not_changed() {
    let ground = Ground::leased();
    ground.wait(15_000);
    assert_eq!(refusal(&ground.fake.change(BLOB, A, B)), (409, "LeaseNotPresentWithLeaseOperation"));
    assert_eq!(ground.state(), State::Expired(A));
}
