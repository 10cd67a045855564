//! The documented statements refuse a stale holder in PostgreSQL, whatever meets whatever.
#![allow(clippy::disallowed_methods, reason = "real processes run in real time")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "fenced_sql/mod.rs"]
mod fenced_sql;
mod support;

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::fenced_sql::{Folder, constant, freeze, leases, leases_file, statement};
use crate::support::worker::{Worker, role, tell};

const ENDPOINT: &str = "LEASEHOLD_POSTGRES_ENDPOINT";
const FOLDER: &str = "LEASEHOLD_TEST_FOLDER";
const SCHEMA: &str = "LEASEHOLD_TEST_SCHEMA";

/// The resource: a table of accounts, over a connection of its own.
struct Accounts(Client);

impl Accounts {
    async fn connect(schema: &str) -> Self {
        let endpoint = std::env::var(ENDPOINT)
            .unwrap_or_else(|_| panic!("{ENDPOINT} is not set: start PostgreSQL with `localstack/up postgres`"));
        let (client, connection) = tokio_postgres::connect(&endpoint, NoTls).await.expect("PostgreSQL answers");
        tokio::spawn(async { drop(connection.await) });
        client.batch_execute(&format!("SET search_path TO {schema}")).await.unwrap();
        Self(client)
    }

    async fn raise(&self, id: &str, token: i64) -> Option<i64> {
        self.0.query_opt(constant("RAISE"), &[&id, &token]).await.unwrap().map(|row| row.get(0))
    }

    async fn set(&self, id: &str, balance: i64, token: i64) -> bool {
        self.0.execute(constant("SET"), &[&id, &balance, &token]).await.unwrap() == 1
    }

    async fn update(&self, id: &str, balance: i64, token: i64) -> Result<bool, tokio_postgres::Error> {
        let sql = statement("UPDATE accounts");
        self.0.execute(&sql, &[&balance, &token, &id]).await.map(|rows| rows == 1)
    }

    /// The first statement of a transaction under a fence row.
    async fn fence(&self, token: i64) -> bool {
        let sql = statement("INSERT INTO fences");
        self.0.execute(&sql, &[&"accounts", &token]).await.unwrap() == 1
    }

    async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }

    async fn balance_and_fence(&self, id: &str) -> Option<(i64, i64)> {
        let select = "SELECT balance, fence FROM accounts WHERE id = $1";
        let row = self.0.query_opt(select, &[&id]).await.unwrap();
        row.map(|row| (row.get(0), row.get(1)))
    }
}

/// Tables of a test's own.
struct Tables {
    schema: String,
    admin: Accounts,
}

impl Tables {
    async fn new(what: &str) -> Self {
        let schema = format!("leasehold_{what}_{}", std::process::id());
        let admin = Accounts::connect(&schema).await;
        admin.run(&format!("CREATE SCHEMA {schema}")).await;
        admin.run(constant("TABLE")).await;
        admin.run(&statement("CREATE TABLE fences")).await;
        Self { schema, admin }
    }

    /// A connection, which is known by the name of its tables.
    async fn connect(&self) -> Accounts {
        let accounts = Accounts::connect(&self.schema).await;
        accounts.run(&format!("SET application_name TO '{}'", self.schema)).await;
        accounts
    }

    /// Returns once one of the connections waits for a lock. From outside: in a transaction one always sees the same.
    async fn until_somebody_waits(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1";
        for _ in 0..6000 {
            if self.admin.0.query_one(waiting, &[&self.schema]).await.unwrap().get::<_, i64>(0) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody has waited");
    }

    async fn drop(self) {
        self.admin.run(&format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }
}

#[tokio::test]
async fn a_late_upsert_or_update_is_refused_and_an_equal_token_is_accepted() {
    let tables = Tables::new("late").await;
    let accounts = tables.connect().await;
    assert!(accounts.set("42", 10, 7).await);
    assert!(accounts.set("42", 11, 7).await);
    assert!(accounts.update("42", 12, 7).await.unwrap());
    assert!(accounts.set("42", 20, 8).await);
    assert!(!accounts.set("42", 99, 7).await);
    assert!(!accounts.update("42", 99, 7).await.unwrap());
    assert!(accounts.update("42", 30, 9).await.unwrap());
    assert!(!accounts.set("42", 99, 8).await);
    assert!(!accounts.update("42", 99, 8).await.unwrap());
    assert_eq!(accounts.balance_and_fence("42").await, Some((30, 9)));
    let highest = leasehold::FencingToken::new(leasehold::FencingToken::MAX).unwrap().as_i64();
    assert!(accounts.set("42", 40, highest).await);
    assert!(!accounts.set("42", 99, highest - 1).await);
    tables.drop().await;
}

#[tokio::test]
async fn a_raise_reads_and_changes_nothing_but_the_fence() {
    let tables = Tables::new("raise").await;
    let accounts = tables.connect().await;
    assert_eq!(accounts.raise("42", 7).await, Some(0), "and fences a row that was not there");
    assert!(accounts.set("42", 10, 7).await);
    assert_eq!(accounts.raise("42", 8).await, Some(10));
    assert_eq!(accounts.raise("42", 8).await, Some(10));
    assert_eq!(accounts.raise("42", 7).await, None);
    assert!(!accounts.set("42", 99, 7).await);
    assert_eq!(accounts.balance_and_fence("42").await, Some((10, 8)));
    tables.drop().await;
}

#[tokio::test]
async fn a_write_that_waits_for_a_raise_is_refused_by_it() {
    let tables = Tables::new("waits").await;
    let (new, old) = (tables.connect().await, tables.connect().await);
    assert!(old.set("42", 10, 7).await);
    for (late, mine, highest) in [("upsert", 7, 8), ("update", 8, 9)] {
        new.run("BEGIN").await;
        assert_eq!(new.raise("42", highest).await, Some(10));
        let write = async {
            match late {
                "upsert" => old.set("42", 99, mine).await,
                _ => old.update("42", 99, mine).await.unwrap(),
            }
        };
        let commit = async {
            tables.until_somebody_waits().await;
            new.run("COMMIT").await;
        };
        let (written, ()) = tokio::join!(write, commit);
        assert!(!written, "{late}");
    }
    assert_eq!(new.balance_and_fence("42").await, Some((10, 9)));
    tables.drop().await;
}

#[tokio::test]
async fn a_raise_that_waits_for_a_write_reads_what_it_has_written() {
    let tables = Tables::new("reads").await;
    let (old, new) = (tables.connect().await, tables.connect().await);
    old.run("BEGIN").await;
    assert!(old.set("42", 10, 7).await);
    let commit = async {
        tables.until_somebody_waits().await;
        old.run("COMMIT").await;
    };
    let (read, ()) = tokio::join!(new.raise("42", 8), commit);
    assert_eq!(read, Some(10));
    tables.drop().await;
}

#[tokio::test]
async fn at_a_higher_isolation_level_the_meeting_is_an_error_and_the_next_try_is_told() {
    let tables = Tables::new("serializable").await;
    let (new, old) = (tables.connect().await, tables.connect().await);
    assert!(old.set("42", 10, 7).await);
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(old.balance_and_fence("42").await, Some((10, 7)));
    assert_eq!(new.raise("42", 8).await, Some(10));
    let error = old.update("42", 99, 7).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    old.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert!(!old.update("42", 99, 7).await.unwrap());
    old.run("COMMIT").await;
    tables.drop().await;
}

#[tokio::test]
async fn a_transaction_under_a_fence_row_comes_before_the_raise_with_all_of_it_or_not_at_all() {
    let tables = Tables::new("row").await;
    let (old, new) = (tables.connect().await, tables.connect().await);
    let both = "INSERT INTO accounts VALUES ('1', 10, 0), ('2', 10, 0)";
    old.run("BEGIN").await;
    assert!(old.fence(7).await);
    old.run(both).await;
    let commit = async {
        tables.until_somebody_waits().await;
        old.run("COMMIT").await;
    };
    let (raised, ()) = tokio::join!(new.fence(8), commit);
    assert!(raised);
    assert_eq!(new.balance_and_fence("2").await, Some((10, 0)), "the new holder sees all of it");

    old.run("BEGIN").await;
    assert!(!old.fence(7).await, "a late one is refused");
    old.run("ROLLBACK").await;
    tables.drop().await;
}

#[tokio::test]
async fn the_late_write_of_a_frozen_process_is_refused_by_postgresql() {
    let (folder, tables) = (Folder::new("postgres-fenced"), Tables::new("fenced").await);
    let worker = start("fenced", &folder, &tables);
    let mine: i64 = worker.says("holds").parse().unwrap();
    worker.says("wrote");
    freeze(&worker, &[leases_file(&folder.0)]);

    let lease = leases(&folder.0).await.acquire("account/42").await.unwrap();
    let (accounts, token) = (tables.connect().await, lease.token().as_i64());
    assert!(token > mine);
    assert!(accounts.raise("42", token).await.unwrap() < 0, "the frozen one has written something");
    assert!(accounts.set("42", 1, token).await);

    worker.thaw();
    worker.says("refused");
    assert_eq!(accounts.balance_and_fence("42").await, Some((1, token)));
    drop(worker);
    tables.drop().await;
}

/// The control: the very same story without the fence, in which the late write does its harm.
#[tokio::test]
async fn without_the_fence_the_same_late_write_overwrites_the_next_holders() {
    let (folder, tables) = (Folder::new("postgres-unfenced"), Tables::new("unfenced").await);
    let worker = start("unfenced", &folder, &tables);
    worker.says("wrote");
    freeze(&worker, &[leases_file(&folder.0)]);

    let _lease = leases(&folder.0).await.acquire("account/42").await.unwrap();
    let accounts = tables.connect().await;
    assert!(accounts.set("42", 1, 0).await);

    worker.thaw();
    worker.says("late");
    assert!(accounts.balance_and_fence("42").await.unwrap().0 < 0);
    drop(worker);
    tables.drop().await;
}

#[tokio::test]
async fn a_process_that_is_frozen_in_a_transaction_is_ended_there_and_does_not_keep_its_successor_waiting() {
    let (folder, tables) = (Folder::new("postgres-midway"), Tables::new("midway").await);
    let worker = start("midway", &folder, &tables);
    worker.says("in a transaction");
    freeze(&worker, &[leases_file(&folder.0)]);

    let lease = leases(&folder.0).await.acquire("account/42").await.unwrap();
    let (accounts, token) = (tables.connect().await, lease.token().as_i64());
    assert_eq!(accounts.raise("42", token).await, Some(0), "nothing of its transaction has stayed");

    worker.thaw();
    worker.says("its connection is closed");
    assert_eq!(accounts.balance_and_fence("42").await, Some((0, token)));
    drop(worker);
    tables.drop().await;
}

fn start(role: &str, folder: &Folder, tables: &Tables) -> Worker {
    Worker::start(role, [(FOLDER, folder.0.as_os_str()), (SCHEMA, tables.schema.as_ref())])
}

/// Not a test: what a worker process runs. It writes on and on, as a holder does that looks at no clock.
#[test]
fn worker_process() {
    let Some(role) = role() else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let schema = std::env::var(SCHEMA).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let lease = leases(&folder).await.acquire("account/42").await.unwrap();
        let accounts = Accounts::connect(&schema).await;
        if role == "midway" {
            return midway(&accounts, lease.token().as_i64()).await;
        }
        // Without the fence is with a fence that is never raised.
        let token = if role == "fenced" { lease.token().as_i64() } else { 0 };
        tell("holds", token);
        for count in 1.. {
            let after_another = accounts.balance_and_fence("42").await.is_some_and(|(balance, _)| balance > 0);
            if !accounts.set("42", -count, token).await {
                return tell("refused", count);
            }
            tell(if after_another { "late" } else { "wrote" }, count);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

async fn midway(accounts: &Accounts, token: i64) {
    accounts.run("SET idle_in_transaction_session_timeout = '500ms'; BEGIN").await;
    assert!(accounts.set("42", 99, token).await);
    tell("in a transaction", "");
    while !accounts.0.is_closed() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    accounts.0.batch_execute("COMMIT").await.unwrap_err();
    tell("its connection is closed", "");
}
