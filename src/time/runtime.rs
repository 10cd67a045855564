//! tokio's own clock, for the clock of tests.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reads clocks, draws chance and sleeps")]

use std::time::Duration;

/// A moment of tokio's clock, which may be paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimeMoment(tokio::time::Instant);

impl RuntimeMoment {
    /// Now.
    pub(crate) fn now() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// How much of tokio's time has passed since.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
