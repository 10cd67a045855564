//! The trails of the grants that this process has claimed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::majority::trail::Trail;
use crate::protocol::store_time::StoreTime;
use crate::types::{Grant, Stamp};

/// Below so many nothing is looked through.
const FEW: usize = 1_000;

#[derive(Default)]
pub(super) struct Grants(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    trails: HashMap<Grant, Arc<Granted>>,
    /// How many there were after the last look through.
    left: usize,
}

/// One grant.
pub(super) struct Granted {
    state: Mutex<State>,
}

struct State {
    trail: Trail,
    /// By member: when a claim was first sent there and what was known of the member's clock then.
    sent: Vec<Option<(Stamp, StoreTime)>>,
    used: Stamp,
    ttl: u64,
}

impl Grants {
    /// A claim of this grant begins, perhaps for the second time.
    pub(super) fn begin(&self, grant: Grant, members: usize, ttl: u64, now: Stamp) -> Arc<Granted> {
        let mut kept = self.lock();
        if kept.trails.len() >= kept.left.saturating_mul(2).max(FEW) {
            // Without a renewal for two terms it has ended, however: nothing of it can be sent any more.
            kept.trails.retain(|_, granted| !granted.is_idle(&now));
            kept.left = kept.trails.len();
        }
        let granted = kept.trails.entry(grant).or_insert_with(|| Arc::new(Granted::new(members, ttl, now)));
        Arc::clone(granted)
    }

    /// The grant, if it was claimed here.
    pub(super) fn get(&self, grant: Grant, now: Stamp) -> Option<Arc<Granted>> {
        let granted = self.lock().trails.get(&grant).cloned()?;
        granted.lock().used = now;
        Some(granted)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Granted {
    /// One that was claimed elsewhere, or never: nothing is rejoined for it.
    pub(super) fn unknown(members: usize) -> Arc<Self> {
        Arc::new(Self::new(members, 0, Stamp::default()))
    }

    fn new(members: usize, ttl: u64, now: Stamp) -> Self {
        let (trail, sent) = (Trail::new(members), vec![None; members]);
        Self { state: Mutex::new(State { trail, sent, used: now, ttl }) }
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Trail) -> T) -> T {
        act(&mut self.lock().trail)
    }

    /// A claim is about to leave for a member; the first one is remembered. False: it must not.
    pub(super) fn send(&self, member: usize, now: Stamp, basis: StoreTime) -> bool {
        let mut state = self.lock();
        state.sent[member].get_or_insert((now, basis));
        state.trail.send_claim(member)
    }

    /// When a claim was first sent to a member, and what was known of its clock.
    pub(super) fn first_sent(&self, member: usize) -> Option<(Stamp, StoreTime)> {
        self.lock().sent[member]
    }

    fn is_idle(&self, now: &Stamp) -> bool {
        let state = self.lock();
        now.shortest_since(&state.used) > state.ttl.saturating_mul(2)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
