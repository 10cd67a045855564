//! The book in SQL: rows in a table, and one row as the fence of them all. The leases are in the same file.

use std::time::Duration;

use async_trait::async_trait;
use leasehold::sqlite::SqliteStore;
use leasehold::{FencingToken, Leases};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::Run;
use crate::book::{Book, Found, Ground, Result, Trade};

const TTL: Duration = Duration::from_secs(2);

/// For another process's write.
const WAITS: Duration = Duration::from_secs(30);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS trades (batch INTEGER NOT NULL, buy INTEGER NOT NULL, sell INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS fences (lease TEXT PRIMARY KEY, token BIGINT NOT NULL)";

/// Changes no row if a higher token has been here.
const FENCE: &str = "INSERT INTO fences (lease, token) VALUES ('orders', $1) ON CONFLICT (lease) DO UPDATE
    SET token = excluded.token WHERE fences.token <= excluded.token";

const IS_MATCHED: &str = "SELECT EXISTS (SELECT 1 FROM trades WHERE batch = $1)";
const RECORD: &str = "INSERT INTO trades (batch, buy, sell) VALUES ($1, $2, $3)";

struct Rows(Connection);

pub async fn open(run: &Run) -> Result<Ground> {
    let file = run.folder.join("book.db");
    let leases = Leases::builder(SqliteStore::open(&file).await?).ttl(TTL).margin(TTL / 10);
    let connection = Connection::open(file)?;
    connection.busy_timeout(WAITS)?;
    connection.execute_batch(TABLES)?;
    Ok(Ground { leases, book: Box::new(Rows(connection)) })
}

#[async_trait]
impl Book for Rows {
    async fn begin(&mut self, batch: usize, fence: Option<FencingToken>) -> Result<Found> {
        if !raise(&self.0, fence)? {
            return Ok(Found::Refused);
        }
        let is_matched = self.0.query_row(IS_MATCHED, [batch], |row| row.get(0))?;
        Ok(if is_matched { Found::Matched } else { Found::Open })
    }

    async fn record(
        &mut self,
        batch: usize,
        _write: &str,
        trades: &[Trade],
        fence: Option<FencingToken>,
    ) -> Result<bool> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !raise(&transaction, fence)? {
            return Ok(false); // and nothing else is sent; it is rolled back
        }
        for trade in trades {
            transaction.execute(RECORD, params![batch, trade.buy, trade.sell])?;
        }
        transaction.commit()?;
        Ok(true)
    }

    async fn trades(&mut self) -> Result<Vec<Trade>> {
        let mut select = self.0.prepare("SELECT buy, sell FROM trades")?;
        let trades = select.query_map([], |row| Ok(Trade { buy: row.get(0)?, sell: row.get(1)? }))?;
        Ok(trades.collect::<rusqlite::Result<_>>()?)
    }

    fn is_unlocked(&self) -> bool {
        let free = || {
            self.0.busy_timeout(Duration::ZERO)?;
            self.0.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            self.0.busy_timeout(WAITS)
        };
        free().is_ok()
    }
}

/// `false`: a higher token has been here. Without a token nobody is asked.
fn raise(db: &Connection, fence: Option<FencingToken>) -> Result<bool> {
    Ok(match fence {
        Some(token) => db.execute(FENCE, [token.as_i64()])? == 1,
        None => true,
    })
}
