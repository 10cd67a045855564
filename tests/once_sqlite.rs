//! Once on SQLite, where only watching tells: a paused clock for the processes, and a real file.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

#[path = "support/sqlite_file.rs"]
mod sqlite_file;

use std::time::Duration;

use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::sqlite::SqliteStore;
use leasehold::testing::TestClock;
use leasehold::{Leases, Status};
use sqlite_file::File;
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

/// A process as it begins: a store, a client and clocks of its own, and it has watched nothing.
async fn process(file: &File, clock: &TestClock, seed: u64) -> Leases {
    let store = SqliteStore::open(file.path()).await.unwrap();
    Leases::builder(store).holder(format!("process-{seed}")).clock(clock.another(seed)).build().unwrap()
}

async fn receive(leases: &Leases, keep: Duration) -> Result<Outcome, OnceError<std::fmt::Error>> {
    let work = |held: leasehold::Held| async move { Ok::<_, Failed<std::fmt::Error>>(format!("by {}", held.token())) };
    Once::new(leases).keep(keep).run("message", work).await
}

#[tokio::test(start_paused = true)]
async fn two_deliveries_to_two_processes_have_one_outcome_of_three_transactions() {
    let (file, clock) = (File::new("once", "two"), TestClock::new());
    let (a, b) = (process(&file, &clock, 2).await, process(&file, &clock, 3).await);
    assert_eq!(receive(&a, HOUR).await.unwrap(), Outcome::Done(b"by 1".to_vec()));
    let requests = a.stats().requests;
    assert_eq!((requests["read"], requests["claim"], requests["release"]), (1, 1, 1), "a look, for the first token");
    for again in [&b, &a] {
        let before: u64 = again.stats().requests.values().sum();
        assert_eq!(receive(again, HOUR).await.unwrap(), Outcome::AlreadyDone(b"by 1".to_vec()));
        assert_eq!(again.stats().requests.values().sum::<u64>() - before, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_is_told_the_outcome_until_it_has_watched_for_as_long_as_it_is_kept() {
    let (file, clock) = (File::new("once", "fresh"), TestClock::new());
    assert_eq!(receive(&process(&file, &clock, 2).await, HOUR).await.unwrap(), Outcome::Done(b"by 1".to_vec()));
    sleep(3 * HOUR).await;
    // Many that live for one call each never see the end of it.
    for seed in 10..20 {
        let process = process(&file, &clock, seed).await;
        assert_eq!(receive(&process, HOUR).await.unwrap(), Outcome::AlreadyDone(b"by 1".to_vec()));
        assert_eq!(process.inspect("message").await.unwrap().status, Status::Closed);
        sleep(HOUR / 2).await;
    }
    // One that stays does, a hundredth later than it was closed for.
    let stays = process(&file, &clock, 30).await;
    assert!(matches!(receive(&stays, HOUR).await, Ok(Outcome::AlreadyDone(_))));
    sleep(HOUR).await;
    assert!(matches!(receive(&stays, HOUR).await, Ok(Outcome::AlreadyDone(_))));
    sleep(HOUR / 100).await;
    assert!(matches!(receive(&stays, HOUR).await, Ok(Outcome::Done(second)) if second > b"by 1".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn an_operator_opens_a_closed_record_by_clearing_three_columns() {
    // As docs/operations.md says it.
    let (file, clock) = (File::new("once", "operator"), TestClock::new());
    let leases = process(&file, &clock, 2).await;
    assert_eq!(receive(&leases, HOUR).await.unwrap(), Outcome::Done(b"by 1".to_vec()));
    let changed = rusqlite::Connection::open(file.path())
        .unwrap()
        .execute(
            r#"UPDATE leasehold SET closed_ms = NULL, closed_until_ms = NULL, closed_by = NULL
               WHERE name = 'message' AND token = 1 AND "grant" IS NULL"#,
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    assert_eq!(receive(&leases, HOUR).await.unwrap(), Outcome::Done(b"by 2".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_crashed_run_is_taken_over_by_a_process_that_has_watched_a_term() {
    let (file, clock) = (File::new("once", "crashed"), TestClock::new());
    let (a, b) = (process(&file, &clock, 2).await, process(&file, &clock, 3).await);
    // It holds the key, and nothing more is heard of it: as after a kill.
    let dead = a.request("message").renewal(leasehold::Renewal::Manual).acquire().await.unwrap();
    assert!(matches!(receive(&b, HOUR).await, Ok(Outcome::InProgress(_))));
    sleep(Duration::from_secs(30)).await;
    assert!(matches!(receive(&b, HOUR).await, Ok(Outcome::InProgress(_))));
    sleep(Duration::from_secs(1)).await;
    let Ok(Outcome::Done(second)) = receive(&b, HOUR).await else { panic!("the term is over") };
    assert!(second > format!("by {}", dead.token()).into_bytes());
    let ended = dead.close(HOUR, None).await.unwrap();
    assert!(matches!(ended, leasehold::Ended::Lost(_)));
    assert_eq!(receive(&a, HOUR).await.unwrap(), Outcome::AlreadyDone(second));
}
