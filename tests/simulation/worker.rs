//! What the processes do: acquire, work, store payloads, and end in every way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold::{Ended, Error, ErrorKind, Fence, Handover, Held, Lease, Lost, Name, Renewal, State as LeaseState};

use super::chance::Chance;
use super::checks::Live;
use super::machine::Cancel;
use super::plan::{ClientPlan, Theme};
use super::setting::Fault;
use super::world::{Process, World};

/// One worker of a process.
pub struct Worker {
    pub world: Arc<World>,
    pub process: Process,
    pub plan: ClientPlan,
    pub chance: Chance,
    /// The resources, one for each name, that check tokens.
    pub fences: Arc<BTreeMap<Name, Fence>>,
}

impl Worker {
    pub async fn work(self) {
        while !self.world.is_healed() {
            self.idle().await;
            let number = self.chance.between(0, self.world.plan.names as u64 - 1) as usize;
            let name = self.world.name(number);
            let before = self.world.checks(|checks| checks.returned());
            if self.remembers(self.plan.closes * 30) {
                self.once(&name, &before).await;
                continue;
            }
            if let Some(lease) = self.acquire(&name, self.cancel()).await {
                self.hold(lease, &before).await;
            }
        }
    }

    async fn idle(&self) {
        let idle = self.chance.of(if self.world.plan.theme == Theme::Idle { &[100, 800] } else { &[0, 10, 100] });
        self.world.sleep(self.chance.up_to(self.plan.ttl * idle / 100)).await;
        // What the date check lets pass, 3 s and a round trip, has to be within the margin.
        let safe = self.world.plan.is_alone(&self.plan) && self.plan.effective_margin() >= Duration::from_secs(4);
        if safe && self.happens(Fault::FreezeIdle) {
            self.process.clock.freeze_for(self.chance.up_to(self.plan.ttl * 2));
            // Goes on after the thaw.
            tokio::task::yield_now().await;
        }
    }

    async fn acquire(&self, name: &Name, cancel: Cancel) -> Option<Lease> {
        let leases = &self.process.leases;
        if self.chance.per_mille(self.plan.takes_up)
            && let Some(handover) = self.take_handover()
        {
            let lease = self.told(cancel.of(leases.resume(handover)).await, "resume")??;
            self.world.checks(|checks| checks.counts.one_more("resumed"));
            return Some(lease);
        }
        let mut request = leases.request(name.as_str());
        if self.chance.per_mille(300) {
            request = request.data(0u64.to_be_bytes());
        }
        if self.chance.per_mille(100) {
            request = request.at_most(self.plan.ttl + self.chance.up_to(self.plan.ttl * 2));
        }
        if self.chance.per_mille(50) {
            request = request.renewal(Renewal::Manual);
        }
        // Whoever waits sees the moment at which a rival's term is over.
        let waits = if self.world.plan.theme == Theme::Deadline { 8 } else { 2 };
        match self.chance.between(0, waits) {
            0 => self.told(cancel.of(request.try_acquire()).await, "try")??.acquired(),
            1 => {
                let limit = self.chance.up_to(self.plan.ttl * 2);
                self.told(cancel.of(request.acquire_within(limit)).await, "within")?
            }
            _ => self.told(cancel.of(request.acquire()).await, "acquire")?,
        }
    }

    pub async fn hold(&self, lease: Lease, before: &BTreeMap<Name, u64>) {
        let (name, token, held) = (lease.name().clone(), lease.token(), lease.held());
        let id = self.acquired(&held, before);
        if self.chance.per_mille(250) && self.plan.renewal == Renewal::Task {
            self.run(lease, &held).await;
        } else {
            self.use_it(&held, Some(&lease)).await;
            self.end(lease, &name, token.as_u64()).await;
        }
        self.done(&name, token.as_u64(), id);
    }

    /// It has the lease.
    pub fn acquired(&self, held: &Held, before: &BTreeMap<Name, u64>) -> u64 {
        let (id, gate) = (self.world.next_id(), Arc::clone(self.process.clock.gate()));
        self.world.note("acquired", self.process.id, held.token().as_u64(), id);
        let live = Live { id, process: self.process.id, held: held.clone(), gate };
        self.world.checks(|checks| checks.acquired(live, before));
        self.world.sample();
        id
    }

    /// It does not use the lease any more.
    pub fn done(&self, name: &Name, token: u64, id: u64) {
        self.world.note("done", self.process.id, token, id);
        self.world.sample();
        self.world.checks(|checks| {
            checks.over(name, token);
            checks.forget(id);
        });
    }

    async fn run(&self, lease: Lease, held: &Held) {
        let work = lease.run(|_| async {
            self.use_it(held, None).await;
            Ok::<(), WorkError>(())
        });
        if self.cancel().of(work).await.is_none() {
            self.cancelled("run");
        }
    }

    pub async fn use_it(&self, held: &Held, lease: Option<&Lease>) {
        let until = self.world.now() + self.chance.up_to(self.plan.holds);
        while self.world.now() < until && !self.world.is_healed() {
            self.world.sleep(self.chance.up_to(self.plan.ttl / 4)).await;
            self.act(held);
            if matches!(held.state(), LeaseState::Ended(_)) {
                return;
            }
            if let Some(lease) = lease.filter(|_| self.chance.per_mille(700)) {
                self.told(self.cancel().of(lease.renew()).await, "renew");
            }
            if self.chance.per_mille(self.plan.stores) {
                // A lease that was handed over brings the payload of the one before it.
                let older = self.set_data(held, self.world.next_id());
                match self.world.plan.often(Fault::Stall) > 0 && self.chance.per_mille(300) {
                    // The one that is left alone goes on when the other is stored.
                    true => _ = tokio::join!(older, self.set_data(held, self.world.next_id())),
                    false => older.await,
                }
            }
            if self.chance.per_mille(50) {
                // Up to almost all that a term can give, so that many have to wait for a renewal.
                let span = self.chance.up_to((self.plan.ttl * 74 / 100).saturating_sub(self.plan.effective_margin()));
                let done = self.cancel().of(held.ensure(span)).await;
                // A longest hold that leaves less than is asked for is a reason, and the caller's own.
                let too_much = |error: &Error| error.to_string().contains("its longest hold");
                if !matches!(&done, Some(Err(error)) if error.kind() == ErrorKind::Invalid && too_much(error)) {
                    self.told(done, "ensure");
                }
            }
        }
    }

    /// One effect on each of two resources: one asks for the token, the other does not.
    fn act(&self, held: &Held) {
        let (name, token) = (held.name(), held.token());
        if held.is_held() {
            self.world.checks(|checks| checks.acted_unfenced(name, token.as_u64()));
        }
        let stale = self.fences.get(name).is_some_and(|fence| fence.admit(token).is_err());
        self.world.checks(|checks| checks.acted_fenced(name, token.as_u64(), !stale));
    }

    async fn set_data(&self, held: &Held, number: u64) {
        let done = self.cancel().of(held.set_data(number.to_be_bytes())).await;
        if let Some(Ok(())) = done {
            let (name, token) = (held.name(), held.token().as_u64());
            self.world.checks(|checks| checks.stored_payload(name, token, number));
        }
        self.told(done, "set_data");
    }

    async fn end(&self, lease: Lease, name: &Name, token: u64) {
        self.world.checks(|checks| checks.over(name, token));
        if self.remembers(self.plan.closes * 100) {
            return self.close(lease, name, token).await;
        }
        let released = (10 - self.plan.hands_over) * 3 / 4;
        match self.chance.between(0, 9) {
            way if way < released => {
                let done = self.cancel().of(lease.release()).await;
                match &done {
                    // Best effort for a lost lease: nothing is sent any more, but a late renewal may still land.
                    Some(Ok(Ended::Lost(_))) => self.world.checks(|checks| checks.silenced(name, token)),
                    Some(Ok(_)) => self.world.checks(|checks| checks.released(name, token)),
                    _ => {}
                }
                self.told(done, "release");
            }
            way if way < 10 - self.plan.hands_over => drop(lease),
            _ => {
                let done = self.cancel().of(lease.into_handover()).await;
                if let Some(Ok(_)) = done {
                    self.world.checks(|checks| checks.silenced(name, token));
                }
                if let Some(Some(handover)) = self.told(done, "handover") {
                    self.pass_on(handover);
                }
            }
        }
    }

    /// Queues deliver, and sometimes twice.
    fn pass_on(&self, handover: Handover) {
        let mut queue = self.world.handovers.lock().unwrap();
        if self.chance.per_mille(300) {
            let text = serde_json::to_string(&handover).unwrap();
            queue.push(serde_json::from_str(&text).unwrap());
        }
        queue.push(handover);
    }

    fn take_handover(&self) -> Option<Handover> {
        let mut queue = self.world.handovers.lock().unwrap();
        let last = queue.len().checked_sub(1)?;
        Some(queue.remove(self.chance.between(0, last as u64) as usize))
    }

    fn happens(&self, fault: Fault) -> bool {
        !self.world.is_healed() && self.chance.per_mille(self.world.plan.often(fault))
    }

    pub fn cancel(&self) -> Cancel {
        Cancel::draw(&self.world, &self.chance, self.plan.ttl)
    }

    pub fn cancelled(&self, what: &'static str) {
        self.world.cancelled(self.process.id, what);
    }

    pub fn told<T>(&self, done: Option<Result<T, Error>>, what: &'static str) -> Option<Option<T>> {
        match done {
            None => {
                self.cancelled(what);
                None
            }
            Some(Ok(value)) => Some(Some(value)),
            Some(Err(error)) => {
                self.expect(&error);
                Some(None)
            }
        }
    }

    /// An error that says that the caller is wrong, or the record broken, is the library's mistake here.
    pub fn expect(&self, error: &Error) {
        let fine =
            [ErrorKind::TimedOut, ErrorKind::Unavailable, ErrorKind::Denied, ErrorKind::Refused, ErrorKind::Lost];
        // Nor can a caller know what the longest hold has left when it asks for more.
        let beyond_its_hold = error.kind() == ErrorKind::Invalid && error.to_string().contains("at_most");
        if !fine.contains(&error.kind()) && !beyond_its_hold {
            self.world.checks(|checks| checks.fail(format!("an error that has no reason: {error:?}")));
        }
    }
}

struct WorkError;

impl From<Lost> for WorkError {
    fn from(_: Lost) -> Self {
        Self
    }
}
