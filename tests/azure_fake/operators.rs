//! What an operator does past every lease.

use crate::ground::{A, BLOB, Ground, refusal};
use crate::support::azure::State;

#[test]
fn a_leased_blob_is_deleted_by_hand() {
    let ground = Ground::leased();
    assert!(ground.fake.delete_blob(BLOB));
    assert!(!ground.fake.delete_blob(BLOB));
    assert!(ground.fake.peek(BLOB).is_none());
    assert_eq!(refusal(&ground.fake.renew(BLOB, A)), (404, "BlobNotFound"));
}

#[test]
fn metadata_edited_by_hand_moves_the_etag_and_leaves_the_lease() {
    let ground = Ground::leased();
    let before = ground.etag();
    assert!(ground.fake.edit_metadata(BLOB, |metadata| {
        metadata.insert("lh_token".to_owned(), "9".to_owned());
    }));
    assert_ne!(ground.etag(), before);
    assert_eq!(ground.fake.head_blob(BLOB).header("x-ms-meta-lh_token"), Some("9"));
    assert_eq!(ground.state(), State::Leased(A));
    assert!(!ground.fake.edit_metadata("none", |_| {}));
}

#[test]
fn metadata_edited_by_hand_makes_the_service_forget_a_lease_that_is_over() {
    let ground = Ground::leased();
    ground.wait(15_000);
    ground.fake.edit_metadata(BLOB, |_| {});
    assert_eq!(ground.state(), State::Available);
}

#[test]
fn a_foreign_blob_takes_the_place_of_another_and_of_its_lease() {
    let ground = Ground::leased();
    let before = ground.etag();
    ground.fake.put_foreign(BLOB, &[("owner", "somebody")]);
    let peek = ground.fake.peek(BLOB).unwrap();
    assert_eq!((peek.state, peek.lease_id, peek.metadata.len()), (State::Available, None, 1));
    assert_ne!(peek.etag, before);
    assert_eq!(peek.body, b"foreign");
}

#[test]
fn a_blob_is_seen_as_it_is() {
    let ground = Ground::leased();
    let peek = ground.fake.peek(BLOB).unwrap();
    assert_eq!((peek.state, peek.lease_id), (State::Leased(A), Some(A)));
    assert_eq!(Some(&*peek.etag), ground.fake.head_blob(BLOB).header("etag"));
    assert_eq!(ground.fake.names(), [BLOB]);
}
