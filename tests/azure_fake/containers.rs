//! Create Container, Get Container Properties, and a container that goes.

use crate::ground::{A, BLOB, Ground, refusal};
use crate::support::azure::{Fake, Response};

const OF_CONTAINER: &str = "restype=container";

#[test]
fn a_container_is_created_once() {
    let fake = Fake::without_container(leasehold::SystemClock);
    let create = fake.request("PUT", "", OF_CONTAINER);
    let created = fake.send(&create);
    assert_eq!(created.status, 201);
    assert!(created.header("etag").is_some());
    assert_eq!(refusal(&fake.send(&create)), (409, "ContainerAlreadyExists"));
}

#[test]
fn a_container_is_looked_at_with_get_or_head() {
    let ground = Ground::new();
    for method in ["GET", "HEAD"] {
        let answer = ground.fake.send(&ground.fake.request(method, "", OF_CONTAINER));
        assert_eq!((answer.status, answer.header("x-ms-lease-state")), (200, Some("available")));
    }
}

#[test]
fn nothing_is_found_in_a_container_that_is_not_there() {
    let fake = Fake::without_container(leasehold::SystemClock);
    for answer in everything(&fake) {
        assert_eq!(refusal(&answer), (404, "ContainerNotFound"));
    }
}

#[test]
fn a_container_goes_with_its_leased_blobs() {
    let ground = Ground::leased();
    assert!(ground.fake.delete_container());
    for answer in everything(&ground.fake) {
        assert_eq!(refusal(&answer), (404, "ContainerNotFound"));
    }
    assert!(!ground.fake.delete_container());
}

#[test]
fn a_deleted_container_comes_back_empty_after_half_a_minute() {
    let ground = Ground::leased();
    ground.fake.delete_container();
    let create = ground.fake.request("PUT", "", OF_CONTAINER);
    ground.wait(29_999);
    assert_eq!(refusal(&ground.fake.send(&create)), (409, "ContainerBeingDeleted"));
    ground.wait(1);
    assert_eq!(ground.fake.send(&create).status, 201);
    assert_eq!(refusal(&ground.fake.head_blob(BLOB)), (404, "BlobNotFound"));
}

#[test]
fn containers_keep_their_blobs_apart() {
    let ground = Ground::new();
    let other = ground.fake.of_container("other");
    other.send(&other.request("PUT", "", OF_CONTAINER));
    assert_eq!(refusal(&other.head_blob(BLOB)), (404, "BlobNotFound"));
    other.put_blob(BLOB, None, &[("of", "other")]);
    other.acquire(BLOB, A, 15);
    assert_eq!(ground.fake.peek(BLOB).unwrap().metadata["lh_token"], "1");
    assert_eq!(ground.fake.peek(BLOB).unwrap().lease_id, None);
    assert_eq!(other.peek(BLOB).unwrap().lease_id, Some(A));
}

#[test]
fn a_containers_name_is_lower_case_letters_digits_and_single_hyphens() {
    let ground = Ground::new();
    let longest = "c".repeat(63);
    for good in ["abc", "a-b-c", "0leases9", &longest] {
        let fake = ground.fake.of_container(good);
        assert_eq!(fake.send(&fake.request("PUT", "", OF_CONTAINER)).status, 201, "{good}");
    }
    let too_long = "c".repeat(64);
    for bad in ["ab", "Leases", "a_b", "-ab", "ab-", "a--b", &too_long] {
        let fake = ground.fake.of_container(bad);
        let refused = fake.send(&fake.request("PUT", "", OF_CONTAINER));
        assert_eq!(refusal(&refused), (400, "InvalidResourceName"), "{bad}");
    }
}

fn everything(fake: &Fake) -> Vec<Response> {
    vec![
        fake.send(&fake.request("GET", "", OF_CONTAINER)),
        fake.send(&fake.request("GET", "", "restype=container&comp=list")),
        fake.head_blob(BLOB),
        fake.send(&fake.request("GET", BLOB, "")),
        fake.put_blob(BLOB, None, &[]),
        fake.set_metadata(BLOB, None, &[]),
        fake.send(&fake.request("DELETE", BLOB, "")),
        fake.acquire(BLOB, A, 15),
        fake.renew(BLOB, A),
        fake.change(BLOB, A, A),
        fake.release(BLOB, A),
        fake.break_lease(BLOB, None),
    ]
}
