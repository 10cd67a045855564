//! What one store remembers between its calls. No lease hangs on it: it saves requests, or tells what an earlier call
//! has sent, or is still about to send.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::metadata::Found;
use crate::types::{Grant, Name};

/// How much is remembered: about a kilobyte for each.
const MOST: usize = 2048;

/// The blobs as last seen, and the claims in doubt.
#[derive(Default)]
pub(super) struct Notes(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    seen: HashMap<Name, Found>,
    /// With the blob whose tag the request for the lease names, if it names one.
    in_doubt: HashMap<Grant, Option<Found>>,
    /// The newest version of a grant's renewals that has brought a payload.
    payloads: HashMap<Grant, u64>,
}

impl Notes {
    /// The blob is like this now, as far as is known.
    pub(super) fn saw(&self, name: &Name, found: Found) {
        let mut inner = self.lock();
        if inner.seen.len() >= MOST {
            inner.seen.clear();
        }
        inner.seen.insert(name.clone(), found);
    }

    /// Takes what is known of the blob: who uses it learns whether it was still so, and says.
    pub(super) fn take(&self, name: &Name) -> Option<Found> {
        self.lock().seen.remove(name)
    }

    /// A lease with this id is being asked for, of the blob as it was found. It is in doubt until it is settled.
    pub(super) fn asks_for(&self, grant: Grant, found: &Found) {
        self.doubts(grant, Some(found.clone()));
    }

    /// The same where the request names the lease that it takes the place of, and no tag.
    pub(super) fn asks_to_take_up(&self, grant: Grant) {
        self.doubts(grant, None);
    }

    pub(super) fn is_in_doubt(&self, grant: Grant) -> bool {
        self.lock().in_doubt.contains_key(&grant)
    }

    /// The blob with the only tag under which a lease with this id can still be got.
    pub(super) fn asked_of(&self, grant: Grant) -> Option<Found> {
        self.lock().in_doubt.get(&grant).cloned().flatten()
    }

    /// Nothing of this grant is in doubt, or it is over.
    pub(super) fn settled(&self, grant: Grant) {
        let mut inner = self.lock();
        inner.in_doubt.remove(&grant);
        inner.payloads.remove(&grant);
    }

    /// A renewal with this version brings a payload.
    pub(super) fn brings(&self, grant: Grant, version: u64) {
        let mut inner = self.lock();
        if inner.payloads.len() >= MOST {
            inner.payloads.clear();
        }
        let newest = inner.payloads.entry(grant).or_default();
        *newest = version.max(*newest);
    }

    /// Whether a later renewal of this grant brings a newer payload.
    pub(super) fn is_outdated(&self, grant: Grant, version: u64) -> bool {
        self.lock().payloads.get(&grant).is_some_and(|newest| *newest > version)
    }

    fn doubts(&self, grant: Grant, asked_of: Option<Found>) {
        let mut inner = self.lock();
        if inner.in_doubt.len() >= MOST {
            inner.in_doubt.clear();
        }
        inner.in_doubt.insert(grant, asked_of);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}
