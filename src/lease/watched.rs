//! What a client has watched of names that it did not get: a call that comes again goes on counting.
//!
//! Without it a client that tries once a second would begin its count at every try, and would never take over from
//! a dead holder where only watching tells.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::observer::Observer;
use crate::types::Name;

/// So many names a generation. The names of the last one are forgotten when the next is full: a client that tries
/// more names in turn begins its counts anew, which costs time and nothing else.
const GENERATION: usize = 10_000;

/// What was watched, by name.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    newest: HashMap<Name, Observer>,
    last: HashMap<Name, Observer>,
}

impl Watched {
    /// What this client has watched of that name.
    pub(super) fn of(&self, name: &Name) -> Observer {
        let generations = self.lock();
        let known = generations.newest.get(name).or_else(|| generations.last.get(name));
        known.cloned().unwrap_or_default()
    }

    /// Keeps it for the next call.
    pub(super) fn keep(&self, name: &Name, observer: &Observer) {
        let mut generations = self.lock();
        if *observer == Observer::default() {
            generations.newest.remove(name);
            generations.last.remove(name);
            return;
        }
        if generations.newest.len() >= GENERATION && !generations.newest.contains_key(name) {
            generations.last = std::mem::take(&mut generations.newest);
        }
        generations.newest.insert(name.clone(), observer.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
