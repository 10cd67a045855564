//! Six workers, two licences: never more than two at once, and a crash gives its licence back.
//!
//! Run it: `cargo run --example semaphore`. It needs no feature and no service.
#![allow(clippy::disallowed_methods, reason = "the example shows real time passing")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::recipes::Semaphore;
use leasehold::{Error, Leases, MemoryStore};

static AT_WORK: AtomicUsize = AtomicUsize::new(0);

async fn worker(store: MemoryStore, number: usize) -> Result<(), Error> {
    let (ttl, margin) = (Duration::from_millis(900), Duration::from_millis(100));
    let leases = Leases::builder(store).holder(format!("worker-{number}")).ttl(ttl).margin(margin).build()?;
    let licences = Semaphore::new(&leases, "licences", 2)?; // every worker gives the same number
    let permit = licences.acquire().await?;
    let (name, token) = (permit.name().clone(), permit.token());
    if number == 0 {
        println!("worker 0 has {name} with token {token}, and crashes: nobody gives it back");
        std::mem::forget(permit.into_handover().await?); // as a killed process: no release, and no renewal any more
        return Ok(());
    }
    // Given back when the work has ended, also when it fails.
    let work = async |_| {
        let others = AT_WORK.fetch_add(1, Ordering::SeqCst);
        println!("worker {number} has {name} with token {token}; {} at work", others + 1);
        assert!(others < 2);
        tokio::time::sleep(Duration::from_millis(300)).await;
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    permit.run(work).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let workers: Vec<_> = (0..6).map(|number| tokio::spawn(worker(store.clone(), number))).collect();
    for worker in workers {
        worker.await.expect("no worker panics")?;
    }
    println!("all six have worked");
    Ok(())
}
