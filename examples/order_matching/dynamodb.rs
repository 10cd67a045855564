//! The book in DynamoDB: an item for each batch, with the fence as an attribute.

use std::collections::HashMap;
use std::env;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue::{self, S};
use aws_sdk_dynamodb::types::ReturnValue;
use leasehold::dynamodb::{DynamoDbStore, Fenced, FencedError, Refusal, create_table};
use leasehold::{FencingToken, Leases};

use crate::Run;
use crate::book::{BATCHES, Book, Found, Ground, Result, Trade};
use crate::text::{from_text, to_text};

const TTL: Duration = Duration::from_secs(3);
const FENCE: &str = "fence";
/// Every write has an attribute of its own, so one that the SDK sends twice is there once.
const WRITE: &str = "write ";

type Item = HashMap<String, AttributeValue>;

struct Items {
    client: Client,
    table: String,
    run: String,
}

pub async fn open(run: &Run) -> Result<Ground> {
    let leases = env::var("LEASES_TABLE").unwrap_or_else(|_| "leasehold-example".to_owned());
    let table = format!("{leases}-orders");
    let aws = aws_config::defaults(aws_config::BehaviorVersion::latest()).load().await;
    let client = Client::new(&aws);
    // For first steps; in production your infrastructure does it.
    create_table(&client, &leases).await?;
    create_table(&client, &table).await?;
    let store = DynamoDbStore::open(client.clone(), leases).await?;
    let leases = Leases::builder(store).prefix(format!("{}/", run.name())).ttl(TTL).margin(TTL / 10);
    Ok(Ground { leases, book: Box::new(Items { client, table, run: run.name() }) })
}

#[async_trait]
impl Book for Items {
    async fn begin(&mut self, batch: usize, fence: Option<FencingToken>) -> Result<Found> {
        let Some(token) = fence else { return Ok(found(&self.read(batch).await?)) };
        // An update without an expression raises, and with ALL_NEW it is the read as well.
        match self.item(batch).return_values(ReturnValue::AllNew).fenced(FENCE, token).send().await {
            Ok(raised) => Ok(found(&raised.attributes.unwrap_or_default())),
            Err(FencedError::Refused(Refusal::Stale(_))) => Ok(Found::Refused),
            Err(error) => Err(error.into()),
        }
    }

    async fn record(
        &mut self,
        batch: usize,
        write: &str,
        trades: &[Trade],
        fence: Option<FencingToken>,
    ) -> Result<bool> {
        let update = self
            .item(batch)
            .update_expression("SET #write = :trades")
            .expression_attribute_names("#write", format!("{WRITE}{write}"))
            .expression_attribute_values(":trades", S(to_text(trades)));
        let Some(token) = fence else {
            update.send().await?;
            return Ok(true);
        };
        match update.fenced(FENCE, token).send().await {
            Ok(_) => Ok(true),
            Err(FencedError::Refused(Refusal::Stale(_))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn trades(&mut self) -> Result<Vec<Trade>> {
        let mut trades = Vec::new();
        for batch in 0..BATCHES {
            for text in writes(&self.read(batch).await?) {
                trades.extend(from_text(text)?);
            }
        }
        Ok(trades)
    }
}

impl Items {
    fn item(&self, batch: usize) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.table).key("pk", self.key(batch))
    }

    async fn read(&self, batch: usize) -> Result<Item> {
        let get = self.client.get_item().table_name(&self.table).key("pk", self.key(batch)).consistent_read(true);
        Ok(get.send().await?.item.unwrap_or_default())
    }

    fn key(&self, batch: usize) -> AttributeValue {
        S(format!("{}/{batch}", self.run))
    }
}

fn found(item: &Item) -> Found {
    if writes(item).next().is_some() { Found::Matched } else { Found::Open }
}

fn writes(item: &Item) -> impl Iterator<Item = &str> {
    item.iter().filter(|(name, _)| name.starts_with(WRITE)).filter_map(|(_, trades)| Some(trades.as_s().ok()?.as_str()))
}
