//! Leases as users see them: the client, acquiring, holding by renewing, losing honestly, releasing.
//!
//! This layer performs what `protocol` decides; it decides nothing about safety itself.

mod acquire;
mod admin;
mod builder;
mod client;
mod core;
mod debts;
mod events;
mod guard;
mod held;
mod keeper;
mod line;
mod memory;
mod port;
mod request;
mod run;
mod stats;

pub use admin::{Inspection, Inspections, Status};
pub use builder::{LeasesBuilder, Renewal, Takeover};
pub use client::Leases;
pub use events::{Event, Events};
pub use guard::Lease;
pub use held::{Ended, Held, State, Watch};
pub use request::{Attempt, Request};
pub use run::Finished;
pub use stats::Stats;
