//! The handler of `main.rs` without leases: every delivery charges. What the tests fail without `Once`, and what the
//! size and the start of the other are compared with.
#![allow(missing_docs, unreachable_pub, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "the bank takes its time")]

mod ledger;
mod sqs;

use std::env;
use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, service_fn};

use ledger::Ledger;
use sqs::{Answer, Event, Message};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let aws = aws_config::defaults(aws_config::BehaviorVersion::latest()).load().await;
    let ledger = Ledger { client: aws_sdk_dynamodb::Client::new(&aws), table: env::var("LEDGER_TABLE")? };
    let ledger = Arc::new(ledger);
    lambda_runtime::run(service_fn(move |event| handle(Arc::clone(&ledger), event))).await
}

async fn handle(ledger: Arc<Ledger>, event: LambdaEvent<Event>) -> Result<Answer, Error> {
    let mut answer = Answer::default();
    for message in event.payload.records {
        if let Err(error) = charge(&ledger, &message).await {
            println!("{}: {error}", message.message_id);
            answer.comes_again(message);
        }
    }
    Ok(answer)
}

async fn charge(ledger: &Ledger, message: &Message) -> Result<(), Error> {
    let order = message.order()?;
    order.bank().await;
    ledger.charge(&order.order, message.message_id.clone()).send().await?;
    Ok(())
}
