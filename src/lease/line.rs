//! Who holds and who waits for each name within one client: first-in first-out, one poller a name.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::client::Client;
use super::core::Core;
use crate::types::Name;

/// How often a waiter looks whether the local holder is over, should nobody tell it.
const LOOK: Duration = Duration::from_secs(1);

/// All names that this client holds or waits for.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<BTreeMap<Name, Line>>);

#[derive(Debug, Default)]
struct Line {
    holder: Option<Weak<Core>>,
    /// The token of the last holder here.
    known: u64,
    waiters: VecDeque<Arc<Notify>>,
}

/// A waiter's place in the line; it leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    client: Arc<Client>,
    name: Name,
    ticket: Arc<Notify>,
}

/// Who is before a newcomer.
#[derive(Debug)]
pub(super) enum Before {
    Nobody,
    Waiters,
    Holder(Arc<Core>),
}

impl Lines {
    /// Who in this client is before somebody who comes now.
    pub(super) fn before(&self, name: &Name) -> Before {
        let lines = self.lock();
        let Some(line) = lines.get(name) else { return Before::Nobody };
        match line.live_holder() {
            Some(holder) => Before::Holder(holder),
            None if line.waiters.is_empty() => Before::Nobody,
            None => Before::Waiters,
        }
    }

    /// Queues up.
    pub(super) fn join(client: &Arc<Client>, name: &Name) -> Place {
        let ticket = Arc::new(Notify::new());
        client.lines.lock().entry(name.clone()).or_default().waiters.push_back(Arc::clone(&ticket));
        Place { client: Arc::clone(client), name: name.clone(), ticket }
    }

    /// This client holds the name by that lease now.
    pub(super) fn holds(&self, core: &Arc<Core>) {
        let mut lines = self.lock();
        let line = lines.entry(core.name.clone()).or_default();
        line.holder = Some(Arc::downgrade(core));
        line.known = core.token.as_u64();
    }

    /// That lease is over: the next waiter may go to the store.
    pub(super) fn over(&self, core: &Core) {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(&core.name) else { return };
        if line.holder.as_ref().is_some_and(|holder| std::ptr::eq(holder.as_ptr(), core)) {
            line.holder = None;
        }
        line.call_next();
        Self::tidy(&mut lines, &core.name);
    }

    /// The leases that this client holds.
    pub(super) fn cores(&self) -> Vec<Arc<Core>> {
        self.lock().values().filter_map(|line| line.holder.as_ref()?.upgrade()).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().values().map(|line| line.waiters.len()).sum()
    }

    /// Lets every waiter look again.
    pub(super) fn wake_all(&self) {
        for ticket in self.lock().values().flat_map(|line| &line.waiters) {
            ticket.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tidy(lines: &mut BTreeMap<Name, Line>, name: &Name) {
        if lines.get(name).is_some_and(|line| line.holder.is_none() && line.waiters.is_empty()) {
            lines.remove(name);
        }
    }
}

impl Line {
    fn live_holder(&self) -> Option<Arc<Core>> {
        self.holder.as_ref()?.upgrade().filter(|core| core.is_in_the_way())
    }

    fn call_next(&self) {
        if let Some(next) = self.waiters.front() {
            next.notify_one();
        }
    }
}

impl Place {
    /// Waits until this is the first in line and nobody in this client holds the name. Returns the token of the
    /// last holder here, 0 if there was none.
    pub(super) async fn turn(&self) -> u64 {
        loop {
            match self.look() {
                Ok(known) => return known,
                Err(again) => {
                    tokio::select! {
                        biased;
                        () = self.ticket.notified() => {}
                        () = self.client.clock.sleep(again) => {}
                    }
                }
            }
        }
    }

    /// Who is before this place.
    pub(super) fn holder(&self) -> Option<Arc<Core>> {
        self.client.lines.lock().get(&self.name)?.live_holder()
    }

    fn look(&self) -> Result<u64, Duration> {
        let holder = {
            let lines = self.client.lines.lock();
            let Some(line) = lines.get(&self.name) else { return Ok(0) };
            let first = line.waiters.front().is_some_and(|first| Arc::ptr_eq(first, &self.ticket));
            match line.holder.as_ref().and_then(Weak::upgrade) {
                _ if self.client.is_closed() => return Ok(line.known),
                None if first => return Ok(line.known),
                _ if !first => return Err(LOOK),
                holder => holder,
            }
        };
        // Judged outside the lock: it may find the holder over and say so to this line.
        match holder.filter(|holder| holder.judge().is_none() || holder.is_in_the_way()) {
            // One that is being released tells when it is over.
            Some(holder) if holder.left().is_zero() => Err(LOOK),
            Some(holder) => Err(holder.left().clamp(Duration::from_millis(1), LOOK)),
            None => Ok(self.client.lines.lock().get(&self.name).map_or(0, |line| line.known)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.client.lines.lock();
        if let Some(line) = lines.get_mut(&self.name) {
            line.waiters.retain(|ticket| !Arc::ptr_eq(ticket, &self.ticket));
            if line.live_holder().is_none() {
                line.call_next();
            }
        }
        Lines::tidy(&mut lines, &self.name);
    }
}
