//! Every request is counted by its kind, and what the fake does not know is seen.

use crate::ground::{A, B, BLOB, Ground};
use crate::support::azure::{Op, Request};

#[tokio::test]
async fn requests_are_counted_by_kind_and_name() {
    let ground = Ground::new();
    let fake = &ground.fake;
    let lease = |action: &str| fake.lease_request(BLOB, action).with_lease(Some(A));
    let sent = [
        (Op::CreateContainer, fake.request("PUT", "", "restype=container")),
        (Op::GetContainer, fake.request("GET", "", "restype=container")),
        (Op::ListBlobs, fake.request("GET", "", "restype=container&comp=list")),
        (Op::PutBlob, fake.put_request(BLOB)),
        (Op::HeadBlob, fake.request("HEAD", BLOB, "")),
        (Op::GetBlob, fake.request("GET", BLOB, "")),
        (Op::SetMetadata, fake.request("PUT", BLOB, "comp=metadata&timeout=5")),
        (Op::Acquire, lease("acquire")),
        (Op::Renew, lease("renew")),
        (Op::Change, lease("change")),
        (Op::Release, lease("release")),
        (Op::Break, lease("break")),
        (Op::DeleteBlob, fake.request("DELETE", BLOB, "")),
    ];
    for (op, request) in &sent {
        assert_eq!(fake.count(*op), 0, "{op:?}");
        fake.exchange(request.clone()).await.unwrap();
        assert_eq!(fake.count(*op), 1, "{op:?}");
    }
    assert_eq!(fake.total(), sent.len());
    assert_eq!((fake.count_of(Op::Renew, BLOB), fake.count_of(Op::Renew, "other")), (1, 0));
    assert_eq!(fake.requests()[1].name, "leases");
    fake.forget_requests();
    assert_eq!(fake.total(), 0);
}

#[tokio::test]
async fn a_request_is_kept_with_its_answer() {
    let ground = Ground::leased();
    let acquire = ground.fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "15");
    ground.fake.exchange(acquire.with("x-ms-proposed-lease-id", &B.to_string())).await.unwrap();
    let seen = &ground.fake.requests()[0];
    assert_eq!(seen.answered, Some((409, Some("LeaseAlreadyPresent".to_owned()))));
    assert_eq!(
        (seen.method.as_str(), seen.name.as_str(), seen.request.header("x-ms-lease-duration")),
        ("PUT", BLOB, Some("15"))
    );
}

#[tokio::test]
async fn what_somebody_else_does_is_not_counted() {
    let ground = Ground::leased();
    ground.fake.renew(BLOB, A);
    assert_eq!(ground.fake.total(), 0);
}

#[tokio::test]
async fn a_request_that_the_fake_does_not_know_is_refused_and_seen() {
    let ground = Ground::new();
    let fake = &ground.fake;
    let unknown: Vec<Request> = vec![
        fake.request("PUT", BLOB, "comp=tags"),
        fake.request("PUT", BLOB, "comp=metadata&snapshot=1"),
        fake.request("POST", BLOB, ""),
        fake.request("DELETE", "", "restype=container"),
        fake.request("GET", "", "restype=container&comp=list&delimiter=/"),
        fake.request("GET", "", ""),
        fake.lease_request(BLOB, "steal"),
        fake.request("HEAD", BLOB, "").with("if-modified-since", "Mon, 21 Sep 2026 14:13:20 GMT"),
        fake.request("HEAD", BLOB, "").with("x-ms-if-tags", "a = 'b'"),
        fake.put_request("new").with("x-ms-tags", "a=b"),
    ];
    for (index, request) in unknown.into_iter().enumerate() {
        let answer = fake.exchange(request.clone()).await.unwrap();
        assert_eq!((answer.status, answer.code()), (400, Some("UnknownToTheFake")), "{request:?}");
        assert_eq!((fake.count(Op::Unknown), fake.invalid().len()), (index + 1, index + 1));
    }
}

#[tokio::test]
async fn a_request_that_is_not_right_is_seen_as_well() {
    let ground = Ground::new();
    let fake = &ground.fake;
    fake.exchange(fake.request("HEAD", BLOB, "")).await.unwrap();
    assert!(fake.invalid().is_empty());
    fake.exchange(fake.request("PUT", BLOB, "comp=metadata").with("x-ms-meta-1st", "1")).await.unwrap();
    assert_eq!(fake.invalid().len(), 1);
    assert_eq!(fake.invalid()[0].op, Op::SetMetadata);
}

#[test]
fn a_blobs_name_is_at_most_1024_characters() {
    let ground = Ground::new();
    let longest = "n".repeat(1024);
    assert_eq!(ground.fake.put_blob(&longest, None, &[]).status, 201);
    let answer = ground.fake.put_blob(&(longest + "n"), None, &[]);
    assert_eq!((answer.status, answer.code()), (400, Some("InvalidResourceName")));
}

#[test]
fn names_that_are_normalised_on_the_way_are_refused() {
    let ground = Ground::new();
    let fragile = ["a.", "a/", "a//b", "./a", "a/../b", "a/.", "a%5Cb", "a\\b", "a%252Fb", "a%255cb", "a%00b", "%FF"];
    for name in fragile {
        let answer = ground.fake.put_blob(name, None, &[]);
        assert_eq!((answer.status, answer.code()), (400, Some("InvalidResourceName")), "{name}");
    }
}

#[test]
fn a_name_is_the_same_however_it_was_escaped() {
    let ground = Ground::new();
    ground.fake.put_blob("a%2Fb%20c", None, &[]);
    assert_eq!(ground.fake.head_blob("a/b%20c").status, 200);
    assert!(ground.fake.names().contains(&"a/b c".to_owned()));
}

#[test]
fn an_emulators_address_begins_with_the_account() {
    let ground = Ground::new();
    let mut head = ground.fake.request("HEAD", BLOB, "");
    (head.host, head.path) = ("127.0.0.1:10000".to_owned(), format!("/devstoreaccount1{}", head.path));
    assert_eq!(ground.fake.send(&head).status, 200);
}
