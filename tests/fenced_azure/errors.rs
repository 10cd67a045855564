//! What is not the fence's refusal is told apart from it, and no secret is told at all.

use leasehold::azure_blob::{Credential, FencedBlob};
use leasehold::fence::FenceError;
use leasehold::{Error, ErrorKind, Written};

use crate::ground::{BLOB, Ground, token};
use crate::support::azure::{Fault, Op};

/// The store's own error, and whether it leaves the write in doubt.
fn of_the_store(error: FenceError<Error>) -> (ErrorKind, Written, String) {
    assert!(error.stale().is_none(), "{error}");
    let (written, text) = (error.written(), error.to_string());
    match error {
        FenceError::Store(error) | FenceError::InDoubt { error, .. } => (error.kind(), written, text),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_and_denied_are_no_refusals_by_the_fence() {
    let ground = Ground::new();
    let mut raised = ground.blob().raise(token(7)).await.unwrap();
    ground.fake.on(Op::PutBlob).fault(Fault::Answer(503, "ServerBusy"));
    let (kind, written, text) = of_the_store(raised.write("one").await.unwrap_err());
    assert_eq!((kind, written), (ErrorKind::Unavailable, Written::Unknown));
    assert!(text.contains("throttled"), "{text}");

    ground.fake.on(Op::PutBlob).fault(Fault::Answer(403, "AuthorizationPermissionMismatch"));
    let (kind, written, text) = of_the_store(raised.write("one").await.unwrap_err());
    assert_eq!((kind, written), (ErrorKind::Denied, Written::No));
    assert!(text.contains("blobs/write"), "{text}");

    ground.fake.on(Op::PutBlob).fault(Fault::RefuseConnection);
    let (kind, written, _) = of_the_store(raised.write("one").await.unwrap_err());
    assert_eq!((kind, written), (ErrorKind::Unavailable, Written::No));

    raised.write("one").await.unwrap();
    assert_eq!(ground.content(), "one");
}

#[tokio::test(start_paused = true)]
async fn a_raise_tells_the_stores_own_errors() {
    let ground = Ground::new();
    for (fault, expected) in [
        (Fault::Answer(503, "ServerBusy"), ErrorKind::Unavailable),
        (Fault::Answer(403, "AuthorizationPermissionMismatch"), ErrorKind::Denied),
        (Fault::AnswerForeign, ErrorKind::Unavailable),
        (Fault::Hang, ErrorKind::Unavailable),
    ] {
        ground.fake.on(Op::HeadBlob).fault(fault);
        let (kind, written, _) = of_the_store(ground.blob().raise(token(7)).await.map(drop).unwrap_err());
        assert_eq!((kind, written), (expected, Written::No), "{fault:?}");
    }
    let nowhere = ground.blob_in(&format!("{}/no-such-container", ground.fake.endpoint()));
    let (kind, _, text) = of_the_store(nowhere.raise(token(7)).await.map(drop).unwrap_err());
    assert_eq!(kind, ErrorKind::Misconfigured);
    assert!(text.contains("no such container"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_somebody_has_leased_is_refused_by_that_and_not_by_the_fence() {
    let ground = Ground::new();
    let mut raised = ground.blob().raise(token(7)).await.unwrap();
    let lease = ground.fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "60");
    assert_eq!(ground.unsigned(&lease).status, 201);
    let (kind, written, text) = of_the_store(raised.write("one").await.unwrap_err());
    assert_eq!((kind, written), (ErrorKind::Refused, Written::No));
    assert!(text.contains("leased"), "{text}");
    let (kind, ..) = of_the_store(ground.blob().raise(token(8)).await.map(drop).unwrap_err());
    assert_eq!(kind, ErrorKind::Refused);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_fence_is_not_written_over() {
    let ground = Ground::new();
    let by_hand = ground.fake.put_request(BLOB).with_metadata(&[("lh_fence", "seven")]);
    assert_eq!(ground.unsigned(&by_hand).status, 201);
    let error = ground.blob().raise(token(7)).await.map(drop).unwrap_err();
    assert!(matches!(&error, FenceError::NotAFence { found, .. } if found == "seven"), "{error}");
}

#[test]
fn urls_that_name_no_blob_or_another_than_they_seem_to_are_refused() {
    let shared_key = || Credential::shared_key("acct", "a2V5");
    for url in ["", "no url", "https://acct.blob.core.windows.net", "https://acct.blob.core.windows.net/box", "data:x"]
    {
        assert_eq!(FencedBlob::at(url, shared_key()).map(drop).unwrap_err().kind(), ErrorKind::Misconfigured, "{url}");
    }
    let pasted =
        FencedBlob::at("https://acct.blob.core.windows.net/box/b&sig=PLANTED", shared_key()).map(drop).unwrap_err();
    assert!(pasted.to_string().contains("follow a `?`") && !pasted.to_string().contains("PLANTED"), "{pasted}");
    for mangled in [
        "order-17#late",
        "order-17?late",
        "order-17#",
        "orders/../order-17",
        "orders/%2E%2e/17",
        "orders\\17",
        "order-17 ",
        "order-\t17",
    ] {
        let url = format!("https://acct.blob.core.windows.net/box/{mangled}");
        let error = FencedBlob::at(&url, shared_key()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{mangled} would be another blob");
    }
    let blob = "https://acct.blob.core.windows.net/box/";
    assert!(FencedBlob::at(blob, shared_key()).is_err());
    assert!(FencedBlob::at(format!("{blob}a/b.json"), shared_key()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_text_shows_the_signature_of_the_url() {
    let ground = Ground::new();
    let url = format!("{}/{BLOB}?sv=2021-12-02&sig=PLANTED", ground.fake.container_url());
    let builder = || FencedBlob::builder(url.clone(), Credential::in_url()).http_client(ground.fake.http_client());
    let blob = builder().build().unwrap();
    let error = blob.raise(token(7)).await.map(drop).unwrap_err();
    let of_sas = FencedBlob::at(url.replace("sig=", "x="), Credential::sas("no PLANTED")).map(drop).unwrap_err();
    for text in [format!("{blob:?} {:?}", builder()), format!("{error} {error:?}"), format!("{of_sas} {of_sas:?}")] {
        assert!(!text.contains("PLANTED"), "{text}");
    }
}
