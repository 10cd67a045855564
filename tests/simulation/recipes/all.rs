//! Several names, all or none.

use std::collections::BTreeMap;

use leasehold::recipes::{All, AllAttempt, acquire_all, acquire_all_within, try_acquire_all};
use leasehold::{Ended, Error, Held, Lease, Name};

use super::super::worker::Worker;
use super::{Failed, Wrong};

pub const NAMES: [&str; 3] = ["all/0", "all/1", "all/2"];

impl Worker {
    pub async fn take_all(self) {
        while !self.world.is_healed() {
            self.rest().await;
            let (names, before) = (self.some_names(), self.returned());
            if self.is_wrong(Wrong::OwnOrder) {
                self.take_in_own_order(&names).await;
                continue;
            }
            match self.told(self.take(&names).await, "all").flatten().flatten() {
                Some(all) => self.hold_all(all, &names, &before).await,
                None => self.gave_up(),
            }
        }
        // Now everybody gets all of them once.
        while !self.take_all_at_last().await {
            tokio::time::sleep(self.plan.ttl / 4).await;
        }
    }

    /// Two of the names, or all, in any order.
    fn some_names(&self) -> Vec<&'static str> {
        let mut names = NAMES.to_vec();
        names.rotate_left(self.chance.between(0, 2) as usize);
        if self.chance.per_mille(500) {
            names.reverse();
        }
        names.truncate(self.chance.of(&[2, 2, 3]));
        names
    }

    async fn take(&self, names: &[&str]) -> Option<Result<Option<All>, Error>> {
        let (leases, cancel) = (&self.process.leases, self.cancel());
        let tried = |got| match got {
            AllAttempt::Acquired(all) => Some(all),
            AllAttempt::Held(..) => None,
        };
        // While nobody renews, a wait that is longer than the term would never end.
        match self.chance.between(0, if self.renews() { 3 } else { 0 }) {
            0 => cancel.of(try_acquire_all(leases, names)).await.map(|got| got.map(tried)),
            1 => {
                let limit = self.chance.up_to(self.plan.ttl * 2);
                cancel.of(acquire_all_within(leases, names, limit)).await.map(|got| got.map(Some))
            }
            _ => cancel.of(acquire_all(leases, names)).await.map(|got| got.map(Some)),
        }
    }

    async fn hold_all(&self, all: All, names: &[&str], before: &BTreeMap<Name, u64>) {
        self.count("all taken");
        let views: Vec<Held> = all.leases().iter().map(Lease::held).collect();
        let mut sorted: Vec<_> = names.to_vec();
        sorted.sort_unstable();
        let held = all.held().is_held();
        if !held || !views.iter().map(|held| held.name().as_str()).eq(sorted) {
            self.world.checks(|checks| checks.fail(format!("of {names:?} not all are held: {held}, {views:?}")));
        }
        if self.renews() && self.chance.per_mille(700) {
            let work = all.run(|_| async {
                self.use_all(&views, before).await;
                Ok::<(), Failed>(())
            });
            if self.cancel().of(work).await.is_none() {
                self.cancelled("all run");
            }
        } else {
            self.use_all(&views, before).await;
            match self.chance.per_mille(700) {
                true => self.release_all(all).await,
                false => drop(all),
            }
        }
        views.iter().for_each(|held| self.must_be_gone(held, "the use of all"));
        self.gave_up();
    }

    async fn release_all(&self, all: All) {
        let tokens: Vec<_> = all.leases().iter().map(|lease| (lease.name().clone(), lease.token().as_u64())).collect();
        let done = self.cancel().of(all.release()).await;
        if let Some(Ok(Ended::Released)) = done {
            self.world.checks(|checks| tokens.iter().for_each(|(name, token)| checks.released(name, *token)));
        }
        self.told(done, "all release");
    }

    async fn use_all(&self, views: &[Held], before: &BTreeMap<Name, u64>) {
        let _working: Vec<_> = views.iter().map(|held| self.begins_under_one(held, before)).collect();
        for held in views {
            self.use_it(held, None).await;
        }
    }

    async fn take_in_own_order(&self, names: &[&str]) {
        let mut taken = Vec::new();
        for name in names {
            if let Ok(lease) = self.process.leases.acquire(name).await {
                taken.push(lease);
                self.world.sleep(self.chance.up_to(self.plan.ttl)).await;
            }
        }
    }

    async fn take_all_at_last(&self) -> bool {
        let before = self.returned();
        let got = match self.renews() {
            true => acquire_all(&self.process.leases, NAMES).await.ok(),
            false => match try_acquire_all(&self.process.leases, NAMES).await {
                Ok(AllAttempt::Acquired(all)) => Some(all),
                _ => None,
            },
        };
        match got {
            Some(all) => self.hold_all(all, &NAMES, &before).await,
            None => {
                self.gave_up();
                return false;
            }
        }
        true
    }
}
