//! A lease on DynamoDB: the real one, or an emulator, by environment alone.
//!
//! On an emulator: `AWS_ENDPOINT_URL=http://127.0.0.1:4566 AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=test
//! AWS_SECRET_ACCESS_KEY=test cargo run --features __aws-config --example dynamodb`.
//! On the real one: leave `AWS_ENDPOINT_URL` out and give real credentials. `LEASES_TABLE` names the table (default
//! `leasehold-example`); it is created if it is not there.

use std::time::Duration;

use leasehold::dynamodb::{DynamoDbStore, create_table};
use leasehold::{Attempt, Error, Leases};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = std::env::var("LEASES_TABLE").unwrap_or_else(|_| "leasehold-example".to_owned());
    let aws = aws_config::defaults(aws_config::BehaviorVersion::latest()).load().await;
    let client = aws_sdk_dynamodb::Client::new(&aws);
    create_table(&client, &table).await?; // for first steps; in production your infrastructure does it
    let store = DynamoDbStore::open(client, &table).await?;

    let leases = Leases::builder(store.clone()).prefix("example/").holder("first").build()?;
    let rival = Leases::builder(store).prefix("example/").holder("rival").build()?;

    let lease = leases.acquire_within("report", Duration::from_secs(45)).await?;
    println!("first has {} with token {}", lease.name(), lease.token());

    match rival.try_acquire("report").await? {
        Attempt::Held(by) => println!("rival is told: {by}"),
        Attempt::Acquired(lease) => println!("rival got it too?! token {}", lease.token()),
    }

    let token = lease
        .run(|held| async move {
            held.ensure(Duration::from_secs(5)).await?;
            println!("first works for at least 5 s more; {:?} remain", held.remaining());
            Ok::<_, Error>(held.token())
        })
        .await?;

    let lease = rival.acquire_within("report", Duration::from_secs(5)).await?;
    println!("after the release rival has it with token {} > {token}", lease.token());
    lease.release().await?;
    println!("requests of rival: {:?}", rival.stats().requests);
    Ok(())
}
