//! Every order in which the requests of a few clients can reach the service, one run for each.
//!
//! A client's request waits until the schedule lets it go, and the schedule says what becomes of it. The choices of a
//! run are its path; the next run takes the path that differs in the last choice that had another option. So all
//! paths are walked, without chance. A path ends early where everything is as it was on an earlier one: the blob, the
//! requests under way, and what each client has been answered.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use leasehold::azure_blob::azure_core::error::ErrorKind;
use leasehold::azure_blob::azure_core::http::{AsyncRawResponse, HttpClient, Method, Request};
use leasehold::azure_blob::azure_core::{Error, Result};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::actors::Actor;
use crate::world::{Violation, World};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// Its sender sees a broken connection, and it arrives later.
    Late,
    /// It arrives, and a copy of it once more later.
    Twice,
}

/// What happens next in a run.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The request of this client goes on.
    Send(usize, Fate),
    /// This letter, which is under way, arrives.
    Land(usize),
    /// Time passes at the service.
    Tick,
}

/// What a client does.
pub(crate) type Part = fn(Actor) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clients of a run, and what may go wrong in it.
pub(crate) struct Scenario {
    pub(crate) parts: Vec<(&'static str, Part)>,
    /// How many requests are late or arrive twice.
    pub(crate) faults: usize,
    /// How often ten seconds pass.
    pub(crate) ticks: usize,
    /// Whether the service judges the lease before the conditions; its documentation does not say.
    pub(crate) lease_first: bool,
}

/// What came of all runs.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) runs: usize,
    pub(crate) grants: usize,
    pub(crate) violation: Option<(Violation, String)>,
}

/// The requests that wait to be let go.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    waiting: Mutex<Vec<Waiting>>,
    playing: AtomicUsize,
    /// What each client has been answered so far and when, as a hash: all that it does follows from it.
    heard: Mutex<Vec<u64>>,
}

#[derive(Debug)]
struct Waiting {
    actor: usize,
    request: Request,
    fate: oneshot::Sender<Fate>,
}

/// A client's way to the service.
#[derive(Debug)]
pub(crate) struct Turnstile {
    pub(crate) actor: usize,
    pub(crate) desk: Arc<Desk>,
    pub(crate) world: Arc<World>,
}

/// A copy of a request that is under way.
struct Letter {
    actor: usize,
    request: Request,
    grant: Option<u128>,
}

/// The choices of a run.
#[derive(Debug, Default)]
struct Path {
    taken: Vec<usize>,
    options: Vec<usize>,
    next: usize,
}

/// Walks every path, and ends at the first violation.
pub(crate) fn explore<S: Future<Output = ()>>(scenario: &Scenario, setup: impl Fn(Arc<World>) -> S) -> Explored {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let (mut explored, mut path, mut known) = (Explored::default(), Path::default(), HashSet::new());
    loop {
        explored.runs += 1;
        let (world, told) = runtime.block_on(run(scenario, &setup, &mut path, &mut known));
        explored.grants += world.grants();
        if let Some(violation) = world.violation() {
            explored.violation = Some((violation, told));
            return explored;
        }
        if !path.go_on() {
            return explored;
        }
    }
}

async fn run<S: Future<Output = ()>>(
    scenario: &Scenario,
    setup: impl Fn(Arc<World>) -> S,
    path: &mut Path,
    known: &mut HashSet<u64>,
) -> (Arc<World>, String) {
    let desk = Arc::new(Desk { heard: Mutex::new(vec![0; scenario.parts.len()]), ..Desk::default() });
    let world = Arc::new(World::new(scenario.lease_first));
    setup(Arc::clone(&world)).await;
    let mut run = Run { scenario, world, desk, letters: Vec::new(), faults: 0, ticks: 0, told: String::new() };
    for (index, (_, part)) in scenario.parts.iter().enumerate() {
        run.desk.playing.fetch_add(1, Ordering::SeqCst);
        let work = part(Actor::new(index, &run.world, &run.desk));
        let desk = Arc::clone(&run.desk);
        tokio::spawn(async move {
            work.await;
            desk.playing.fetch_sub(1, Ordering::SeqCst);
        });
    }
    run.desk.settle().await;
    loop {
        let options = run.options();
        if options.is_empty() || run.world.violation().is_some() {
            break;
        }
        let step = options[path.choose(options.len())];
        run.perform(step).await;
        if path.is_new() && !known.insert(run.fingerprint()) {
            break;
        }
    }
    run.desk.waiting.lock().unwrap().clear();
    (run.world, run.told)
}

struct Run<'a> {
    scenario: &'a Scenario,
    world: Arc<World>,
    desk: Arc<Desk>,
    letters: Vec<Letter>,
    faults: usize,
    ticks: usize,
    told: String,
}

impl Run<'_> {
    fn options(&self) -> Vec<Step> {
        let mut options = Vec::new();
        let waiting = self.desk.waiting.lock().unwrap();
        for one in waiting.iter() {
            options.push(Step::Send(one.actor, Fate::Arrives));
            if self.faults < self.scenario.faults && one.request.method() != Method::Head {
                options.extend([Fate::Late, Fate::Twice].map(|fate| Step::Send(one.actor, fate)));
            }
        }
        options.extend((0..self.letters.len()).map(Step::Land));
        if self.ticks < self.scenario.ticks && !waiting.is_empty() {
            options.push(Step::Tick);
        }
        options
    }

    async fn perform(&mut self, step: Step) {
        match step {
            Step::Tick => {
                self.ticks += 1;
                self.tell("ten seconds pass");
                self.world.tick();
                self.world.check();
            }
            Step::Land(index) => {
                let letter = self.letters.remove(index);
                self.tell(&format!("late: {}", self.describe(letter.actor, &letter.request)));
                let before = self.world.blob();
                _ = self.world.execute(&letter.request).await;
                self.world.arrived(letter.grant, &before);
            }
            Step::Send(actor, fate) => {
                let waiting = self.desk.take(actor);
                self.tell(&format!("{}{}", self.describe(actor, &waiting.request), Told(fate)));
                let (grant, before) = (self.world.grant_of(actor), self.world.blob());
                if fate != Fate::Arrives {
                    self.faults += 1;
                    self.letters.push(Letter { actor, request: waiting.request, grant });
                }
                waiting.fate.send(fate).expect("its client waits");
                // The client may go on to be settled by this very answer: what counts is what was settled before.
                let settled = self.world.is_settled(grant);
                self.desk.settle().await;
                self.world.arrived(grant.filter(|_| settled), &before);
            }
        }
    }

    /// The same for runs that go on in the same ways.
    fn fingerprint(&self) -> u64 {
        let mut letters: Vec<u64> = self.letters.iter().map(|letter| self.hash_of(letter)).collect();
        letters.sort_unstable();
        let heard = self.desk.heard.lock().unwrap();
        hash(&(self.world.fingerprint(), letters, &*heard, self.faults, self.ticks))
    }

    fn hash_of(&self, letter: &Letter) -> u64 {
        let url = letter.request.url().to_string();
        hash(&(letter.actor, letter.grant, url, self.world.without_tags(letter.request.headers())))
    }

    fn describe(&self, actor: usize, request: &Request) -> String {
        let headers: Vec<_> = request.headers().iter().collect();
        let header = |wanted: &str| {
            headers.iter().find(|(name, _)| name.as_str() == wanted).map_or(String::new(), |(_, v)| v.as_str().into())
        };
        let what = match (request.method(), request.url().query()) {
            (Method::Head, _) => "HEAD".to_owned(),
            (_, Some(query)) if query.contains("metadata") => {
                format!("set metadata lh_token={}", header("x-ms-meta-lh_token"))
            }
            (_, Some(_)) => header("x-ms-lease-action"),
            (_, None) => "create".to_owned(),
        };
        format!("{}: {what}", self.scenario.parts[actor].0)
    }

    fn tell(&mut self, what: &str) {
        self.told.push_str(what);
        self.told.push('\n');
    }
}

impl Desk {
    /// Waits until every client that still plays waits for the schedule.
    async fn settle(&self) {
        for _ in 0..10_000 {
            yield_now().await;
            if self.waiting.lock().unwrap().len() == self.playing.load(Ordering::SeqCst) {
                return;
            }
        }
        panic!("a client waits for something else than its requests");
    }

    fn hears(&self, actor: usize, answer: &impl Hash) {
        let mut heard = self.heard.lock().unwrap();
        heard[actor] = hash(&(heard[actor], hash(answer)));
    }

    fn take(&self, actor: usize) -> Waiting {
        let mut waiting = self.waiting.lock().unwrap();
        let index = waiting.iter().position(|one| one.actor == actor).expect("it waits");
        waiting.remove(index)
    }
}

#[async_trait]
impl HttpClient for Turnstile {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        let (fate, told) = oneshot::channel();
        {
            let mut waiting = self.desk.waiting.lock().unwrap();
            waiting.push(Waiting { actor: self.actor, request: request.clone(), fate });
            waiting.sort_by_key(|one| one.actor);
        }
        match told.await {
            Ok(Fate::Arrives | Fate::Twice) => {
                let answer = self.world.execute(request).await?;
                let headers = self.world.without_tags(answer.headers());
                self.desk.hears(self.actor, &(self.world.moment(), u16::from(answer.status()), headers));
                Ok(answer)
            }
            Ok(Fate::Late) => {
                self.desk.hears(self.actor, &self.world.moment());
                Err(Error::with_message(ErrorKind::Io, "the connection broke"))
            }
            // The run is over.
            Err(_) => std::future::pending().await,
        }
    }
}

pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Path {
    fn choose(&mut self, options: usize) -> usize {
        if self.next == self.taken.len() {
            self.taken.push(0);
            self.options.push(options);
        }
        assert_eq!(self.options[self.next], options, "a run is not the same when it is repeated");
        self.next += 1;
        self.taken[self.next - 1]
    }

    /// Whether this run has left what an earlier one has walked.
    fn is_new(&self) -> bool {
        self.next == self.taken.len()
    }

    /// The next path. Whether there is one.
    fn go_on(&mut self) -> bool {
        self.next = 0;
        while let (Some(taken), Some(options)) = (self.taken.pop(), self.options.pop()) {
            if taken + 1 < options {
                self.taken.push(taken + 1);
                self.options.push(options);
                return true;
            }
        }
        false
    }
}

struct Told(Fate);

impl Display for Told {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Fate::Arrives => "",
            Fate::Late => " (its answer is lost, and it arrives later)",
            Fate::Twice => " (and a copy arrives later)",
        })
    }
}
