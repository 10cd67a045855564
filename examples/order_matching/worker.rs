//! A worker process: it takes the queue batch by batch, matches the orders, and records the trades.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::{Held, Leases};

use crate::book::{BATCHES, Book, Found, Ground, Orders, Result};
use crate::process::tell;
use crate::{Guard, Run};

/// Where the one worker is frozen.
const FREEZES_AT: usize = BATCHES / 3;
/// How long it takes to match a batch.
const MATCHING: Duration = Duration::from_millis(5);

pub struct Worker {
    number: usize,
    guard: Guard,
    freezes: bool,
    orders: Orders,
    leases: Leases,
    book: Box<dyn Book>,
}

/// Why a worker stops before the end of the queue.
struct Replaced;

impl Worker {
    pub async fn start(run: &Run, number: usize, freezes: bool) -> Result<Self> {
        let Ground { leases, book } = run.open().await?;
        let leases = leases.holder(format!("worker {number}")).build()?;
        Ok(Self { number, guard: run.guard, freezes, orders: Orders::read(&run.folder)?, leases, book })
    }

    pub async fn work(mut self) -> Result<()> {
        let mut ended = Err(Replaced);
        while ended.is_err() {
            ended = match self.guard {
                Guard::None => self.match_all(None).await?,
                Guard::Lease | Guard::LeaseAndFence => self.match_all_under_the_lease().await?,
            };
        }
        tell("done", self.number);
        Ok(())
    }

    /// Waits for the lease. Who was replaced comes here again.
    async fn match_all_under_the_lease(&mut self) -> Result<std::result::Result<(), Replaced>> {
        let lease = self.leases.acquire("orders").await?;
        tell("holds", lease.token());
        let ended = self.match_all(Some(&lease.held())).await?;
        lease.release().await?;
        Ok(ended)
    }

    async fn match_all(&mut self, held: Option<&Held>) -> Result<std::result::Result<(), Replaced>> {
        let fence = held.filter(|_| self.guard == Guard::LeaseAndFence).map(Held::token);
        for batch in 0..BATCHES {
            match self.book.begin(batch, fence).await? {
                Found::Open => {}
                Found::Matched => continue,
                Found::Refused => return Ok(Err(Replaced)),
            }
            let trades = self.orders.matched(batch);
            tokio::time::sleep(MATCHING).await;

            // The last check before the write. No check can be the very last thing: a freeze fits in behind it.
            if held.is_some_and(|held| !held.is_held()) {
                return Ok(Err(Replaced));
            }
            self.freeze_before_writing(batch)?;

            let write = format!("{}.{batch}", self.number);
            if !self.book.record(batch, &write, &trades, fence).await? {
                tell("refused", batch);
                return Ok(Err(Replaced));
            }
        }
        Ok(Ok(()))
    }

    /// Says that it is about to write, and waits for a word; in between it is frozen. Once.
    fn freeze_before_writing(&mut self, batch: usize) -> Result<()> {
        if self.freezes && batch == FREEZES_AT {
            self.freezes = false;
            tell("about to write", batch);
            std::io::stdin().read_line(&mut String::new())?;
        }
        Ok(())
    }
}

/// The command line of a worker.
pub struct Task {
    pub run: Run,
    pub number: usize,
    pub freezes: bool,
}

impl Task {
    pub fn args(run: &Run, number: usize, freezes: bool) -> [String; 6] {
        let folder = run.folder.to_string_lossy().into_owned();
        let guard = run.guard.name().into();
        ["worker".into(), run.store.clone(), guard, folder, number.to_string(), freezes.to_string()]
    }

    pub fn of(args: &[String]) -> Option<Self> {
        let [worker, store, guard, folder, number, freezes] = args else { return None };
        let guard = Guard::ALL.into_iter().find(|known| known.name() == guard)?;
        let run = Run { store: store.clone(), guard, folder: PathBuf::from(folder) };
        let task = Self { run, number: number.parse().ok()?, freezes: freezes.parse().ok()? };
        (worker == "worker").then_some(task)
    }
}
