//! An S3 object whose writes are fenced by a token, on S3 or whatever speaks its protocol.
//!
//! Start one of the emulators (`localstack/up ministack`), then, with its endpoint:
//!
//! ```sh
//! cargo run --features __s3 --example fenced_s3 -- http://127.0.0.1:4566
//! ```
#![allow(missing_docs, reason = "an example")]

use std::error::Error;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use leasehold::fence::raise;
use leasehold::{Leases, MemoryStore};

// ANCHOR: object
mod s3_object {
    use std::io;

    use aws_sdk_s3::Client;
    use aws_sdk_s3::config::Config;
    use aws_sdk_s3::config::retry::RetryConfig;
    use aws_sdk_s3::error::SdkError;
    use aws_sdk_s3::operation::get_object::GetObjectError;
    use leasehold::fence::{Found, Put, Tagged};

    /// An object whose first line is its fence, because an ETag of S3 is made of the content alone.
    pub struct S3Object {
        pub client: Client,
        pub bucket: String,
        pub key: String,
    }

    impl Tagged for S3Object {
        type Tag = String;
        type Seen = Vec<u8>;
        type New = [u8];
        type Error = io::Error;

        async fn read(&self) -> io::Result<Found<String, Vec<u8>>> {
            let got = match self.client.get_object().bucket(&self.bucket).key(&self.key).send().await {
                Ok(got) => got,
                Err(SdkError::ServiceError(no)) if matches!(no.err(), GetObjectError::NoSuchKey(_)) => {
                    return Ok(Found { tag: None, fence: None, seen: Vec::new() });
                }
                Err(error) => return Err(io::Error::other(error)),
            };
            let tag = got.e_tag;
            let mut seen = got.body.collect().await.map_err(io::Error::other)?.to_vec();
            let line = seen.iter().position(|byte| *byte == b'\n').unwrap_or(seen.len());
            let fence = String::from_utf8_lossy(&seen[..line]).into_owned();
            seen.drain(..seen.len().min(line + 1));
            Ok(Found { tag, fence: Some(fence), seen })
        }

        async fn write(
            &self,
            over: &Found<String, Vec<u8>>,
            fence: &str,
            new: Option<&[u8]>,
        ) -> io::Result<Put<String>> {
            let content = [fence.as_bytes(), b"\n", new.unwrap_or(&over.seen)].concat();
            let put = self.client.put_object().bucket(&self.bucket).key(&self.key).body(content.into());
            let put = match &over.tag {
                Some(tag) => put.if_match(tag),
                None => put.if_none_match("*"),
            };
            // The second copy of a write whose answer was lost would be refused, for the first one's success.
            let once = Config::builder().retry_config(RetryConfig::disabled());
            match put.customize().config_override(once).send().await {
                Ok(put) => put.e_tag.map(Put::Written).ok_or_else(|| io::Error::other("there is no ETag")),
                // 412; 409 where another write on condition is under way; 404 where the object was deleted.
                Err(SdkError::ServiceError(no)) if matches!(no.raw().status().as_u16(), 404 | 409 | 412) => {
                    Ok(Put::Moved)
                }
                Err(error) => Err(io::Error::other(error)),
            }
        }
    }
}
// ANCHOR_END: object
pub use s3_object::S3Object;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = std::env::args().nth(1).ok_or("the endpoint, please: http://127.0.0.1:4566, say")?;
    let client = client_of_emulator(&endpoint);
    let bucket = "fenced".to_owned();
    // It may be there already.
    _ = client.create_bucket().bucket(&bucket).send().await;
    let report = S3Object { client, bucket, key: "report".into() };
    // Every run begins anew, because the tokens of a store in memory do.
    report.client.delete_object().bucket(&report.bucket).key(&report.key).send().await?;

    let leases = Leases::builder(MemoryStore::new()).build()?;
    let first = leases.acquire("report").await?;
    let mut old = raise(&report, first.token()).await?;
    old.write(b"half of it").await?;
    println!("token {} has written {:?}", old.token(), "half of it");
    first.release().await?;

    // Or its term was over, and it does not know.
    let second = leases.acquire("report").await?;
    let mut new = raise(&report, second.token()).await?;
    println!("token {} has raised the fence, and found {:?}", new.token(), String::from_utf8_lossy(new.found()));
    let late = old.write(b"all of it, late").await.expect_err("a late write");
    println!("the late write: {late}");
    new.write(b"half of it, and the rest").await?;
    println!("token {} has written the rest", new.token());
    Ok(())
}

/// A client of an emulator, with credentials that mean nothing.
pub fn client_of_emulator(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(Credentials::new("test", "test", None, None, "static"))
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .force_path_style(true);
    Client::from_conf(config.build())
}
