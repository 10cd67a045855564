//! Three candidates, one leader, and an observer. The leader ends; another leads, with a higher token.
//!
//! Run it: `cargo run --example election`. It needs no feature and no service.
#![allow(clippy::disallowed_methods, reason = "the example shows real time passing")]

use std::time::Duration;

use leasehold::recipes::{Election, Sight};
use leasehold::{Error, Held, Leases, MemoryStore};

fn election(store: &MemoryStore, who: &str) -> Result<Election, Error> {
    let (ttl, margin) = (Duration::from_millis(900), Duration::from_millis(100));
    let leases = Leases::builder(store.clone()).holder(who).ttl(ttl).margin(margin).build()?;
    Ok(Election::new(&leases, "scheduler").publish(format!("{who}.internal:8080")))
}

/// What a leader does. It returns to resign; when it is deposed it is dropped, and `lead` campaigns again.
async fn lead(held: Held) -> Result<(), Error> {
    let asked = held.until_asked().await; // beside the work of a real one
    println!("{} resigns: {}", held.token(), if asked.is_some() { "it was asked to" } else { "it is deposed" });
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let candidate = |who: &'static str| {
        let election = election(&store, who)?;
        Ok::<_, Error>(tokio::spawn(async move { election.lead(lead).await }))
    };
    let alice = candidate("alice")?;
    tokio::task::yield_now().await; // so that alice is the first
    let _others = [candidate("bob")?, candidate("carol")?];

    let mut observer = election(&store, "observer")?.observe();
    loop {
        let Sight::Leader(leader) = observer.next().await? else {
            println!("nobody leads");
            continue;
        };
        let who = leader.holder.as_ref().map_or("?", |who| who.as_str());
        println!("{who} leads at {} with token {}", String::from_utf8_lossy(leader.data()), leader.token);
        if who != "alice" {
            return Ok(());
        }
        println!("alice ends"); // her lease is released as she is dropped; a kill would take a term
        alice.abort();
    }
}
