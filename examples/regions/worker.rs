//! A service in one region. It wants to run the settlement job, and runs it while it holds the lease.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::{Held, Leases};
use tokio::time::sleep;

use super::ledger::Ledger;
use super::process::{Role, hear, tell};
use super::{Example, Result};

const PAUSE: Duration = Duration::from_millis(100);

pub async fn serve(example: &Example, role: Role) -> Result<()> {
    let Role { regions, own, home, ledger } = role;
    let name = regions[own].name.clone();
    let store = loop {
        match (example.open)(regions.clone(), own, home).await {
            Ok(store) => break store,
            Err(_) => sleep(PAUSE).await, // Its region may be away.
        }
    };
    let leases = Leases::builder(store).holder(&name).ttl(example.ttl).margin(example.ttl / 10).build()?;
    let ledger = Rc::new(Ledger::open(&ledger)?);
    let caught = caught();
    loop {
        let lease = match leases.acquire("settlement").await {
            Ok(lease) => lease,
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        let (ledger, caught) = (ledger.clone(), caught.clone());
        let worked: Result<()> = lease.run(|held| async move { settle(&held, &ledger, &caught).await }).await;
        tell(&format!("stopped {}", worked.err().map(|error| error.to_string()).unwrap_or_default()));
    }
}

/// Batch after batch. The token goes with every write.
async fn settle(held: &Held, ledger: &Ledger, caught: &AtomicBool) -> Result<()> {
    let token = held.token();
    // First the fence, and only then a look: no late write of another holder can change what this one sees.
    let Some(mut settled) = ledger.raise(token)? else { return Err("replaced before it began".into()) };
    tell(&format!("holds {token}"));
    loop {
        sleep(PAUSE).await;
        held.ensure(Duration::ZERO).await?;
        if caught.swap(false, Ordering::SeqCst) {
            // The worst moment: checked, and not yet written.
            tell(&format!("writes {token}"));
            hear();
        }
        settled += 1;
        if !ledger.settle(settled, token)? {
            tell(&format!("refused {token}"));
            return Err("its write was refused: another one was given the lease since".into());
        }
        tell(&format!("settled {token}"));
    }
}

/// Whether the scene wants the next write to be caught. Heard in a thread, because reading blocks.
fn caught() -> Arc<AtomicBool> {
    let caught = Arc::new(AtomicBool::new(false));
    let wanted = caught.clone();
    std::thread::spawn(move || {
        if hear() == b'c' {
            wanted.store(true, Ordering::SeqCst);
        }
    });
    caught
}
