//! The Azure Blob store on a Blob service that keeps to the documentation: requests, doubt, errors, credentials.
//!
//! The service runs in the test's process and on the test's clock, so nothing here waits in real time.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

#[path = "azure_store/ground.rs"]
mod ground;
#[path = "azure_store/requests.rs"]
mod requests;

#[path = "azure_store/actors.rs"]
mod actors;
#[path = "azure_store/attacks.rs"]
mod attacks;
#[path = "azure_store/interleavings.rs"]
mod interleavings;
#[path = "azure_store/schedule.rs"]
mod schedule;
#[path = "azure_store/world.rs"]
mod world;
