//! The resources: a counter that nothing guards, the same one behind a fence, and the logs of the election and of the semaphore's permits.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

/// Read and write lie so far apart, as in a program that computes something.
pub const THINKS: Duration = Duration::from_millis(8);

pub struct Counters(Connection);

impl Counters {
    pub fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("counters.db")).expect("a file");
        // Longer than anybody is frozen inside of a statement.
        connection.busy_timeout(Duration::from_secs(120)).expect("an option");
        let tables = "PRAGMA synchronous = OFF;
            BEGIN IMMEDIATE;
            CREATE TABLE IF NOT EXISTS counters (kind TEXT PRIMARY KEY, value INTEGER, writes INTEGER, fence INTEGER);
            CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY AUTOINCREMENT, token INTEGER, value INTEGER);
            CREATE TABLE IF NOT EXISTS terms (seq INTEGER PRIMARY KEY AUTOINCREMENT, lease TEXT, term INTEGER, leader TEXT);
            INSERT OR IGNORE INTO counters VALUES ('unguarded', 0, 0, 0), ('fenced', 0, 0, 0);
            COMMIT";
        connection.execute_batch(tables).expect("tables");
        Self(connection)
    }

    /// Reads, thinks and writes. The number of writes is kept in the same statement, so it cannot be lost.
    pub fn add_one_unguarded(&self) {
        let value = self.value("unguarded");
        std::thread::sleep(THINKS);
        let sql = "UPDATE counters SET value = ?1, writes = writes + 1 WHERE kind = 'unguarded'";
        self.0.execute(sql, [value + 1]).expect("written");
    }

    /// Raises the fence and reads behind it; `None`: stale. Without the fence it only reads.
    pub fn read_fenced(&self, token: u64, no_fence: bool) -> Option<i64> {
        let sql = "UPDATE counters SET fence = max(fence, ?1) WHERE kind = 'fenced' AND (fence <= ?1 OR ?2)";
        let raised = self.0.execute(sql, params![token as i64, no_fence]).expect("raised") > 0;
        raised.then(|| self.value("fenced"))
    }

    /// Whether it was written: not if another has raised the fence since.
    pub fn write_fenced(&self, token: u64, value: i64, no_fence: bool) -> bool {
        let transaction = self.0.unchecked_transaction().expect("begun");
        let sql = "UPDATE counters SET value = ?2, writes = writes + 1 WHERE kind = 'fenced' AND (fence <= ?1 OR ?3)";
        let written = transaction.execute(sql, params![token as i64, value, no_fence]).expect("written") > 0;
        if written {
            let sql = "INSERT INTO log (token, value) VALUES (?1, ?2)";
            transaction.execute(sql, [token as i64, value]).expect("written");
        }
        transaction.commit().expect("committed");
        written
    }

    /// An entry in the log of a lease; refused if a later term has one.
    pub fn enter(&self, lease: &str, term: u64, leader: &str) -> bool {
        let sql = "INSERT INTO terms (lease, term, leader) SELECT ?1, ?2, ?3
            WHERE NOT EXISTS (SELECT 1 FROM terms WHERE lease = ?1 AND term > ?2)";
        self.0.execute(sql, params![lease, term as i64, leader]).expect("written") > 0
    }

    fn value(&self, kind: &str) -> i64 {
        self.0.query_row("SELECT value FROM counters WHERE kind = ?1", [kind], |row| row.get(0)).expect("a row")
    }

    /// The writes and what is left of them.
    pub fn writes_and_value(&self, kind: &str) -> (i64, i64) {
        let row = self.0.query_row("SELECT writes, value FROM counters WHERE kind = ?1", [kind], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        row.optional().expect("a table").unwrap_or_default()
    }

    /// The accepted writes of the fenced counter in their order: token and value.
    pub fn log(&self) -> Vec<(i64, i64)> {
        let mut select = self.0.prepare("SELECT token, value FROM log ORDER BY seq").expect("a table");
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }

    /// The log of a lease in its order: term and leader.
    pub fn terms(&self, lease: &str) -> Vec<(i64, String)> {
        let sql = "SELECT term, leader FROM terms WHERE lease = ?1 ORDER BY seq";
        let mut select = self.0.prepare(sql).expect("a table");
        let rows = select.query_map([lease], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }
}
