//! What is remembered of a name: how its records were watched, and how often nobody got a majority.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::observer::Observer;
use crate::types::Name;

/// So many names a generation. Those of the last are forgotten when the next is full: watching begins anew then, which
/// costs time and nothing else.
const GENERATION: usize = 10_000;

pub(super) struct Names {
    members: usize,
    kept: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    newest: HashMap<Name, Arc<Watched>>,
    last: HashMap<Name, Arc<Watched>>,
}

/// One name.
pub(super) struct Watched {
    observers: Mutex<Vec<Observer>>,
    /// How many claims in a row got some members and no majority.
    splits: AtomicU32,
    /// Claims of one process take turns, so that they do not split the members among themselves.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl Names {
    pub(super) fn new(members: usize) -> Self {
        Self { members, kept: Mutex::default() }
    }

    pub(super) fn of(&self, name: &Name) -> Arc<Watched> {
        let mut kept = self.lock();
        if let Some(watched) = kept.newest.get(name) {
            return Arc::clone(watched);
        }
        if kept.newest.len() >= GENERATION {
            kept.last = std::mem::take(&mut kept.newest);
        }
        let watched = kept.last.remove(name).unwrap_or_else(|| Arc::new(Watched::new(self.members)));
        kept.newest.insert(name.clone(), Arc::clone(&watched));
        watched
    }

    /// A copy of what was watched, for a look that leaves nothing behind.
    pub(super) fn copy_of(&self, name: &Name) -> Watched {
        let kept = self.lock();
        let watched = Watched::new(self.members);
        if let Some(known) = kept.newest.get(name).or_else(|| kept.last.get(name)) {
            watched.observers().clone_from(&known.observers());
        }
        watched
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn new(members: usize) -> Self {
        let observers = Mutex::new(vec![Observer::default(); members]);
        Self { observers, splits: AtomicU32::new(0), turn: tokio::sync::Mutex::new(()) }
    }

    pub(super) fn observers(&self) -> MutexGuard<'_, Vec<Observer>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn splits(&self) -> u32 {
        self.splits.load(Ordering::Relaxed)
    }

    /// Nobody got a majority. How often in a row.
    pub(super) fn split(&self) -> u32 {
        self.splits.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn whole(&self) {
        self.splits.store(0, Ordering::Relaxed);
    }
}
