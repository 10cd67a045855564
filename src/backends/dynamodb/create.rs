//! Creating a table, for tests and first steps.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableStatus,
};

use super::client::Link;
use super::error::{Cause, failed};
use super::open::{DEFAULT_PARTITION_KEY, opening, same_shape};
use crate::time::{Clock, SystemClock};
use crate::types::{Applied, Error, StoreError, StoreErrorKind};

const POLL: Duration = Duration::from_millis(500);
const POLLS: usize = 240;

/// Creates a table that is fit for leases and waits until it is active: a string partition key `pk`, on demand, no
/// sort key. Fine if it exists already with that key.
///
/// For tests and first steps; in production create the table with the rest of the infrastructure.
///
/// # Errors
/// [`Misconfigured`](crate::ErrorKind::Misconfigured): it exists with another key.
/// [`Denied`](crate::ErrorKind::Denied): `dynamodb:CreateTable` or `dynamodb:DescribeTable` is missing.
/// [`Unavailable`](crate::ErrorKind::Unavailable): it has not become active within two minutes, or the service is away.
///
/// # Cancel safety
/// Safe: the table may exist afterwards, and another call takes up from there.
pub async fn create_table(client: &Client, table: impl Into<String>) -> Result<(), Error> {
    let link = Link::new(client.clone(), table.into());
    create(client, &link).await.map_err(opening)?;
    until_active(&link).await.map_err(opening)
}

async fn create(client: &Client, link: &Link) -> Result<(), StoreError> {
    let built = |error| {
        StoreError::new(StoreErrorKind::Invalid, Applied::No, "the table's definition is incomplete").caused_by(error)
    };
    let defined = AttributeDefinition::builder()
        .attribute_name(DEFAULT_PARTITION_KEY)
        .attribute_type(ScalarAttributeType::S)
        .build()
        .map_err(built)?;
    let key = KeySchemaElement::builder()
        .attribute_name(DEFAULT_PARTITION_KEY)
        .key_type(KeyType::Hash)
        .build()
        .map_err(built)?;
    let request = client
        .create_table()
        .table_name(&link.place.table)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(defined)
        .key_schema(key);
    match request.send().await {
        Ok(_) => Ok(()),
        Err(error) if exists(&error) => Ok(()),
        Err(error) => {
            // Without credentials or a region nothing is sent; nobody has asked them for these before.
            let cause = Cause::from(error);
            let sent = !cause.is_of_the_client();
            Err(failed("CreateTable", &link.place, cause, sent))
        }
    }
}

fn exists(error: &SdkError<CreateTableError>) -> bool {
    error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception)
}

async fn until_active(link: &Link) -> Result<(), StoreError> {
    for _ in 0..POLLS {
        let found = link.describe().await?.value;
        same_shape(&found, &link.place.table)?;
        if matches!(found.table_status(), Some(TableStatus::Active | TableStatus::Updating)) {
            return Ok(());
        }
        SystemClock.sleep(POLL).await;
    }
    let what = format!("table `{}` has not become active in time; try again", link.place.table);
    Err(StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, what))
}
