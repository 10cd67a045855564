//! A majority of scripted stores under the real client: every rule of `docs/multi-region.md` has its test here.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

#[path = "../support/mod.rs"]
mod support;

mod building;
mod closing;
mod ground;
mod moving;
mod outages;
mod rejoining;
mod splits;
