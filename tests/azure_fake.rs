//! Tests of the fake Blob service, which judges the Azure store.
#![allow(clippy::disallowed_methods, reason = "a client of the SDK is made here")]

mod support;

#[path = "azure_fake/sdk.rs"]
mod sdk;
