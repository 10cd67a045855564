//! A worker process: it takes the queue batch by batch, matches the orders, and records the trades.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::{Held, Leases};

use crate::book::{BATCHES, Book, Found, Ground, Orders, Result};
use crate::process::tell;
use crate::{Guard, Run};

/// The batch that the first worker is frozen with, and the second one has begun when the first one wakes up.
const PAUSES_AT: usize = BATCHES / 3;
/// How long it takes to match a batch.
const MATCHING: Duration = Duration::from_millis(5);

pub struct Worker {
    number: usize,
    guard: Guard,
    pauses: bool,
    writes: usize,
    orders: Orders,
    leases: Leases,
    book: Box<dyn Book>,
}

/// Why a worker stops.
#[derive(PartialEq, Eq)]
enum Ended {
    AllMatched,
    Replaced,
}

impl Worker {
    pub async fn start(run: &Run, number: usize, pauses: bool) -> Result<Self> {
        let Ground { leases, book } = run.open().await?;
        let leases = leases.holder(format!("worker {number}")).build()?;
        let orders = Orders::read(&run.folder)?;
        Ok(Self { number, guard: run.guard, pauses, writes: 0, orders, leases, book })
    }

    pub async fn work(mut self) -> Result<()> {
        // Who was replaced competes again.
        while self.shift().await? == Ended::Replaced {}
        tell("done", self.number);
        Ok(())
    }

    async fn shift(&mut self) -> Result<Ended> {
        if self.guard == Guard::None {
            return self.match_all(None).await;
        }
        let lease = self.leases.acquire("orders").await?;
        tell("holds", lease.token());
        let ended = self.match_all(Some(&lease.held())).await?;
        lease.release().await?;
        Ok(ended)
    }

    async fn match_all(&mut self, held: Option<&Held>) -> Result<Ended> {
        let fence = held.filter(|_| self.guard == Guard::LeaseAndFence).map(Held::token);
        for batch in 0..BATCHES {
            // First the fence, and only then the read.
            match self.book.begin(batch, fence).await? {
                Found::Open => {}
                Found::Matched => continue,
                Found::Refused => return Ok(Ended::Replaced),
            }
            let trades = self.orders.matched(batch);
            tokio::time::sleep(MATCHING).await;

            // The last check before the write. No check can be the very last thing: a freeze fits in behind it.
            if held.is_some_and(|held| !held.is_held()) {
                return Ok(Ended::Replaced);
            }
            self.pause_before_writing(batch)?;

            self.writes += 1;
            let write = format!("{}.{}", self.number, self.writes);
            if !self.book.record(batch, &write, &trades, fence).await? {
                tell("wrote", format!("{batch} is refused"));
                return Ok(Ended::Replaced);
            }
            tell("wrote", format!("{batch} is recorded"));
        }
        Ok(Ended::AllMatched)
    }

    /// Says that it is about to write, and waits for a word. Meanwhile it may be frozen.
    fn pause_before_writing(&self, batch: usize) -> Result<()> {
        if self.pauses && batch == PAUSES_AT {
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
    pub pauses: bool,
}

impl Task {
    pub fn args(run: &Run, number: usize, pauses: bool) -> [String; 6] {
        let folder = run.folder.to_string_lossy().into_owned();
        let guard = run.guard.name().into();
        ["worker".into(), run.store.clone(), guard, folder, number.to_string(), pauses.to_string()]
    }

    pub fn of(args: &[String]) -> Option<Self> {
        let [worker, store, guard, folder, number, pauses] = args else { return None };
        let guard = Guard::ALL.into_iter().find(|known| known.name() == guard)?;
        let run = Run { store: store.clone(), guard, folder: PathBuf::from(folder) };
        let task = Self { run, number: number.parse().ok()?, pauses: pauses.parse().ok()? };
        (worker == "worker").then_some(task)
    }
}
