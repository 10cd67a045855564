//! What Azurite refuses, and what a write leaves.

use std::time::Duration;

use leasehold::fence::FenceError;
use leasehold::{ErrorKind, Leases, Written};

use crate::ground::{BLOB, blob, store, token};
use crate::plain::send;
use crate::support::azurite::container;

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_of_a_replaced_holder_is_refused_by_azurite() {
    let container = container("fenced-late");
    store(&container).await;
    let blob = blob(&container);
    let mut old = blob.raise(token(7)).await.unwrap();
    old.write("half").await.unwrap();
    let mut new = blob.raise(token(9)).await.unwrap();
    assert_eq!(new.read().await.unwrap(), b"half");
    let late = old.write("late").await.unwrap_err();
    let stale = late.stale().expect("stale");
    assert_eq!((stale.token, stale.highest, late.written()), (token(7), token(9), Written::No));
    new.write("whole").await.unwrap();
    assert_eq!(new.read().await.unwrap(), b"whole");
    assert!(blob.raise(token(8)).await.is_err_and(|error| error.stale().is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_else_the_blob_has_survives_raises_and_writes() {
    let container = container("fenced-kept");
    store(&container).await;
    let url = format!("{container}/{BLOB}");
    let own = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", "application/json"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-blob-content-disposition", "attachment"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-access-tier", "Cool"),
        ("x-ms-meta-a1", "1"),
        ("x-ms-meta-a_b", "2"),
    ];
    assert_eq!(send("PUT", &url, &own, "{}").status, 201);
    let shown = || {
        let answer = send("HEAD", &url, &[], "");
        let headers = ["content-type", "content-language", "content-disposition", "cache-control"];
        let also = ["x-ms-access-tier", "x-ms-meta-a1", "x-ms-meta-a_b"];
        headers.into_iter().chain(also).map(|name| answer.header(name).map(str::to_owned)).collect::<Vec<_>>()
    };
    let before = shown();
    assert!(before.iter().all(Option::is_some), "{before:?}");
    let mut raised = blob(&container).raise(token(7)).await.unwrap();
    assert_eq!((raised.read().await.unwrap().as_slice(), shown()), (&b"{}"[..], before.clone()));
    raised.write("{\"a\": 1}").await.unwrap();
    assert_eq!((raised.read().await.unwrap().as_slice(), shown()), (&b"{\"a\": 1}"[..], before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_past_the_fence_ends_the_raise_and_another_kind_of_blob_is_left_alone() {
    let container = container("fenced-others");
    store(&container).await;
    let url = format!("{container}/{BLOB}");
    let mut raised = blob(&container).raise(token(7)).await.unwrap();
    assert_eq!(send("PUT", &url, &[("x-ms-blob-type", "BlockBlob")], "past the fence").status, 201);
    let error = raised.write("over it").await.unwrap_err();
    assert!(matches!(error, FenceError::Overtaken { .. }), "{error}");

    assert_eq!(send("PUT", &url, &[("x-ms-blob-type", "AppendBlob")], "").status, 201);
    let error = blob(&container).raise(token(8)).await.map(drop).unwrap_err();
    let FenceError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

/// Eight holders at once, each with a higher token than the last: whatever their order, every line of whoever was told
/// "stored" is there, and the tokens of the lines rise.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_race_lose_no_line_that_was_stored_and_their_tokens_rise() {
    let container = container("fenced-race");
    store(&container).await;
    let holders = (1..=8).map(|number| {
        let blob = blob(&container);
        tokio::spawn(async move {
            let mut stored = Vec::new();
            let Ok(mut raised) = blob.raise(token(number)).await else { return stored };
            let Ok(mut content) = raised.read().await else { return stored };
            for line in 0..20 {
                let line = format!("{number} {line}");
                content.extend_from_slice(format!("{line}\n").as_bytes());
                match raised.write(&content).await {
                    Ok(()) => stored.push(line),
                    Err(error) => {
                        assert!(error.stale().is_some(), "{error}");
                        break;
                    }
                }
            }
            stored
        })
    });
    let mut told = Vec::new();
    for holder in holders.collect::<Vec<_>>() {
        told.extend(holder.await.unwrap());
    }
    let content = blob(&container).raise(token(9)).await.unwrap().read().await.unwrap();
    let content = String::from_utf8(content).unwrap();
    let lines: Vec<&str> = content.lines().collect();
    told.sort_unstable();
    let mut there: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    there.sort_unstable();
    assert_eq!(there, told);
    let tokens: Vec<u64> = lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(tokens.is_sorted() && tokens.len() >= 20, "{tokens:?}");
    println!("{} lines of {:?}", lines.len(), tokens.iter().collect::<std::collections::BTreeSet<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leases_own_blob_is_written_by_its_holder_and_refused_to_the_last_one() {
    let container = container("fenced-lease");
    let store = store(&container).await;
    let leases = Leases::builder(store.clone()).ttl(Duration::from_secs(15)).build().unwrap();
    let first = leases.acquire("orders/eu").await.unwrap();
    let old = first.held().proof();
    assert_eq!(store.read_content(&old).await.unwrap(), b"");
    store.write_content(&old, "one").await.unwrap();
    first.held().set_data("payload").await.unwrap();
    store.write_content(&old, "two").await.unwrap();
    first.release().await.unwrap();
    let error = store.write_content(&old, "late").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Refused, Written::No), "{error}");

    let second = leases.acquire("orders/eu").await.unwrap();
    let new = second.held().proof();
    let error = store.write_content(&old, "late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(store.read_content(&old).await.is_err());
    assert_eq!(store.read_content(&new).await.unwrap(), b"two");
    store.write_content(&new, "three").await.unwrap();
    assert_eq!(leases.inspect("orders/eu").await.unwrap().token, Some(second.token()), "the record is as it was");
}
