//! The ledger of settlements: one row in one file, which checks tokens. It stands for whatever the job writes to, and
//! it is one thing for all regions.

use std::path::Path;
use std::time::Duration;

use leasehold::FencingToken;
use rusqlite::{Connection, OptionalExtension, params};

use super::Result;

pub struct Ledger(Connection);

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, settled INTEGER NOT NULL, fence INTEGER NOT NULL)";
const RAISE: &str = "INSERT INTO ledger (id, settled, fence) VALUES (1, 0, ?1) ON CONFLICT (id) DO UPDATE
    SET fence = excluded.fence WHERE ledger.fence <= excluded.fence RETURNING settled";
const SETTLE: &str = "UPDATE ledger SET settled = ?1, fence = ?2 WHERE id = 1 AND fence <= ?2";

impl Ledger {
    pub fn open(path: &Path) -> Result<Self> {
        let db = Connection::open(path)?;
        db.busy_timeout(Duration::from_secs(5))?;
        db.execute(TABLE, [])?;
        Ok(Self(db))
    }

    /// A new holder's first act: after it no late write of an earlier one gets through. What is settled so far, or
    /// `None` for one that was itself replaced.
    pub fn raise(&self, token: FencingToken) -> Result<Option<i64>> {
        Ok(self.0.query_row(RAISE, params![token.as_i64()], |row| row.get(0)).optional()?)
    }

    /// `false`: refused, this holder was replaced.
    pub fn settle(&self, batch: i64, token: FencingToken) -> Result<bool> {
        Ok(self.0.execute(SETTLE, params![batch, token.as_i64()])? == 1)
    }
}
