//! Leases in a SQLite file: for the processes of one machine.

mod error;
mod file;
mod row;
mod statements;

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use self::file::{Link, Place};
use crate::protocol::record::{self, Outcome};
use crate::store::Store;
use crate::types::{
    Answer, Ask, Asked, Claim, Claimed, Description, Error, ListPage, Name, Operation, Page, Renew, Renewed, Revoke,
    Revoked, StoreError, Timed, Vacate, Vacated, View,
};

const KIND: &str = "sqlite";

/// Renewals in one transaction share its one wait for the disk.
const RENEW_BATCH: usize = 100;

/// Leases in a SQLite file on a local disk, shared by the processes of one machine. Clones share one connection.
///
/// It has no time of its own (a file's clock is that of the user's machine), so an expired lease is taken over only
/// by a process that has watched it for a full term, and tokens count up from 1. Everything is in the table
/// `leasehold`, which may stand beside the caller's own tables.
///
/// Calls run on tokio's blocking threads, one at a time for a connection. A call waits at most half a second for
/// another process's write, and for the disk as long as that takes. A call that is dropped while it waits for its
/// turn has done nothing; one that is dropped later runs to its end.
#[derive(Clone)]
pub struct SqliteStore {
    place: Arc<Place>,
    lane: Arc<Mutex<Option<Link>>>,
}

impl SqliteStore {
    /// Opens the file, and creates it and the table where they are missing.
    ///
    /// The file is put into WAL mode, and every commit is on the disk before it is answered.
    ///
    /// # Errors
    /// [`ErrorKind::Misconfigured`](crate::ErrorKind::Misconfigured) when the directory is missing, the file is not
    /// a database, cannot be put into WAL mode, or has a table `leasehold` of another shape; the text says which.
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) when the file may not be written.
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when others keep it busy, or outside of a tokio
    /// runtime.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most an empty table behind.
    ///
    /// # Examples
    /// ```
    /// use leasehold::Leases;
    /// use leasehold::sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leasehold::Error> {
    /// # let path = std::env::temp_dir().join(format!("leasehold-example-{}.db", std::process::id()));
    /// let store = SqliteStore::open(&path).await?;
    /// let leases = Leases::builder(store).holder("billing-3").build()?;
    /// let lease = leases.acquire("orders/eu").await?;
    /// lease.release().await?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let opened = blocking(move || file::open(&path)).await;
        let (place, link) = opened.map_err(|error| Error::of_store(Operation::Open, KIND, error))?;
        Ok(Self { place: Arc::new(place), lane: Arc::new(Mutex::new(Some(link))) })
    }

    /// Runs `work` on this store's connection, alone, on a thread that may block.
    async fn on_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        // The turn is taken before the thread: a crowd waits here without holding threads, and may be dropped. It is
        // taken in a task, because turns are given in order, and a caller that is not polled must not keep its own.
        let (lane, place) = (Arc::clone(&self.lane), Arc::clone(&self.place));
        let runtime = Handle::try_current().map_err(error::no_runtime)?;
        let task = runtime.spawn(async move {
            let mut lane = lane.lock_owned().await;
            blocking(move || work(place.connected(&mut lane)?)).await
        });
        AbortOnDrop(task).await
    }

    /// Runs one verb in one transaction.
    async fn write<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Answer<T> {
        self.on_connection(move |connection| {
            let transaction = begin(connection)?;
            let answer = verb(&transaction).map_err(error::in_transaction)?;
            transaction.commit().map_err(error::at_commit)?;
            Ok(Timed::undated(answer))
        })
        .await
    }
}

/// A call that was dropped gives up its turn. What has begun on a thread goes on there.
struct AbortOnDrop<T>(JoinHandle<Result<T, StoreError>>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|joined| joined.unwrap_or_else(|gone| Err(error::interrupted(gone))))
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn describe(&self) -> Description {
        Description { renew_batch: RENEW_BATCH, ..Description::new(KIND, self.place.identity()) }
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        let body = claim.clone();
        self.write(move |transaction| run_claim(transaction, &body)).await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let bodies = renewals.to_vec();
        match self.on_connection(move |connection| renew_all(connection, &bodies)).await {
            Ok(answers) => answers,
            Err(error) => renewals.iter().map(|_| Err(error::copy_of(&error))).collect(),
        }
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        let body = vacate.clone();
        self.write(move |transaction| run_vacate(transaction, &body)).await
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        let body = revoke.clone();
        self.write(move |transaction| run_revoke(transaction, &body)).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let body = ask.clone();
        self.write(move |transaction| run_ask(transaction, &body)).await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let name = name.clone();
        self.on_connection(move |connection| {
            let stored = row::read(connection, &name).map_err(error::of_read)?;
            Ok(Timed::undated(stored.view()))
        })
        .await
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        let prefix = prefix.to_owned();
        self.on_connection(move |connection| row::list(connection, &prefix, page.as_ref()).map(Timed::undated)).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        // Its connection is opened by its first call.
        Some(Arc::new(Self { place: Arc::clone(&self.place), lane: Arc::default() }))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.place.path()).finish_non_exhaustive()
    }
}

/// Takes the write lock at once: a transaction that begins by reading could not become a writer any more after
/// somebody else's commit. <https://www.sqlite.org/lang_transaction.html#immediate>
fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error::at_begin)
}

// Each verb reads the row first, under the write lock: what is not readable is not touched, and a refusal answers
// exactly what the condition met. The condition itself stands in the statement.

fn run_claim(transaction: &Transaction<'_>, claim: &Claim) -> rusqlite::Result<Claimed> {
    let stored = row::read(transaction, &claim.name)?;
    if record::claim(&stored, claim) == Outcome::Already {
        return Ok(Claimed::Granted);
    }
    let granted = match statements::claim(claim) {
        Some(statement) => statement.changes(transaction, &stored)?,
        None => false,
    };
    Ok(if granted { Claimed::Granted } else { Claimed::Refused(stored.view()) })
}

/// All renewals in one transaction. A statement that fails alone takes no other with it.
fn renew_all(connection: &mut Connection, renewals: &[Renew]) -> Result<Vec<Answer<Renewed>>, StoreError> {
    let transaction = begin(connection)?;
    let mut answers = Vec::with_capacity(renewals.len());
    for renew in renewals {
        let answer = run_renew(&transaction, renew).map(Timed::undated).map_err(error::in_transaction);
        if transaction.is_autocommit() {
            // SQLite has rolled everything back, the earlier ones too.
            return Err(answer.err().unwrap_or_else(error::rolled_back));
        }
        answers.push(answer);
    }
    transaction.commit().map_err(error::at_commit)?;
    Ok(answers)
}

fn run_renew(transaction: &Transaction<'_>, renew: &Renew) -> rusqlite::Result<Renewed> {
    let stored = row::read(transaction, &renew.name)?;
    let renewed = statements::renew(renew).changes(transaction, &stored)?;
    Ok(match stored {
        record::Stored::Record(record) if renewed => Renewed::Renewed(record.asked),
        stored => Renewed::Refused(stored.view()),
    })
}

fn run_vacate(transaction: &Transaction<'_>, vacate: &Vacate) -> rusqlite::Result<Vacated> {
    let stored = row::read(transaction, &vacate.name)?;
    let vacated = statements::vacate(vacate).changes(transaction, &stored)?;
    Ok(if vacated { Vacated::Vacated } else { Vacated::Refused(stored.view()) })
}

fn run_revoke(transaction: &Transaction<'_>, revoke: &Revoke) -> rusqlite::Result<Revoked> {
    let stored = row::read(transaction, &revoke.name)?;
    if record::revoke(&stored, revoke) == Outcome::Already {
        return Ok(Revoked::Revoked);
    }
    let revoked = statements::revoke(revoke).changes(transaction, &stored)?;
    Ok(if revoked { Revoked::Revoked } else { record::revoke_refused(&stored, revoke) })
}

fn run_ask(transaction: &Transaction<'_>, ask: &Ask) -> rusqlite::Result<Asked> {
    let stored = row::read(transaction, &ask.name)?;
    let asked = statements::ask(ask).changes(transaction, &stored)?;
    Ok(if asked { Asked::Asked } else { Asked::Refused(stored.view()) })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let runtime = Handle::try_current().map_err(error::no_runtime)?;
    runtime.spawn_blocking(work).await.unwrap_or_else(|gone| Err(error::interrupted(gone)))
}
