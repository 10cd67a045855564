//! Writes and reads that meet a lease, beyond the table's Set Metadata; metadata and its limits.

use crate::ground::{A, B, BLOB, Ground, refusal};
use crate::support::azure::{Metadata, Response, State};

#[test]
fn put_blob_needs_the_lease_and_leaves_it_where_it_is() {
    let ground = Ground::leased();
    assert_eq!(refusal(&ground.fake.put_blob(BLOB, None, &[])), (412, "LeaseIdMissing"));
    assert_eq!(refusal(&ground.fake.put_blob(BLOB, Some(B), &[])), (412, "LeaseIdMismatchWithBlobOperation"));
    assert_eq!(ground.fake.put_blob(BLOB, Some(A), &[("lh_token", "2")]).status, 201);
    assert_eq!(ground.state(), State::Leased(A));
    ground.wait(15_000);
    assert_eq!(ground.state(), State::Expired(A));
}

#[test]
fn put_blob_forgets_a_lease_that_is_over() {
    let ground = Ground::leased();
    ground.wait(15_000);
    assert_eq!(refusal(&ground.fake.put_blob(BLOB, Some(A), &[])), (412, "LeaseLost"));
    assert_eq!(ground.fake.put_blob(BLOB, None, &[]).status, 201);
    assert_eq!(ground.state(), State::Available);
    assert_eq!(refusal(&ground.fake.renew(BLOB, A)), (409, "LeaseIdMismatchWithLeaseOperation"));
}

#[test]
fn put_blob_replaces_all_metadata() {
    let ground = Ground::new();
    ground.fake.put_blob(BLOB, None, &[("other", "1")]);
    assert_eq!(ground.fake.peek(BLOB).unwrap().metadata, metadata(&[("other", "1")]));
}

#[test]
fn a_blob_that_is_not_there_has_no_lease() {
    let ground = Ground::new();
    assert_eq!(refusal(&ground.fake.put_blob("new", Some(A), &[])), (412, "LeaseNotPresentWithBlobOperation"));
    assert_eq!(refusal(&ground.fake.acquire("new", A, 15)), (404, "BlobNotFound"));
    assert_eq!(refusal(&ground.fake.set_metadata("new", None, &[])), (404, "BlobNotFound"));
}

#[test]
fn delete_blob_needs_the_lease() {
    let ground = Ground::leased();
    let delete = ground.fake.request("DELETE", BLOB, "");
    assert_eq!(refusal(&ground.fake.send(&delete)), (412, "LeaseIdMissing"));
    assert_eq!(ground.fake.send(&delete.with_lease(Some(A))).status, 202);
    assert!(ground.fake.peek(BLOB).is_none());
}

#[test]
fn a_lease_does_not_outlive_its_blob() {
    let ground = Ground::leased();
    ground.fake.send(&ground.fake.request("DELETE", BLOB, "").with_lease(Some(A)));
    ground.fake.put_blob(BLOB, None, &[]);
    assert_eq!(ground.state(), State::Available);
}

#[test]
fn anybody_may_read_a_leased_blob_but_not_with_another_lease_id() {
    let ground = Ground::leased();
    for method in ["HEAD", "GET"] {
        let read = ground.fake.request(method, BLOB, "");
        assert_eq!(ground.fake.send(&read).status, 200);
        assert_eq!(ground.fake.send(&read.clone().with_lease(Some(A))).status, 200);
        let refused = ground.fake.send(&read.with_lease(Some(B)));
        assert_eq!(refusal(&refused), (412, "LeaseIdMismatchWithBlobOperation"));
    }
}

#[test]
fn a_read_leaves_an_expired_lease_renewable() {
    let ground = Ground::leased();
    ground.wait(20_000);
    ground.fake.head_blob(BLOB);
    assert_eq!(ground.fake.renew(BLOB, A).status, 200);
}

#[test]
fn an_expired_lease_of_a_blob_that_was_written_is_not_renewed() {
    let ground = Ground::leased();
    ground.wait(15_000);
    ground.fake.set_metadata(BLOB, None, &[("lh_token", "2")]);
    assert_eq!(refusal(&ground.fake.renew(BLOB, A)), (409, "LeaseIdMismatchWithLeaseOperation"));
}

#[test]
fn an_expired_lease_of_a_blob_that_was_leased_to_another_is_not_renewed() {
    let ground = Ground::leased();
    ground.wait(15_000);
    ground.fake.acquire(BLOB, B, 15);
    ground.wait(15_000);
    assert_eq!(refusal(&ground.fake.renew(BLOB, A)), (409, "LeaseIdMismatchWithLeaseOperation"));
    assert_eq!(ground.fake.renew(BLOB, B).status, 200);
}

#[test]
fn what_the_holder_wrote_during_its_term_does_not_spoil_a_late_renewal() {
    let ground = Ground::leased();
    ground.fake.set_metadata(BLOB, Some(A), &[("lh_token", "2")]);
    ground.wait(15_000);
    assert_eq!(ground.fake.renew(BLOB, A).status, 200);
}

#[test]
fn set_metadata_replaces_all_pairs() {
    let ground = Ground::new();
    let answer = ground.fake.set_metadata(BLOB, None, &[("one", "1"), ("_two", "a b")]);
    assert_eq!(answer.status, 200);
    assert_eq!(ground.fake.peek(BLOB).unwrap().metadata, metadata(&[("one", "1"), ("_two", "a b")]));
    let head = ground.fake.head_blob(BLOB);
    assert_eq!((head.header("x-ms-meta-one"), head.header("x-ms-meta-lh_token")), (Some("1"), None));
}

#[test]
fn metadata_of_8_kib_is_taken_and_a_byte_more_is_not() {
    let ground = Ground::new();
    let value = "v".repeat(8 * 1024 - "name".len());
    assert_eq!(ground.fake.set_metadata(BLOB, None, &[("name", &value)]).status, 200);
    let refused = ground.fake.set_metadata(BLOB, None, &[("name", &(value + "v"))]);
    assert_eq!(refusal(&refused), (400, "MetadataTooLarge"));
}

#[test]
fn metadata_names_are_identifiers() {
    let ground = Ground::new();
    for name in ["", "1st", "with-hyphen", "with.dot", "with blank", "\u{e9}t\u{e9}"] {
        let refused = ground.fake.set_metadata(BLOB, None, &[(name, "1")]);
        assert_eq!(refusal(&refused), (400, "InvalidMetadata"), "{name:?}");
        assert_eq!(refusal(&ground.fake.put_blob("new", None, &[(name, "1")])), (400, "InvalidMetadata"));
    }
}

#[test]
fn metadata_values_are_what_a_header_brings_back_unchanged() {
    let ground = Ground::new();
    for value in ["", "\u{e9}t\u{e9}", " before", "after ", "new\nline", "bell\u{7}"] {
        let refused = ground.fake.set_metadata(BLOB, None, &[("name", value)]);
        assert_eq!(refusal(&refused), (400, "InvalidMetadata"), "{value:?}");
    }
    assert_eq!(ground.fake.peek(BLOB).unwrap().metadata, metadata(&[("lh_token", "1")]));
}

#[test]
fn get_blob_brings_the_body_and_its_parts() {
    let ground = Ground::new();
    let mut put = ground.fake.put_request(BLOB).with("x-ms-blob-content-type", "text/plain");
    put.body = b"0123456789".to_vec();
    ground.fake.send(&put);
    let get = |range: &str| {
        let request = ground.fake.request("GET", BLOB, "");
        let answer = ground.fake.send(&if range.is_empty() { request } else { request.with("range", range) });
        (answer.status, text(&answer), answer.header("content-range").map(str::to_owned))
    };
    assert_eq!(get(""), (200, "0123456789".to_owned(), None));
    assert_eq!(get("bytes=2-4"), (206, "234".to_owned(), Some("bytes 2-4/10".to_owned())));
    assert_eq!(get("bytes=7-100"), (206, "789".to_owned(), Some("bytes 7-9/10".to_owned())));
    assert_eq!(get("bytes=10-11").0, 416);
    let head = ground.fake.head_blob(BLOB);
    assert_eq!((head.header("content-length"), head.header("content-type")), (Some("10"), Some("text/plain")));
    assert!(head.body.is_empty());
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(answer: &Response) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}
