//! The official client reads the fake as it reads the service.

use std::collections::HashMap;
use std::time::Duration;

use azure_core::Bytes;
use azure_core::error::ErrorKind;
use azure_core::http::{ClientOptions, Etag, RequestContent, RetryOptions, Url};
use azure_storage_blob::models::{
    BlobClientAcquireLeaseOptions, BlobClientAcquireLeaseResultHeaders as _, BlobClientBreakLeaseResultHeaders as _,
    BlobClientGetPropertiesResultHeaders as _, BlobClientSetMetadataOptions, BlobContainerClientListBlobsOptions,
    BlobItem, BlockBlobClientUploadOptions, LeaseState, LeaseStatus, ListBlobsIncludeItem,
};
use azure_storage_blob::{BlobClient, BlobContainerClient, BlobContainerClientOptions};
use futures_util::TryStreamExt as _;
use leasehold::testing::TestClock;

use crate::support::azure::{Fake, Fault, Op, State};

const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const B: &str = "bbbbbbbb-0000-4000-8000-00000000000b";

fn container(fake: &Fake) -> BlobContainerClient {
    let client_options =
        ClientOptions { transport: Some(fake.transport()), retry: RetryOptions::none(), ..ClientOptions::default() };
    let options = BlobContainerClientOptions { client_options, ..BlobContainerClientOptions::default() };
    BlobContainerClient::new(Url::parse(&fake.container_url()).unwrap(), None, Some(options)).unwrap()
}

fn metadata(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn create(blob: &BlobClient, pairs: &[(&str, &str)]) -> azure_core::Result<()> {
    let options = BlockBlobClientUploadOptions { metadata: Some(metadata(pairs)), ..Default::default() };
    let body = RequestContent::from(Vec::new());
    blob.block_blob_client().upload(body, Some(options.if_not_exists())).await.map(drop)
}

async fn acquire(blob: &BlobClient, id: &str) -> azure_core::Result<String> {
    let options = BlobClientAcquireLeaseOptions { proposed_lease_id: Some(id.to_owned()), ..Default::default() };
    Ok(blob.acquire_lease(15, Some(options)).await?.lease_id()?.unwrap())
}

fn refusal<T>(answer: azure_core::Result<T>) -> (u16, String) {
    match answer.err().expect("the request is refused").kind() {
        ErrorKind::HttpResponse { status, error_code, .. } => {
            (u16::from(*status), error_code.clone().unwrap_or_default())
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_official_client_leases_writes_and_releases() {
    let fake = Fake::new(TestClock::new());
    let blob = container(&fake).blob_client("orders/eu");
    create(&blob, &[("lh_token", "0")]).await.unwrap();
    assert_eq!(acquire(&blob, A).await.unwrap(), A);

    let before = blob.get_properties(None).await.unwrap();
    assert_eq!(before.lease_state().unwrap(), Some(LeaseState::Leased));
    assert_eq!(before.lease_status().unwrap(), Some(LeaseStatus::Locked));
    let etag: Etag = before.etag().unwrap().unwrap();
    let options =
        BlobClientSetMetadataOptions { lease_id: Some(A.to_owned()), if_match: Some(etag), ..Default::default() };
    blob.set_metadata(&metadata(&[("lh_token", "7")]), Some(options)).await.unwrap();
    let after = blob.get_properties(None).await.unwrap();
    assert_eq!(after.metadata().unwrap(), metadata(&[("lh_token", "7")]));

    blob.renew_lease(A.to_owned(), None).await.unwrap();
    blob.change_lease(A.to_owned(), B.to_owned(), None).await.unwrap();
    blob.release_lease(B.to_owned(), None).await.unwrap();
    assert_eq!(fake.peek("orders/eu").unwrap().state, State::Available);
    assert_eq!(fake.invalid().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_official_client_reads_refusals_by_their_code() {
    let fake = Fake::new(TestClock::new());
    let blob = container(&fake).blob_client("b");
    assert_eq!(refusal(blob.get_properties(None).await), (404, "BlobNotFound".to_owned()));
    create(&blob, &[]).await.unwrap();
    assert_eq!(refusal(create(&blob, &[]).await), (409, "BlobAlreadyExists".to_owned()));
    acquire(&blob, A).await.unwrap();
    assert_eq!(refusal(acquire(&blob, B).await), (409, "LeaseAlreadyPresent".to_owned()));
    assert_eq!(refusal(blob.set_metadata(&metadata(&[]), None).await), (412, "LeaseIdMissing".to_owned()));
    fake.delete_container();
    assert_eq!(refusal(blob.get_properties(None).await), (404, "ContainerNotFound".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_official_client_is_told_what_a_break_leaves() {
    let clock = TestClock::new();
    let fake = Fake::new(clock.another(99));
    let blob = container(&fake).blob_client("b");
    create(&blob, &[]).await.unwrap();
    acquire(&blob, A).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let left = blob.break_lease(None).await.unwrap();
    assert_eq!(left.lease_time().unwrap(), Some(10));
}

#[tokio::test(start_paused = true)]
async fn the_official_client_lists_page_by_page_with_metadata() {
    let fake = Fake::new(TestClock::new());
    fake.set(|knobs| knobs.longest_page = 2);
    let container = container(&fake);
    for name in ["a/1", "a/2", "a/3", "b/<&>"] {
        create(&container.blob_client(name), &[("of", name)]).await.unwrap();
    }
    let options = BlobContainerClientListBlobsOptions {
        prefix: Some("a/".to_owned()),
        include: Some(vec![ListBlobsIncludeItem::Metadata]),
        ..Default::default()
    };
    let listed: Vec<BlobItem> = container.list_blobs(Some(options)).unwrap().try_collect().await.unwrap();
    let names: Vec<_> = listed.iter().map(|item| item.name.clone().unwrap()).collect();
    assert_eq!(names, ["a/1", "a/2", "a/3"]);
    let second = listed[1].metadata.as_ref().unwrap().values.as_ref().unwrap();
    assert_eq!(second["of"], "a/2");
    assert_eq!(listed[0].properties.as_ref().unwrap().lease_state, Some(LeaseState::Available));
    assert_eq!(fake.count(Op::ListBlobs), 2);
}

#[tokio::test(start_paused = true)]
async fn the_official_client_downloads_a_body() {
    let fake = Fake::new(TestClock::new());
    let blob = container(&fake).blob_client("b");
    blob.upload(RequestContent::from(b"seven".to_vec()), None).await.unwrap();
    let body: Bytes = blob.download(None).await.unwrap().body.collect().await.unwrap();
    assert_eq!(body.as_ref(), b"seven");
    assert_eq!(fake.invalid().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_official_client_creates_and_looks_at_the_container() {
    let fake = Fake::without_container(TestClock::new());
    let container = container(&fake);
    assert_eq!(refusal(container.get_properties(None).await), (404, "ContainerNotFound".to_owned()));
    container.create(None).await.unwrap();
    container.get_properties(None).await.unwrap();
    assert_eq!(refusal(container.create(None).await), (409, "ContainerAlreadyExists".to_owned()));
    assert_eq!(fake.invalid().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_official_client_sees_a_lost_answer_as_a_broken_connection() {
    let fake = Fake::new(TestClock::new());
    let blob = container(&fake).blob_client("b");
    create(&blob, &[]).await.unwrap();
    let lost = fake.on(Op::Acquire).fault(Fault::LoseAnswer);
    let error = acquire(&blob, A).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io), "{error:?}");
    assert_eq!(lost.times(), 1);
    assert_eq!(fake.peek("b").unwrap().state.id().unwrap().to_string(), A);
}
