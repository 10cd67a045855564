//! The service's truth, and each process's store on the way to it. What a client is told of its claims and clean-ups
//! is noted here, by verbs; what the service applies is observed in `observed`, by requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::protocol::record::Stored;
use leasehold::testing::TestClock;
use leasehold::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Data, Description, Grant, ListPage, Name, Page, Record, Renew,
    Renewed, Revoke, Revoked, Store, Timed, Vacate, Vacated, View,
};

use super::machine::MachineClock;
use super::observed::Found;
use super::plan::Plan;
use super::support::azure::Fake;
use super::way::Way;
use super::world::World;

/// The service, and what clients have been told by it.
#[derive(Debug)]
pub struct Truth {
    pub service: Fake,
    claims: BTreeMap<Grant, Told>,
    /// Claims of which every copy that was sent was answered with a definite no.
    pub refused: BTreeSet<Grant>,
    /// What each claim brings.
    pub brought: BTreeMap<Grant, Option<Data>>,
}

/// What a client was told of the copies of one claim.
#[derive(Debug, Default)]
struct Told {
    under_way: u32,
    in_doubt: bool,
    granted: bool,
}

/// One process's store.
#[derive(Clone)]
pub struct Line {
    world: Arc<World>,
    process: usize,
    azure: AzureBlobStore,
    /// Whether what is sent now is an operator's force.
    forces: Arc<AtomicBool>,
}

impl Truth {
    pub fn new(plan: &Plan) -> Self {
        // True time: clocks that are never set, and never stop.
        let service = Fake::new(TestClock::new());
        service.set(|knobs| plan.setting.apply(knobs));
        Self { service, claims: BTreeMap::new(), refused: BTreeSet::new(), brought: BTreeMap::new() }
    }

    /// Held or free as the lease says, with the token that the metadata have.
    pub fn stored(&self, name: &Name) -> Stored {
        let Some(found) = Found::of(&self.service, name) else { return Stored::Absent };
        let mut record = Record::new();
        (record.token, record.grant) = (found.token, found.leased_as());
        Stored::Record(record)
    }

    fn told(&mut self, grant: Grant) -> &mut Told {
        self.claims.entry(grant).or_default()
    }
}

impl Told {
    /// Whether no copy that was sent can still be applied.
    fn is_refused(&self) -> bool {
        self.under_way == 0 && !self.in_doubt && !self.granted
    }
}

impl Line {
    pub fn new(world: &Arc<World>, client: usize, process: usize, clock: MachineClock) -> Self {
        let forces = Arc::new(AtomicBool::new(false));
        let way = Way::new(world, client, process, clock, &forces);
        let url = format!("{}?sv=1&sig=any", way.service().container_url());
        let builder = AzureBlobStore::builder(url, Credential::in_url()).http_client(Arc::new(way));
        let azure = builder.unverified().expect("the URL is right");
        Self { world: Arc::clone(world), process, azure, forces }
    }

    /// A claim was answered, or was given up before.
    fn hear_of(&self, claim: &Claim, answer: &Answer<Claimed>) {
        let mut state = self.world.state();
        let told = state.truth.told(claim.grant);
        match answer {
            Ok(Timed { value: Claimed::Granted, .. }) => told.granted = true,
            Ok(Timed { value: Claimed::Refused(_), .. }) => {}
            Err(error) => told.in_doubt |= error.applied == Applied::Unknown,
        }
        if told.is_refused() {
            state.truth.refused.insert(claim.grant);
        }
        if let Ok(Timed { value: Claimed::Refused(view), .. }) = answer
            && view.token() >= claim.token
        {
            // The record was written after the lease was asked for.
            state.checks.settled(claim.grant);
        }
    }
}

#[async_trait]
impl Store for Line {
    fn describe(&self) -> Description {
        self.azure.describe()
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.world.note("claim", self.process, claim.token, claim.grant.bits() as u64);
        {
            let mut state = self.world.state();
            state.checks.claim_sent(self.process, claim);
            state.truth.brought.insert(claim.grant, claim.data.clone());
            state.truth.told(claim.grant).under_way += 1;
        }
        let mut copy = Copy { world: &self.world, grant: claim.grant, answered: false };
        let answer = self.azure.claim(claim).await;
        copy.answered = true;
        drop(copy);
        self.hear_of(claim, &answer);
        answer
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        for renew in renewals {
            self.world.note("renew", self.process, renew.token, renew.version);
            self.world.checks(|checks| checks.renew_sent(renew));
        }
        self.azure.renew(renewals).await
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        self.world.note(if vacate.burn { "burn" } else { "release" }, self.process, vacate.token, 0);
        self.world.checks(|checks| checks.vacate_sent(vacate));
        let answer = self.azure.vacate(vacate).await;
        if let Ok(Timed { value, .. }) = &answer {
            self.world.checks(|checks| checks.closing_answered(vacate, value));
        }
        let settled = match &answer {
            Ok(Timed { value: Vacated::Vacated, .. }) => true,
            Ok(Timed { value: Vacated::Refused(view), .. }) => view.token() >= vacate.token,
            Err(_) => false,
        };
        if vacate.burn && settled {
            self.world.checks(|checks| checks.settled(vacate.grant));
        }
        answer
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.world.note("revoke", self.process, revoke.token, u64::from(revoke.force));
        self.forces.store(revoke.force, Ordering::Relaxed);
        self.azure.revoke(revoke).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.world.note("ask", self.process, ask.step_down.token, 0);
        self.world.checks(|checks| checks.asks_for_recipe(ask));
        self.forces.store(false, Ordering::Relaxed);
        self.azure.ask(ask).await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        self.azure.read(name).await
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.azure.list(prefix, page).await
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

/// A copy of a claim under way: in doubt when it is dropped without an answer.
struct Copy<'a> {
    world: &'a World,
    grant: Grant,
    answered: bool,
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        let mut state = self.world.state();
        let told = state.truth.told(self.grant);
        told.under_way -= 1;
        told.in_doubt |= !self.answered;
    }
}
