//! A function of AWS Lambda behind a queue of SQS: an order is charged once, however often its message comes.
//!
//! Why each setting is as it is, how the queue has to be set, and how to deploy it: docs/functions.md. The table of the
//! leases is `LEASES_TABLE`, that of the charges `LEDGER_TABLE` (key `order`); `TERM_SECONDS` is 30 unless it is set.
#![allow(missing_docs, unreachable_pub, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "Lambda tells the deadline of an invocation by the wall clock")]

mod ledger;
mod sqs;

use std::env;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use leasehold::dynamodb::{DynamoDbStore, Fenced};
use leasehold::recipes::{Once, Outcome};
use leasehold::{Held, Leases, Renewal};

use ledger::Ledger;
use sqs::{Answer, Event, Message, Order};

/// What an invocation keeps back for giving its lease up and answering.
const TO_ANSWER: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // Clients only. What is acquired here would be held by a process that is frozen until its first message.
    let function = Arc::new(Function::new().await?);
    // No box around the future, though it nests the runtime's, this library's and the SDK's: the library has one inside.
    lambda_runtime::run(service_fn(move |event| Arc::clone(&function).handle(event))).await
}

struct Function {
    once: Once,
    ledger: Ledger,
}

impl Function {
    async fn new() -> Result<Self, Error> {
        let aws = aws_config::defaults(aws_config::BehaviorVersion::latest()).load().await;
        let client = aws_sdk_dynamodb::Client::new(&aws);
        // `open` would cost every cold start a DescribeTable, and the permission for it.
        let store = DynamoDbStore::builder(client.clone(), env::var("LEASES_TABLE")?).unverified()?;
        let mut leases = Leases::builder(store).prefix("charges/").renewal(Renewal::Manual).ttl(term()?);
        if let Ok(environment) = env::var("AWS_LAMBDA_LOG_STREAM_NAME") {
            leases = leases.holder(environment); // who holds it is then where its log is
        }
        Ok(Self { once: Once::new(&leases.build()?), ledger: Ledger { client, table: env::var("LEDGER_TABLE")? } })
    }

    async fn handle(self: Arc<Self>, event: LambdaEvent<Event>) -> Result<Answer, Error> {
        let mut answer = Answer::default();
        for message in event.payload.records {
            let left = event.context.deadline().duration_since(SystemTime::now()).unwrap_or_default();
            match self.charge_once(&message, left.saturating_sub(TO_ANSWER)).await {
                Ok(log) => println!("{log}"),
                Err(log) => {
                    println!("{log}");
                    answer.comes_again(message);
                }
            }
        }
        Ok(answer)
    }

    /// The log's line. With an error the queue brings the message again, and in the end to its dead-letter queue.
    async fn charge_once(&self, message: &Message, left: Duration) -> Result<String, String> {
        let log = |key: &str, what: &dyn Display| format!("{key}: {what}");
        let order = message.order().map_err(|error| log(&message.message_id, &error))?;
        let once = self.once.clone().at_most(left);
        match once.run(&order.order, |held| async { Ok(self.charge(held, &order).await?) }).await {
            Ok(Outcome::Done(receipt) | Outcome::AlreadyDone(receipt) | Outcome::AlreadyFailed(receipt)) => {
                Ok(log(&order.order, &String::from_utf8_lossy(&receipt)))
            }
            Ok(Outcome::InProgress(by)) => Err(log(&order.order, &by)),
            Err(error) => Err(log(&order.order, &error)),
        }
    }

    async fn charge(&self, held: Held, order: &Order) -> Result<String, Error> {
        order.bank().await;
        // Was it lost meanwhile? The local clocks say so, before anything is sent.
        held.ensure(Duration::from_secs(1)).await?;
        // And if it is lost between here and there, the ledger refuses the token.
        self.ledger.charge(&order.order, held.token().to_string()).fenced("fence", held.token()).send().await?;
        Ok(format!("charged under token {}", held.token()))
    }
}

/// As long as an invocation may take, so that nobody has to renew.
fn term() -> Result<Duration, Error> {
    Ok(Duration::from_secs(env::var("TERM_SECONDS").map_or(Ok(30), |seconds| seconds.parse())?))
}
