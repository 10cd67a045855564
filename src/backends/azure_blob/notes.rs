//! What one store remembers between its calls. No lease hangs on it: it saves requests, or tells what an earlier call
//! has sent, or is still about to send.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::metadata::Found;
use crate::types::{Grant, Name};

/// How much is remembered of each kind: about a kilobyte for each, ten where payloads are large.
const MOST: usize = 2048;

/// The blobs as last seen, and the claims in doubt.
#[derive(Default)]
pub(super) struct Notes(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// `None`: there was no blob.
    seen: HashMap<Name, Option<Found>>,
    /// With the blob whose tag the request for the lease names, if it names one.
    in_doubt: HashMap<Grant, Option<Found>>,
    /// The claims of which a lease was given back, or is being given back.
    given_up: HashSet<Grant>,
    /// The newest version of a grant's renewals that has brought a payload.
    payloads: HashMap<Grant, u64>,
}

impl Notes {
    /// The blob is like this now, as far as is known.
    pub(super) fn saw(&self, name: &Name, found: impl Into<Option<Found>>) {
        let mut inner = self.lock();
        make_room(&mut inner.seen);
        inner.seen.insert(name.clone(), found.into());
    }

    /// Takes what is known of the blob, if anything is: who uses it learns whether it was still so, and says.
    pub(super) fn take(&self, name: &Name) -> Option<Option<Found>> {
        self.lock().seen.remove(name)
    }

    /// A lease with this id is being asked for, of the blob as it was found. It is in doubt until it is settled.
    pub(super) fn proposes(&self, grant: Grant, found: &Found) {
        self.doubts(grant, Some(found.clone()));
    }

    /// The same where the request names the lease that it takes the place of, and no tag.
    pub(super) fn asks_to_take_up(&self, grant: Grant) {
        self.doubts(grant, None);
    }

    pub(super) fn is_in_doubt(&self, grant: Grant) -> bool {
        self.lock().in_doubt.contains_key(&grant)
    }

    /// The lease with this id is given back from now on: no copy of its claim may be granted any more.
    pub(super) fn gives_up(&self, grant: Grant) {
        let mut inner = self.lock();
        if inner.given_up.len() >= MOST {
            inner.given_up.clear();
        }
        inner.given_up.insert(grant);
    }

    pub(super) fn is_given_up(&self, grant: Grant) -> bool {
        self.lock().given_up.contains(&grant)
    }

    /// The blob with the only tag under which a lease with this id can still be got.
    pub(super) fn asked_of(&self, grant: Grant) -> Option<Found> {
        self.lock().in_doubt.get(&grant).cloned().flatten()
    }

    /// Nothing of this grant is in doubt, or it is over.
    pub(super) fn settled(&self, grant: Grant) {
        let mut inner = self.lock();
        inner.in_doubt.remove(&grant);
        inner.given_up.remove(&grant);
        inner.payloads.remove(&grant);
    }

    /// A renewal with this version brings a payload.
    pub(super) fn brings(&self, grant: Grant, version: u64) {
        let mut inner = self.lock();
        make_room(&mut inner.payloads);
        let newest = inner.payloads.entry(grant).or_default();
        *newest = version.max(*newest);
    }

    /// Whether a later renewal of this grant brings a newer payload.
    pub(super) fn is_outdated(&self, grant: Grant, version: u64) -> bool {
        self.lock().payloads.get(&grant).is_some_and(|newest| *newest > version)
    }

    fn doubts(&self, grant: Grant, asked_of: Option<Found>) {
        let mut inner = self.lock();
        make_room(&mut inner.in_doubt);
        inner.in_doubt.insert(grant, asked_of);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets one of many.
fn make_room<K: Clone + Eq + Hash, V>(notes: &mut HashMap<K, V>) {
    if notes.len() >= MOST
        && let Some(one) = notes.keys().next().cloned()
    {
        notes.remove(&one);
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}
