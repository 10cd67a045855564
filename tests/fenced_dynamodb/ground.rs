//! A table of the application's own and a table of leases, on one emulator behind a proxy.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::{FencingToken, Leases};

use crate::support::emulator::{Emulator, create_table, retrying_client};
use crate::support::proxy::Proxy;

/// The application's table. Its key attribute is `id`.
pub const TABLE: &str = "accounts";
/// The leases' table. Its key attribute is `pk`.
pub const LEASES: &str = "leases";
/// The attribute that fences an item.
pub const FENCE: &str = "fence";

pub type Item = HashMap<String, AttributeValue>;

pub struct Ground {
    pub emulator: Emulator,
    pub proxy: Proxy,
    /// Past the proxy.
    pub client: Client,
}

impl Ground {
    pub async fn new() -> Self {
        let emulator = Emulator::start();
        let client = emulator.client();
        create_table(&client, TABLE, "id").await;
        create_table(&client, LEASES, "pk").await;
        let proxy = Proxy::to(emulator.addr());
        Self { emulator, proxy, client }
    }

    /// A client with the SDK's default retries, through the proxy.
    pub fn through_the_proxy(&self) -> Client {
        retrying_client(self.proxy.addr())
    }

    pub async fn store(&self) -> DynamoDbStore {
        DynamoDbStore::open(retrying_client(self.proxy.addr()), LEASES).await.expect("the table is fit")
    }

    /// A client of the leases that renews nothing by itself while a test runs.
    pub async fn quiet(&self, store: DynamoDbStore) -> Leases {
        Leases::builder(store).ttl(std::time::Duration::from_secs(60)).build().expect("fits")
    }

    pub async fn put(&self, item: Item) {
        self.put_into(TABLE, item).await;
    }

    pub async fn put_into(&self, table: &str, item: Item) {
        self.client.put_item().table_name(table).set_item(Some(item)).send().await.expect("the item is put");
    }

    pub async fn item(&self, id: &str) -> Option<Item> {
        let get = self.client.get_item().table_name(TABLE).key("id", s(id)).consistent_read(true);
        get.send().await.expect("the item is read").item
    }
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

pub fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// An item with this id and these attributes.
pub fn item<const N: usize>(id: &str, attributes: [(&str, AttributeValue); N]) -> Item {
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
    attributes.chain([("id".to_owned(), s(id))]).collect()
}
