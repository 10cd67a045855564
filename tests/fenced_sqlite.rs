//! The documented statements refuse a stale holder in SQLite.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "real processes run in real time")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "fenced_sql/mod.rs"]
mod fenced_sql;
mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::fenced_sql::{Folder, constant, freeze, leases, leases_file, statement};
use crate::support::worker::{Worker, role, tell};

const FOLDER: &str = "LEASEHOLD_TEST_FOLDER";

/// The resource: a table of accounts.
struct Accounts(Connection);

impl Accounts {
    fn in_memory() -> Self {
        Self::new(Connection::open_in_memory().unwrap())
    }

    fn open(folder: &Path) -> Self {
        let connection = Connection::open(accounts_file(folder)).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        Self::new(connection)
    }

    fn new(connection: Connection) -> Self {
        for table in [constant("TABLE"), &statement("CREATE TABLE fences")] {
            let table = table.replacen("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1);
            connection.execute(&table, []).unwrap();
        }
        Self(connection)
    }

    fn raise(&self, id: &str, token: i64) -> Option<i64> {
        self.0.query_row(constant("RAISE"), params![id, token], |row| row.get(0)).optional().unwrap()
    }

    fn set(&self, id: &str, balance: i64, token: i64) -> bool {
        self.0.execute(constant("SET"), params![id, balance, token]).unwrap() == 1
    }

    fn update(&self, id: &str, balance: i64, token: i64) -> bool {
        self.0.execute(&statement("UPDATE accounts"), params![balance, token, id]).unwrap() == 1
    }

    /// As one transaction under a fence row: every account of these, or none.
    fn set_all(&mut self, ids: &[&str], balance: i64, token: i64) -> bool {
        let transaction = self.0.transaction().unwrap();
        if transaction.execute(&statement("INSERT INTO fences"), params!["accounts", token]).unwrap() != 1 {
            return false; // and rolls back
        }
        for id in ids {
            let sql = "INSERT OR REPLACE INTO accounts (id, balance, fence) VALUES (?1, ?2, 0)";
            transaction.execute(sql, params![id, balance]).unwrap();
        }
        transaction.commit().unwrap();
        true
    }

    fn balance_and_fence(&self, id: &str) -> Option<(i64, i64)> {
        let select = "SELECT balance, fence FROM accounts WHERE id = ?1";
        self.0.query_row(select, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional().unwrap()
    }
}

#[test]
fn a_late_upsert_or_update_is_refused_and_an_equal_token_is_accepted() {
    let accounts = Accounts::in_memory();
    assert!(accounts.set("42", 10, 7));
    assert!(accounts.set("42", 11, 7));
    assert!(accounts.update("42", 12, 7));
    assert!(accounts.set("42", 20, 8));
    assert!(!accounts.set("42", 99, 7));
    assert!(!accounts.update("42", 99, 7));
    assert!(accounts.update("42", 30, 9));
    assert!(!accounts.set("42", 99, 8));
    assert!(!accounts.update("42", 99, 8));
    assert_eq!(accounts.balance_and_fence("42"), Some((30, 9)));
}

#[test]
fn a_raise_reads_and_changes_nothing_but_the_fence() {
    let accounts = Accounts::in_memory();
    assert_eq!(accounts.raise("42", 7), Some(0), "and fences a row that was not there");
    assert!(accounts.set("42", 10, 7));
    assert_eq!(accounts.raise("42", 8), Some(10));
    assert_eq!(accounts.raise("42", 8), Some(10));
    assert_eq!(accounts.raise("42", 7), None);
    assert!(!accounts.set("42", 99, 7));
    assert_eq!(accounts.balance_and_fence("42"), Some((10, 8)));
}

#[test]
fn the_highest_token_fits() {
    let accounts = Accounts::in_memory();
    let highest = leasehold::FencingToken::new(leasehold::FencingToken::MAX).unwrap().as_i64();
    assert!(accounts.set("42", 10, highest));
    assert!(!accounts.set("42", 99, highest - 1));
    assert_eq!(accounts.balance_and_fence("42"), Some((10, highest)));
}

#[test]
fn a_late_transaction_under_a_fence_row_changes_nothing() {
    let mut accounts = Accounts::in_memory();
    assert!(accounts.set_all(&["1", "2"], 10, 7));
    assert!(accounts.set_all(&["1", "2"], 20, 8));
    assert!(!accounts.set_all(&["1", "2", "3"], 99, 7));
    for (id, expected) in [("1", Some((20, 0))), ("2", Some((20, 0))), ("3", None)] {
        assert_eq!(accounts.balance_and_fence(id), expected);
    }
}

#[tokio::test]
async fn the_late_write_of_a_frozen_process_is_refused_by_sqlite() {
    let folder = Folder::new("fenced");
    let worker = Worker::start("fenced", [(FOLDER, &folder.0)]);
    let mine: i64 = worker.says("holds").parse().unwrap();
    worker.says("wrote");
    freeze(&worker, &files(&folder.0));

    let lease = leases(&folder.0).await.acquire("account/42").await.unwrap();
    let (accounts, token) = (Accounts::open(&folder.0), lease.token().as_i64());
    assert!(token > mine);
    assert!(accounts.raise("42", token).unwrap() < 0, "the frozen one has written something");
    assert!(accounts.set("42", 1, token));

    worker.thaw();
    worker.says("refused");
    assert_eq!(accounts.balance_and_fence("42"), Some((1, token)));
}

/// The control: the very same story without the fence, in which the late write does its harm.
#[tokio::test]
async fn without_the_fence_the_same_late_write_overwrites_the_next_holders() {
    let folder = Folder::new("unfenced");
    let worker = Worker::start("unfenced", [(FOLDER, &folder.0)]);
    worker.says("wrote");
    freeze(&worker, &files(&folder.0));

    let _lease = leases(&folder.0).await.acquire("account/42").await.unwrap();
    let accounts = Accounts::open(&folder.0);
    assert!(accounts.set("42", 1, 0));

    worker.thaw();
    worker.says("late");
    assert!(accounts.balance_and_fence("42").unwrap().0 < 0);
}

fn accounts_file(folder: &Path) -> PathBuf {
    folder.join("accounts.db")
}

fn files(folder: &Path) -> [PathBuf; 2] {
    [leases_file(folder), accounts_file(folder)]
}

/// Not a test: what a worker process runs. It writes on and on, as a holder does that looks at no clock.
#[test]
fn worker_process() {
    let Some(role) = role() else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let lease = leases(&folder).await.acquire("account/42").await.unwrap();
        let accounts = Accounts::open(&folder);
        // Without the fence is with a fence that is never raised.
        let token = if role == "fenced" { lease.token().as_i64() } else { 0 };
        tell("holds", token);
        for count in 1.. {
            let after_another = accounts.balance_and_fence("42").is_some_and(|(balance, _)| balance > 0);
            if !accounts.set("42", -count, token) {
                return tell("refused", count);
            }
            tell(if after_another { "late" } else { "wrote" }, count);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}
