//! What a seed may draw besides the plain workers: one of the recipes, on names of its own, with one worker or more in
//! each process.

mod all;
mod election;
mod promises;
mod schedule;
mod semaphore;

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::{Error, Held, Lost, Name, Renewal};

pub use promises::Promises;

use super::chance::Chance;
use super::plan::{ClientPlan, Plan};
use super::setting::Fault;
use super::worker::Worker;
use super::world::{Process, World};

/// A recipe of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// With those who watch it, and somebody who asks leaders to step down.
    Election,
    /// So many permits.
    Semaphore(u32),
    /// Two or three of three names.
    All,
    /// A period is two terms.
    Schedule {
        /// The wall clocks are right, so that no tick runs twice.
        agreed: bool,
        /// The least time between two runs, in eighths of a period.
        at_least: u32,
    },
}

/// How the workers use a recipe wrongly, to see that the checks notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A leader that does not ask whether it still leads.
    LooksAway,
    /// One that publishes only after it leads.
    PublishesLate,
    /// One that does not listen when it is asked to step down.
    Deaf,
    /// One of the clients counts a permit more.
    OnePermitMore,
    /// Whoever takes several names takes them in an order of its own.
    OwnOrder,
    /// Runs that have failed are begun again in their tick.
    BeginsAgain,
}

/// What one worker does for the recipe.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Stands,
    Watches,
    Asks,
    TakesPermits,
    TakesAll,
    KeepsSchedule,
}

impl Wrong {
    /// Each, with the recipe that it uses wrongly, and words of the check that has to notice.
    pub const ALL: [(Wrong, Recipe, &str); 6] = [
        (Self::LooksAway, Recipe::Election, "acted in belief after"),
        (Self::PublishesLate, Recipe::Election, "which it has never published"),
        (Self::Deaf, Recipe::Election, "has not gone"),
        (Self::OnePermitMore, Recipe::Semaphore(2), "3 permits are held, of 2"),
        (Self::OwnOrder, Recipe::All, "do not come to an end"),
        (Self::BeginsAgain, Recipe::Schedule { agreed: true, at_least: 1 }, "is begun again"),
    ];
}

impl Recipe {
    /// What the seed draws. Of a stream of its own, so that all else in the plan is as without recipes.
    pub fn of(seed: u64) -> Option<Self> {
        let chance = Chance::new(seed, 5);
        match chance.between(0, 26) {
            0 | 1 => Some(Self::Election),
            2 => Some(Self::Semaphore(chance.of(&[1, 2, 3]))),
            3 => Some(Self::All),
            4 => Some(Self::Schedule { agreed: chance.per_mille(600), at_least: chance.of(&[1, 2, 4, 6]) }),
            _ => None,
        }
    }

    /// The names of its leases.
    pub fn names(self) -> Vec<Name> {
        let numbered = |name: &str, count| (0..count).map(|number| name_of(&format!("{name}/{number}"))).collect();
        match self {
            Self::Election => vec![name_of(election::NAME)],
            Self::Semaphore(permits) => numbered(semaphore::NAME, permits),
            Self::All => all::NAMES.into_iter().map(name_of).collect(),
            Self::Schedule { .. } => vec![name_of(schedule::NAME)],
        }
    }

    /// What the processes of this client do for it.
    pub fn parts(self, client: usize) -> Vec<Part> {
        match (self, client) {
            (Self::Election, 0) => vec![Part::Stands, Part::Watches],
            (Self::Election, 1) => vec![Part::Stands, Part::Asks],
            (Self::Election, _) => vec![Part::Stands],
            // Two that share a queue.
            (Self::Semaphore(_), 0) => vec![Part::TakesPermits, Part::TakesPermits],
            (Self::Semaphore(_), _) => vec![Part::TakesPermits],
            (Self::All, _) => vec![Part::TakesAll],
            (Self::Schedule { .. }, _) => vec![Part::KeepsSchedule],
        }
    }
}

impl Plan {
    /// With this recipe.
    pub fn with(mut self, recipe: Option<Recipe>) -> Self {
        self.recipe = recipe;
        if let Some(Recipe::Schedule { agreed: true, .. }) = recipe {
            self.clients.iter_mut().for_each(|client| client.wall_ahead = 0);
            self.faults.retain(|(fault, _)| *fault != Fault::WallJump);
        }
        self
    }

    /// Whether all clocks of a machine of this client may freeze while its only worker holds nothing.
    pub fn is_alone(&self, client: &ClientPlan) -> bool {
        client.workers == 1 && self.recipe.is_none()
    }
}

impl ClientPlan {
    /// Of leases that belong to a recipe: these are not handed over, and closed by the recipe alone.
    /// The payload of a schedule is its own.
    pub fn for_recipe(self, recipe: Recipe) -> Self {
        let stores = if matches!(recipe, Recipe::Schedule { .. }) { 0 } else { self.stores };
        Self { stores, hands_over: 0, takes_up: 0, closes: 0, ..self }
    }

    pub fn renews(&self) -> bool {
        self.renewal == Renewal::Task
    }
}

impl Worker {
    pub async fn take_part(self, part: Part, shared: Shared) {
        match part {
            Part::Stands => self.stand().await,
            Part::Watches => self.watch().await,
            Part::Asks => self.ask_to_step_down().await,
            Part::TakesPermits => self.take_permits(shared).await,
            Part::TakesAll => self.take_all().await,
            Part::KeepsSchedule => self.keep_schedule().await,
        }
    }

    async fn rest(&self) {
        let part = self.chance.of(&[0, 100, 200]);
        self.world.sleep(self.chance.up_to(self.plan.ttl * part / 100)).await;
    }

    fn renews(&self) -> bool {
        self.plan.renews()
    }

    fn is_wrong(&self, wrong: Wrong) -> bool {
        self.world.plan.wrong == Some(wrong)
    }

    /// What `work` returns, or `None` when all faults have ended before.
    async fn until_healed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.world.sleep(Duration::from_secs(1_000_000)) => None,
        }
    }

    fn returned(&self) -> BTreeMap<Name, u64> {
        self.world.checks(|checks| checks.returned())
    }

    /// Work begins under this lease, until what is returned is dropped. The lease is given back next.
    fn begins(&self, held: &Held, before: &BTreeMap<Name, u64>) -> Working<'_> {
        let id = self.acquired(held, before);
        let (name, token) = (held.name().clone(), held.token().as_u64());
        self.world.checks(|checks| checks.promises.begins(&name, token));
        Working { worker: self, name, token, id, given_back_next: true }
    }

    /// Work begins under one lease of several. Others may be given back before it, and it is renewed meanwhile.
    fn begins_under_one(&self, held: &Held, before: &BTreeMap<Name, u64>) -> Working<'_> {
        let mut working = self.begins(held, before);
        working.given_back_next = false;
        working
    }

    /// A recipe's future has ended, or was dropped: it must not have left a lease behind.
    fn must_be_gone(&self, held: &Held, what: &str) {
        if held.is_held() {
            let (name, token) = (held.name(), held.token());
            self.world.checks(|checks| checks.fail(format!("{name}: {what} has ended, and {token} is still held")));
        }
    }

    /// Nothing came of it: nothing that this process has claimed for the recipe may be renewed any more.
    fn gave_up(&self) {
        self.world.checks(|checks| checks.gave_up(self.process.id));
    }

    fn count(&self, what: &'static str) {
        self.world.checks(|checks| checks.counts.one_more(what));
    }
}

/// What the workers of a process share.
#[derive(Clone, Default)]
pub struct Shared(std::sync::Arc<std::sync::OnceLock<leasehold::recipes::Semaphore>>);

/// Work under a lease.
struct Working<'a> {
    worker: &'a Worker,
    name: Name,
    token: u64,
    id: u64,
    given_back_next: bool,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.worker.world.checks(|checks| checks.promises.ends(&self.name, self.token));
        match self.given_back_next {
            true => self.worker.done(&self.name, self.token, self.id),
            false => self.worker.world.checks(|checks| checks.forget(self.id)),
        }
    }
}

/// Why work under a recipe has failed.
enum Failed {
    /// By itself.
    Own,
    Lost,
    Library(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<Lost> for Failed {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

/// Everything has come to rest: what the recipe gives has to be had.
pub async fn get_well(world: &World, processes: &[Process]) -> Result<(), String> {
    match world.plan.recipe {
        Some(Recipe::Election) => election::get_well(world, processes).await,
        Some(Recipe::Semaphore(permits)) => semaphore::get_well(world, processes, permits).await,
        // Their workers go on until they have got what they are for.
        Some(Recipe::All | Recipe::Schedule { .. }) | None => Ok(()),
    }
}

/// How long anything may be held by whoever died at the last moment, or by a late copy.
fn limit(world: &World) -> Duration {
    world.plan.longest_ttl() * 2 + Duration::from_secs(10) + world.plan.slack()
}

fn name_of(name: &str) -> Name {
    Name::new(name).unwrap()
}
