//! Three nodes, wall clocks of their own, one job a second: each tick runs once.
//!
//! Run it: `cargo run --example schedule`. It needs no feature and no service.
#![allow(clippy::disallowed_methods, reason = "the example shows real time passing")]

use std::time::Duration;

use leasehold::recipes::Schedule;
use leasehold::{Error, Leases, MemoryStore};

async fn node(store: MemoryStore, who: &'static str) -> Result<(), Error> {
    let leases = Leases::builder(store).holder(who).poll(Duration::from_millis(100)).build()?;
    let report = Schedule::new(&leases, "report", Duration::from_secs(1))?; // an hour, in earnest
    loop {
        let turn = report.turn().await?; // waits for a tick that nobody else has
        let tick = turn.tick();
        turn.run(async |held| {
            println!("{who} runs tick {} with token {}", tick.id, held.token());
            Ok::<_, Error>(())
        })
        .await?; // and keeps it closed for half a period
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    for who in ["alice", "bob", "carol"] {
        tokio::spawn(node(store.clone(), who));
    }
    tokio::time::sleep(Duration::from_millis(3500)).await;

    // From cron it is one look, by a process that ends.
    let leases = Leases::builder(store).holder("by hand").build()?;
    match Schedule::new(&leases, "report", Duration::from_secs(1))?.try_turn().await? {
        Some(turn) => println!("tick {} was still to be had", turn.tick().id),
        None => println!("this tick was run already"),
    }
    Ok(())
}
