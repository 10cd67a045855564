//! One run of one seed, from its plan to its verdict.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::Duration;

use leasehold::{Fence, Leases, Name};

use super::chance::Chance;
use super::checks::Counts;
use super::machine::MachineClock;
use super::operator::operate;
use super::plan::{ClientPlan, Plan, Theme, draw_rate};
use super::recipes::{self, Shared};
use super::setting::Fault;
use super::worker::Worker;
use super::world::{Process, World};

/// The resources that check tokens.
type Fences = BTreeMap<Name, Fence>;

/// How often the checks are held against the world, besides at every event. More often costs a third of the seeds.
const SAMPLE: Duration = Duration::from_millis(485);

/// What came of a seed.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub hash: u64,
    pub violation: Option<String>,
    pub counts: Counts,
    pub trace: Vec<String>,
}

/// Runs one seed. With `verbose` the end of its trace is kept.
pub fn simulate(seed: u64, verbose: bool) -> Report {
    simulate_plan(Plan::of(seed), verbose)
}

/// Runs a plan that may differ from what its seed draws.
pub fn simulate_plan(plan: Plan, verbose: bool) -> Report {
    let seed = plan.seed;
    notice_panics();
    PANICS.take();
    // A panic poisons what the checks are in, and then whatever asks them panics too.
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| to_its_end(plan, verbose)));
    let mut report = ended.unwrap_or_else(|_| Report {
        seed,
        hash: 0,
        violation: Some("a panic".to_owned()),
        counts: Counts::default(),
        trace: Vec::new(),
    });
    if let Some(what) = PANICS.take().into_iter().next() {
        report.violation = Some(format!("a panic: {what}"));
    }
    report
}

fn to_its_end(plan: Plan, verbose: bool) -> Report {
    let seed = plan.seed;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (world, hash, trace) = runtime.block_on(async {
        let world = World::new(plan, verbose);
        let progress = play(&world).await;
        if let Err(what) = progress {
            world.checks(|checks| checks.fail(what));
        }
        let (hash, trace) = world.trace();
        (world, hash, trace)
    });
    world.processes.lock().unwrap().clear();
    world.handles.lock().unwrap().clear();
    world.observers.lock().unwrap().clear();
    world.checks(|checks| checks.clear());
    drop(runtime);
    let (violation, counts) = world.checks(|checks| (checks.violation().map(str::to_owned), checks.counts.clone()));
    Report { seed, hash, violation, counts, trace }
}

async fn play(world: &Arc<World>) -> Result<(), String> {
    let fences: Arc<Fences> = Arc::new(world.all_names().map(|name| (name, Fence::new())).collect());
    for client in 0..world.plan.clients.len() {
        begin(world, client, world.machine(client), &fences);
    }
    tokio::spawn(sample(Arc::clone(world)));
    disturb(world, &fences);
    let mut operator = None;
    if world.plan.often(Fault::Operator) > 0 {
        let process = world.start(world.plan.clients.len(), world.machine(world.plan.clients.len()));
        operator = Some(tokio::spawn(operate(Arc::clone(world), process, Chance::new(world.plan.seed, 3))));
    }
    while world.now() < world.plan.lasts && !is_over(world) {
        tokio::time::sleep(SAMPLE).await;
    }
    world.heal();
    if is_over(world) {
        return Ok(());
    }
    drop(operator);
    get_well(world).await
}

/// A new life of this client, with its workers.
fn begin(world: &Arc<World>, client: usize, clock: MachineClock, fences: &Arc<Fences>) {
    let process = world.start(client, clock);
    let plan = world.plan.clients[client].clone();
    let worker = |number: usize, plan: ClientPlan| Worker {
        world: Arc::clone(world),
        process: process.clone(),
        plan,
        chance: Chance::new(world.plan.seed, 1000 + process.id as u64 * 10 + number as u64),
        fences: Arc::clone(fences),
    };
    for number in 0..plan.workers {
        spawn(world, &process, worker(number, plan.clone()).work());
    }
    let Some(recipe) = world.plan.recipe else { return };
    let shared = Shared::default();
    for (number, part) in recipe.parts(client).into_iter().enumerate() {
        let worker = worker(5 + number, plan.clone().for_recipe(recipe));
        spawn(world, &process, worker.take_part(part, shared.clone()));
    }
}

fn spawn(world: &World, process: &Process, work: impl Future<Output = ()> + Send + 'static) {
    let handle = tokio::spawn(Arc::clone(process.clock.gate()).hold(work));
    world.handles.lock().unwrap().push((process.id, handle));
}

fn is_over(world: &World) -> bool {
    world.checks(|checks| checks.violation().is_some()) || PANICS.with(|panics| !panics.borrow().is_empty())
}

async fn sample(world: Arc<World>) {
    loop {
        tokio::time::sleep(SAMPLE).await;
        world.sample();
    }
}

/// Starts what happens at moments of its own.
fn disturb(world: &Arc<World>, fences: &Arc<Fences>) {
    let kinds = [
        Fault::Partition,
        Fault::StoreAway,
        Fault::Pause,
        Fault::Suspend,
        Fault::WallJump,
        Fault::RateChange,
        Fault::Crash,
    ];
    for kind in kinds.into_iter().filter(|kind| world.plan.often(*kind) > 0) {
        let chance = Chance::new(world.plan.seed, 100 + kind as u64);
        tokio::spawn(disturbance(Arc::clone(world), kind, chance, Arc::clone(fences)));
    }
}

async fn disturbance(world: Arc<World>, kind: Fault, chance: Chance, fences: Arc<Fences>) {
    let term = world.plan.longest_ttl();
    // Of the rarest kind one in twelve terms, of the most frequent one in two.
    let pause = match world.plan.often(kind) {
        often if often >= 250 => term * 2,
        often if often >= 100 => term * 4,
        often if often >= 30 => term * 8,
        _ => term * 12,
    };
    loop {
        world.sleep(chance.up_to(pause)).await;
        if world.is_healed() {
            return;
        }
        let any = chance.between(0, world.plan.clients.len() as u64 - 1) as usize;
        let aimed = world.plan.theme != Theme::Anything;
        let client = world.a_holder().filter(|_| aimed).unwrap_or(any);
        let longest = if aimed { term * 2 } else { chance.of(&[term / 4, term, term * 3]) };
        let length = chance.up_to(longest);
        let process = world.process(client);
        let clock = process.clock.clone();
        world.note(name_of(kind), process.id, length.as_millis() as u64, 0);
        match kind {
            Fault::Partition => {
                world.cut_off(client, true);
                world.sleep(length).await;
                world.cut_off(client, false);
            }
            Fault::StoreAway => {
                world.set_away(true);
                world.sleep(length).await;
                world.set_away(false);
            }
            Fault::Pause => {
                clock.gate().pause();
                world.sleep(length).await;
                clock.gate().unpause();
            }
            Fault::Suspend => {
                let since = world.now();
                clock.gate().freeze();
                clock.clocks().freeze();
                world.sleep(length).await;
                clock.clocks().thaw();
                clock.clocks().suspend(world.now() - since);
                clock.gate().thaw();
            }
            Fault::WallJump => match chance.per_mille(if aimed { 900 } else { 500 }) {
                true => clock.clocks().set_wall_forward(Duration::from_secs(3600)),
                false => clock.clocks().set_wall_back(Duration::from_secs(3600)),
            },
            Fault::RateChange => clock.set_rate(draw_rate(&chance)),
            _ => {
                world.kill(&process);
                world.sleep(length).await;
                // Nothing starts on a machine that sleeps.
                while clock.gate().is_frozen() {
                    tokio::time::sleep(SAMPLE / 5).await;
                }
                begin(&world, client, clock.restarted(), &fences);
            }
        }
        world.sample();
    }
}

fn name_of(kind: Fault) -> &'static str {
    match kind {
        Fault::Partition => "partition",
        Fault::StoreAway => "store away",
        Fault::Pause => "pause",
        Fault::Suspend => "suspend",
        Fault::WallJump => "wall jump",
        Fault::RateChange => "rate change",
        _ => "crash",
    }
}

/// Nothing goes wrong any more: everybody has to come to an end, and every name has to be free for everybody.
async fn get_well(world: &Arc<World>) -> Result<(), String> {
    let term = world.plan.longest_ttl();
    // The last late copies arrive within five terms; a queue of holders, or orphans, ends within four.
    let workers = |world: &World| world.all_live() && stuck_workers(world).is_empty() && world.travelling() == 0;
    if !wait_for(world, term * 9 + Duration::from_secs(60) + world.plan.slack() * 4, workers).await {
        return Err(format!("progress: workers of processes {:?} do not come to an end", stuck_workers(world)));
    }
    let processes = world.processes.lock().unwrap().values().cloned().collect::<Vec<_>>();
    for process in &processes {
        let debts = tokio::time::timeout(term * 3, process.leases.flush()).await;
        debts.map_err(|_| {
            format!("progress: process {} owes something for ever: {:?}", process.id, process.leases.stats())
        })?;
        let stats = process.leases.stats();
        if stats.held + stats.waiting > 0 {
            return Err(format!("a leak: process {} has no work, but {stats:?}", process.id));
        }
    }
    recipes::get_well(world, &processes).await?;
    if is_over(world) {
        return Ok(());
    }
    for number in 0..world.plan.names {
        // Whoever died at the last moment, or a late copy, may hold it for a term more.
        let mut limit = term * 2 + Duration::from_secs(10) + world.plan.slack();
        for process in &processes {
            take_in_turn(world, &process.leases, number, limit).await?;
            if is_over(world) {
                return Ok(());
            }
            limit = Duration::from_secs(5);
        }
        let name = world.name(number);
        if world.is_locked(&name) {
            return Err(format!("a leaked lock: {name} is held at the end"));
        }
    }
    Ok(())
}

async fn take_in_turn(world: &World, leases: &Leases, number: usize, limit: Duration) -> Result<(), String> {
    let name = world.name(number);
    let before = world.now();
    let lease = tokio::time::timeout(limit * 2, leases.acquire_within(name.as_str(), limit)).await;
    let lease = lease.map_err(|_| format!("{name}: an acquire within {limit:?} does not end"))?;
    let lease = lease.map_err(|error| format!("a leaked lock: {name} was not to be had within {limit:?}: {error}"))?;
    world.note("at last", 0, lease.token().as_u64(), (world.now() - before).as_millis() as u64);
    let released = tokio::time::timeout(limit, lease.release()).await;
    let released = released.map_err(|_| format!("{name}: a release does not end"))?;
    released.map(drop).map_err(|error| format!("{name}: a release failed without a fault: {error}"))
}

async fn wait_for(world: &World, limit: Duration, done: impl Fn(&World) -> bool) -> bool {
    let until = world.now() + limit;
    while world.now() < until {
        if done(world) || is_over(world) {
            return true;
        }
        tokio::time::sleep(SAMPLE).await;
    }
    done(world)
}

fn stuck_workers(world: &World) -> Vec<usize> {
    let handles = world.handles.lock().unwrap();
    let live = handles.iter().filter(|(process, handle)| !handle.is_finished() && !world.is_dead(*process));
    live.map(|(process, _)| *process).collect()
}

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A panic in a task of the runtime would pass unseen.
fn notice_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.with(|panics| panics.borrow_mut().push(info.to_string()));
            if std::env::var_os("LEASEHOLD_SEED").is_some() || std::thread::current().name() != Some(SIMULATING) {
                before(info);
            }
        }));
    });
}

/// The name of the threads that run seeds.
pub const SIMULATING: &str = "simulating";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Plan::of(self.seed))?;
        for line in &self.trace {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "violated: {}", self.violation.as_deref().unwrap_or("nothing"))
    }
}
