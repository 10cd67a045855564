//! A function of Azure Functions behind a queue: an order is charged once, however often its message comes.
//!
//! A custom handler: the Functions host starts it as `host.json` says, and sends it the messages of the queue that
//! `charge/function.json` names. Why each setting is as it is: docs/functions.md. Leases and charges are blobs of the
//! container `LEASES_CONTAINER_URL`; `TERM_SECONDS` is 30 unless it is set.
#![allow(missing_docs, unreachable_pub, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "the bank takes its time")]

mod host;
mod ledger;

use std::env;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use leasehold::azure_blob::AzureBlobStore;
use leasehold::recipes::{Once, Outcome};
use leasehold::{Held, Leases};

use host::Call;
use ledger::{Ledger, Order};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What an invocation keeps back for giving its lease up and answering.
const TO_ANSWER: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let function = Arc::new(Function::new()?);
    host::serve(move |call| Arc::clone(&function).handle(call)).await
}

struct Function {
    once: Once,
    ledger: Ledger,
}

impl Function {
    fn new() -> Result<Self, Error> {
        let ledger = Ledger::new()?;
        // `open` would cost every cold start a request, and a permission beyond the blobs.
        let store = AzureBlobStore::builder(&ledger.container, ledger.credential.clone()).unverified()?;
        // Renewed in the background: nothing freezes this process between two calls, and a call may take longer than
        // the longest term, which is a minute.
        let mut leases = Leases::builder(store).prefix("charges/").ttl(term()?);
        if let Ok(instance) = env::var("WEBSITE_INSTANCE_ID") {
            leases = leases.holder(instance);
        }
        let once = Once::new(&leases.build()?).at_most(host::time_out()?.saturating_sub(TO_ANSWER));
        Ok(Self { once, ledger })
    }

    /// The log's line. With an error the invocation has failed, and the queue brings the message again.
    async fn handle(self: Arc<Self>, call: Call) -> Result<String, String> {
        let order: Order = match call.function.as_str() {
            "charge" => call.trigger("order").map_err(|error| error.to_string())?,
            other => return Err(format!("there is no function {other}")),
        };
        let ran = self.once.run(&order.order, |held| async { Ok::<_, _>(self.charge(held, &order).await?) }).await;
        let log = |what: &dyn Display| format!("{}: {what}", order.order);
        match ran {
            Ok(Outcome::Done(receipt) | Outcome::AlreadyDone(receipt) | Outcome::AlreadyFailed(receipt)) => {
                Ok(log(&String::from_utf8_lossy(&receipt)))
            }
            Ok(Outcome::InProgress(by)) => Err(log(&by)),
            Err(error) => Err(log(&error)),
        }
    }

    async fn charge(&self, held: Held, order: &Order) -> Result<String, Error> {
        order.bank().await;
        // Was it lost meanwhile? The local clocks say so, before anything is sent.
        held.ensure(Duration::from_secs(1)).await?;
        // And if it is lost between here and there, the ledger refuses the token.
        self.ledger.charge(&order.order, held.token()).await?;
        Ok(format!("charged under token {}", held.token()))
    }
}

fn term() -> Result<Duration, Error> {
    Ok(Duration::from_secs(env::var("TERM_SECONDS").map_or(Ok(30), |seconds| seconds.parse())?))
}
