//! So many permits, and more who want one.

use leasehold::Attempt;
use leasehold::recipes::Semaphore;

use super::super::worker::Worker;
use super::super::world::{Process, World};
use super::{Recipe, Shared, Wrong, limit};

pub const NAME: &str = "permits";

impl Worker {
    pub async fn take_permits(self, shared: Shared) {
        let semaphore = shared.0.get_or_init(|| self.semaphore()).clone();
        while !self.world.is_healed() {
            self.rest().await;
            let before = self.returned();
            let cancel = self.cancel();
            let got = match self.chance.between(0, 3) {
                0 => cancel.of(semaphore.try_acquire()).await.map(|got| got.map(Attempt::acquired)),
                1 => {
                    let limit = self.chance.up_to(self.plan.ttl * 2);
                    cancel.of(semaphore.acquire_within(limit)).await.map(|got| got.map(Some))
                }
                _ => cancel.of(semaphore.acquire()).await.map(|got| got.map(Some)),
            };
            match self.told(got, "semaphore").flatten().flatten() {
                Some(lease) => {
                    self.count("permits");
                    let held = lease.held();
                    self.hold(lease, &before).await;
                    self.must_be_gone(&held, "the use of a permit");
                }
                // Where two share it, the other may be about to get one.
                None if self.process.client != 0 => self.gave_up(),
                None => {}
            }
        }
    }

    fn semaphore(&self) -> Semaphore {
        let Some(Recipe::Semaphore(permits)) = self.world.plan.recipe else { unreachable!("it is the recipe") };
        let one_more = self.is_wrong(Wrong::OnePermitMore) && self.process.client == 0;
        Semaphore::new(&self.process.leases, NAME, permits + u32::from(one_more)).unwrap()
    }
}

/// Each process gets all permits, and no more.
pub async fn get_well(world: &World, processes: &[Process], permits: u32) -> Result<(), String> {
    for process in processes {
        let semaphore = Semaphore::new(&process.leases, NAME, permits).unwrap();
        let mut all = Vec::new();
        for number in 0..permits {
            let lease = semaphore.acquire_within(limit(world)).await;
            all.push(lease.map_err(|error| format!("a leaked permit: {number} of {permits} were to be had: {error}"))?);
        }
        let more = semaphore.try_acquire().await;
        // Waiting for the last one may outlast the first one's term, where nothing renews it.
        let held = all.iter().filter(|lease| lease.held().is_held()).count() as u32;
        match more {
            Ok(Attempt::Acquired(_)) if held == permits => {
                return Err(format!("a process has got more than {permits} permits"));
            }
            Ok(_) if held == permits => world.checks(|checks| checks.counts.one_more("all permits, and not one more")),
            Ok(_) => {}
            Err(error) => return Err(format!("a try failed without a fault: {error}")),
        }
        for lease in all {
            lease.release().await.map_err(|error| format!("a release failed without a fault: {error}"))?;
        }
    }
    Ok(())
}
