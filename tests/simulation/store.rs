//! The simulated store, and the network between it and each process.
//!
//! Its truth is what `protocol::record` decides. A request travels in a task of its own, so that it arrives also
//! when its sender has stopped waiting for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Description, ExpiryJudge, Grant, ListPage, Name, Page, Record, Renew,
    Renewal, Renewed, Revoke, Revoked, Standing, Store, StoreError, StoreErrorKind, Takeover, Timed, Vacate, Vacated,
    View,
};
use tokio::sync::oneshot;

use super::checks::Checks;
use super::machine::MachineClock;
use super::plan::Plan;
use super::setting::{Fault, StoreKind};
use super::world::{State, World};

/// The store's clock at the beginning, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_790_000_000_000;

/// What the store has.
#[derive(Debug)]
pub struct Truth(BTreeMap<Name, Entry>);

/// One process's way to the store.
#[derive(Clone)]
pub struct Line {
    world: Arc<World>,
    client: usize,
    process: usize,
    clock: MachineClock,
}

/// What happens to one request.
struct Fate {
    before: Duration,
    arrives: bool,
    after: Duration,
    failure: Option<Failure>,
    again: Option<Duration>,
    freeze: Option<Duration>,
}

#[derive(Clone, Copy)]
enum Failure {
    /// Nothing ever comes back.
    Silence,
    Error(StoreErrorKind, Applied),
}

/// A record and when its present write was made.
#[derive(Clone, Debug)]
struct Entry {
    stored: Stored,
    written: Duration,
}

impl Truth {
    pub fn new(_: &Plan) -> Self {
        Self(BTreeMap::new())
    }

    pub fn stored(&self, name: &Name) -> Stored {
        self.0.get(name).map_or(Stored::Absent, |entry| entry.stored.clone())
    }
}

impl Line {
    pub fn new(world: &Arc<World>, client: usize, process: usize, clock: MachineClock) -> Self {
        Self { world: Arc::clone(world), client, process, clock }
    }

    fn fate(&self, freezable: bool) -> Fate {
        let (world, chance) = (&self.world, &self.world.network);
        let way = || chance.up_to(world.plan.latency);
        let (before, after) = (way(), way());
        let calm = Fate { before, arrives: true, after, failure: None, again: None, freeze: None };
        if world.is_healed() {
            return calm;
        }
        let happens = |fault| chance.per_mille(world.plan.often(fault));
        let delay = || match happens(Fault::Delay) {
            true => chance.up_to(world.plan.longest_ttl() * chance.of(&[5, 50]) as u32 / 10),
            false => Duration::ZERO,
        };
        let broken = match chance.per_mille(500) {
            true => Failure::Silence,
            false => Failure::Error(StoreErrorKind::Unavailable, Applied::Unknown),
        };
        let again =
            happens(Fault::Duplicate).then(|| chance.up_to(world.plan.longest_ttl() * chance.of(&[1, 5]) as u32));
        let freeze = (freezable && happens(Fault::FreezeInClaim)).then(|| chance.up_to(world.plan.longest_ttl() * 2));
        let slow = match happens(Fault::SlowAnswer) {
            true => chance.up_to(world.plan.shortest_ttl() / 6),
            false => Duration::ZERO,
        };
        let fate = Fate { before: before + delay(), after: after + delay() + slow, again, freeze, ..calm };
        let refused = |kind, applied| Some(Failure::Error(kind, applied));
        match () {
            () if world.is_away() => Fate { arrives: false, failure: Some(broken), again: None, ..fate },
            () if world.is_cut_off(self.client) => match chance.per_mille(world.plan.lost_when_cut_off()) {
                true => Fate { arrives: false, failure: Some(broken), again: None, ..fate },
                false => Fate { failure: Some(broken), ..fate },
            },
            () if happens(Fault::RequestLost) => Fate { arrives: false, failure: Some(broken), ..fate },
            () if happens(Fault::AnswerLost) => Fate { failure: Some(broken), ..fate },
            () if happens(Fault::Throttle) => {
                Fate { arrives: false, failure: refused(StoreErrorKind::Throttled, Applied::No), again: None, ..fate }
            }
            () if happens(Fault::Denied) => {
                Fate { arrives: false, failure: refused(StoreErrorKind::Denied, Applied::No), again: None, ..fate }
            }
            () if happens(Fault::FailBefore) => {
                Fate { arrives: false, failure: refused(StoreErrorKind::Unavailable, Applied::Unknown), ..fate }
            }
            () if happens(Fault::FailAfter) => {
                Fate { failure: refused(StoreErrorKind::Unavailable, Applied::Unknown), ..fate }
            }
            () => fate,
        }
    }

    /// One request and its answer.
    async fn through<T, F>(&self, freezable: bool, request: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&World) -> T + Send + Sync + 'static,
    {
        if self.world.is_dead(self.process) {
            std::future::pending::<()>().await;
        }
        let fate = self.fate(freezable);
        let (answer, answered) = oneshot::channel();
        if let Some(freeze) = fate.freeze {
            self.clock.freeze_for(freeze);
        }
        self.world.travels(1);
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            tokio::time::sleep(fate.before + fate.freeze.unwrap_or_default()).await;
            let value = fate.arrives.then(|| request(&world));
            world.sample();
            if let Some(again) = fate.again {
                let again_in = Arc::clone(&world);
                world.travels(1);
                tokio::spawn(async move {
                    tokio::time::sleep(again).await;
                    request(&again_in);
                    again_in.travels(-1);
                    again_in.sample();
                });
            }
            world.travels(-1);
            tokio::time::sleep(fate.after).await;
            let _ = match (fate.failure, value) {
                (None, Some(value)) => answer.send(Ok(value)),
                (Some(Failure::Error(kind, applied)), _) => answer.send(Err((kind, applied))),
                _ => Ok(()),
            };
        });
        let answer = match answered.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        };
        self.clock.gate().pass().await;
        self.world.sample();
        answer.map_err(|(kind, applied)| StoreError::new(kind, applied, format!("simulated: {kind:?}")))
    }
}

#[async_trait]
impl Store for Line {
    fn describe(&self) -> Description {
        let mut description = Description::new("simulated", "simulated");
        description.judge = match self.world.plan.setting.kind {
            StoreKind::Judging => ExpiryJudge::Store,
            _ => ExpiryJudge::Client,
        };
        description.has_store_time = self.world.plan.setting.kind == StoreKind::Dated;
        description.renew_batch = self.world.plan.setting.renew_batch;
        description
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.world.note("claim", self.process, claim.token, claim.grant.bits() as u64);
        self.world.checks(|checks| checks.claim_sent(self.process, claim));
        let (body, process) = (claim.clone(), self.process);
        let freezable = self.world.may_freeze_in_claim(self.client);
        self.through(freezable, move |world| world.claim(process, &body)).await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        for renew in renewals {
            self.world.note("renew", self.process, renew.token, renew.version);
            self.world.checks(|checks| checks.renew_sent(renew));
        }
        let (bodies, process) = (renewals.to_vec(), self.process);
        let answers = self.through(false, move |world| bodies.iter().map(|body| world.renew(process, body)).collect());
        match answers.await {
            Ok(answers) => {
                let answers: Vec<Timed<Renewed>> = answers;
                answers.into_iter().map(Ok).collect()
            }
            Err(error) => renewals
                .iter()
                .map(|_| Err(StoreError::new(error.kind, error.applied, error.message.clone())))
                .collect(),
        }
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        self.world.note(if vacate.burn { "burn" } else { "release" }, self.process, vacate.token, 0);
        self.world.checks(|checks| checks.vacate_sent(vacate));
        let (body, process) = (vacate.clone(), self.process);
        let answer = self.through(false, move |world| world.vacate(process, &body)).await;
        if let Ok(Timed { value, .. }) = &answer {
            self.world.checks(|checks| checks.closing_answered(vacate, value));
        }
        if vacate.burn && matches!(&answer, Ok(Timed { value: Vacated::Vacated, .. })) {
            self.world.checks(|checks| checks.settled(vacate.grant));
        }
        answer
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.world.note("revoke", self.process, revoke.token, 0);
        let body = revoke.clone();
        self.through(false, move |world| world.revoke(&body)).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.world.note("ask", self.process, ask.step_down.token, 0);
        self.world.checks(|checks| checks.asks_for_recipe(ask));
        let body = ask.clone();
        self.through(false, move |world| world.ask(&body)).await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        let name = name.clone();
        self.through(false, move |world| world.read(&name)).await
    }

    async fn list(&self, _prefix: &str, _page: Option<Page>) -> Answer<ListPage> {
        Err(StoreError::new(StoreErrorKind::Invalid, Applied::No, "the simulation lists nothing"))
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({})", self.process)
    }
}

/// The verbs, as they are applied.
impl World {
    fn claim(&self, process: usize, claim: &Claim) -> Timed<Claimed> {
        let outcome = self.apply(
            &claim.name,
            |stored| record::claim(stored, claim),
            |world, before, after| {
                world.note_in("claimed", process, claim.token, 0);
                claimed(&mut world.checks, claim, before, after);
            },
        );
        self.dated(outcome.map_or(Claimed::Granted, Claimed::Refused))
    }

    fn renew(&self, process: usize, renew: &Renew) -> Timed<Renewed> {
        let mut asked = None;
        let outcome = self.apply(
            &renew.name,
            |stored| record::renew(stored, renew),
            |world, _, after| {
                world.note_in("renewed", process, renew.token, renew.version);
                world.checks.writes(&renew.name, renew.grant, "renewal");
                world.checks.payload_written(&renew.name, renew.grant, after.data.as_ref());
                asked.clone_from(&after.asked);
            },
        );
        self.dated(outcome.map_or(Renewed::Renewed(asked), Renewed::Refused))
    }

    fn vacate(&self, process: usize, vacate: &Vacate) -> Timed<Vacated> {
        let outcome = self.apply(
            &vacate.name,
            |stored| record::vacate(stored, vacate),
            |world, _, _| {
                world.note_in("vacated", process, vacate.token, u64::from(vacate.burn));
                if !vacate.burn {
                    world.checks.writes(&vacate.name, vacate.grant, "release");
                }
            },
        );
        self.dated(outcome.map_or(Vacated::Vacated, Vacated::Refused))
    }

    fn revoke(&self, revoke: &Revoke) -> Timed<Revoked> {
        let refused = |stored: &Stored| record::revoke_refused(stored, revoke);
        let refused = self.look(&revoke.name, refused);
        let outcome = self.apply(&revoke.name, |stored| record::revoke(stored, revoke), |_, _, _| {});
        self.dated(outcome.map_or(Revoked::Revoked, |_| refused))
    }

    fn ask(&self, ask: &Ask) -> Timed<Asked> {
        let outcome = self.apply(&ask.name, |stored| record::ask(stored, ask), |_, _, _| {});
        self.dated(outcome.map_or(Asked::Asked, Asked::Refused))
    }

    fn read(&self, name: &Name) -> Timed<View> {
        let view = self.view(name);
        self.dated(view)
    }

    /// What is there, if the verb was refused.
    fn apply(
        &self,
        name: &Name,
        verb: impl FnOnce(&Stored) -> Outcome,
        written: impl FnOnce(&mut State, &Stored, &Record),
    ) -> Option<View> {
        let before = self.look(name, Stored::clone);
        match verb(&before) {
            Outcome::Refuse => Some(self.view(name)),
            Outcome::Already => None,
            Outcome::Write(after) => {
                self.write(name, &before, after, written);
                None
            }
        }
    }

    fn view(&self, name: &Name) -> View {
        let (view, age) = (self.look(name, Stored::view), self.age(name));
        match (self.plan.setting.kind, &view.standing, &view.record) {
            (StoreKind::Judging, Standing::Held(version), Some(record)) if is_over(record, age) => {
                View { standing: Standing::Expired(version.clone()), ..view }
            }
            _ => view,
        }
    }
}

fn is_over(record: &Record, age: Duration) -> bool {
    let term = match record.grant {
        Some(_) => record.ttl_ms,
        None => record.closed.and_then(|closed| closed.for_ms),
    };
    term.is_some_and(|term| age >= Duration::from_millis(term))
}

/// The truth, and when it is written.
impl World {
    /// Only where one claim, and no lease, can be hurt by it, and where the claim's end is on the store's clock: a client
    /// that watches only has no date to tell it by, and its claim may be repeated and answered after the freeze.
    fn may_freeze_in_claim(&self, client: usize) -> bool {
        let Some(plan) = self.plan.clients.get(client) else { return false };
        let dated = self.plan.setting.kind == StoreKind::Dated && plan.takeover == Takeover::StoreTime;
        dated && plan.renewal == Renewal::Manual && self.plan.is_alone(plan)
    }

    fn look<T>(&self, name: &Name, look: impl FnOnce(&Stored) -> T) -> T {
        let state = self.state();
        look(state.truth.0.get(name).map_or(&Stored::Absent, |entry| &entry.stored))
    }

    fn age(&self, name: &Name) -> Duration {
        let state = self.state();
        state.truth.0.get(name).map_or(Duration::ZERO, |entry| self.now().saturating_sub(entry.written))
    }

    fn write(&self, name: &Name, before: &Stored, after: Record, written: impl FnOnce(&mut State, &Stored, &Record)) {
        let mut state = self.state();
        if let Stored::Record(before) = before {
            state.checks.token_written(name, before.token, after.token);
        }
        written(&mut state, before, &after);
        let by = after.closed.filter(|_| after.grant.is_none()).and_then(|closed| closed.by);
        state.checks.closing_written(name, by, after.data.as_ref());
        let same = matches!(before, Stored::Record(old) if identity(old) == identity(&after));
        let since = state.truth.0.get(name).filter(|_| same).map_or(self.now(), |entry| entry.written);
        state.truth.0.insert(name.clone(), Entry { stored: Stored::Record(after), written: since });
    }

    /// With the store's time, where answers carry it.
    fn dated<T>(&self, value: T) -> Timed<T> {
        if self.plan.setting.kind != StoreKind::Dated {
            return Timed::undated(value);
        }
        let chance = &self.network;
        let skew = match self.plan.often(Fault::FleetSkew) {
            0 => 1000,
            _ => chance.of(&[0, 2000, chance.between(0, 2000)]),
        };
        let now = BEGIN_MS + self.now().as_millis() as u64 + skew - 1000;
        Timed::dated(value, Some(now / 1000 * 1000))
    }
}

fn claimed(checks: &mut Checks, claim: &Claim, before: &Stored, after: &Record) {
    let name = &claim.name;
    checks.granted(name, claim.token, claim.grant);
    checks.writes(name, claim.grant, "claim");
    if after.data != claim.data {
        checks.fail(format!("{name}: the payload of an older grant has survived a claim"));
    }
    checks.payload_written(name, claim.grant, claim.data.as_ref());
    if matches!(before, Stored::Record(record) if record.grant.is_some()) {
        checks.counts.one_more("takeovers");
    }
}

fn identity(record: &Record) -> (u64, Option<Grant>, Option<u64>) {
    (record.token, record.grant, record.version)
}
