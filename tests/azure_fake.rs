//! Tests of the fake Blob service, which judges the Azure store: each cell of the documentation's table of leases, and
//! what the REST API says around it. The expectations come from the documentation, not from the fake.
#![allow(clippy::disallowed_methods, reason = "tests wait on the paused clock")]

mod support;

#[path = "azure_fake/breaks.rs"]
mod breaks;
#[path = "azure_fake/changes.rs"]
mod changes;
#[path = "azure_fake/conditions.rs"]
mod conditions;
#[path = "azure_fake/containers.rs"]
mod containers;
#[path = "azure_fake/credentials.rs"]
mod credentials;
#[path = "azure_fake/faults.rs"]
mod faults;
#[path = "azure_fake/ground.rs"]
mod ground;
#[path = "azure_fake/headers.rs"]
mod headers;
#[path = "azure_fake/leeway.rs"]
mod leeway;
#[path = "azure_fake/listing.rs"]
mod listing;
#[path = "azure_fake/operators.rs"]
mod operators;
#[path = "azure_fake/requests.rs"]
mod requests;
#[path = "azure_fake/sdk.rs"]
mod sdk;
#[path = "azure_fake/table.rs"]
mod table;
#[path = "azure_fake/writes.rs"]
mod writes;
