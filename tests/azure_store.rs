//! The Azure Blob store on a Blob service that keeps to the documentation: requests, doubt, errors, credentials.
//!
//! The service runs in the test's process and on the test's clock, so nothing here waits in real time.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

#[path = "azure_store/ground.rs"]
mod ground;
#[path = "azure_store/requests.rs"]
mod requests;

#[path = "azure_store/credentials.rs"]
mod credentials;
#[path = "azure_store/errors.rs"]
mod errors;
#[path = "azure_store/hostile.rs"]
mod hostile;
#[path = "azure_store/lenient.rs"]
mod lenient;
#[path = "azure_store/lost_answers.rs"]
mod lost_answers;
#[path = "azure_store/names.rs"]
mod names;
#[path = "azure_store/operators.rs"]
mod operators;
#[path = "azure_store/pairs.rs"]
mod pairs;
#[path = "azure_store/properties.rs"]
mod properties;
#[path = "azure_store/regressions.rs"]
mod regressions;
