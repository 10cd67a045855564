//! All paths of a few clients of the Azure Blob store through a service that keeps to the documentation: the real store, one
//! request at a time, in every order. `tests/azure_broken.rs` runs the same attacks on rules that are broken.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

#[path = "../support/mod.rs"]
mod support;

mod actors;
#[allow(dead_code, reason = "tests/azure_broken.rs uses the rest")]
mod attacks;
#[path = "../azure_store/ground.rs"]
#[allow(dead_code, reason = "tests/azure_store.rs uses the rest")]
mod ground;
mod interleavings;
mod schedule;
mod world;
