//! Tests of the test support for DynamoDB: the emulator, the fault proxy, and the facts about the
//! SDK that the backend builds on.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

mod support;

#[path = "support_dynamodb/emulator_answers.rs"]
mod emulator_answers;
#[path = "support_dynamodb/fixture.rs"]
mod fixture;
#[path = "support_dynamodb/proxy_faults.rs"]
mod proxy_faults;
#[path = "support_dynamodb/proxy_records.rs"]
mod proxy_records;
#[path = "support_dynamodb/sdk_clients.rs"]
mod sdk_clients;
