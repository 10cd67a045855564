//! Transfers between accounts: both or neither, in whatever order they are named, and no deadlock.
//!
//! Run it: `cargo run --example acquire_all`. It needs no feature and no service.

use std::sync::{Arc, Mutex};

use leasehold::recipes::{AllAttempt, acquire_all, try_acquire_all};
use leasehold::{Error, Leases, MemoryStore};

type Accounts = Arc<Mutex<[i64; 3]>>;

async fn transfer(leases: Leases, accounts: Accounts, from: usize, to: usize) -> Result<(), Error> {
    let name = |account: usize| format!("account/{account}");
    let both = acquire_all(&leases, [name(from), name(to)]).await?;
    both.run(async |held| {
        let (pays, gets) = (held.of(name(from)).expect("ours"), held.of(name(to)).expect("ours"));
        // Each token goes with the write to its own account.
        println!("{from} (token {}) pays {to} (token {})", pays.token(), gets.token());
        let mut accounts = accounts.lock().unwrap();
        accounts[from] -= 10;
        accounts[to] += 10;
        Ok(())
    })
    .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (store, accounts) = (MemoryStore::new(), Accounts::default());
    // Each pair in both directions: whoever took the payer first would wait for the other for ever.
    let pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)];
    let mut transfers = Vec::new();
    for (from, to) in pairs {
        let leases = Leases::builder(store.clone()).build()?;
        transfers.push(tokio::spawn(transfer(leases, Arc::clone(&accounts), from, to)));
    }
    for transfer in transfers {
        transfer.await.expect("no transfer panics")?;
    }
    println!("in the end they have {:?}", accounts.lock().unwrap());

    let leases = Leases::builder(store).holder("auditor").build()?;
    let _one = leases.acquire("account/1").await?;
    match try_acquire_all(&leases, ["account/0", "account/1"]).await? {
        AllAttempt::Acquired(_) => println!("both are free"),
        AllAttempt::Held(name, by) => println!("not both: {name} is {by}, and the other was given back"),
    }
    Ok(())
}
