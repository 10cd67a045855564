//! One run: the store's truth, what happens to the machines, and the end in which everything has to get well.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leasehold::recipes::Observer;
use leasehold::testing::TestClock;
use leasehold::{Handover, Leases, Name};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::chance::Chance;
use super::checks::Checks;
use super::machine::MachineClock;
use super::plan::Plan;
use super::recipes::{Promises, Recipe};
use super::store::{Line, Truth};

/// How much of the trace is shown.
const TAIL: usize = 400;

/// Everything outside the clients.
#[derive(Debug)]
pub struct World {
    pub plan: Plan,
    pub network: Chance,
    started: Instant,
    healed: AtomicBool,
    healing: Notify,
    state: Mutex<State>,
    pub processes: Mutex<BTreeMap<usize, Process>>,
    pub handles: Mutex<Vec<(usize, JoinHandle<()>)>>,
    pub handovers: Mutex<Vec<Handover>>,
    /// Those that watched an election, and in which process.
    pub observers: Mutex<Vec<(usize, Observer)>>,
}

/// What changes.
#[derive(Debug)]
pub struct State {
    pub checks: Checks,
    pub truth: Truth,
    cut_off: BTreeSet<usize>,
    away: bool,
    dead: BTreeSet<usize>,
    travelling: i64,
    next_id: u64,
    hash: u64,
    tail: Option<VecDeque<String>>,
    started: Instant,
}

/// One life of a client.
#[derive(Clone, Debug)]
pub struct Process {
    pub id: usize,
    pub client: usize,
    pub leases: Leases,
    pub clock: MachineClock,
}

impl World {
    pub fn new(plan: Plan, verbose: bool) -> Arc<Self> {
        let started = Instant::now();
        let mut checks = Checks::default();
        checks.closings.unseen = plan.unseen();
        checks.promises = Promises::of(&plan);
        let state = State {
            checks,
            truth: Truth::new(&plan),
            cut_off: BTreeSet::new(),
            away: false,
            dead: BTreeSet::new(),
            travelling: 0,
            next_id: 1,
            hash: 0xcbf2_9ce4_8422_2325,
            tail: verbose.then(VecDeque::new),
            started,
        };
        Arc::new(Self {
            network: Chance::new(plan.seed, 2),
            plan,
            started,
            healed: AtomicBool::new(false),
            healing: Notify::new(),
            state: Mutex::new(state),
            processes: Mutex::default(),
            handles: Mutex::default(),
            handovers: Mutex::default(),
            observers: Mutex::default(),
        })
    }

    /// True time.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// From now on nothing goes wrong any more.
    pub fn heal(&self) {
        self.note("healed", 0, 0, 0);
        let mut state = self.state.lock().unwrap();
        (state.away, state.cut_off) = (false, BTreeSet::new());
        drop(state);
        self.healed.store(true, Ordering::Relaxed);
        self.healing.notify_waiters();
    }

    /// Sleeps, but not beyond the healing.
    pub async fn sleep(&self, length: Duration) {
        let mut healing = pin!(self.healing.notified());
        healing.as_mut().enable();
        if self.is_healed() {
            return;
        }
        tokio::select! {
            biased;
            () = healing => {}
            () = tokio::time::sleep(length) => {}
        }
    }

    pub fn is_away(&self) -> bool {
        self.state.lock().unwrap().away
    }

    pub fn set_away(&self, away: bool) {
        self.state.lock().unwrap().away = away;
    }

    pub fn is_cut_off(&self, client: usize) -> bool {
        self.state.lock().unwrap().cut_off.contains(&client)
    }

    pub fn is_any_cut_off(&self) -> bool {
        !self.state.lock().unwrap().cut_off.is_empty()
    }

    pub fn cut_off(&self, client: usize, cut_off: bool) {
        let mut state = self.state.lock().unwrap();
        match cut_off {
            true => state.cut_off.insert(client),
            false => state.cut_off.remove(&client),
        };
    }

    pub fn is_dead(&self, process: usize) -> bool {
        self.state.lock().unwrap().dead.contains(&process)
    }

    /// This process never runs again, and none of its requests leaves any more.
    pub fn kill(&self, process: &Process) {
        self.note("killed", process.id, 0, 0);
        process.clock.gate().kill();
        let mut state = self.state.lock().unwrap();
        state.dead.insert(process.id);
        state.checks.died(process.id);
    }

    /// Whether every client has a process that is not dead.
    pub fn all_live(&self) -> bool {
        let processes = self.processes.lock().unwrap();
        processes.values().all(|process| !self.is_dead(process.id))
    }

    pub fn travels(&self, requests: i64) {
        self.state.lock().unwrap().travelling += requests;
    }

    pub fn travelling(&self) -> i64 {
        self.state.lock().unwrap().travelling
    }

    pub fn next_id(&self) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.next_id += 1;
        state.next_id
    }

    /// The truth, and what is held against it, at this moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        state.checks.now = self.now();
        state
    }

    pub fn checks<T>(&self, change: impl FnOnce(&mut Checks) -> T) -> T {
        change(&mut self.state().checks)
    }

    /// Holds the checks against this moment.
    pub fn sample(&self) {
        let State { checks, truth, .. } = &mut *self.state();
        checks.sample(|name| truth.stored(name));
    }

    /// Whether the store keeps others out of this name now.
    pub fn is_locked(&self, name: &Name) -> bool {
        self.state().truth.stored(name).view().grant().is_some()
    }

    pub fn note(&self, what: &'static str, who: usize, a: u64, b: u64) {
        self.state.lock().unwrap().note_in(what, who, a, b);
    }

    /// A future of the API was dropped before its end.
    pub fn cancelled(&self, who: usize, what: &'static str) {
        self.note("cancelled", who, what.len() as u64, 0);
        self.checks(|checks| {
            checks.counts.one_more("cancelled");
            checks.counts.one_more(format!("{what} cancelled"));
        });
    }

    pub fn name(&self, number: usize) -> Name {
        Name::new(format!("job-{number}")).unwrap()
    }

    /// Those of plain leases, and of the recipe.
    pub fn all_names(&self) -> impl Iterator<Item = Name> {
        let plain = (0..self.plan.names).map(|number| self.name(number));
        plain.chain(self.plan.recipe.into_iter().flat_map(Recipe::names))
    }

    /// A new life of a client, on a machine that is there already or a new one.
    pub fn start(self: &Arc<Self>, client: usize, clock: MachineClock) -> Process {
        let id = self.next_id() as usize;
        let line = Line::new(self, client, id, clock.clone());
        let mut builder = Leases::builder(line).holder(format!("client-{client}")).clock(clock.clone());
        if let Some(plan) = self.plan.clients.get(client) {
            builder = builder.ttl(plan.ttl).renewal(plan.renewal).takeover(plan.takeover).concurrency(plan.concurrency);
            builder = match plan.margin {
                Some(margin) => builder.margin(margin),
                None => builder,
            };
            builder = match plan.poll {
                Some(poll) => builder.poll(poll),
                None => builder,
            };
        }
        let process = Process { id, client, leases: builder.build().expect("the plan fits"), clock };
        self.checks(|checks| checks.listen(id, process.leases.events()));
        self.processes.lock().unwrap().insert(client, process.clone());
        process
    }

    pub fn process(&self, client: usize) -> Process {
        self.processes.lock().unwrap()[&client].clone()
    }

    /// A client that holds something now.
    pub fn a_holder(&self) -> Option<usize> {
        let process = self.checks(|checks| checks.a_holder())?;
        let processes = self.processes.lock().unwrap();
        processes.values().find(|other| other.id == process).map(|process| process.client)
    }

    pub fn machine(&self, client: usize) -> MachineClock {
        let clocks = TestClock::seeded(self.plan.seed.wrapping_mul(64).wrapping_add(client as u64 + 1));
        let plan = self.plan.clients.get(client);
        let wall = plan.map_or(0, |plan| plan.wall_ahead);
        match wall < 0 {
            true => clocks.set_wall_back(Duration::from_secs(wall.unsigned_abs())),
            false => clocks.set_wall_forward(Duration::from_secs(wall.unsigned_abs())),
        }
        MachineClock::new(clocks, plan.map_or(0, |plan| plan.rate_ppm))
    }

    /// The trace's hash and what is kept of its end.
    pub fn trace(&self) -> (u64, Vec<String>) {
        let state = self.state.lock().unwrap();
        (state.hash, state.tail.iter().flatten().cloned().collect())
    }
}

impl State {
    pub fn note_in(&mut self, what: &'static str, who: usize, a: u64, b: u64) {
        let now = self.started.elapsed();
        let numbers = [now.as_nanos() as u64, who as u64, a, b].map(u64::to_le_bytes);
        for byte in what.bytes().chain(numbers.into_iter().flatten()) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(tail) = &mut self.tail {
            tail.push_back(format!("{:>10.3}s  process {who:<3} {what:<14} {a} {b}", now.as_secs_f64()));
            if tail.len() > TAIL {
                tail.pop_front();
            }
        }
    }
}
