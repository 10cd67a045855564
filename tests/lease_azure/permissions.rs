//! What docs/permissions.md says a role needs is enough for what goes over the wire, and no letter of it is idle.

use std::collections::BTreeSet;

use leasehold::azure_blob::{AzureBlobStore, AzureBlobStoreBuilder, Credential};
use leasehold::testing::TestClock;
use leasehold::{Data, ErrorKind};

use crate::ground::{Ground, KEY, SECOND, TTL, lost};
use crate::support::azure::{ACCOUNT, Fake, Op};

const PAGE: &str = include_str!("../../docs/permissions.md");

/// The rows of the page's table of requests, with what they are here.
const REQUESTS: &[(&str, &[Op])] = &[
    ("Get Blob Properties", &[Op::HeadBlob]),
    ("Put Blob with If-None-Match", &[Op::PutBlob]),
    ("Lease Blob: acquire, renew, change, release", &[Op::Acquire, Op::Renew, Op::Change, Op::Release]),
    ("Lease Blob: break", &[Op::Break]),
    ("Set Blob Metadata", &[Op::SetMetadata]),
    ("List Blobs", &[Op::ListBlobs]),
    ("Get Container Properties", &[Op::GetContainer]),
    ("Create Container", &[Op::CreateContainer]),
];

type Letters = BTreeSet<char>;

#[tokio::test(start_paused = true)]
async fn the_letters_of_a_holder_are_enough_and_none_is_idle() {
    assert_just_enough("holder", &holders_requests().await);
}

#[tokio::test(start_paused = true)]
async fn the_letters_of_an_operator_are_enough_and_none_is_idle() {
    assert_just_enough("operator", &operators_requests().await);
}

#[tokio::test(start_paused = true)]
async fn the_letters_of_an_observer_are_enough_and_none_is_idle() {
    assert_just_enough("observer", &observers_requests().await);
}

#[tokio::test(start_paused = true)]
async fn the_table_of_requests_lists_all_that_the_store_sends_and_nothing_else() {
    let mut sent = holders_requests().await;
    sent.extend(operators_requests().await);
    sent.extend(verifying_requests().await);
    sent.extend(creating_requests().await);
    let sent: BTreeSet<&str> = sent.into_iter().map(|op| row_of(op).0).collect();
    let listed = column("| request | for |", 0);
    assert_eq!(listed.len(), REQUESTS.len());
    for row in listed {
        let (name, _) = REQUESTS.iter().find(|(name, _)| row.starts_with(name)).unwrap_or_else(|| panic!("{row}"));
        assert!(sent.contains(name), "never sent: {row}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_verified_store_asks_for_the_container() {
    assert_eq!(verifying_requests().await, [Op::GetContainer]);
    assert!(!holders_requests().await.contains(&Op::GetContainer));
}

/// All that a client does with leases of its own, in a container that it shares with another.
async fn holders_requests() -> Vec<Op> {
    let ground = Ground::new();
    let (a, b) = (ground.machine("a", 1).leases, ground.machine("b", 2).leases);
    let lease = a.request("job").data("begun").acquire().await.unwrap();
    lease.renew().await.unwrap();
    lease.held().set_data("half").await.unwrap();
    assert!(b.try_acquire("job").await.unwrap().acquired().is_none());
    let waited = b.acquire_within("job", SECOND).await.unwrap_err();
    assert_eq!(waited.kind(), ErrorKind::TimedOut);
    let lease = b.resume(lease.into_handover().await.unwrap()).await.unwrap();
    lease.close(TTL, Some(Data::new(b"done").unwrap())).await.unwrap();
    let acquire = tokio::spawn(async move { a.acquire("job").await.map(drop) });
    tokio::time::sleep(2 * SECOND).await;
    acquire.abort();
    ground.asked()
}

async fn operators_requests() -> Vec<Op> {
    let ground = Ground::new();
    let (holder, operator) = (ground.machine("a", 1), ground.machine("o", 2).leases);
    let lease = holder.acquire().await;
    let another = holder.leases.acquire("another").await.unwrap();
    ground.forget();
    operator.revoke("job", lease.token()).await.unwrap();
    operator.force("another", another.token()).await.unwrap();
    operator.inspect("job").await.unwrap();
    operator.list("").all().await.unwrap();
    let mut asked = ground.asked();
    lost(&lease).await;
    // What an operator may do beside that, a holder's letters allow: it may end what is stuck by holding it.
    asked.extend(holders_requests().await);
    asked
}

async fn observers_requests() -> Vec<Op> {
    let ground = Ground::with_a_free_lease().await;
    let observer = ground.machine("o", 1).leases;
    observer.inspect("job").await.unwrap();
    observer.list("").all().await.unwrap();
    ground.asked()
}

async fn verifying_requests() -> Vec<Op> {
    let fake = Fake::new(TestClock::new());
    builder(&fake).open().await.unwrap();
    fake.requests().iter().map(|seen| seen.op).collect()
}

async fn creating_requests() -> Vec<Op> {
    let fake = Fake::without_container(TestClock::new());
    builder(&fake).create_container().open().await.unwrap();
    fake.requests().iter().map(|seen| seen.op).collect()
}

fn builder(fake: &Fake) -> AzureBlobStoreBuilder {
    let builder = AzureBlobStore::builder(fake.container_url(), Credential::shared_key(ACCOUNT, KEY));
    builder.http_client(fake.http_client())
}

fn assert_just_enough(role: &str, sent: &[Op]) {
    let allowed = letters(&cell("| role | SAS on the container |", role, 1));
    let needed: Vec<(Op, Letters)> = sent.iter().map(|&op| (op, letters_of(op))).collect();
    for (op, any_of) in &needed {
        assert!(!any_of.is_disjoint(&allowed), "{role} sends {op:?}, for which one of {any_of:?} is needed");
    }
    for letter in &allowed {
        let without: Letters = allowed.iter().copied().filter(|other| other != letter).collect();
        assert!(needed.iter().any(|(_, any_of)| any_of.is_disjoint(&without)), "{role} does without {letter}");
    }
}

fn row_of(op: Op) -> &'static (&'static str, &'static [Op]) {
    REQUESTS.iter().find(|(_, ops)| ops.contains(&op)).unwrap_or_else(|| panic!("{op:?} is not on the page"))
}

/// One of these letters is needed.
fn letters_of(op: Op) -> Letters {
    letters(&cell("| request | for |", row_of(op).0, 2))
}

/// Those in backticks, such as "`c` or `w` of an account SAS".
fn letters(cell: &str) -> Letters {
    cell.split('`').skip(1).step_by(2).flat_map(str::chars).collect()
}

fn cell(table: &str, row: &str, column: usize) -> String {
    let found = rows(table).find(|cells| cells[0].starts_with(row));
    found.unwrap_or_else(|| panic!("no row {row}"))[column].to_owned()
}

fn column(table: &str, column: usize) -> Vec<&'static str> {
    rows(table).map(|cells| cells[column]).collect()
}

/// The cells of a table, without its head.
fn rows(table: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let at = PAGE.find(table).unwrap_or_else(|| panic!("no table {table}"));
    let lines = PAGE[at..].lines().take_while(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}
