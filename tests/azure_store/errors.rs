//! What failed calls say (faults G1, G5): whether anything was written, and what to do. One request each, no retry.

use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{Applied, ErrorKind, Renewed, StoreError, StoreErrorKind, Vacated};
use tokio::time::Instant;

use crate::ground::{
    Ground, TestStore, a, ask, b, burn, claim, closing, error, name, release, renew, renew_with, resume, revoke,
};
use crate::support::azure::{Fake, Fault, Op};

/// A call that meets the fault at its first request.
async fn failed(ground: &Ground, op: Op, fault: Fault) -> StoreError {
    let happened = ground.fake.on(op).fault(fault);
    ground.fake.forget_requests();
    let store = &ground.store;
    let failed = match op {
        Op::HeadBlob => error(store.read(&name("job")).await),
        Op::Acquire => error(store.claim(&claim(7, b())).await),
        Op::SetMetadata => error(store.vacate(&closing(5, a())).await),
        Op::Renew => error(store.try_renew(&renew(5, a())).await),
        Op::Change => error(store.claim(&resume(7, b(), a())).await),
        Op::Release => error(store.vacate(&release(5, a())).await),
        Op::Break => error(store.revoke(&revoke(5)).await),
        Op::ListBlobs => error(store.list("", None).await),
        other => panic!("{other:?} is tested by opening"),
    };
    assert_eq!(happened.times(), 1);
    assert_eq!(ground.fake.count(op), 1, "sent once: {op:?} {fault:?}");
    failed
}

const WRITES: [Op; 6] = [Op::Acquire, Op::SetMetadata, Op::Renew, Op::Change, Op::Release, Op::Break];

/// A lease that is held; for an acquire one that is free.
async fn ground_for(op: Op) -> Ground {
    let ground = Ground::with_a_free_lease().await;
    if op != Op::Acquire {
        ground.store.granted(&claim(5, a())).await;
    }
    ground
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_service_may_have_applied_is_unknown_and_sent_once() {
    use StoreErrorKind::{Throttled, TimedOut, Unavailable};
    for op in WRITES {
        for (fault, kind) in [
            (Fault::LoseAnswer, Unavailable),
            (Fault::LoseRequest, Unavailable),
            (Fault::ApplyThen(500), Unavailable),
            (Fault::Answer(500, "OperationTimedOut"), Unavailable),
            (Fault::ApplyThen(503), Throttled),
            (Fault::Answer(503, "ServerBusy"), Throttled),
            (Fault::Answer(429, "TooManyRequests"), Throttled),
            (Fault::Answer(408, ""), Unavailable),
            (Fault::AnswerForeign, Unavailable),
            (Fault::AnswerForeignStatus(200), Unavailable),
            (Fault::AnswerForeignStatus(403), Unavailable),
            (Fault::AnswerForeignStatus(404), Unavailable),
            (Fault::AnswerForeignStatus(409), Unavailable),
            (Fault::AnswerForeignStatus(412), Unavailable),
            (Fault::Hang, TimedOut),
            (Fault::ApplyThenHang, TimedOut),
        ] {
            let ground = ground_for(op).await;
            let failed = failed(&ground, op, fault).await;
            assert_eq!((failed.kind, failed.applied), (kind, Applied::Unknown), "{op:?} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_never_left_or_that_the_service_rejected_is_not_applied() {
    use StoreErrorKind::{Denied, Invalid, Misconfigured, Unavailable};
    for op in WRITES {
        for (fault, kind) in [
            (Fault::RefuseConnection, Unavailable),
            (Fault::Answer(403, "AuthorizationPermissionMismatch"), Denied),
            (Fault::Answer(403, "AuthenticationFailed"), Denied),
            (Fault::Answer(401, "NoAuthenticationInformation"), Denied),
            (Fault::Answer(409, "BlobImmutableDueToPolicy"), Invalid),
            (Fault::Answer(405, "UnsupportedHttpVerb"), Invalid),
            (Fault::Answer(413, "RequestBodyTooLarge"), Invalid),
            (Fault::Answer(409, "ContainerBeingDeleted"), Misconfigured),
        ] {
            let ground = ground_for(op).await;
            let before = ground.job();
            let failed = failed(&ground, op, fault).await;
            // A hand-over's later requests follow one that was applied; its first does not.
            assert_eq!((failed.kind, failed.applied), (kind, Applied::No), "{op:?} {fault:?}");
            assert_eq!(ground.job().etag, before.etag);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_follows_one_that_was_applied_is_never_told_to_have_written_nothing() {
    let refused = Fault::RefuseConnection;
    let ground = Ground::with_a_free_lease().await;
    ground.fake.on(Op::SetMetadata).fault(refused);
    assert_eq!(error(ground.store.claim(&claim(5, a())).await).applied, Applied::Unknown, "the lease was had");
    for op in [Op::Renew, Op::SetMetadata] {
        let ground = Ground::with_a_free_lease().await;
        ground.another().granted(&claim(5, a())).await;
        ground.fake.on(op).fault(refused);
        assert_eq!(error(ground.store.claim(&resume(6, b(), a())).await).applied, Applied::Unknown, "{op:?}");
    }
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.fake.on(Op::Release).fault(refused);
    assert_eq!(error(ground.store.vacate(&closing(5, a())).await).applied, Applied::Unknown, "it is recorded");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_ends_by_itself() {
    for op in WRITES.into_iter().chain([Op::HeadBlob, Op::ListBlobs]) {
        let ground = ground_for(op).await;
        let begun = Instant::now();
        let failed = failed(&ground, op, Fault::Hang).await;
        assert_eq!(failed.kind, StoreErrorKind::TimedOut, "{op:?}");
        assert_eq!(begun.elapsed().as_secs(), 10, "{op:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn access_denied_names_the_request_the_data_action_and_the_permission_of_a_signature() {
    let denied = Fault::Answer(403, "AuthorizationPermissionMismatch");
    for (op, request, action, letter) in [
        (Op::HeadBlob, "Get Blob Properties", "containers/blobs/read", "read"),
        (Op::Acquire, "Lease Blob (acquire)", "containers/blobs/write", "write"),
        (Op::SetMetadata, "Set Blob Metadata", "containers/blobs/write", "write"),
        (Op::Break, "Lease Blob (break)", "containers/blobs/write", "write"),
        (Op::ListBlobs, "List Blobs", "containers/blobs/read", "list"),
    ] {
        let ground = ground_for(op).await;
        let text = failed(&ground, op, denied).await.to_string();
        for word in [request, action, letter, "https://leaseholdfake.blob.core.windows.net/leases"] {
            assert!(text.contains(word), "{word} is not in: {text}");
        }
    }
    let ground = Ground::new();
    ground.fake.on(Op::PutBlob).fault(denied);
    let failed = error(ground.store.claim(&claim(5, a())).await);
    assert_eq!(failed.applied, Applied::No);
    assert!(failed.to_string().contains("Put Blob") && failed.to_string().contains("add/action"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_container_is_named_by_every_verb_that_needs_it_after_one_request() {
    let ground = Ground::with_a_free_lease().await;
    ground.fake.delete_container();
    ground.forget();
    let store = &ground.store;
    let assert_named = |failed: StoreError| {
        assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Misconfigured, Applied::No));
        let text = failed.to_string();
        assert!(text.contains("no container at https://leaseholdfake.blob.core.windows.net/leases"), "{text}");
        assert_eq!(ground.asked().len(), 1, "{text}");
    };
    assert_named(error(store.claim(&claim(5, a())).await));
    assert_named(error(store.claim(&resume(5, a(), b())).await));
    assert_named(error(store.vacate(&burn(5, a())).await));
    assert_named(error(store.revoke(&revoke(5)).await));
    assert_named(error(store.ask(&ask(5)).await));
    assert_named(error(store.read(&name("job")).await));
    assert_named(error(store.list("", None).await));
    for answer in [store.renewed(&renew(5, a())).await, store.renewed(&renew_with(5, a(), "x")).await] {
        assert!(matches!(answer, Renewed::Refused(view) if view.record.is_none()), "gone with its blobs");
    }
    for vacate in [release(5, a()), closing(5, a())] {
        ground.forget();
        match store.vacate(&vacate).await {
            Ok(answer) => assert!(matches!(answer.value, Vacated::Refused(view) if view.record.is_none())),
            Err(failed) => assert_eq!(failed.kind, StoreErrorKind::Misconfigured, "{vacate:?}"),
        }
    }
    assert_eq!(ground.fake.names(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn opening_says_what_is_wrong_with_the_container_and_what_to_do() {
    let fake = Fake::without_container(TestClock::new());
    let builder = || {
        AzureBlobStore::builder(fake.container_url(), Credential::shared_key("acct", "a2V5"))
            .http_client(fake.http_client())
    };
    let missing = builder().open().await.expect_err("missing");
    assert_eq!(missing.kind(), ErrorKind::Misconfigured);
    assert!(missing.to_string().contains("create it, or check the URL and the account"), "{missing}");
    fake.on(Op::GetContainer).fault(Fault::Answer(403, "AuthorizationPermissionMismatch"));
    let denied = builder().open().await.expect_err("denied");
    assert_eq!(denied.kind(), ErrorKind::Denied);
    assert!(denied.to_string().contains("unverified()") && denied.to_string().contains("containers/read"), "{denied}");
    fake.on(Op::GetContainer).fault(Fault::Answer(403, "AuthenticationFailed"));
    let wrong = builder().open().await.expect_err("wrong key");
    assert_eq!(wrong.kind(), ErrorKind::Denied);
    assert!(wrong.to_string().contains("the credential is not valid"), "{wrong}");
    assert!(!wrong.to_string().contains("unverified()"), "it would not help: {wrong}");
    fake.on(Op::GetContainer).fault(Fault::Answer(403, "AuthorizationResourceTypeMismatch"));
    let narrow = builder().open().await.expect_err("a signature for containers only").to_string();
    assert!(narrow.contains("resource types") && !narrow.contains("clock"), "{narrow}");
    fake.on(Op::GetContainer).fault(Fault::Hang);
    assert_eq!(builder().open().await.expect_err("hangs").kind(), ErrorKind::Unavailable);
    fake.on(Op::CreateContainer).fault(Fault::Answer(403, "AuthorizationFailure"));
    let denied = builder().create_container().open().await.expect_err("denied");
    assert!(denied.to_string().contains("Create Container"), "{denied}");
    assert_eq!(fake.requests().len(), 7, "each was sent once");
    fake.delete_container();
    let deleted = builder().create_container().open().await.expect_err("being deleted");
    assert_eq!(deleted.kind(), ErrorKind::Misconfigured, "{deleted}");
}

#[test]
fn a_url_or_a_credential_that_cannot_be_used_is_refused_before_anything_is_sent() {
    let key = || Credential::shared_key("acct", "a2V5");
    let of_a_token = || Credential::token(std::sync::Arc::new(crate::credentials::NoToken));
    for (url, credential, words) in [
        ("leases", key(), "is not a URL"),
        ("", key(), "is not a URL"),
        ("mailto:somebody@example.org", key(), "is not an http or https URL"),
        ("ftp://acct.blob.core.windows.net/leases", key(), "is not an http or https URL"),
        ("https://acct.blob.core.windows.net", key(), "names no container"),
        ("https://acct.blob.core.windows.net/", key(), "names no container"),
        ("https://acct.blob.core.windows.net/leases/", key(), "names no container"),
        ("https://acct.blob.core.windows.net/leases/jobs", key(), "names more than a container"),
        ("https://u:p@acct.blob.core.windows.net/leases", key(), "a user"),
        ("http://acct.blob.core.windows.net/leases", of_a_token(), "over https only"),
        ("https://acct.blob.core.windows.net/leases", Credential::in_url(), "no shared access signature in it"),
        ("https://acct.blob.core.windows.net/leases?sv=1", Credential::in_url(), "no shared access signature in it"),
        ("https://acct.blob.core.windows.net/leases", Credential::sas("sv=1"), "`sig=`"),
        ("https://acct.blob.core.windows.net/leases", Credential::shared_key("acct", "no base64!"), "not base64"),
        ("https://acct.blob.core.windows.net/leases&sig=u:p", key(), "follow a `?`"),
        ("https://acct.blob.core.windows.net/leases%3Fsig%3Du:p", key(), "follow a `?`"),
    ] {
        let error = AzureBlobStore::builder(url, credential).unverified().expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{url}");
        assert!(error.to_string().contains(words), "{url}: {error}");
        assert!(!error.to_string().contains("u:p"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_service_would_refuse_or_round_is_never_sent() {
    let ground = Ground::new();
    let term = |ttl_ms| leasehold::Claim { ttl_ms, ..claim(5, a()) };
    for claim in [claim(0, a()), claim(1 << 53, a()), term(0), term(14_000), term(15_500), term(61_000)] {
        let failed = error(ground.store.claim(&claim).await);
        assert_eq!((failed.kind, failed.applied), (StoreErrorKind::Invalid, Applied::No));
    }
    for burn in [burn(0, a()), burn(1 << 53, a())] {
        assert_eq!(error(ground.store.vacate(&burn).await).kind, StoreErrorKind::Invalid);
    }
    assert_eq!(ground.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_can_read_is_no_answer() {
    let ground = Ground::with_a_free_lease().await;
    // A success that says neither a tag nor a state, and pages of a proxy that welcomes everybody.
    for (op, fault) in [
        (Op::HeadBlob, Fault::Answer(200, "")),
        (Op::HeadBlob, Fault::AnswerForeignStatus(200)),
        (Op::ListBlobs, Fault::AnswerForeignStatus(200)),
    ] {
        assert_eq!(failed(&ground, op, fault).await.kind, StoreErrorKind::Unavailable, "{op:?} {fault:?}");
    }
    ground.fake.on(Op::SetMetadata).fault(Fault::Answer(200, ""));
    assert_eq!(error(ground.store.claim(&claim(5, a())).await).applied, Applied::Unknown);
    // An acquire that does not say whose the lease is says nothing.
    let store = TestStore::on(&ground.fake);
    store.vacated(&burn(5, a())).await;
    ground.fake.on(Op::Acquire).fault(Fault::Answer(201, ""));
    assert_eq!(error(store.claim(&claim(6, b())).await).applied, Applied::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_answered_with_anothers_lease_is_refused() {
    let view = crate::lenient::renewal_of_anothers_lease().await.expect("refused");
    assert_eq!((view.token(), view.grant()), (6, Some(b())));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_service_counts_and_that_of_a_proxy_does_not() {
    let ground = Ground::with_a_free_lease().await;
    let told = ground.store.read(&name("job")).await.expect("answered").date_ms.expect("the service's");
    assert_eq!(told, 1_790_000_000_000, "where the clock of every test begins");
    ground.fake.on(Op::HeadBlob).fault(Fault::AnswerForeign);
    assert_eq!(error(ground.store.read(&name("job")).await).date_ms, None);
    ground.fake.on(Op::HeadBlob).fault(Fault::Answer(503, "ServerBusy"));
    assert_eq!(error(ground.store.read(&name("job")).await).date_ms, Some(told), "a refusal has the time too");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let claimed = ground.store.claim(&claim(5, a())).await.expect("answered");
    assert_eq!(claimed.date_ms, Some(told + 3_000));
}
