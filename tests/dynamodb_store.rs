//! The DynamoDB store on the emulator, through the fault proxy: tables, items, requests, errors.

mod support;

#[path = "dynamodb_store/bodies.rs"]
mod bodies;
#[path = "dynamodb_store/errors.rs"]
mod errors;
#[path = "dynamodb_store/items.rs"]
mod items;
#[path = "dynamodb_store/requests.rs"]
mod requests;
#[path = "dynamodb_store/tables.rs"]
mod tables;
