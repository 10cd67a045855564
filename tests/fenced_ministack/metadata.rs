//! Why the fence is not in the metadata: the ETag does not change with them.

use std::io;

use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use leasehold::fence::{FenceError, Found, Put, Tagged, raise, verify};
use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;

use crate::example::S3Object;
use crate::{bucket, token};

const FENCE: &str = "fence";

struct FenceInMetadata(S3Object);

impl Tagged for FenceInMetadata {
    type Tag = String;
    type Seen = Vec<u8>;
    type New = [u8];
    type Error = io::Error;

    async fn read(&self) -> io::Result<Found<String, Vec<u8>>> {
        let S3Object { client, bucket, key } = &self.0;
        let got = match client.get_object().bucket(bucket).key(key).send().await {
            Ok(got) => got,
            Err(SdkError::ServiceError(no)) if matches!(no.err(), GetObjectError::NoSuchKey(_)) => {
                return Ok(Found { tag: None, fence: None, seen: Vec::new() });
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let fence = got.metadata().and_then(|pairs| pairs.get(FENCE)).cloned();
        let tag = got.e_tag;
        Ok(Found { tag, fence, seen: got.body.collect().await.map_err(io::Error::other)?.to_vec() })
    }

    async fn write(&self, over: &Found<String, Vec<u8>>, fence: &str, new: Option<&[u8]>) -> io::Result<Put<String>> {
        let S3Object { client, bucket, key } = &self.0;
        let put = client.put_object().bucket(bucket).key(key).metadata(FENCE, fence);
        let put = put.body(new.unwrap_or(&over.seen).to_vec().into());
        let put = match &over.tag {
            Some(tag) => put.if_match(tag),
            None => put.if_none_match("*"),
        };
        match put.send().await {
            Ok(put) => Ok(Put::Written(put.e_tag.unwrap_or_default())),
            Err(SdkError::ServiceError(no)) if no.raw().status().as_u16() == 412 => Ok(Put::Moved),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

async fn object() -> FenceInMetadata {
    let (client, bucket) = bucket().await;
    FenceInMetadata(S3Object { client, bucket, key: "state".into() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_in_the_metadata_is_found_out_by_verify_and_by_the_second_raise() {
    let _whole = Guard::nothing_broken();
    assert!(verify(&object().await, b"content").await.unwrap_err().contains("leaves the tag as it was"));

    let object = object().await;
    raise(&object, token(7)).await.unwrap().write(b"state").await.unwrap();
    let error = raise(&object, token(8)).await.map(drop).unwrap_err();
    assert!(matches!(error, FenceError::TagNotMoved), "{error}");
}

/// What would happen, if the raise did not look.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_fence_in_the_metadata_a_late_write_would_be_stored_after_the_raise() {
    let _broken = Broken::FenceTakesTheSameTag.switch_on();
    let object = object().await;
    let mut old = raise(&object, token(7)).await.unwrap();
    old.write(b"state").await.unwrap();
    let new = raise(&object, token(8)).await.unwrap();
    assert_eq!(new.found(), b"state");
    old.write(b"late").await.expect("its ETag is still the newest");
    assert_eq!(object.read().await.unwrap().seen, b"late");
}
