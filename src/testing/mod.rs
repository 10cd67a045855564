//! For your own tests: a clock that follows tokio's paused clock, and can freeze and jump (feature `testing`).
//!
//! tokio's paused clock moves on at once when every task sleeps, but the machine's clocks do not, and a lease is
//! judged by the machine's clocks. A [`TestClock`] makes both one. Together with the faults of
//! [`MemoryStore`](crate::MemoryStore) (a rival, a lost answer, a store that is away or hangs) you can test what your
//! program does when it loses its lease, in milliseconds.

mod clock;

pub use clock::TestClock;
