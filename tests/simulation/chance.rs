//! The one source of chance of a run: every stream of it comes from the seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A stream of chance. Clones share it.
#[derive(Clone, Debug)]
pub struct Chance(Arc<Mutex<u64>>);

impl Chance {
    /// The stream with this number of this seed: streams do not disturb each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let chance = Self(Arc::new(Mutex::new(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93))));
        chance.bits();
        chance
    }

    /// SplitMix64.
    pub fn bits(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `from` to `to`, both included.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        from + self.bits() % (to - from + 1)
    }

    /// True in so many of a thousand cases.
    pub fn per_mille(&self, cases: u64) -> bool {
        self.bits() % 1000 < cases
    }

    /// One of them.
    pub fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.bits() as usize % choices.len()]
    }

    /// Up to so long, in whole milliseconds.
    pub fn up_to(&self, most: Duration) -> Duration {
        Duration::from_millis(self.between(0, most.as_millis() as u64))
    }
}
