//! The handler of `main.rs` without leases: every delivery charges. What the tests fail without `Once`.
#![allow(missing_docs, unreachable_pub, dead_code, reason = "an example, and the other one's modules")]
#![allow(clippy::disallowed_methods, reason = "the bank takes its time")]

mod host;
mod ledger;

use std::sync::Arc;

use leasehold::FencingToken;

use host::Call;
use ledger::{Ledger, Order};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let ledger = Arc::new(Ledger::new()?);
    host::serve(move |call| handle(Arc::clone(&ledger), call)).await
}

async fn handle(ledger: Arc<Ledger>, call: Call) -> Result<String, String> {
    charge(&ledger, &call).await.map_err(|error| error.to_string())
}

async fn charge(ledger: &Ledger, call: &Call) -> Result<String, Error> {
    let order: Order = call.trigger("order")?;
    order.bank().await;
    // The same token for all: a fence refuses none of them.
    ledger.charge(&order.order, FencingToken::new(1).ok_or("no token")?).await?;
    Ok(format!("{}: charged", order.order))
}
