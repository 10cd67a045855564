//! Candidates, those who watch, and one who asks leaders to step down.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::recipes::{Election, Sight, Yielded, run_until_asked, step_down};
use leasehold::{Ended, Held, Lease, Name};

use super::super::plan::ClientPlan;
use super::super::setting::Fault;
use super::super::worker::Worker;
use super::super::world::{Process, World};
use super::{Failed, Wrong, limit, name_of};

pub const NAME: &str = "leader";

/// What is known of the terms of one call.
struct Terms {
    before: BTreeMap<Name, u64>,
    led: u32,
    last: Option<Held>,
}

impl Worker {
    pub async fn stand(self) {
        let election = election(&self.process, self.world.next_id());
        while !self.world.is_healed() {
            self.rest().await;
            match self.chance.between(0, if self.renews() { 4 } else { 0 }) {
                0 => self.campaign_and_hold(&election).await,
                1 => self.campaign_and_listen(&election).await,
                _ => drop(self.lead(&election, false).await),
            }
        }
        // Now everybody leads once.
        while !self.lead_at_last(&election).await {
            tokio::time::sleep(self.plan.ttl / 4).await;
        }
    }

    async fn campaign(&self, election: &Election) -> Option<Lease> {
        let late = self.is_wrong(Wrong::PublishesLate);
        let lease = match late {
            true => self.cancel().of(self.process.leases.acquire(NAME)).await,
            false => self.cancel().of(election.campaign()).await,
        };
        let lease = self.told(lease, "campaign").flatten();
        if lease.is_none() {
            self.gave_up();
        }
        lease
    }

    async fn campaign_and_hold(&self, election: &Election) {
        let before = self.returned();
        let Some(lease) = self.campaign(election).await else { return };
        let held = lease.held();
        if self.is_wrong(Wrong::LooksAway) {
            return self.look_away(&held).await;
        }
        self.hold(lease, &before).await;
        self.must_be_gone(&held, "a term");
    }

    async fn campaign_and_listen(&self, election: &Election) {
        let before = self.returned();
        let Some(lease) = self.campaign(election).await else { return };
        let held = lease.held();
        let work = |held| self.govern(held, &before);
        let Some(finished) = self.cancel().of(run_until_asked(lease, work)).await else {
            self.cancelled("until asked");
            return self.must_be_gone(&held, "a term that was cancelled");
        };
        self.must_be_gone(&held, "a term");
        let (name, token) = (held.name(), held.token().as_u64());
        match (finished.output, finished.ended) {
            (None, Ended::Released) => self.world.checks(|checks| checks.stepped_down(name, token)),
            (_, Ended::Released | Ended::Lost(_)) => {}
            (output, ended) => {
                let worked = output.is_some();
                self.world.checks(|checks| checks.fail(format!("{name}: worked: {worked}, and then {ended:?}")));
            }
        }
    }

    /// Whether it has led to the end of its work.
    async fn lead(&self, election: &Election, at_last: bool) -> bool {
        let terms = Mutex::new(Terms { before: self.returned(), led: 0, last: None });
        let work = |held: Held| {
            let before = self.next_term(&terms, &held);
            async move {
                self.govern(held, &before).await;
                match !at_last && self.chance.per_mille(100) {
                    true => Err(Failed::Own),
                    false => Ok(()),
                }
            }
        };
        let led = self.cancel().of(election.lead(work)).await;
        let Terms { last, .. } = terms.into_inner().unwrap();
        if let Some(held) = &last {
            self.must_be_gone(held, "leading");
        }
        match (&led, last) {
            (None, _) => self.cancelled("election"),
            (Some(Ok(None)), Some(held)) => {
                self.world.checks(|checks| checks.stepped_down(held.name(), held.token().as_u64()));
            }
            (Some(Ok(Some(()))), Some(_)) | (Some(Err(Failed::Own)), Some(_)) => {}
            (Some(Err(Failed::Library(error))), _) => self.expect(error),
            (Some(done), last) => {
                let (ok, worked) = (done.is_ok(), last.is_some());
                self.world.checks(|checks| checks.fail(format!("{NAME}: Ok: {ok}, and that it has led: {worked}")));
            }
        }
        self.gave_up();
        matches!(led, Some(Ok(Some(()))))
    }

    fn next_term(&self, terms: &Mutex<Terms>, held: &Held) -> BTreeMap<Name, u64> {
        let mut terms = terms.lock().unwrap();
        self.count("led");
        if terms.led > 0 {
            self.count("led again after a loss");
        }
        (terms.led, terms.last) = (terms.led + 1, Some(held.clone()));
        // The next campaign begins after this one.
        std::mem::replace(&mut terms.before, self.returned())
    }

    /// What a leader does. Some do not listen, and are stopped.
    async fn govern(&self, held: Held, before: &BTreeMap<Name, u64>) {
        let _working = self.begins(&held, before);
        if self.chance.per_mille(300) {
            return self.use_it(&held, None).await;
        }
        tokio::select! {
            biased;
            _ = held.until_asked() => {}
            () = self.use_it(&held, None) => {}
        }
    }

    /// Acts for long as if it led.
    async fn look_away(&self, held: &Held) {
        let until = self.world.now() + self.plan.ttl * 8;
        while self.world.now() < until && !self.world.is_healed() {
            self.world.sleep(self.chance.up_to(self.plan.ttl / 4)).await;
            self.world.checks(|checks| checks.acted_unfenced(held.name(), held.token().as_u64()));
        }
    }

    async fn lead_at_last(&self, election: &Election) -> bool {
        if self.renews() {
            return self.lead(election, true).await;
        }
        let before = self.returned();
        let Some(lease) = self.campaign(election).await else { return false };
        self.hold(lease, &before).await;
        true
    }
}

impl Worker {
    pub async fn watch(self) {
        let mut observer = election(&self.process, 0).observe();
        let (mut last, name) = (0, name_of(NAME));
        while !self.world.is_healed() {
            let seen = self.cancel().of(observer.next());
            let Some(seen) = self.until_healed(seen).await else { break };
            if let Some(Some(Sight::Leader(leader))) = self.told(seen, "observe") {
                let token = leader.token.as_u64();
                self.world.checks(|checks| checks.leader_seen(&name, last, token, leader.data()));
                last = token;
            }
        }
        self.world.observers.lock().unwrap().push((self.process.id, observer));
    }

    pub async fn ask_to_step_down(self) {
        while !self.world.is_healed() {
            self.world.sleep(self.chance.up_to(self.plan.ttl * 2)).await;
            if self.chance.per_mille(self.world.plan.often(Fault::Operator)) {
                self.depose().await;
            }
            let grace = self.chance.up_to(Duration::from_secs(3));
            let asked = self.cancel().of(step_down(&self.process.leases, NAME, grace)).await;
            match self.told(asked, "step-down") {
                Some(Some(Yielded::Gone(token))) => self.must_have_gone(token.as_u64()),
                Some(Some(Yielded::StillHeld(_))) => self.count("still held"),
                _ => {}
            }
        }
    }

    /// As an operator would.
    async fn depose(&self) {
        if let Ok(seen) = self.process.leases.inspect(NAME).await
            && let Some(token) = seen.token
        {
            // Whether it succeeds is the operator's own affair.
            let _ = self.process.leases.revoke(NAME, token).await;
        }
    }

    fn must_have_gone(&self, token: u64) {
        let name = name_of(NAME);
        self.count("gone when asked");
        self.world.checks(|checks| {
            if checks.is_believed(&name, token) {
                checks.fail(format!("{name}: {token} is said to have gone, and it believes"));
            }
        });
    }
}

fn election(process: &Process, number: u64) -> Election {
    Election::new(&process.leases, NAME).publish(number.to_be_bytes())
}

/// One leads, all who watch see it, and it goes when it is asked to.
pub async fn get_well(world: &World, processes: &[Process]) -> Result<(), String> {
    let renews = |process: &&Process| world.plan.clients.get(process.client).is_some_and(ClientPlan::renews);
    let Some(leader) = processes.iter().find(renews) else { return Ok(()) };
    let Some(asker) = processes.iter().find(|process| process.id != leader.id) else { return Ok(()) };
    let limit = limit(world);
    let lease = within(limit, "a campaign", election(leader, world.next_id()).campaign()).await?;
    let lease = lease.map_err(|error| format!("{NAME}: nobody can lead: {error}"))?;
    let token = lease.token();
    let deaf = world.plan.wrong == Some(Wrong::Deaf);
    let leads = async {
        match deaf {
            true => lease.run_to_end(|_| std::future::pending::<()>()).await.ended,
            false => run_until_asked(lease, |_| std::future::pending::<()>()).await.ended,
        }
    };
    let goes = async {
        watched(world, limit, Some(token.as_u64())).await?;
        let asked = within(limit * 2, "a step-down", step_down(&asker.leases, NAME, Duration::from_secs(1))).await?;
        match asked {
            Ok(Yielded::Gone(gone)) if gone == token => watched(world, limit, None).await,
            other => Err(format!("{NAME}: asked without a fault, {token} has not gone: {other:?}")),
        }
    };
    // Whoever does not listen is stopped.
    let (gone, _) = tokio::join!(goes, tokio::time::timeout(limit * 4, leads));
    gone
}

/// All who watch see this leader, or nobody.
async fn watched(world: &World, limit: Duration, leader: Option<u64>) -> Result<(), String> {
    let observers = std::mem::take(&mut *world.observers.lock().unwrap());
    for (process, mut observer) in observers {
        if world.is_dead(process) {
            continue;
        }
        let follows = async {
            loop {
                match observer.next().await {
                    Ok(Sight::Leader(seen)) if leader == Some(seen.token.as_u64()) => return,
                    Ok(Sight::Nobody) if leader.is_none() => return,
                    _ => {}
                }
            }
        };
        within(limit, "a watcher that follows", follows).await?;
        world.observers.lock().unwrap().push((process, observer));
    }
    Ok(())
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(limit, work).await.map_err(|_| format!("{NAME}: {what} does not end within {limit:?}"))
}
