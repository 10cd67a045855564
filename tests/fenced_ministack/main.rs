//! Fenced writes to objects of S3, on an emulator: the code of the example, which is that of docs/fencing.md.

#[path = "../../examples/fenced_s3.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example has a main")]
mod example;

mod metadata;

use aws_sdk_s3::Client;
use example::{S3Object, client_of_emulator};
use leasehold::fence::{FenceError, raise, verify};
use leasehold::{Clock, FencingToken, SystemClock, Written};

/// The emulator's client, and a bucket that no other test has.
async fn bucket() -> (Client, String) {
    let endpoint = std::env::var("LEASEHOLD_MINISTACK_ENDPOINT").expect(
        "LEASEHOLD_MINISTACK_ENDPOINT is not set: run `localstack/up ministack`, then `source localstack/.env`",
    );
    let client = client_of_emulator(&endpoint);
    let bucket = format!("fenced-{:016x}", SystemClock.random() as u64);
    client.create_bucket().bucket(&bucket).send().await.expect("made");
    (client, bucket)
}

/// An object that is not there, in a store that was tried out on another one: without conditions the rest of these
/// tests would mean nothing.
async fn object() -> S3Object {
    let (client, bucket) = bucket().await;
    let scratch = S3Object { client: client.clone(), bucket: bucket.clone(), key: "scratch".into() };
    assert_eq!(verify(&scratch, b"content").await, Ok(()));
    S3Object { client, bucket, key: "dir/state".into() }
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_emulator_enforces_conditions_and_its_etag_covers_a_fence_in_the_content() {
    object().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_of_a_replaced_holder_is_refused_by_the_emulator() {
    let object = object().await;
    let mut old = raise(&object, token(7)).await.unwrap();
    old.write(b"half").await.unwrap();
    let mut new = raise(&object, token(9)).await.unwrap();
    assert_eq!(new.found(), b"half");
    let late = old.write(b"late").await.unwrap_err();
    let stale = late.stale().expect("stale");
    assert_eq!((stale.token, stale.highest, late.written()), (token(7), token(9), Written::No));
    // Not even the content that is there already: the ETag would be the same, if the fence were not in it.
    assert!(old.write(b"half").await.unwrap_err().stale().is_some());
    new.write(b"whole").await.unwrap();
    let again = raise(&object, token(9)).await.unwrap();
    assert_eq!(again.found(), b"whole");
    assert!(raise(&object, token(8)).await.is_err_and(|error| error.stale().is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_from_before_there_was_a_fence_is_not_taken_for_a_fenced_one() {
    let object = object().await;
    let put =
        object.client.put_object().bucket(&object.bucket).key(&object.key).body(b"no fence\nat all".to_vec().into());
    put.send().await.unwrap();
    let error = raise(&object, token(7)).await.map(drop).unwrap_err();
    assert!(matches!(&error, FenceError::NotAFence { found, .. } if found == "no fence"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_ends_the_raise() {
    let object = object().await;
    let mut raised = raise(&object, token(7)).await.unwrap();
    object.client.delete_object().bucket(&object.bucket).key(&object.key).send().await.unwrap();
    let error = raised.write(b"late").await.unwrap_err();
    assert!(matches!(error, FenceError::Overtaken { in_doubt: None, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_not_there_is_an_error_of_the_store() {
    let object = S3Object { bucket: "no-such-bucket".into(), ..object().await };
    let error = raise(&object, token(7)).await.map(drop).unwrap_err();
    assert!(matches!(error, FenceError::Store(_)), "{error}");
}

/// Eight holders at once, each with a higher token than the last: whatever their order, every line of whoever was told
/// "stored" is there, and the tokens of the lines rise.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_race_lose_no_line_that_was_stored_and_their_tokens_rise() {
    let shared = std::sync::Arc::new(object().await);
    let holders: Vec<_> = (1..=8)
        .map(|number| {
            let object = std::sync::Arc::clone(&shared);
            tokio::spawn(async move {
                let mut stored = Vec::new();
                let Ok(mut raised) = raise(&*object, token(number)).await else { return stored };
                let mut content = raised.found().clone();
                for line in 0..10 {
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
        })
        .collect();
    let mut told = Vec::new();
    for holder in holders {
        told.extend(holder.await.unwrap());
    }
    let content = raise(&*shared, token(9)).await.unwrap().found().clone();
    let content = String::from_utf8(content).unwrap();
    let tokens: Vec<u64> = content.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    let mut there: Vec<_> = content.lines().map(str::to_owned).collect();
    there.sort_unstable();
    told.sort_unstable();
    assert_eq!(there, told);
    assert!(tokens.is_sorted() && tokens.len() >= 10, "{tokens:?}");
    println!("{} lines of {:?}", tokens.len(), tokens.iter().collect::<std::collections::BTreeSet<_>>());
}

#[test]
fn the_page_shows_the_code_that_is_tested() {
    let example = include_str!("../../examples/fenced_s3.rs");
    let code = example.split("// ANCHOR: object\n").nth(1).unwrap().split("// ANCHOR_END").next().unwrap();
    let lines = code.lines().skip(1).filter(|line| *line != "}");
    let shown: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert!(shown.contains("impl Tagged for S3Object") && shown.lines().count() > 40, "{shown}");
    assert!(include_str!("../../docs/fencing.md").contains(shown.trim()), "docs/fencing.md should have:\n{shown}");
}
