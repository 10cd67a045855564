//! One table with one item that counts how often it was written.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use crate::support::emulator::{Emulator, create_table};
use crate::support::faults::{Fault, Injected, Match};
use crate::support::proxy::Proxy;

pub(crate) type Written = Result<UpdateItemOutput, SdkError<UpdateItemError, HttpResponse>>;
pub(crate) type Item = HashMap<String, AttributeValue>;

const TABLE: &str = "leases";

/// An emulator with the table, a proxy before it, and a client through the proxy.
pub(crate) struct Fixture {
    pub(crate) emulator: Emulator,
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let emulator = Emulator::start();
        create_table(&emulator.client(), TABLE, "pk").await;
        let proxy = Proxy::to(emulator.addr());
        let client = proxy.client();
        Self {
            emulator,
            proxy,
            client,
        }
    }

    /// Puts a fault before the next write.
    pub(crate) fn next_write(&self, fault: Fault) -> Injected {
        self.proxy.on(Match::op("UpdateItem")).nth(1).fault(fault)
    }

    /// How often the item was written, read past the proxy.
    pub(crate) async fn writes(&self) -> usize {
        writes(&item(&self.emulator.client()).await.unwrap_or_default())
    }
}

/// Writes without a condition.
pub(crate) async fn write(client: &Client) -> Written {
    update(client).send().await
}

/// Writes if there is no item yet, and asks for the item if there is.
pub(crate) async fn claim(client: &Client) -> Written {
    update(client)
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await
}

pub(crate) fn update(client: &Client) -> UpdateItemFluentBuilder {
    client
        .update_item()
        .table_name(TABLE)
        .key("pk", AttributeValue::S("job".into()))
        .update_expression("ADD writes :one")
        .expression_attribute_values(":one", AttributeValue::N("1".into()))
}

pub(crate) async fn item(client: &Client) -> Option<Item> {
    let get = client
        .get_item()
        .table_name(TABLE)
        .key("pk", AttributeValue::S("job".into()));
    get.consistent_read(true)
        .send()
        .await
        .expect("the read succeeds")
        .item
}

pub(crate) fn writes(item: &Item) -> usize {
    item.get("writes").map_or(0, |n| {
        n.as_n().expect("a number").parse().expect("an integer")
    })
}

/// The service's own error code and status, or none if no answer could be understood.
pub(crate) fn service_error(
    error: &SdkError<UpdateItemError, HttpResponse>,
) -> Option<(u16, &str)> {
    use aws_sdk_dynamodb::error::ProvideErrorMetadata;
    let status = error.raw_response()?.status().as_u16();
    Some((status, error.as_service_error()?.code()?))
}

/// Whether the connection failed. A kept one that the other side has closed fails as "other", not
/// as "io", so the SDK's own classes do not help.
pub(crate) fn is_connection_failure(error: &SdkError<UpdateItemError, HttpResponse>) -> bool {
    matches!(error, SdkError::DispatchFailure(_))
}

/// What the operating system said, if it said anything.
pub(crate) fn io_cause(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let causes = iter::successors(Some(error), |&error| error.source());
    let io = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.last().map(io::Error::kind)
}
