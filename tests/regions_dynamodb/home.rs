//! Multi-Region eventual consistency (MREC): one region's table is the store, and everybody else calls across.

use std::time::Duration;

use leasehold::dynamodb::DynamoDbStore;
use leasehold::{Ended, ErrorKind, Leases, LostReason, Renewal};
use tokio::time::{sleep, timeout};

use crate::ground::{FRANKFURT, MARGIN, PATIENCE, REGIONS, TABLE, TTL, VIRGINIA, acquire, leases, table, try_acquire};
use crate::support::global_table::{GlobalTable, Replication};

const LAG: Duration = Duration::from_millis(400);

async fn eventual() -> GlobalTable {
    table(Replication::Eventual { lag: LAG }).await
}

/// A service of this region that calls the home.
async fn at_home(table: &GlobalTable, home: &str, region: &str) -> Leases {
    let builder = DynamoDbStore::builder(table.client(home), TABLE).home_region(home);
    leases(builder.open().await.expect("the home is pinned, and the client is there"), region)
}

/// What the refusal keeps people from.
fn vouched_for(table: &GlobalTable, region: &str) -> Leases {
    let store = DynamoDbStore::builder(table.client(region), TABLE).unverified().expect("nothing is looked at");
    leases(store, region)
}

#[tokio::test(flavor = "multi_thread")]
async fn control_without_the_refusal_two_regions_hold_one_lease() {
    let table = eventual().await;
    let (frankfurt, virginia) = (vouched_for(&table, FRANKFURT), vouched_for(&table, VIRGINIA));
    let ours = try_acquire(&frankfurt).await.expect("free");
    let theirs = try_acquire(&virginia).await.expect("free there: the grant has not arrived");
    assert!(ours.held().is_held() && theirs.held().is_held(), "two owners");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eventually_consistent_table_is_refused_with_the_danger_and_the_way_out() {
    let table = eventual().await;
    for region in REGIONS {
        let error = DynamoDbStore::open(table.client(region), TABLE).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        for word in ["eventual consistency", "two holders", "`home_region`"] {
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_another_region_than_the_home_is_refused() {
    let table = eventual().await;
    let builder = || DynamoDbStore::builder(table.client(VIRGINIA), TABLE).home_region(FRANKFURT);
    for error in [builder().open().await.expect_err("elsewhere"), builder().unverified().expect_err("elsewhere")] {
        assert!(error.to_string().contains(FRANKFURT) && error.to_string().contains(VIRGINIA), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_home_pinned_three_regions_have_one_owner() {
    let table = eventual().await;
    let mut owners = 0;
    let mut clients = Vec::new();
    for region in REGIONS {
        clients.push(at_home(&table, FRANKFURT, region).await);
    }
    let mut leases = Vec::new();
    for client in &clients {
        if let Some(lease) = try_acquire(client).await {
            owners += 1;
            leases.push(lease);
        }
    }
    assert_eq!(owners, 1);
}

/// As docs/multi-region.md says: stop, move, wait a term, start.
#[tokio::test(flavor = "multi_thread")]
async fn after_the_home_has_moved_tokens_rise_though_the_newest_grant_never_arrived() {
    let table = eventual().await;
    let before = at_home(&table, FRANKFURT, FRANKFURT).await;
    let lease = acquire(&before).await;
    table.down(FRANKFURT);

    let after = at_home(&table, VIRGINIA, VIRGINIA).await;
    let found = after.inspect("settlement").await.expect("answered");
    assert_eq!(found.token, None, "the grant has not arrived, so nothing else keeps the new home from granting");
    sleep(TTL).await;
    let next = acquire(&after).await;
    assert!(!lease.held().is_held());
    assert!(next.token() > lease.token(), "the store's time is the floor of tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn control_a_home_that_is_moved_without_the_pause_has_two_owners() {
    let table = eventual().await;
    let lease = acquire(&at_home(&table, FRANKFURT, FRANKFURT).await).await;
    table.down(FRANKFURT);
    let next = try_acquire(&at_home(&table, VIRGINIA, VIRGINIA).await).await.expect("the grant has not arrived");
    assert!(lease.held().is_held() && next.held().is_held(), "two owners");
    // Their tokens may be in any order: both are of the same few seconds, which is what the floor can tell apart.
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_old_home_had_not_sent_does_not_replace_the_new_homes_record_when_it_comes_back() {
    let table = eventual().await;
    let before = at_home(&table, FRANKFURT, FRANKFURT).await;
    let lease = acquire(&before).await;
    table.down(FRANKFURT);
    sleep(TTL).await;
    let next = acquire(&at_home(&table, VIRGINIA, VIRGINIA).await).await;
    table.up(FRANKFURT);
    sleep(4 * LAG).await;
    assert!(!lease.held().is_held());
    assert!(next.held().is_held(), "{:?}", next.held().state());
    let seen = before.inspect("settlement").await.expect("answered");
    assert_eq!(seen.token, Some(next.token()), "the new home's record has arrived in the old one");
}

/// Why docs/multi-region.md has the old home shut: a frozen process is not a stopped one.
#[tokio::test(flavor = "multi_thread")]
async fn control_a_process_that_wakes_with_the_old_home_undoes_the_new_homes_grant() {
    // Less than what passes before the new holder's first renewal, which would be newer still.
    let lag = Duration::from_millis(100);
    let table = table(Replication::Eventual { lag }).await;
    let store = DynamoDbStore::builder(table.client(FRANKFURT), TABLE).home_region(FRANKFURT).open().await.unwrap();
    // As good as frozen: nothing of it renews.
    let frozen = Leases::builder(store).ttl(TTL).margin(MARGIN).renewal(Renewal::Manual).build().unwrap();
    let lease = acquire(&frozen).await;
    sleep(2 * lag).await;
    let next = acquire(&at_home(&table, VIRGINIA, VIRGINIA).await).await;
    assert!(matches!(lease.release().await.unwrap(), Ended::Lost(_)), "and it knows that, but sends a release");
    let ended = timeout(PATIENCE, next.held().lost()).await.expect("it is told");
    assert!(matches!(ended, Ended::Lost(lost) if lost.reason() == &LostReason::Deleted));
}
