//! Names, listings, foreign items and the time to live.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::store::Store;
use leasehold::{Claim, Claimed, Close, ExpiryJudge, Standing, Unreadable, Vacate, Vacated};

use crate::bodies::{Fixture, TABLE, a, b, burn, claim, name, release};
#[cfg(feature = "__proptest")]
use crate::support::names::{are_distinct_leases, confusing_names};

const DAY_S: u64 = 24 * 60 * 60;

#[tokio::test]
async fn names_that_differ_only_in_odd_ways_are_distinct_leases() {
    let fixture = Fixture::start().await;
    let long = "é".repeat(128);
    let names = ["a", "A", "a.", "a..", "a/", "a//", "a/../a", "%2f", "/", "é", "e\u{301}", " a", &long];
    for text in names {
        let claim = Claim { name: name(text), ..claim(1, a()) };
        assert_eq!(fixture.store.claim(&claim).await.expect("answered").value, Claimed::Granted, "{text}");
    }
    let listed = fixture.store.list("", None).await.expect("answered").value;
    let listed: BTreeSet<_> = listed.leases.iter().map(|listed| listed.name.as_str().to_owned()).collect();
    assert_eq!(listed, names.map(str::to_owned).into());
}

#[cfg(feature = "__proptest")]
#[test]
fn whatever_two_names_are_they_are_two_leases_and_listed_by_their_prefixes() {
    use proptest::test_runner::{Config, TestRunner};
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (fixture, case) = (runtime.block_on(Fixture::start()), std::cell::Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(60) });
    let ran = runner.run(&confusing_names(), |(names, cut)| {
        case.set(case.get() + 1);
        runtime.block_on(are_distinct_leases(&fixture.store, case.get(), &names, cut));
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn a_listing_keeps_to_its_prefix_and_counts_what_it_skips() {
    let fixture = Fixture::start().await;
    for text in ["jobs/1", "jobs/2", "other"] {
        fixture.store.claim(&Claim { name: name(text), ..claim(1, a()) }).await.expect("answered");
    }
    for (key, field) in [("jobs/theirs", "colour"), ("jobs/broken", "lh_format"), ("jobs/\n", "lh_format")] {
        let put = fixture.client.put_item().table_name(TABLE).item("pk", AttributeValue::S(key.into()));
        put.item(field, AttributeValue::S("red".into())).send().await.expect("put");
    }
    let page = fixture.store.list("jobs/", None).await.expect("answered").value;
    let listed: BTreeSet<_> = page.leases.iter().map(|listed| listed.name.as_str()).collect();
    assert_eq!((listed, page.skipped, page.next), (BTreeSet::from(["jobs/1", "jobs/2"]), 3, None));
}

#[tokio::test]
async fn a_listing_of_several_pages_shows_every_lease_once() {
    let fixture = Fixture::start().await;
    // A page is at most 1 MB of items, before the filter.
    let ballast = AttributeValue::B(vec![0; 350_000].into());
    for number in 0..8 {
        let lease = name(&format!("jobs/{number}"));
        fixture.store.claim(&Claim { name: lease.clone(), ..claim(1, a()) }).await.expect("answered");
        let update = fixture.client.update_item().table_name(TABLE).key("pk", AttributeValue::S(lease.as_str().into()));
        let update = update.update_expression("SET ballast = :b").expression_attribute_values(":b", ballast.clone());
        update.send().await.expect("written");
    }
    let (mut listed, mut pages, mut page) = (Vec::new(), 0, None);
    loop {
        let found = fixture.store.list("jobs/", page).await.expect("answered").value;
        listed.extend(found.leases.into_iter().map(|listed| listed.name));
        pages += 1;
        page = found.next;
        if page.is_none() {
            break;
        }
    }
    let distinct: BTreeSet<_> = listed.iter().collect();
    assert_eq!((listed.len(), distinct.len()), (8, 8));
    assert!(pages > 1, "the ballast has not made pages");
}

#[tokio::test]
async fn an_item_of_somebody_else_is_unreadable_and_left_alone() {
    let fixture = Fixture::start().await;
    let put = fixture.client.put_item().table_name(TABLE).item("pk", AttributeValue::S("job".into()));
    put.item("owner", AttributeValue::S("team-a".into())).send().await.expect("put");
    let answer = fixture.store.claim(&claim(1, a())).await.expect("answered").value;
    assert!(matches!(answer, Claimed::Refused(view) if view.standing == Standing::Unreadable(Unreadable::Foreign)));
    assert_eq!(fixture.vacated(burn(9, a())).await, Vacated::Refused(fixture.view().await));
    assert!(matches!(fixture.view().await.standing, Standing::Unreadable(Unreadable::Foreign)));
}

#[tokio::test]
async fn retention_marks_a_released_record_and_a_claim_takes_the_mark_away() {
    let fixture = Fixture::start().await;
    let builder = DynamoDbStore::builder(fixture.client.clone(), TABLE);
    let store = builder.retention(std::time::Duration::from_secs(2 * DAY_S)).open().await.expect("fit");
    let sweep = async || {
        let get = fixture.client.get_item().table_name(TABLE).key("pk", AttributeValue::S("job".into()));
        let item = get.send().await.expect("read").item.expect("there");
        item.get("lh_sweep_s").map(|at| at.as_n().expect("a number").parse::<u64>().expect("whole"))
    };
    let at = |now_ms: u64, vacate: Vacate| Vacate { now_ms: Some(now_ms), ..vacate };

    store.claim(&claim(1, a())).await.expect("answered");
    store.vacate(&at(10_001, release(1, a()))).await.expect("answered");
    assert_eq!(sweep().await, Some(11 + 2 * DAY_S));
    store.vacate(&at(99_000, burn(2, b()))).await.expect("answered");
    assert_eq!(sweep().await, Some(11 + 2 * DAY_S), "a burn leaves the older mark");

    store.claim(&claim(3, a())).await.expect("answered");
    assert_eq!(sweep().await, None);
    let close = Close { for_ms: 5_000, until_ms: Some(60_000), data: None };
    let closing = Vacate { close: Some(close), ..release(3, a()) };
    store.vacate(&at(10_000, closing)).await.expect("answered");
    assert_eq!(sweep().await, Some(60 + 2 * DAY_S), "counted from the closed end");
}

#[tokio::test]
async fn without_the_stores_time_or_without_retention_nothing_is_marked() {
    let fixture = Fixture::start().await;
    let builder = DynamoDbStore::builder(fixture.client.clone(), TABLE);
    let store = builder.retention(std::time::Duration::from_secs(DAY_S)).open().await.expect("fit");
    store.claim(&claim(1, a())).await.expect("answered");
    store.vacate(&release(1, a())).await.expect("answered");
    fixture.store.claim(&claim(2, a())).await.expect("answered");
    fixture.vacated(Vacate { now_ms: Some(10_000), ..release(2, a()) }).await;
    let get = fixture.client.get_item().table_name(TABLE).key("pk", AttributeValue::S("job".into()));
    assert!(!get.send().await.expect("read").item.expect("there").contains_key("lh_sweep_s"));
}

#[tokio::test]
async fn it_describes_itself_and_hides_grants_and_credentials_in_its_debug() {
    let fixture = Fixture::start().await;
    let described = fixture.store.describe();
    assert_eq!((described.kind, described.judge, described.has_store_time), ("dynamodb", ExpiryJudge::Client, true));
    assert_eq!(described.renew_batch, 1);
    assert!(described.identity.starts_with("arn:aws:dynamodb:") && described.identity.ends_with("table/leases"));
    let debug = format!("{:?}", fixture.store);
    assert!(debug.contains("leases") && !debug.contains("static") && !debug.contains("test"), "{debug}");
}
