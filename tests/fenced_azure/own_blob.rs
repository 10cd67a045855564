//! A blob of the caller's own.

use leasehold::azure_blob::RaisedBlob;
use leasehold::fence::FenceError;
use leasehold::{Error, ErrorKind, Written};

use crate::ground::{Ground, token};
use crate::support::azure::{Fault, Op};

#[tokio::test(start_paused = true)]
async fn a_late_write_of_a_replaced_holder_is_refused_and_changes_nothing() {
    let ground = Ground::new();
    let blob = ground.blob();
    let mut old = blob.raise(token(7)).await.unwrap();
    old.write("half").await.unwrap();

    let mut new = blob.raise(token(9)).await.unwrap();
    assert_eq!(new.read().await.unwrap(), b"half");
    let before = ground.peek();
    let late = old.write("late").await.unwrap_err();
    let stale = late.stale().expect("stale");
    assert_eq!((stale.token, stale.highest, late.written()), (token(7), token(9), Written::No));
    assert_eq!((ground.peek().etag, ground.content().as_str()), (before.etag, "half"));
    assert!(matches!(old.read().await, Err(FenceError::Stale { .. })), "nor does it see what the new one writes");
    assert!(blob.raise(token(8)).await.is_err_and(|error| error.stale().is_some()));

    new.write("whole").await.unwrap();
    assert_eq!((new.read().await.unwrap().as_slice(), ground.fence()), (&b"whole"[..], 9));
}

/// In whichever request it is paused, on its way to the service or on the way back.
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_paused_in_any_request_never_writes_after_its_successor() {
    let requests = [Op::HeadBlob, Op::SetMetadata, Op::PutBlob];
    for (op, answered) in requests.into_iter().flat_map(|op| [(op, false), (op, true)]) {
        let ground = Ground::new();
        let blob = ground.blob();
        blob.raise(token(5)).await.unwrap().write("state").await.unwrap();
        // The raise makes a HEAD and a Set Blob Metadata, the write a Put Blob.
        let gate = if answered { ground.fake.on(op).pause_after() } else { ground.fake.on(op).pause_before() };
        let old = tokio::spawn({
            let blob = blob.clone();
            async move { blob.raise(token(7)).await?.write("old").await }
        });
        gate.reached().await;
        let mut new = blob.raise(token(8)).await.unwrap();
        let found = new.read().await.unwrap();
        gate.open();
        let written = old.await.unwrap();
        assert_eq!(new.read().await.unwrap(), found, "{op:?}: what the successor has read is what is there");
        new.write("new").await.unwrap();
        assert_eq!((ground.content().as_str(), ground.fence()), ("new", 8));
        // Only a write that was stored before its successor came is one.
        assert_eq!(written.is_ok(), found == b"old", "{op:?}, answered {answered}");
        assert_eq!(found == b"old", op == Op::PutBlob && answered);
        assert!(written.is_ok() || written.is_err_and(|error| error.stale().is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_raise_that_meets_another_writer_looks_again() {
    let ground = Ground::new();
    let blob = ground.blob();
    blob.raise(token(5)).await.unwrap().write("state").await.unwrap();
    let gate = ground.fake.on(Op::SetMetadata).pause_before();
    let late = tokio::spawn({
        let blob = blob.clone();
        async move { blob.raise(token(9)).await }
    });
    gate.reached().await;
    drop(gate);
    blob.raise(token(7)).await.unwrap().write("newer").await.unwrap();
    let mut raised = late.await.unwrap().unwrap();
    assert_eq!((raised.read().await.unwrap().as_slice(), ground.fence()), (&b"newer"[..], 9));
}

#[tokio::test(start_paused = true)]
async fn what_else_the_blob_has_survives_raises_and_writes() {
    let ground = Ground::new();
    let original = ground.fake.put_request("state");
    let mut original = original.with_metadata(&[("a1", "1"), ("a_b", "2"), ("owner", "somebody else")]);
    for (name, value) in [
        ("x-ms-blob-content-type", "application/json"),
        ("x-ms-blob-content-encoding", "identity"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-blob-content-disposition", "attachment"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-access-tier", "Cool"),
    ] {
        original = original.with(name, value);
    }
    original.body = b"{}".to_vec();
    assert_eq!(ground.unsigned(&original).status, 201);
    let shown = || {
        let answer = ground.unsigned(&ground.fake.request("HEAD", "state", ""));
        let names = ["content-type", "content-encoding", "content-language", "content-disposition", "cache-control"];
        let also = ["x-ms-access-tier", "x-ms-meta-a1", "x-ms-meta-a_b", "x-ms-meta-owner"];
        names.into_iter().chain(also).map(|name| answer.header(name).map(str::to_owned)).collect::<Vec<_>>()
    };
    let before = shown();
    assert!(before.iter().all(Option::is_some), "{before:?}");

    let mut raised = ground.blob().raise(token(7)).await.unwrap();
    assert_eq!((raised.read().await.unwrap().as_slice(), shown()), (&b"{}"[..], before.clone()));
    raised.write("{\"a\": 1}").await.unwrap();
    assert_eq!((ground.content().as_str(), shown()), ("{\"a\": 1}", before));
}

#[tokio::test(start_paused = true)]
async fn an_inferred_access_tier_stays_inferred() {
    let ground = Ground::new();
    ground.blob().raise(token(7)).await.unwrap().write("state").await.unwrap();
    ground.blob().raise(token(8)).await.unwrap().write("state").await.unwrap();
    let sent = ground.fake.requests();
    assert!(sent.iter().all(|seen| seen.request.header("x-ms-access-tier").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_is_not_there_is_made_by_one_of_two_raises_and_kept_by_the_other() {
    let ground = Ground::new();
    let blob = ground.blob();
    let gate = ground.fake.on(Op::PutBlob).pause_before();
    let slow = tokio::spawn({
        let blob = blob.clone();
        async move { blob.raise(token(9)).await }
    });
    gate.reached().await;
    drop(gate);
    blob.raise(token(7)).await.unwrap().write("state").await.unwrap();
    let mut raised = slow.await.unwrap().unwrap();
    assert_eq!((raised.read().await.unwrap().as_slice(), ground.fence()), (&b"state"[..], 9));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_known_after_one_look() {
    let ground = Ground::new();
    let mut raised = ground.blob().raise(token(7)).await.unwrap();
    ground.fake.forget_requests();
    ground.fake.on(Op::PutBlob).fault(Fault::LoseAnswer);
    raised.write("one").await.unwrap();
    let asked: Vec<_> = ground.fake.requests().iter().map(|seen| seen.op).collect();
    assert_eq!((asked, ground.content().as_str()), (vec![Op::PutBlob, Op::HeadBlob], "one"));

    // The service itself does not know: it answers 500, and has written.
    ground.fake.on(Op::PutBlob).fault(Fault::ApplyThen(500));
    raised.write("two").await.unwrap();
    raised.write("three").await.unwrap();
    assert_eq!(ground.content(), "three");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_still_arrive_is_in_doubt_and_a_raise_ends_the_doubt() {
    let ground = Ground::new();
    let blob = ground.blob();
    let mut raised = blob.raise(token(7)).await.unwrap();
    ground.fake.on(Op::PutBlob).fault(Fault::ApplyLate(std::time::Duration::from_secs(5)));
    let error = raised.write("late").await.unwrap_err();
    let FenceError::InDoubt { error, write, .. } = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Unavailable);

    let mut again = blob.raise(token(7)).await.unwrap();
    assert_ne!(again.found_is_of(), Some(&write));
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    tokio::task::yield_now().await;
    assert_eq!(again.read().await.unwrap(), b"", "the late copy was refused");
}

#[tokio::test(start_paused = true)]
async fn a_raise_is_two_requests_and_a_write_is_one() {
    let ground = Ground::new();
    let mut raised: RaisedBlob = ground.blob().raise(token(7)).await.unwrap();
    raised.write("one").await.unwrap();
    raised.write("two").await.unwrap();
    ground.blob().raise(token(8)).await.unwrap();
    let asked: Vec<_> = ground.fake.requests().iter().map(|seen| seen.op).collect();
    let made_and_written = [Op::HeadBlob, Op::PutBlob, Op::PutBlob, Op::PutBlob];
    assert_eq!(asked, [&made_and_written[..], &[Op::HeadBlob, Op::SetMetadata]].concat());
}

#[tokio::test(start_paused = true)]
async fn the_fence_may_be_in_a_pair_of_another_name() {
    let ground = Ground::new();
    let url = format!("{}/state", ground.fake.container_url());
    let named = |field: &str| -> Result<_, Error> {
        leasehold::azure_blob::FencedBlob::builder(url.clone(), crate::ground::credential())
            .http_client(ground.fake.http_client())
            .fence_in(field)
            .build()
    };
    named("Epoch_1").unwrap().raise(token(7)).await.unwrap();
    assert!(ground.peek().metadata["epoch_1"].starts_with("7."), "{:?}", ground.peek().metadata);
    named("epoch_1").unwrap().raise(token(8)).await.unwrap();
    assert!(named("EPOCH_1").unwrap().raise(token(7)).await.is_err_and(|error| error.stale().is_some()));
    for bad in ["", "1st", "with-hyphen", "ümlaut", "a b"] {
        assert_eq!(named(bad).map(drop).unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
    }
}
