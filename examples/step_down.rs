//! A deployment: the new process asks the old one to finish, and takes over when it has.
//!
//! Run it: `cargo run --example step_down`. It needs no feature and no service.
#![allow(clippy::disallowed_methods, reason = "the example shows real time passing")]

use std::time::Duration;

use leasehold::recipes::{Yielded, run_until_asked, step_down};
use leasehold::{Error, Leases, MemoryStore};

fn client(store: &MemoryStore, who: &str) -> Result<Leases, Error> {
    let (ttl, margin) = (Duration::from_millis(900), Duration::from_millis(100));
    Leases::builder(store.clone()).holder(who).ttl(ttl).margin(margin).build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let lease = client(&store, "old")?.acquire("shard/7").await?;
    println!("old works on shard/7 with token {}", lease.token());
    let old = tokio::spawn(run_until_asked(lease, async |held| {
        let mut done = 0;
        loop {
            tokio::select! {
                asked = held.until_asked() => {
                    println!("old is asked to finish: {:?}", asked.as_ref().map(|asked| asked.grace()));
                    tokio::time::sleep(Duration::from_millis(200)).await; // what was begun is finished
                    return done;
                }
                () = tokio::time::sleep(Duration::from_millis(50)) => done += 1,
            }
        }
    }));
    tokio::time::sleep(Duration::from_millis(400)).await;

    let leases = client(&store, "new")?;
    let waits = tokio::spawn({
        let leases = leases.clone();
        async move { leases.acquire("shard/7").await }
    });
    match step_down(&leases, "shard/7", Duration::from_secs(5)).await? {
        Yielded::Gone(token) => println!("old, which had token {token}, has gone"),
        Yielded::Nobody => println!("nobody had it"),
        Yielded::StillHeld(token) => println!("{token} does not go: revoke it"),
    }
    let finished = old.await.expect("it does not panic");
    match finished.output {
        Some(done) => println!("old has finished {done} pieces of work, and was not cut short"),
        None => println!("old was cut short"),
    }
    let lease = waits.await.expect("it does not panic")?;
    println!("new works on shard/7 with token {}", lease.token());
    lease.release().await?;
    Ok(())
}
