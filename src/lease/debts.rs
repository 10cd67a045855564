//! What a client owes: clean-ups of claims that were given up, and releases that were not answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::sync::Notify;

use super::client::Client;
use super::core::Core;
use crate::protocol::cleanup::{Cleanup, Debt, Settlement};
use crate::protocol::rules::Rules;
use crate::time;
use crate::types::{Close, Name, Stamp, Vacate};

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
    /// Never tried yet: due at once.
    fresh: VecDeque<Owed>,
    /// Tried, by the moment on the boot clock at which they are due again, and a number to tell equals apart.
    later: BTreeMap<(u64, u64), Owed>,
    tried: u64,
    in_hand: usize,
}

/// One debt.
#[derive(Debug)]
pub(super) struct Owed {
    name: Name,
    rules: Arc<Rules>,
    cleanup: Cleanup,
    /// What a release leaves.
    close: Option<Close>,
    /// The lease whose release this is: it stands in the way of the next in line until it was tried.
    of: Option<Arc<Core>>,
}

impl Client {
    /// Something is owed from now on. Never waits, needs no runtime.
    pub(super) fn owe(self: &Arc<Self>, name: &Name, rules: &Arc<Rules>, debt: Debt) {
        self.owe_release(name, rules, debt, None, None);
    }

    /// The release of this lease is owed, with what it leaves.
    pub(super) fn owe_release(
        self: &Arc<Self>,
        name: &Name,
        rules: &Arc<Rules>,
        debt: Debt,
        close: Option<Close>,
        of: Option<Arc<Core>>,
    ) {
        let owed = Owed { name: name.clone(), rules: Arc::clone(rules), cleanup: Cleanup::new(debt), close, of };
        self.debts.lock().fresh.push_back(owed);
        self.debts.changed.notify_waiters();
        self.keeper.owes(self);
    }

    /// Sends what is owed, once each, within `limit`: where nobody does it in the background.
    pub(super) async fn settle_once(self: &Arc<Self>, limit: Option<Duration>) {
        if self.debts.count() == 0 {
            return;
        }
        let settled = self.settle_each(self.take_debts(u64::MAX, usize::MAX));
        time::within(&*self.clock, limit.unwrap_or(Duration::MAX), settled).await;
    }

    /// Returns when nothing is owed.
    pub(super) async fn settle_all(self: &Arc<Self>) {
        loop {
            let changed = self.debts.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.now();
            let due = self.take_debts(now.boot, usize::MAX);
            if !due.is_empty() {
                self.settle_each(due).await;
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
        self.take_debts(self.now().boot, most)
    }

    /// Sends these once each, no more at a time than the client's concurrency.
    async fn settle_each(&self, debts: Vec<InHand>) {
        let settled = stream::iter(debts).map(InHand::settle).buffer_unordered(self.options.concurrency);
        settled.collect::<()>().await;
    }

    fn take_debts(self: &Arc<Self>, due: u64, most: usize) -> Vec<InHand> {
        let mut queue = self.debts.lock();
        let mut taken = Vec::new();
        while let Some(owed) = (taken.len() < most).then(|| queue.next(due)).flatten() {
            taken.push(InHand { client: Arc::clone(self), owed: Some(owed), again_at: 0 });
        }
        queue.in_hand += taken.len();
        taken
    }
}

impl Queue {
    fn next(&mut self, due: u64) -> Option<Owed> {
        self.fresh.pop_front().or_else(|| {
            let first = self.later.first_entry().filter(|entry| entry.key().0 <= due)?;
            Some(first.remove())
        })
    }

    fn put_back(&mut self, owed: Owed, at: u64) {
        self.tried += 1;
        self.later.insert((at, self.tried), owed);
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Owed> {
        self.fresh.iter_mut().chain(self.later.values_mut())
    }
}

impl Debts {
    /// How long until something is due; `None` when nothing is owed.
    pub(super) fn next_due(&self, now: &Stamp) -> Option<Duration> {
        let queue = self.lock();
        let later = queue.later.first_key_value().map(|((at, _), _)| at.saturating_sub(now.boot));
        let wait = if queue.fresh.is_empty() { later } else { Some(0) };
        // What is in hand tells when it has ended.
        wait.map(Duration::from_nanos).or((queue.in_hand > 0).then_some(Duration::from_secs(1)))
    }

    /// Nobody sends by itself what is owed: it must keep neither its leases nor, through them, the client.
    pub(super) fn let_go(&self) {
        let leases: Vec<_> = self.lock().all_mut().filter_map(|owed| owed.of.take()).collect();
        leases.iter().for_each(|core| core.unblock_line());
    }

    /// How many were not settled in their terms so far.
    pub(super) fn ran_out(&self) -> usize {
        self.ran_out.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self) -> usize {
        let queue = self.lock();
        queue.fresh.len() + queue.later.len() + queue.in_hand
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A debt that was taken out of the queue: put back when this is dropped, unless it was settled.
#[derive(Debug)]
pub(super) struct InHand {
    client: Arc<Client>,
    owed: Option<Owed>,
    /// When it is due again on the boot clock, if it is put back.
    again_at: u64,
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
            close: owed.close.clone(),
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
            Settlement::Again(after) => self.again_at = now.boot.saturating_add(after),
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
        if let Some(owed) = self.owed.take() {
            queue.put_back(owed, self.again_at);
        }
        drop(queue);
        self.client.debts.changed.notify_waiters();
        self.client.keeper.ring();
    }
}
