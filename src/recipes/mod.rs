//! What people build on leases, built once.
//!
//! # Which do I need?
//!
//! | you want | take |
//! |---|---|
//! | one leader of a service, and to know who it is | [`Election`] |
//! | *n* at a time: at most so many machines at a database, a licence, a rate limit | [`Semaphore`] |
//! | both accounts or neither: several names at once, without a deadlock | [`acquire_all`] |
//! | once an hour across a fleet | [`Schedule`] |
//! | "please finish and hand over": a holder that goes when it is asked to | [`run_until_asked`], asked by [`step_down`] |
//! | a piece of work run once per key, and its outcome remembered: idempotent handlers of at-least-once queues | [`Once`] |
//! | a name that nobody may acquire for a while after its release | no recipe: [`Lease::close`](crate::Lease::close) |
//! | a job that one of many machines does now | no recipe: [`Leases::try_acquire`](crate::Leases::try_acquire) |
//! | work that waits for its turn, and stops when its lease is lost | no recipe: [`Leases::acquire`](crate::Leases::acquire), then [`Lease::run`](crate::Lease::run) |
//!
//! Each is a short file on the public leases, so each has their promises and no more: no two leaders share a token and
//! later ones have higher tokens, whatever the clocks do; that no two *believe* at once needs what every lease needs.
//! `docs/recipes.md` says more: what each costs, what happens when a holder is killed, frozen or cut off, which values to
//! choose.

mod all;
mod election;
mod observe;
mod once;
mod schedule;
mod semaphore;
mod step_down;

pub use all::{All, AllAttempt, AllHeld, acquire_all, acquire_all_within, try_acquire_all};
pub use election::Election;
pub use observe::{Leader, Observer, Sight};
pub use once::{Failed, Once, OnceError, Outcome};
pub use schedule::{Schedule, Tick, Turn};
pub use semaphore::Semaphore;
pub use step_down::{Yielded, run_until_asked, step_down};

use crate::lease::{Ended, Lease, State};
use crate::types::{Lost, LostReason};

/// Gives back a lease whose work was dropped, and says what it was lost by.
async fn release_lost(lease: Lease) -> Lost {
    let shut_down = Lost::new(lease.name().clone(), lease.token(), LostReason::Shutdown, None);
    let held = lease.held();
    match (lease.release().await, held.state()) {
        // What became of the release does not change why it was lost.
        (Ok(Ended::Lost(lost)), _) | (_, State::Ended(Ended::Lost(lost))) => lost,
        _ => shut_down,
    }
}
