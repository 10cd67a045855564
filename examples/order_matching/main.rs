//! Three processes match one queue of orders. One is frozen at the worst moment, after its last check and right before
//! its write, until its term is over and the next one has begun with the same orders. Then it wakes up and writes. How
//! many orders are matched twice: without a guard, with a lease, with a lease and a fence? A table at the end says what
//! was counted.
//!
//! ```sh
//! cargo run --example order_matching --features sqlite
//! cargo run --example order_matching --features sqlite,__aws-config -- dynamodb
//! cargo run --example order_matching --features sqlite,azure-blob -- azure
//! ```
//!
//! DynamoDB and Azure are found as in `examples/dynamodb.rs` and `examples/azure_blob.rs`, by environment alone. What
//! a run has stored there (an item for each batch of orders, a blob for each run) stays.
//!
//! - `worker.rs`: what a worker does, and where it is frozen.
//! - `book.rs`: orders, trades, and what is asked of a store; `sqlite.rs`, `dynamodb.rs`, `azure.rs`: how each does it
//!   (`text.rs`: two of them keep trades as a text).
//! - `crew.rs`: starts the workers, freezes the first, and lets it go on. `process.rs`: by which signals.
#![allow(missing_docs, unreachable_pub, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "real processes and real terms")]

mod book;
mod crew;
mod process;
mod worker;

#[cfg(feature = "azure-blob")]
mod azure;
#[cfg(feature = "__aws-config")]
mod dynamodb;
mod sqlite;
#[cfg(any(feature = "azure-blob", feature = "__aws-config"))]
mod text;

use std::path::PathBuf;
use std::{env, fs};

use crate::book::{Count, Ground, Orders, Result};
use crate::crew::Story;

/// What stands between a worker and the book.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    None,
    Lease,
    LeaseAndFence,
}

impl Guard {
    const ALL: [Self; 3] = [Self::None, Self::Lease, Self::LeaseAndFence];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lease => "lease",
            Self::LeaseAndFence => "lease and fence",
        }
    }
}

/// One of the three runs, as each of its processes is told.
pub struct Run {
    pub store: String,
    pub guard: Guard,
    /// Nobody else's. The orders are there; its last part names the run.
    pub folder: PathBuf,
}

impl Run {
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    async fn open(&self) -> Result<Ground> {
        match self.store.as_str() {
            "sqlite" => sqlite::open(self).await,
            #[cfg(feature = "__aws-config")]
            "dynamodb" => dynamodb::open(self).await,
            #[cfg(feature = "azure-blob")]
            "azure" => azure::open(self).await,
            other => Err(format!(
                "no store {other:?} here. There is sqlite; dynamodb with --features sqlite,__aws-config; \
                 azure with --features sqlite,azure-blob"
            )
            .into()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some(worker::Task { run, number, pauses }) = worker::Task::of(&args) {
        return worker::Worker::start(&run, number, pauses).await?.work().await;
    }
    let store = args.first().map_or("sqlite", String::as_str);
    let mut rows = Vec::new();
    for guard in Guard::ALL {
        let folder = env::temp_dir().join(format!("order-matching-{}-{}", std::process::id(), rows.len()));
        let run = Run { store: store.to_owned(), guard, folder };
        println!("Guard: {}", guard.name());
        rows.push(tell(&run).await?);
        println!();
    }
    println!("guard            orders  matched twice  never matched  late writes refused  frozen for  tokens");
    rows.iter().for_each(|row| println!("{row}"));
    println!(
        "\nTokens: of the worker that was frozen, and of the one that took over. Without a lease nobody waits for a term."
    );
    Ok(())
}

/// Tells the story once. A row of the table.
async fn tell(run: &Run) -> Result<String> {
    fs::create_dir_all(&run.folder)?;
    let row = row(run).await;
    fs::remove_dir_all(&run.folder)?;
    row
}

async fn row(run: &Run) -> Result<String> {
    Orders::fill(&run.folder)?;
    let mut book = run.open().await?.book;
    let Story { frozen_for, tokens, refused } = Story::tell(run, book.as_ref())?;
    let Count { orders, twice, never } = Count::of(&book.trades().await?);
    let (guard, seconds) = (run.guard.name(), frozen_for.as_secs_f64());
    Ok(format!("{guard:<15} {orders:>7} {twice:>14} {never:>14} {refused:>20} {seconds:>9.1} s  {tokens}"))
}
