//! ETags and the conditions on them.

use crate::ground::{A, B, BLOB, Ground, refusal};
use crate::support::azure::{Fake, Request, Response, State};

const STALE: &str = "\"0x8D0000000000000\"";

/// Each lease operation, ready to succeed on a lease of A.
fn lease_requests(fake: &Fake) -> [Request; 5] {
    let with_a = |action| fake.lease_request(BLOB, action).with_lease(Some(A));
    let acquire = fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "15");
    [
        acquire.with("x-ms-proposed-lease-id", &A.to_string()),
        with_a("renew"),
        with_a("change").with("x-ms-proposed-lease-id", &A.to_string()),
        fake.lease_request(BLOB, "break"),
        with_a("release"),
    ]
}

#[test]
fn no_lease_operation_moves_the_etag_or_the_date() {
    let ground = Ground::leased();
    let (etag, modified) = stamp(&ground.fake.head_blob(BLOB));
    for request in lease_requests(&ground.fake) {
        ground.wait(2_000);
        let answer = ground.fake.send(&request);
        assert!(answer.status < 300, "{request:?}");
        assert_eq!(stamp(&answer), (etag.clone(), modified.clone()));
    }
    assert_eq!(stamp(&ground.fake.head_blob(BLOB)), (etag, modified));
}

#[test]
fn every_write_moves_the_etag_and_the_date() {
    let ground = Ground::new();
    let mut seen = vec![stamp(&ground.fake.head_blob(BLOB))];
    for write in [Fake::set_metadata, Fake::put_blob, Fake::set_metadata] {
        ground.wait(1_000);
        // The same metadata again is a write too.
        let answer = write(&ground.fake, BLOB, None, &[("lh_token", "1")]);
        assert_eq!(stamp(&answer), stamp(&ground.fake.head_blob(BLOB)));
        seen.push(stamp(&answer));
    }
    for (index, (etag, modified)) in seen.iter().enumerate() {
        assert!(seen[..index].iter().all(|before| before.0 != *etag && before.1 != *modified), "{seen:?}");
    }
}

#[test]
fn every_lease_operation_honours_if_match() {
    let ground = Ground::leased();
    for request in lease_requests(&ground.fake) {
        let refused = ground.fake.send(&request.clone().with("if-match", STALE));
        assert_eq!(refusal(&refused), (412, "ConditionNotMet"));
        assert_eq!(ground.fake.send(&request.with("if-match", &ground.etag())).status / 100, 2);
    }
}

#[test]
fn every_lease_operation_honours_if_none_match() {
    let ground = Ground::leased();
    for request in lease_requests(&ground.fake) {
        let refused = ground.fake.send(&request.clone().with("if-none-match", &ground.etag()));
        assert_eq!(refusal(&refused), (412, "ConditionNotMet"));
        assert_eq!(ground.fake.send(&request.with("if-none-match", STALE)).status / 100, 2);
    }
}

#[test]
fn a_refused_condition_changes_nothing() {
    let ground = Ground::leased();
    ground.wait(10_000);
    for request in lease_requests(&ground.fake) {
        ground.fake.send(&request.with("if-match", STALE));
        assert_eq!(ground.state(), State::Leased(A));
    }
    ground.wait(5_000);
    assert_eq!(ground.state(), State::Expired(A));
}

#[test]
fn a_write_honours_if_match() {
    let ground = Ground::new();
    let before = ground.etag();
    let write = ground.fake.request("PUT", BLOB, "comp=metadata").with_metadata(&[("lh_token", "2")]);
    let write = write.with("if-match", &before);
    assert_eq!(ground.fake.send(&write).status, 200);
    // The ETag has moved, so a copy of it is refused.
    assert_eq!(refusal(&ground.fake.send(&write)), (412, "ConditionNotMet"));
}

#[test]
fn a_blob_is_created_only_once_with_if_none_match() {
    let ground = Ground::new();
    let create = |name: &str| ground.fake.send(&ground.fake.put_request(name).with("if-none-match", "*"));
    assert_eq!(create("new").status, 201);
    assert_eq!(refusal(&create("new")), (409, "BlobAlreadyExists"));
    assert_eq!(refusal(&create(BLOB)), (409, "BlobAlreadyExists"));
    assert_eq!(ground.fake.peek(BLOB).unwrap().metadata["lh_token"], "1");
}

#[test]
fn a_blob_that_is_not_there_matches_no_etag() {
    let ground = Ground::new();
    for tag in ["*", STALE] {
        let answer = ground.fake.send(&ground.fake.put_request("new").with("if-match", tag));
        assert_eq!(refusal(&answer), (412, "ConditionNotMet"));
    }
    assert!(ground.fake.peek("new").is_none());
}

#[test]
fn a_read_with_if_none_match_is_answered_304_without_a_body() {
    let ground = Ground::new();
    for method in ["GET", "HEAD"] {
        let read = ground.fake.request(method, BLOB, "").with("if-none-match", &ground.etag());
        let answer = ground.fake.send(&read);
        assert_eq!((answer.status, answer.body.len()), (304, 0));
        assert_eq!(ground.fake.send(&read.with("if-none-match", STALE)).status, 200);
    }
}

#[test]
fn a_read_with_a_stale_if_match_is_answered_412() {
    let ground = Ground::new();
    let read = ground.fake.request("GET", BLOB, "").with("if-match", STALE);
    assert_eq!(refusal(&ground.fake.send(&read)), (412, "ConditionNotMet"));
}

#[test]
fn an_etag_without_its_quotes_is_no_etag() {
    let ground = Ground::new();
    let bare = ground.etag().trim_matches('"').to_owned();
    let write = ground.fake.request("PUT", BLOB, "comp=metadata").with("if-match", &bare);
    assert_eq!(refusal(&ground.fake.send(&write)), (400, "InvalidHeaderValue"));
}

#[test]
fn two_conditions_at_once_are_refused() {
    let ground = Ground::new();
    let write = ground.fake.request("PUT", BLOB, "comp=metadata").with("if-match", "*").with("if-none-match", STALE);
    assert_eq!(refusal(&ground.fake.send(&write)), (400, "MultipleConditionHeadersNotSupported"));
}

#[test]
fn a_condition_is_judged_before_the_lease_unless_it_is_told_otherwise() {
    let ground = Ground::leased();
    let write = ground.fake.request("PUT", BLOB, "comp=metadata").with("if-match", STALE);
    assert_eq!(refusal(&ground.fake.send(&write)), (412, "ConditionNotMet"));
    let create = ground.fake.put_request(BLOB).with("if-none-match", "*");
    assert_eq!(refusal(&ground.fake.send(&create)), (409, "BlobAlreadyExists"));

    ground.fake.set(|knobs| knobs.lease_before_conditions = true);
    assert_eq!(refusal(&ground.fake.send(&write)), (412, "LeaseIdMissing"));
    assert_eq!(refusal(&ground.fake.send(&create)), (412, "LeaseIdMissing"));
    let write = write.with_lease(Some(B));
    assert_eq!(refusal(&ground.fake.send(&write)), (412, "LeaseIdMismatchWithBlobOperation"));
    let write = write.with_lease(Some(A));
    assert_eq!(refusal(&ground.fake.send(&write)), (412, "ConditionNotMet"));
}

fn stamp(answer: &Response) -> (String, String) {
    (answer.header("etag").unwrap().to_owned(), answer.header("last-modified").unwrap().to_owned())
}
