//! What is stored: payloads, labels, other people's blobs and pairs (faults G3, G4, G6, G7).

use leasehold::{ErrorKind, Status};
use tokio::time::sleep;

use crate::ground::{Ground, TTL};

// G7
#[tokio::test(start_paused = true)]
async fn labels_and_payloads_with_anything_in_them_are_kept_exactly() {
    let ground = Ground::with_a_free_lease().await;
    let label = "line\nbreak, ü, \u{0}, \"quotes\", a: colon; =?utf-8?";
    let a = ground.machine(label, 1);
    let payload: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let lease = a.leases.request("job").data(payload.clone()).acquire().await.unwrap();
    let b = ground.machine("b", 2);
    let found = b.leases.inspect("job").await.unwrap();
    assert_eq!(found.holder.as_ref().map(|holder| holder.as_str()), Some(label));
    assert_eq!(found.data.expect("stored").as_bytes(), payload);
    for data in [&b""[..], &[0], "\r\nx-ms-meta-lh_token: 9".as_bytes()] {
        lease.held().set_data(data).await.unwrap();
        assert_eq!(b.leases.inspect("job").await.unwrap().data.expect("stored").as_bytes(), data);
    }
    let error = lease.held().set_data(vec![0; 5 * 1024]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    lease.release().await.unwrap();
    let _lease = b.acquire().await;
    assert_eq!(b.leases.inspect("job").await.unwrap().data, None, "it does not outlive its grant");
}

// G3
#[tokio::test(start_paused = true)]
async fn a_blob_that_is_no_lease_is_an_error_of_an_acquire_and_is_left_alone() {
    for pairs in
        [&[("colour", "red")][..], &[("lh_format", "2"), ("lh_token", "1")], &[("lh_format", "1"), ("lh_token", "x")]]
    {
        let ground = Ground::new();
        ground.fake.put_foreign("job", pairs);
        let before = ground.job();
        let a = ground.machine("a", 1);
        for _ in 0..2 {
            let error = a.leases.acquire("job").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreadable, "{error}");
            assert!(error.to_string().contains("left alone"), "{error}");
        }
        assert_eq!(a.leases.try_acquire("job").await.unwrap_err().kind(), ErrorKind::Unreadable);
        assert!(matches!(a.leases.inspect("job").await.unwrap().status, Status::Unreadable(_)));
        let mut listing = a.leases.list("");
        assert_eq!(listing.next().await.unwrap().map(|found| found.name), None);
        assert_eq!(listing.skipped(), 1);
        a.leases.flush().await;
        let after = ground.job();
        assert_eq!((after.etag, after.state), (before.etag, before.state));
    }
}

// G3
#[tokio::test(start_paused = true)]
async fn a_record_that_is_broken_while_it_is_held_costs_no_lease_and_is_not_mended() {
    let ground = Ground::with_a_free_lease().await;
    let a = ground.machine("a", 1);
    let lease = a.acquire().await;
    ground.fake.edit_metadata("job", |pairs| _ = pairs.insert("lh_token".into(), "x".into()));
    sleep(3 * TTL).await;
    assert!(lease.held().is_held());
    lease.release().await.unwrap();
    assert_eq!(ground.pair("lh_token").as_deref(), Some("x"));
    assert_eq!(a.leases.try_acquire("job").await.unwrap_err().kind(), ErrorKind::Unreadable);
}

// G4
#[tokio::test(start_paused = true)]
async fn the_callers_own_pairs_survive_the_whole_life_of_a_lease() {
    let ground = Ground::new();
    ground.fake.put_foreign("job", &[("lh_format", "1"), ("lh_token", "3"), ("a1", "x"), ("a_b", "y z")]);
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    lease.held().set_data(b"payload").await.unwrap();
    let lease = b.leases.resume(lease.into_handover().await.unwrap()).await.unwrap();
    b.leases.force("job", lease.token()).await.unwrap();
    drop(lease);
    a.acquire().await.release().await.unwrap();
    assert_eq!((ground.pair("a1").as_deref(), ground.pair("a_b").as_deref()), (Some("x"), Some("y z")));
}

// G6
#[tokio::test(start_paused = true)]
async fn odd_names_are_different_leases_and_are_listed_by_their_prefix() {
    let ground = Ground::new();
    let a = ground.machine_with("a", 1, |builder| builder.prefix("team/"));
    let long = "é".repeat(125);
    let names = ["a", "A", "a.", "..", "a//b", "a/", "%2f", "é", "e\u{301}", " ", "=41", &long];
    let mut leases = Vec::new();
    for name in names {
        leases.push(a.leases.acquire(name).await.expect(name));
    }
    let mut listed: Vec<_> =
        a.leases.list("").all().await.unwrap().into_iter().map(|found| found.name.as_str().to_owned()).collect();
    let mut expected: Vec<_> = names.iter().map(|name| format!("team/{name}")).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    assert_eq!(a.leases.list("a").all().await.unwrap().len(), 4);
    for name in ["", "a\nb", &"x".repeat(257)] {
        assert_eq!(a.leases.acquire(name).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
