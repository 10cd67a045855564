//! What Lambda sends for a batch of messages, and what it reads from the answer if the mapping says
//! `ReportBatchItemFailures`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub struct Event {
    #[serde(rename = "Records")]
    pub records: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub message_id: String,
    body: String,
}

/// The message's meaning, and so the key: not the message's id, since a producer may send it twice.
#[derive(Deserialize)]
pub struct Order {
    pub order: String,
    /// To try out what happens in the middle.
    #[serde(default)]
    bank_takes_ms: u64,
}

/// The messages that are not done. All others of the batch are deleted.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    batch_item_failures: Vec<Failure>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

impl Message {
    pub fn order(&self) -> Result<Order, serde_json::Error> {
        serde_json::from_str(&self.body)
    }
}

impl Order {
    /// The slow part of the work.
    pub async fn bank(&self) {
        tokio::time::sleep(Duration::from_millis(self.bank_takes_ms)).await;
    }
}

impl Answer {
    pub fn comes_again(&mut self, message: Message) {
        self.batch_item_failures.push(Failure { item_identifier: message.message_id });
    }
}
