//! A DynamoDB emulator inside the test process, and clients for it.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::net::SocketAddr;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use dynoxide::Database;

use super::loopback::Loopback;

/// An empty DynamoDB on a loopback port. Every emulator has its own data, so one serves as one region.
pub struct Emulator(Loopback);

impl Emulator {
    pub fn start() -> Self {
        let data = Database::memory().expect("a database in memory");
        Self(Loopback::start(move |listener| dynoxide::server::serve_on(listener, data.clone())))
    }

    pub fn addr(&self) -> SocketAddr {
        self.0.addr()
    }

    /// A client that speaks to the emulator itself.
    pub fn client(&self) -> Client {
        client(self.addr())
    }

    /// Refuses connections and drops the open ones; the data stays.
    pub fn down(&self) {
        self.0.down();
    }

    /// Answers again, on the same port and with the same data.
    pub fn up(&self) {
        self.0.up();
    }
}

/// A client as a user would make it, but for its retries: what a test counts or sees is one attempt.
pub fn client(addr: SocketAddr) -> Client {
    let config = config(addr).retry_config(RetryConfig::disabled());
    Client::from_conf(config.build())
}

/// A client with the SDK's default retries, which is what an application hands over.
pub fn retrying_client(addr: SocketAddr) -> Client {
    Client::from_conf(config(addr).build())
}

/// The configuration that both kinds of client start from.
pub fn config(addr: SocketAddr) -> Builder {
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(Credentials::new("test", "test", None, None, "static"))
        .region(Region::new("eu-central-1"))
        .endpoint_url(format!("http://{addr}"))
}

/// Creates an on-demand table with one string key.
pub async fn create_table(client: &Client, table: &str, key: &str) {
    let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
    let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash);
    client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute.build().expect("complete"))
        .key_schema(schema.build().expect("complete"))
        .send()
        .await
        .expect("the table is created");
}
