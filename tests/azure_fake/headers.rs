//! What every answer carries, and what the headers of a request may be.

use crate::ground::{A, B, BLOB, Ground, refusal};
use crate::support::azure::State;

#[test]
fn every_answer_has_the_services_date_and_a_request_id_of_its_own() {
    let ground = Ground::new();
    let good = ground.fake.head_blob(BLOB);
    assert_eq!(good.header("date"), Some("Mon, 21 Sep 2026 14:13:20 GMT"));
    ground.wait(61_999);
    let refused = ground.fake.head_blob("none");
    // In whole seconds.
    assert_eq!(refused.header("date"), Some("Mon, 21 Sep 2026 14:14:21 GMT"));
    let ids = [good.header("x-ms-request-id").unwrap(), refused.header("x-ms-request-id").unwrap()];
    assert_ne!(ids[0], ids[1]);
    assert_eq!(good.header("x-ms-version"), Some("2026-02-06"));
}

#[test]
fn a_refusal_names_its_code_in_a_header_and_in_xml() {
    let ground = Ground::leased();
    let refused = ground.fake.acquire(BLOB, B, 15);
    assert_eq!(refusal(&refused), (409, "LeaseAlreadyPresent"));
    let body = String::from_utf8(refused.body.clone()).unwrap();
    assert!(body.contains("<Error><Code>LeaseAlreadyPresent</Code><Message>"), "{body}");
    assert_eq!(refused.header("content-type"), Some("application/xml"));
}

#[test]
fn a_refused_head_has_a_code_and_no_body() {
    let ground = Ground::new();
    let refused = ground.fake.head_blob("none");
    assert_eq!(refusal(&refused), (404, "BlobNotFound"));
    assert!(refused.body.is_empty());
}

#[test]
fn the_state_is_shown_by_three_headers() {
    let ground = Ground::new();
    let shown = || {
        let head = ground.fake.head_blob(BLOB);
        let header = |name: &str| head.header(name).map(str::to_owned);
        [header("x-ms-lease-state"), header("x-ms-lease-status"), header("x-ms-lease-duration")]
    };
    let words = |state: &str, status: &str, duration: Option<&str>| {
        [Some(state.to_owned()), Some(status.to_owned()), duration.map(str::to_owned)]
    };
    assert_eq!(shown(), words("available", "unlocked", None));
    ground.fake.acquire(BLOB, A, 60);
    assert_eq!(shown(), words("leased", "locked", Some("fixed")));
    ground.wait(60_000);
    assert_eq!(shown(), words("expired", "unlocked", None));
    ground.fake.acquire(BLOB, A, -1);
    assert_eq!(shown(), words("leased", "locked", Some("infinite")));
    ground.fake.break_lease(BLOB, Some(5));
    assert_eq!(shown(), words("breaking", "locked", None));
    ground.wait(5_000);
    assert_eq!(shown(), words("broken", "unlocked", None));
}

#[test]
fn a_lease_lasts_15_to_60_seconds_or_for_ever() {
    let ground = Ground::new();
    for seconds in [-2, 0, 1, 14, 61] {
        assert_eq!(refusal(&ground.fake.acquire(BLOB, A, seconds)), (400, "InvalidHeaderValue"), "{seconds}");
    }
    assert_eq!(ground.state(), State::Available);
    for seconds in [15, 60, -1] {
        assert_eq!(ground.fake.acquire(BLOB, A, seconds).status, 201, "{seconds}");
    }
    ground.wait(1_000_000_000);
    assert_eq!(ground.state(), State::Leased(A));
}

#[test]
fn a_renewal_takes_no_duration() {
    let ground = Ground::leased();
    let renew = ground.fake.lease_request(BLOB, "renew").with_lease(Some(A)).with("x-ms-lease-duration", "60");
    assert_eq!(refusal(&ground.fake.send(&renew)), (400, "InvalidHeaderValue"));
}

#[test]
fn a_lease_id_is_a_guid() {
    let ground = Ground::new();
    let acquire = ground.fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "15");
    for id in ["", "mine", "aaaaaaaa-0000-4000-8000", "urn:uuid:aaaaaaaa-0000-4000-8000-00000000000a"] {
        let refused = ground.fake.send(&acquire.clone().with("x-ms-proposed-lease-id", id));
        assert_eq!(refusal(&refused), (400, "InvalidHeaderValue"), "{id:?}");
        let write = ground.fake.request("PUT", BLOB, "comp=metadata").with("x-ms-lease-id", id);
        assert_eq!(refusal(&ground.fake.send(&write)), (400, "InvalidHeaderValue"), "{id:?}");
    }
}

#[test]
fn lease_ids_compare_without_their_case() {
    let ground = Ground::leased();
    let upper = A.to_string().to_uppercase();
    let as_upper = |action| ground.fake.lease_request(BLOB, action).with("x-ms-lease-id", &upper);
    assert_eq!(ground.fake.send(&as_upper("renew")).status, 200);
    let write = ground.fake.request("PUT", BLOB, "comp=metadata").with("x-ms-lease-id", &format!("{{{upper}}}"));
    assert_eq!(ground.fake.send(&write).status, 200);
    assert_eq!(ground.fake.send(&as_upper("release")).status, 200);
}

#[test]
fn the_service_chooses_an_id_if_none_is_proposed() {
    let ground = Ground::new();
    let acquire = ground.fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "15");
    let answer = ground.fake.send(&acquire);
    let id = answer.header("x-ms-lease-id").unwrap().parse().unwrap();
    assert_eq!(ground.state(), State::Leased(id));
    assert_eq!(refusal(&ground.fake.send(&acquire)), (409, "LeaseAlreadyPresent"));
}

#[test]
fn an_acquire_and_a_renewal_answer_with_the_lease_id() {
    let ground = Ground::leased();
    let id = A.to_string();
    assert_eq!(ground.fake.acquire(BLOB, A, 15).header("x-ms-lease-id"), Some(&*id));
    assert_eq!(ground.fake.renew(BLOB, A).header("x-ms-lease-id"), Some(&*id));
}

#[test]
fn what_an_operation_needs_has_to_be_there() {
    let ground = Ground::leased();
    for action in ["acquire", "renew", "change", "release"] {
        let refused = ground.fake.send(&ground.fake.lease_request(BLOB, action));
        assert_eq!(refusal(&refused), (400, "MissingRequiredHeader"), "{action}");
    }
    let refused = ground.fake.send(&ground.fake.request("PUT", "new", ""));
    assert_eq!(refusal(&refused), (400, "MissingRequiredHeader"));
    let mut versionless = ground.fake.request("HEAD", BLOB, "");
    versionless.headers.clear();
    assert_eq!(refusal(&ground.fake.send(&versionless)), (400, "MissingRequiredHeader"));
}

#[test]
fn a_content_length_that_is_not_the_bodys_is_refused() {
    let ground = Ground::new();
    let mut put = ground.fake.put_request("new").with("content-length", "3");
    assert_eq!(refusal(&ground.fake.send(&put)), (400, "InvalidHeaderValue"));
    put.body = b"abc".to_vec();
    assert_eq!(ground.fake.send(&put).status, 201);
}
