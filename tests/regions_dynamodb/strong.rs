//! Multi-Region strong consistency (MRSC): one store with an endpoint in each region.

use std::time::Duration;

use leasehold::dynamodb::DynamoDbStore;
use leasehold::{Ended, ErrorKind, Leases, State};
use tokio::time::{Instant, sleep, timeout};

use crate::ground::{FRANKFURT, PATIENCE, REGIONS, TABLE, TOKYO, TTL, VIRGINIA, acquire, leases, table, try_acquire};
use crate::support::global_table::{GlobalTable, Replication};

/// How long a write takes, until every region has it.
const WRITE: Duration = Duration::from_millis(20);

async fn strong(write: Duration) -> GlobalTable {
    table(Replication::Strong { write }).await
}

async fn open(table: &GlobalTable, region: &str) -> Leases {
    let store = DynamoDbStore::open(table.client(region), TABLE).await.expect("a strong table needs no home");
    leases(store, region)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_regions_of_a_strong_table_are_one_store() {
    let table = strong(WRITE).await;
    let (frankfurt, virginia) = (open(&table, FRANKFURT).await, open(&table, VIRGINIA).await);
    let lease = try_acquire(&frankfurt).await.expect("free");
    assert!(try_acquire(&virginia).await.is_none(), "held in another region");
    let first = lease.token();
    let lease = virginia.resume(lease.into_handover().await.unwrap()).await.expect("the same store");
    assert!(lease.token() > first);
    let second = lease.token();
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert!(try_acquire(&frankfurt).await.expect("free again").token() > second);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_regions_that_try_at_once_one_gets_the_lease_and_none_an_error() {
    let table = strong(WRITE).await;
    let mut clients = Vec::new();
    for region in REGIONS {
        clients.push(open(&table, region).await);
    }
    for round in 0..5 {
        let tries = clients.iter().map(|leases| leases.try_acquire("settlement"));
        let won: Vec<_> = futures_util::future::join_all(tries).await;
        let won: Vec<_> = won.into_iter().filter_map(|tried| tried.expect("answered").acquired()).collect();
        assert_eq!(won.len(), 1, "round {round}");
        for lease in won {
            lease.release().await.unwrap();
        }
    }
    let conflicts: usize = REGIONS.iter().map(|region| table.conflicts(region)).sum();
    assert!(conflicts > 0, "no try met another, so nothing was shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_meets_another_regions_write_is_not_a_loss() {
    let table = strong(WRITE).await;
    let (frankfurt, virginia) = (open(&table, FRANKFURT).await, open(&table, VIRGINIA).await);
    let lease = acquire(&frankfurt).await;
    let started = Instant::now();
    // Claims without a pause: the worst that a neighbour can do.
    while started.elapsed() < 4 * TTL || table.conflicts(FRANKFURT) == 0 {
        assert!(started.elapsed() < PATIENCE, "no renewal ever met a claim, so nothing was shown");
        assert!(try_acquire(&virginia).await.is_none());
        assert!(lease.held().is_held(), "{:?}", lease.held().state());
    }
    assert!(matches!(lease.held().state(), State::Held | State::Jeopardy));
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_in_other_regions_only_read_so_no_renewal_is_refused() {
    let table = strong(WRITE).await;
    let frankfurt = open(&table, FRANKFURT).await;
    let lease = acquire(&frankfurt).await;
    let mut waiters = Vec::new();
    for region in [VIRGINIA, TOKYO] {
        let leases = open(&table, region).await;
        waiters.push(tokio::spawn(async move {
            let lease = acquire(&leases).await;
            let token = lease.token();
            lease.release().await.map(|_| token)
        }));
    }
    // The first try of each is a claim.
    sleep(TTL).await;
    let before = table.conflicts(FRANKFURT);
    sleep(3 * TTL).await;
    assert_eq!(table.conflicts(FRANKFURT), before);
    let token = lease.token();
    lease.release().await.unwrap();
    for waiter in waiters {
        let next = timeout(PATIENCE, waiter).await.expect("in time").unwrap().unwrap();
        assert!(next > token);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_is_gone_is_replaced_by_another_with_a_higher_token() {
    let table = strong(WRITE).await;
    let (frankfurt, virginia) = (open(&table, FRANKFURT).await, open(&table, VIRGINIA).await);
    let lease = acquire(&frankfurt).await;
    table.down(FRANKFURT);
    let next = acquire(&virginia).await;
    assert!(!lease.held().is_held(), "lost by its own clock, with nobody to ask");
    assert!(next.token() > lease.token());
    table.up(FRANKFURT);
    assert!(try_acquire(&frankfurt).await.is_none(), "the region that is back sees who holds it now");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_take_as_long_as_the_way_around_the_world_keep_a_lease() {
    let table = strong(Duration::from_millis(150)).await;
    let frankfurt = open(&table, FRANKFURT).await;
    let lease = acquire(&frankfurt).await;
    sleep(4 * TTL).await;
    assert_eq!(lease.held().state(), State::Held);
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
}

#[tokio::test]
async fn what_a_strong_table_has_not_is_refused_before_anything_is_sent() {
    let table = strong(WRITE).await;
    let builder = DynamoDbStore::builder(table.client(FRANKFURT), TABLE).retention(Duration::from_secs(86_400));
    let error = builder.open().await.expect_err("no time to live");
    assert!(error.to_string().contains("`retention`"), "{error}");

    let store = DynamoDbStore::open(table.client(FRANKFURT), TABLE).await.unwrap();
    let lease = acquire(&leases(store.clone(), FRANKFURT)).await;
    let error = store.condition_check(&lease.held().proof()).expect_err("no transactions");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("no transactions") && error.to_string().contains("Fenced"), "{error}");
}
