//! What a client owes: clean-ups of claims that were given up, and releases that were not answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::client::Client;
use super::core::Core;
use crate::protocol::cleanup::{Cleanup, Debt, Settlement};
use crate::protocol::rules::Rules;
use crate::time;
use crate::types::{Name, Stamp, Vacate};

/// Everything that is owed.
#[derive(Debug, Default)]
pub(super) struct Debts {
    queue: Mutex<Queue>,
    /// Told whenever a debt was settled or put back.
    changed: Notify,
    /// How many were not settled in their terms.
    ran_out: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Owed>,
    in_hand: usize,
}

/// One debt.
#[derive(Debug)]
pub(super) struct Owed {
    name: Name,
    rules: Arc<Rules>,
    cleanup: Cleanup,
    since: Stamp,
    after: u64,
    /// The lease whose release this is: it stands in the way of the next in line until it was tried.
    of: Option<Arc<Core>>,
}

impl Client {
    /// Something is owed from now on. Never waits, needs no runtime.
    pub(super) fn owe(self: &Arc<Self>, name: &Name, rules: &Arc<Rules>, debt: Debt, of: Option<Arc<Core>>) {
        let owed = Owed {
            name: name.clone(),
            rules: Arc::clone(rules),
            cleanup: Cleanup::new(debt),
            since: self.now(),
            after: 0,
            of,
        };
        self.debts.lock().waiting.push(owed);
        self.debts.changed.notify_waiters();
        self.keeper.owes(self);
    }

    /// Sends what is owed, once each, within `limit`: where nobody does it in the background.
    pub(super) async fn settle_once(self: &Arc<Self>, limit: Option<Duration>) {
        if self.debts.count() == 0 {
            return;
        }
        let settled = join_all(self.take_debts(|_| true).into_iter().map(InHand::settle));
        time::within(&*self.clock, limit.unwrap_or(Duration::MAX), settled).await;
    }

    /// Returns when nothing is owed.
    pub(super) async fn settle_all(self: &Arc<Self>) {
        loop {
            let changed = self.debts.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.now();
            let due = self.take_debts(|owed| owed.wait(&now) == 0);
            if !due.is_empty() {
                join_all(due.into_iter().map(InHand::settle)).await;
                continue;
            }
            let Some(wait) = self.debts.next_due(&now) else { return };
            tokio::select! {
                biased;
                () = changed => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    /// Takes up to `most` debts that are due now.
    pub(super) fn take_due_debts(self: &Arc<Self>, most: usize) -> Vec<InHand> {
        let (now, mut left) = (self.now(), most);
        self.take_debts(|owed| {
            let due = left > 0 && owed.wait(&now) == 0;
            left -= usize::from(due);
            due
        })
    }

    fn take_debts(self: &Arc<Self>, mut which: impl FnMut(&Owed) -> bool) -> Vec<InHand> {
        let mut queue = self.debts.lock();
        let (taken, waiting): (Vec<Owed>, Vec<Owed>) =
            std::mem::take(&mut queue.waiting).into_iter().partition(|owed| which(owed));
        queue.waiting = waiting;
        queue.in_hand += taken.len();
        taken.into_iter().map(|owed| InHand { client: Arc::clone(self), owed: Some(owed) }).collect()
    }
}

impl Debts {
    /// How long until something is due; `None` when nothing is owed.
    pub(super) fn next_due(&self, now: &Stamp) -> Option<Duration> {
        let queue = self.lock();
        let waiting = queue.waiting.iter().map(|owed| owed.wait(now)).min().map(Duration::from_nanos);
        // What is under way tells when it has ended.
        waiting.or((queue.in_hand > 0).then_some(Duration::from_secs(1)))
    }

    /// Nobody sends by itself what is owed: it must keep neither its leases nor, through them, the client.
    pub(super) fn let_go(&self) {
        let leases: Vec<_> = self.lock().waiting.iter_mut().filter_map(|owed| owed.of.take()).collect();
        leases.iter().for_each(|core| core.unblock_line());
    }

    /// How many were not settled in their terms so far.
    pub(super) fn ran_out(&self) -> usize {
        self.ran_out.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self) -> usize {
        let queue = self.lock();
        queue.waiting.len() + queue.in_hand
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owed {
    fn wait(&self, now: &Stamp) -> u64 {
        self.after.saturating_sub(now.steady_since(&self.since))
    }
}

/// A debt that was taken out of the queue: put back when this is dropped, unless it was settled.
#[derive(Debug)]
pub(super) struct InHand {
    client: Arc<Client>,
    owed: Option<Owed>,
}

impl InHand {
    /// Sends it once.
    pub(super) async fn settle(mut self) {
        let Some(owed) = &mut self.owed else { return };
        let client = &self.client;
        let debt = owed.cleanup.debt;
        let body = Vacate {
            name: owed.name.clone(),
            token: debt.token,
            grant: debt.grant,
            burn: debt.burn,
            close: None,
            now_ms: client.port.late_now_ms(),
        };
        let answer = client.port.vacate(Duration::from_nanos(owed.rules.attempt), body).await;
        let (now, jitter) = (client.now(), client.jitter());
        let settlement = match &answer {
            Ok((answer, _)) => owed.cleanup.answered(answer, &now, &owed.rules, jitter),
            Err(_) => owed.cleanup.failed(&now, &owed.rules, jitter),
        };
        if let Some(core) = owed.of.take() {
            core.owed_release_tried(settlement == Settlement::Settled);
        }
        match settlement {
            Settlement::Again(after) => (owed.since, owed.after) = (now, after),
            Settlement::Settled => self.owed = None,
            Settlement::RanOut => {
                tracing::warn!(lease.name = %owed.name, lease.token = debt.token, "a clean-up was not settled in its term");
                client.debts.ran_out.fetch_add(1, Ordering::Relaxed);
                self.owed = None;
            }
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut queue = self.client.debts.lock();
        queue.in_hand -= 1;
        queue.waiting.extend(self.owed.take());
        drop(queue);
        self.client.debts.changed.notify_waiters();
        self.client.keeper.ring();
    }
}
