//! The lease's own blob, whose content the service itself guards.

use std::time::Duration;

use leasehold::azure_blob::AzureBlobStore;
use leasehold::{Ended, Error, ErrorKind, Lease, Written};

use crate::ground::{BLOB, Ground, TERM};
use crate::support::azure::{Fault, Op, State};

async fn write(store: &AzureBlobStore, lease: &Lease, content: &str) -> Result<(), Error> {
    store.write_content(&lease.held().proof(), content).await
}

async fn read(store: &AzureBlobStore, lease: &Lease) -> Result<String, Error> {
    let content = store.read_content(&lease.held().proof()).await?;
    Ok(String::from_utf8(content).unwrap())
}

fn is_not_held(answer: Result<(), Error>) -> bool {
    answer.is_err_and(|error| {
        error.kind() == ErrorKind::Refused && error.written() == Written::No && error.to_string().contains("must stop")
    })
}

#[tokio::test(start_paused = true)]
async fn a_holder_writes_and_reads_and_its_successor_finds_what_it_has_left() {
    let ground = Ground::new();
    let store = ground.store().await;
    let first = ground.lease(&store, 1).await;
    assert_eq!(read(&store, &first).await.unwrap(), "");
    write(&store, &first, "one").await.unwrap();
    write(&store, &first, "two").await.unwrap();
    assert_eq!(read(&store, &first).await.unwrap(), "two");
    first.renew().await.unwrap();
    assert!(matches!(first.release().await.unwrap(), Ended::Released));

    let elsewhere = ground.store().await;
    let second = ground.lease(&elsewhere, 2).await;
    assert_eq!(read(&elsewhere, &second).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_write_leaves_the_lease_its_record_and_everything_else_as_they_were() {
    let ground = Ground::new();
    let store = ground.store().await;
    let leases = ground.leases(&store, 1);
    let lease = leases.request(BLOB).data("payload").acquire().await.unwrap();
    ground.fake.edit_metadata(BLOB, |pairs| drop(pairs.insert("owner".into(), "somebody else".into())));
    let before = ground.peek();
    assert!(before.metadata.contains_key("lh_data"), "{:?}", before.metadata);
    write(&store, &lease, "content").await.unwrap();
    let after = ground.peek();
    assert_eq!((after.metadata, after.state, after.lease_id), (before.metadata, before.state, before.lease_id));
    assert_ne!(after.etag, before.etag);

    lease.renew().await.unwrap();
    let seen = leases.inspect(BLOB).await.unwrap();
    assert_eq!(seen.token, Some(lease.token()));
}

#[tokio::test(start_paused = true)]
async fn payloads_and_contents_of_one_holder_go_on_beside_each_other() {
    let ground = Ground::new();
    let (store, another) = (ground.store().await, ground.store().await);
    let lease = ground.lease(&store, 1).await;
    for round in ["1", "2", "3"] {
        // By another store object, so each of the two finds that the other has moved the tag.
        write(&another, &lease, round).await.unwrap();
        lease.held().set_data(round).await.unwrap();
    }
    let data = ground.peek().metadata["lh_data"].clone();
    assert_eq!((ground.content().as_str(), data.as_str()), ("3", "_Mw"));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_one_request_while_the_store_knows_the_newest_tag() {
    let ground = Ground::new();
    let store = ground.store().await;
    let lease = ground.lease(&store, 1).await;
    ground.fake.forget_requests();
    write(&store, &lease, "one").await.unwrap();
    write(&store, &lease, "two").await.unwrap();
    lease.held().set_data("data").await.unwrap();
    let asked: Vec<_> = ground.fake.requests().iter().map(|seen| seen.op).collect();
    assert_eq!(asked, [Op::PutBlob, Op::PutBlob, Op::Renew, Op::SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn the_service_refuses_a_write_after_the_term_though_nobody_has_taken_over() {
    let ground = Ground::new();
    let store = ground.store().await;
    let lease = ground.lease(&store, 1).await;
    write(&store, &lease, "in time").await.unwrap();
    tokio::time::advance(TERM + Duration::from_secs(1)).await;
    assert!(matches!(ground.peek().state, State::Expired(_)));
    assert!(is_not_held(write(&store, &lease, "late").await));
    assert!(is_not_held(read(&store, &lease).await.map(drop)));
    assert_eq!(ground.content(), "in time");
}

#[tokio::test(start_paused = true)]
async fn the_service_refuses_a_write_after_a_release_a_handover_a_takeover_and_a_break() {
    for ends in ["release", "hand-over", "takeover", "break"] {
        let ground = Ground::new();
        let store = ground.store().await;
        let lease = ground.lease(&store, 1).await;
        let (proof, token) = (lease.held().proof(), lease.token());
        store.write_content(&proof, "in time").await.unwrap();
        let elsewhere = ground.store().await;
        let rival = ground.leases(&elsewhere, 2);
        let _heir = match ends {
            "release" => {
                lease.release().await.unwrap();
                None
            }
            "hand-over" => Some(rival.resume(lease.into_handover().await.unwrap()).await.unwrap()),
            "takeover" => {
                tokio::time::advance(TERM * 2).await;
                Some(rival.acquire(BLOB).await.unwrap())
            }
            _ => {
                rival.force(BLOB, token).await.unwrap();
                None
            }
        };
        assert!(is_not_held(store.write_content(&proof, "late").await), "after a {ends}");
        assert!(store.read_content(&proof).await.is_err(), "after a {ends}");
        assert_eq!(ground.content(), "in time", "after a {ends}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_on_its_way_when_the_lease_changes_hands_is_refused() {
    for lease_first in [false, true] {
        let ground = Ground::new();
        ground.fake.set(|knobs| knobs.lease_before_conditions = lease_first);
        let store = ground.store().await;
        let lease = ground.lease(&store, 1).await;
        write(&store, &lease, "in time").await.unwrap();
        let gate = ground.fake.on(Op::PutBlob).pause_before();
        let (proof, on_its_way) = (lease.held().proof(), store.clone());
        let late = tokio::spawn(async move { on_its_way.write_content(&proof, "late").await });
        gate.reached().await;
        tokio::time::advance(TERM * 2).await;
        let elsewhere = ground.store().await;
        let heir = ground.lease(&elsewhere, 2).await;
        let found = read(&elsewhere, &heir).await.unwrap();
        gate.open();
        assert!(is_not_held(late.await.unwrap()));
        assert_eq!((found.as_str(), ground.content().as_str()), ("in time", "in time"));
        write(&elsewhere, &heir, "the heir's").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_write_that_is_ok_no_earlier_one_can_be_stored_over_it() {
    let ground = Ground::new();
    let store = ground.store().await;
    let lease = ground.lease(&store, 1).await;
    ground.fake.on(Op::PutBlob).fault(Fault::ApplyLate(Duration::from_secs(3)));
    let lost = write(&store, &lease, "one").await.unwrap_err();
    assert_eq!((lost.kind(), lost.written()), (ErrorKind::Unavailable, Written::Unknown));
    write(&store, &lease, "two").await.unwrap();
    tokio::time::advance(Duration::from_secs(4)).await;
    tokio::task::yield_now().await;
    assert_eq!(read(&store, &lease).await.unwrap(), "two");

    ground.fake.on(Op::PutBlob).fault(Fault::LoseAnswer);
    assert_eq!(write(&store, &lease, "three").await.unwrap_err().written(), Written::Unknown);
    write(&store, &lease, "three").await.unwrap();
    assert_eq!(ground.content(), "three");
}

#[tokio::test(start_paused = true)]
async fn throttled_and_denied_are_told_apart_from_a_lease_that_is_not_held() {
    let ground = Ground::new();
    let store = ground.store().await;
    let lease = ground.lease(&store, 1).await;
    for (code, kind, written) in [
        (Fault::Answer(503, "ServerBusy"), ErrorKind::Unavailable, Written::Unknown),
        (Fault::Answer(403, "AuthorizationPermissionMismatch"), ErrorKind::Denied, Written::No),
    ] {
        ground.fake.on(Op::PutBlob).fault(code);
        let error = write(&store, &lease, "one").await.unwrap_err();
        assert_eq!((error.kind(), error.written()), (kind, written), "{error}");
    }
    assert!(lease.held().is_held());
    write(&store, &lease, "one").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_proof_of_a_lease_in_another_container_is_invalid_and_nothing_is_sent() {
    let ground = Ground::new();
    let store = ground.store().await;
    let lease = ground.lease(&store, 1).await;
    let other = leasehold::azure_blob::AzureBlobStore::builder(
        format!("{}/other", ground.fake.endpoint()),
        crate::ground::credential(),
    );
    let other = other.http_client(ground.fake.http_client()).create_container().open().await.unwrap();
    ground.fake.forget_requests();
    let proof = lease.held().proof();
    assert_eq!(other.write_content(&proof, "x").await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(other.read_content(&proof).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(ground.fake.total(), 0);
}
