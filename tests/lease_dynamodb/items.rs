//! Items that somebody else changes, owns or deletes.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::{Attempt, ErrorKind, Leases, LostReason, Status, Unreadable};

use crate::ground::{CLAIM, Ground, Item, TABLE, soon};
use crate::support::emulator::retrying_client;
use crate::support::faults::{Fault, Match};
use crate::support::proxy::Proxy;

fn key(name: &str) -> AttributeValue {
    AttributeValue::S(name.into())
}

async fn delete(ground: &Ground, name: &str) {
    let delete = ground.emulator.client().delete_item().table_name(TABLE).key("pk", key(name));
    delete.send().await.expect("deleted");
}

#[tokio::test]
async fn a_record_that_is_deleted_by_hand_is_a_loss_and_is_not_made_again() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    delete(&ground, "job").await;
    let error = lease.renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(error.lost().unwrap().reason(), &LostReason::Deleted);
    assert!(!lease.held().is_held());
    lease.release().await.unwrap();
    leases.flush().await;
    assert_eq!(ground.item("job").await, None, "neither the renewal nor the release has made one");
}

#[tokio::test]
async fn a_deleted_record_is_noticed_by_the_keeper() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let lease = leases.acquire("job").await.unwrap();
    delete(&ground, "job").await;
    let lost = crate::ground::loss(soon("the loss", lease.held().lost()).await);
    assert_eq!(lost.reason(), &LostReason::Deleted);
    assert_eq!(ground.item("job").await, None);
}

/// The floor of tokens is the store's time. The first holder here is one of an hour ago, by the store's own clock.
#[tokio::test]
async fn the_token_after_a_deletion_is_higher_than_the_one_before() {
    let ground = Ground::new().await;
    let an_hour_ago = Proxy::to(ground.emulator.addr());
    an_hour_ago.on(Match::any()).fault(Fault::WithHeader("date", http_date_an_hour_ago()));
    let store = leasehold::dynamodb::DynamoDbStore::open(retrying_client(an_hour_ago.addr()), TABLE).await.unwrap();
    let earlier = Leases::builder(store).build().unwrap();
    let lease = earlier.acquire("job").await.unwrap();
    let before = lease.token();
    assert!(before.as_u64() > 1_735_689_600_000, "a time, not a count: {before}");
    lease.release().await.unwrap();
    delete(&ground, "job").await;

    let lease = ground.quiet("b").await.acquire("job").await.unwrap();
    assert!(lease.token() > before, "{} after {before}", lease.token());
}

fn http_date_an_hour_ago() -> String {
    use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    DateTime::from(then).fmt(DateTimeFormat::HttpDate).expect("a date")
}

fn only_theirs(mut item: Item) -> Item {
    item.retain(|attribute, _| !attribute.starts_with("lh_"));
    item
}

#[tokio::test]
async fn the_callers_own_attributes_survive_a_leases_whole_life() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    leases.acquire("job").await.unwrap().release().await.unwrap();
    let theirs = Item::from([
        ("pk".into(), key("job")),
        ("owner".into(), AttributeValue::S("team-a".into())),
        ("token".into(), AttributeValue::N("1234567890123456789012345678".into())),
        ("grant".into(), AttributeValue::Null(true)),
        ("data".into(), AttributeValue::B(Blob::new([0, 255]))),
        ("tags.of-it".into(), AttributeValue::Ss(vec!["a".into(), "b".into()])),
        ("nested".into(), AttributeValue::M([("lh_token".to_owned(), AttributeValue::Bool(false))].into())),
    ]);
    let mut item = ground.item("job").await.unwrap();
    item.extend(theirs.clone());
    let put = ground.emulator.client().put_item().table_name(TABLE).set_item(Some(item));
    put.send().await.expect("put");
    let intact = async |after: &str| {
        assert_eq!(only_theirs(ground.item("job").await.unwrap()), theirs, "after {after}");
    };

    let lease = leases.request("job").data("first").acquire().await.unwrap();
    intact("the claim").await;
    lease.renew().await.unwrap();
    intact("a renewal").await;
    lease.held().set_data("second").await.unwrap();
    intact("set_data").await;
    let rival = ground.quiet("b").await;
    rival.ask("job", lease.token(), std::time::Duration::from_secs(1)).await.unwrap();
    intact("ask").await;
    let handover = lease.into_handover().await.unwrap();
    let lease = rival.resume(handover).await.unwrap();
    intact("resume").await;
    leases.revoke("job", lease.token()).await.unwrap();
    intact("revoke").await;
    leases.force("job", lease.token()).await.unwrap();
    intact("force").await;
    drop(lease);
    rival.flush().await;

    let applied = ground.next(CLAIM, Fault::HoldAnswer);
    let given_up = leases.acquire_within("job", std::time::Duration::from_millis(200)).await;
    assert_eq!((given_up.unwrap_err().kind(), applied.happened()), (ErrorKind::TimedOut, 1));
    soon("the clean-up", leases.flush()).await;
    intact("a clean-up").await;
    leases.acquire("job").await.unwrap().release().await.unwrap();
    intact("a release").await;
}

#[tokio::test]
async fn somebody_elses_item_is_unreadable_left_alone_and_counted_by_a_listing() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let theirs = Item::from([("pk".into(), key("job")), ("owner".into(), AttributeValue::S("team-a".into()))]);
    let put = ground.emulator.client().put_item().table_name(TABLE).set_item(Some(theirs.clone()));
    put.send().await.expect("put");

    for error in [
        leases.acquire("job").await.unwrap_err(),
        leases.try_acquire("job").await.unwrap_err(),
        leases.acquire_within("job", crate::ground::PATIENCE).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.written()), (ErrorKind::Unreadable, leasehold::Written::No));
        assert!(error.to_string().contains("it is not a lease"), "{error}");
    }
    leases.flush().await;
    assert_eq!(leases.stats().owed, 0);
    assert_eq!(ground.item("job").await, Some(theirs));
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Unreadable(Unreadable::Foreign));

    let lease = leases.acquire("ours").await.unwrap();
    let mut listing = leases.list("");
    let found = listing.next().await.unwrap().expect("ours");
    assert_eq!((found.name.as_str(), found.token), ("ours", Some(lease.token())));
    assert!(listing.next().await.unwrap().is_none());
    assert_eq!(listing.skipped(), 1);
}

#[tokio::test]
async fn a_record_that_somebody_breaks_under_its_holder_is_jeopardy_and_no_loss() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    let before = ground.item("job").await.unwrap();
    let mut broken = before.clone();
    broken.insert("lh_format".into(), AttributeValue::N("2".into()));
    let put = async |item: &Item| {
        let put = ground.emulator.client().put_item().table_name(TABLE).set_item(Some(item.clone()));
        put.send().await.expect("put");
    };
    put(&broken).await;
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(lease.held().is_held());
    assert_eq!(ground.item("job").await, Some(broken), "nothing was written");
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Unreadable(Unreadable::Format));
    put(&before).await;
    lease.renew().await.expect("mended in time");
    let rival = ground.quiet("b").await;
    assert!(matches!(rival.try_acquire("job").await.unwrap(), Attempt::Held(_)));
}
