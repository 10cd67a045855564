//! What a client remembers of names that it does not hold: what it has watched, and the highest token it has seen.
//!
//! Without the first, a client that tries once a second would begin its count at every try, and would never take
//! over from a dead holder where only watching tells. Without the second, one that acquires a name twice within a
//! second would propose a token that is not above its own last one, and pay a second claim.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::observer::Observer;
use crate::types::Name;

/// So many names a generation. The names of the last one are forgotten when the next is full: a client that tries
/// more names in turn begins its counts anew, which costs time and nothing else.
const GENERATION: usize = 10_000;

/// What is remembered, by name.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    newest: HashMap<Name, Remembered>,
    last: HashMap<Name, Remembered>,
}

/// What is remembered of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    pub(super) watched: Observer,
    /// The highest token seen, 0 if none.
    pub(super) token: u64,
}

impl Memory {
    /// What this client remembers of that name.
    pub(super) fn of(&self, name: &Name) -> Remembered {
        let generations = self.lock();
        let known = generations.newest.get(name).or_else(|| generations.last.get(name));
        known.cloned().unwrap_or_default()
    }

    /// Remembers it for the next call.
    pub(super) fn keep(&self, name: &Name, watched: &Observer, token: u64) {
        let mut generations = self.lock();
        if generations.newest.len() >= GENERATION && !generations.newest.contains_key(name) {
            generations.last = std::mem::take(&mut generations.newest);
        }
        generations.newest.insert(name.clone(), Remembered { watched: watched.clone(), token });
    }

    /// Forgets a name that this client holds: the lease itself knows its token.
    pub(super) fn forget(&self, name: &Name) {
        let mut generations = self.lock();
        generations.newest.remove(name);
        generations.last.remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{GENERATION, Memory};
    use crate::protocol::observer::Observer;
    use crate::types::Name;

    #[test]
    fn a_name_that_is_forgotten_is_remembered_in_no_generation() {
        let (memory, name) = (Memory::default(), |number: usize| Name::new(format!("job-{number}")).unwrap());
        let keep = |number, token| memory.keep(&name(number), &Observer::default(), token);
        keep(0, 7);
        (1..=GENERATION).for_each(|number| keep(number, 1));
        assert_eq!(memory.of(&name(0)).token, 7, "of the last generation");
        memory.forget(&name(0));
        memory.forget(&name(GENERATION));
        assert_eq!([memory.of(&name(0)).token, memory.of(&name(GENERATION)).token], [0, 0]);
        assert_eq!(memory.of(&name(1)).token, 1);
    }
}
