//! What the tests of the fence in SQL share: the documented statements, and leases for the processes of one machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::Leases;
use leasehold::sqlite::SqliteStore;
use rusqlite::Connection;

use crate::support::worker::Worker;

const PAGE: &str = include_str!("../../docs/fencing.md");

/// Long enough for a worker to begin, short enough to be waited for.
pub const TTL: Duration = Duration::from_millis(1500);

/// A statement of the documentation's program, as it stands there.
pub fn constant(name: &str) -> &'static str {
    between(&format!("const {name}: &str = \""), "\";\n")
}

/// The statement of the documentation that begins so.
pub fn statement(beginning: &str) -> String {
    format!("{beginning}{}", between(&format!("```sql\n{beginning}"), "\n```\n"))
}

fn between(before: &str, after: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(before).unwrap_or_else(|| panic!("docs/fencing.md has no `{before}`"));
    rest.split_once(after).expect("it ends").0
}

/// A folder of a test's own.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(what: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leasehold-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Leases in a file that the processes of a test share.
pub async fn leases(folder: &Path) -> Leases {
    let store = SqliteStore::open(leases_file(folder)).await.expect("a file");
    Leases::builder(store).ttl(TTL).margin(TTL / 10).build().expect("fits")
}

pub fn leases_file(folder: &Path) -> PathBuf {
    folder.join("leases.db")
}

/// Freezes a worker, but not while it has one of these files locked: nobody could go on then.
pub fn freeze(worker: &Worker, files: &[PathBuf]) {
    loop {
        worker.freeze();
        if files.iter().all(|file| is_unlocked(file)) {
            return;
        }
        worker.thaw();
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_unlocked(file: &Path) -> bool {
    let connection = Connection::open(file).expect("it is there");
    connection.busy_timeout(Duration::ZERO).expect("an option");
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
}
