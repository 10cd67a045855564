//! The one driver of a client's renewals and clean-ups: a timetable, and a bounded number of requests at once.
//!
//! It starts with the first acquire. If its runtime ends, its leases are Lost(KeeperGone) and the next acquire
//! starts a new one.

use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::{self, Handle, Runtime};
use tokio::sync::Notify;

use super::builder::{Renewal, nanos};
use super::client::Client;
use super::core::Core;
use crate::protocol::hold::{Due, Loss};
use crate::types::{Error, ErrorKind, Operation, Stamp};

/// The longest sleep: so soon a jump of the wall clock, or a sleep of the machine, is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// A wall clock that gains this much on the others between two looks has jumped.
const JUMP: Duration = Duration::from_millis(500);

/// The client's end of its keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    mode: Renewal,
    concurrency: usize,
    /// Held while one is started.
    starting: Mutex<()>,
    /// Never held while one is started: a keeper whose start fails ends at once, and says so here.
    runs: Mutex<bool>,
    next_id: AtomicU64,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    letters: Mutex<VecDeque<Letter>>,
    bell: Notify,
}

#[derive(Debug)]
enum Letter {
    Watch(Arc<Core>),
    WatchAgain(u64),
    Forget(u64),
    /// Keeps the client until it is read: from then on what is owed keeps it.
    Stay(#[allow(dead_code, reason = "it is there to be held")] Arc<Client>),
}

impl Keeper {
    pub(super) fn new(mode: Renewal, concurrency: usize) -> Self {
        let (starting, runs) = (Mutex::default(), Mutex::default());
        Self { mode, concurrency, starting, runs, next_id: AtomicU64::new(1), inbox: Arc::default() }
    }

    /// Starts it, unless it runs or there is to be none.
    pub(super) fn start(&self, client: &Arc<Client>) -> Result<(), Error> {
        let _one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if *self.runs() || self.mode == Renewal::Manual {
            return Ok(());
        }
        *self.runs() = true;
        let rounds = Rounds::new(client, Arc::clone(&self.inbox), self.concurrency);
        // Made before it is spawned, so that it is dropped even if the runtime never polls it.
        let gone = Gone(Arc::downgrade(client));
        match self.mode {
            Renewal::Thread => start_thread(client, rounds, gone),
            _ => start_task(rounds, gone),
        }
    }

    /// A lease to renew from now on. `false` if there is no keeper any more, and none can be started here.
    pub(super) fn watch(&self, client: &Arc<Client>, core: &Arc<Core>) -> bool {
        // The one that ran when the call began may have ended with its runtime meanwhile.
        let started = self.start(client).is_ok();
        // Under the lock, so that no keeper ends between the look and the letter.
        let runs = self.runs();
        if started && *runs {
            self.inbox.put(Letter::Watch(Arc::clone(core)));
            let first_look = nanos(core.look_again_in()).min(core.rules.renew_every / 2);
            if first_look <= 2 * nanos(LONGEST_SLEEP) {
                self.inbox.bell.notify_one(); // Else it wakes in time by itself.
            }
        }
        started && *runs
    }

    /// Something about this lease has changed: look at it now.
    pub(super) fn watch_again(&self, core: &Core) {
        self.about(core, Letter::WatchAgain);
        self.ring();
    }

    /// This lease is over. Nothing hangs on when it is read.
    pub(super) fn forget(&self, core: &Core) {
        if !self.inbox.take_back(core.id) {
            self.about(core, Letter::Forget);
        }
    }

    /// Something is owed: the client stays until it is settled, if there is somebody to settle it.
    pub(super) fn owes(&self, client: &Arc<Client>) {
        let runs = self.runs();
        if *runs {
            self.inbox.post(Letter::Stay(Arc::clone(client)));
        }
    }

    /// Wakes it: a debt was put back, or the client is gone.
    pub(super) fn ring(&self) {
        self.inbox.bell.notify_one();
    }

    pub(super) fn is_running(&self) -> bool {
        *self.runs()
    }

    fn runs(&self) -> MutexGuard<'_, bool> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no lease of this client has had before.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn about(&self, core: &Core, letter: fn(u64) -> Letter) {
        let runs = self.runs();
        if core.background && *runs {
            self.inbox.put(letter(core.id));
        }
    }
}

fn start_task(rounds: Rounds, gone: Gone) -> Result<(), Error> {
    let runtime = Handle::try_current().map_err(|_| {
        let why = "there is no tokio runtime here: acquire inside one";
        Error::new(ErrorKind::Invalid, Operation::Acquire, why)
    })?;
    runtime.spawn(async move {
        let _gone = gone;
        rounds.make().await;
    });
    Ok(())
}

fn start_thread(client: &Arc<Client>, rounds: Rounds, gone: Gone) -> Result<(), Error> {
    let failed = |what: &str, error: std::io::Error| {
        Error::new(ErrorKind::Unavailable, Operation::Acquire, format!("{what} could not be started")).caused_by(error)
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("the keeper's runtime", error))?;
    client.port.run_on(Some(runtime.handle().clone()));
    // Shared, because a runtime must not be dropped where the caller awaits, should the thread not start.
    let runtime = Arc::new(Mutex::new(Some(runtime)));
    let take = |runtime: &Mutex<Option<Runtime>>| runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
    let for_thread = Arc::clone(&runtime);
    let work = move || {
        let _gone = gone;
        if let Some(runtime) = take(&for_thread) {
            runtime.block_on(rounds.make());
            // Does not wait for calls that hang.
            runtime.shutdown_background();
        }
    };
    let started = std::thread::Builder::new().name("leasehold-keeper".into()).spawn(work);
    started.map(drop).map_err(|error| {
        client.port.run_on(None);
        if let Some(runtime) = take(&runtime) {
            runtime.shutdown_background();
        }
        failed("the keeper's thread", error)
    })
}

/// Dropped when the keeper has ended, for whatever reason.
struct Gone(Weak<Client>);

impl Drop for Gone {
    fn drop(&mut self) {
        let Some(client) = self.0.upgrade() else { return };
        let mut kept: Vec<Arc<Core>> = client.lines.cores();
        {
            // All of it before a new keeper can start: the new one must find none of the old one's letters.
            let mut runs = client.keeper.runs();
            client.port.run_on(None);
            kept.extend(client.keeper.inbox.close());
            *runs = false;
        }
        client.debts.let_go();
        for core in kept.into_iter().filter(|core| core.background) {
            core.lose(Loss::KeeperGone);
            // A release that it had in hand is sent by the next keeper; nobody has to wait for that.
            core.unblock_line();
        }
    }
}

impl Inbox {
    /// Takes out all letters, and gives the leases that nobody has begun to renew.
    ///
    /// A letter that nobody reads would keep its lease alive, and so the client.
    fn close(&self) -> Vec<Arc<Core>> {
        let watched = |letter| match letter {
            Letter::Watch(core) => Some(core),
            Letter::WatchAgain(_) | Letter::Forget(_) | Letter::Stay(_) => None,
        };
        std::mem::take(&mut *self.lock()).into_iter().filter_map(watched).collect()
    }

    /// Takes the last letter back if it brings this lease and was not read: a lease that came and went.
    fn take_back(&self, id: u64) -> bool {
        let mut letters = self.lock();
        let last = matches!(letters.back(), Some(Letter::Watch(core)) if core.id == id);
        // Dropped outside the lock.
        let taken = if last { letters.pop_back() } else { None };
        drop(letters);
        taken.is_some()
    }

    /// A wake-up of another thread costs more than all the rest of an acquire: only what is urgent rings the bell.
    fn put(&self, letter: Letter) {
        self.lock().push_back(letter);
    }

    fn post(&self, letter: Letter) {
        self.put(letter);
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Request = Pin<Box<dyn Future<Output = Done> + Send>>;

/// A request that has ended.
enum Done {
    Renewed(Vec<Arc<Core>>),
    Settled,
}

/// The keeper at work.
struct Rounds {
    client: Weak<Client>,
    inbox: Arc<Inbox>,
    concurrency: usize,
    /// When to look at which lease: the moment on `elapsed`, and the lease's id.
    timetable: BTreeMap<(u64, u64), Arc<Core>>,
    /// The moment of each lease in the timetable, by its id.
    moments: BTreeMap<u64, u64>,
    /// Leases whose renewal is due and waits for its turn.
    ready: VecDeque<Arc<Core>>,
    under_way: FuturesUnordered<Request>,
    debts_in_hand: usize,
    /// The sum of the fastest clock's steps.
    elapsed: u64,
    last: Stamp,
}

impl Rounds {
    fn new(client: &Arc<Client>, inbox: Arc<Inbox>, concurrency: usize) -> Self {
        Self {
            client: Arc::downgrade(client),
            inbox,
            concurrency,
            timetable: BTreeMap::new(),
            moments: BTreeMap::new(),
            ready: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            debts_in_hand: 0,
            elapsed: 0,
            last: client.now(),
        }
    }

    /// Goes round until the client is gone.
    async fn make(mut self) {
        let mut _stays = None;
        while let Some(client) = self.client.upgrade() {
            self.read_clocks(&client);
            self.read_letters();
            self.look_at_due();
            self.send(&client);
            let sleep = client.clock.sleep(self.pause(&client));
            // While something is owed the client stays, from round to round, so that it is settled.
            _stays = (client.debts.count() > 0).then_some(client);
            tokio::select! {
                biased;
                Some(done) = self.under_way.next(), if !self.under_way.is_empty() => self.ended(done),
                () = self.inbox.bell.notified() => {}
                () = sleep => {}
            }
        }
    }

    fn read_clocks(&mut self, client: &Client) {
        let now = client.now();
        let steady = now.steady_since(&self.last);
        let jumped = now.wall_since(&self.last) > steady.saturating_add(nanos(JUMP));
        self.elapsed = self.elapsed.saturating_add(steady);
        self.last = now;
        if jumped {
            let all = std::mem::take(&mut self.timetable);
            self.moments.clear();
            for core in all.into_values() {
                self.look_at(core);
            }
        }
    }

    fn read_letters(&mut self) {
        let letters = std::mem::take(&mut *self.inbox.lock());
        for letter in letters {
            match letter {
                Letter::Watch(core) => self.look_at(core),
                Letter::WatchAgain(id) => {
                    if let Some(core) = self.remove(id) {
                        self.look_at(core);
                    }
                }
                Letter::Forget(id) => drop(self.remove(id)),
                Letter::Stay(_) => {}
            }
        }
    }

    fn look_at_due(&mut self) {
        while let Some(entry) = self.timetable.first_entry().filter(|entry| entry.key().0 <= self.elapsed) {
            let ((_, id), core) = entry.remove_entry();
            self.moments.remove(&id);
            self.look_at(core);
        }
    }

    fn look_at(&mut self, core: Arc<Core>) {
        match core.tick() {
            Due::Over => self.over(core),
            Due::Wait(wait) => self.schedule(core, wait),
            Due::Renew => {
                // Its deadline is watched while it waits for its turn and for its answer.
                let left = nanos(core.look_again_in());
                if !core.queued.swap(true, Ordering::Relaxed) {
                    self.ready.push_back(Arc::clone(&core));
                }
                self.schedule(core, left);
            }
        }
    }

    /// Nothing is renewed any more. What its longest hold has ended is released here, unless its owner does it.
    fn over(&mut self, core: Arc<Core>) {
        match core.release_after() {
            Some(wait) if wait > 0 => self.schedule(core, wait),
            due => {
                self.remove(core.id);
                if due.is_some() {
                    core.release_later();
                }
            }
        }
    }

    fn schedule(&mut self, core: Arc<Core>, wait: u64) {
        self.remove(core.id);
        let at = self.elapsed.saturating_add(wait.max(1));
        self.moments.insert(core.id, at);
        self.timetable.insert((at, core.id), core);
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Core>> {
        let at = self.moments.remove(&id)?;
        self.timetable.remove(&(at, id))
    }

    /// Sends what is due, as far as there is room.
    fn send(&mut self, client: &Arc<Client>) {
        while self.under_way.len() < self.concurrency {
            let batch = self.next_batch(client.description.renew_batch);
            if batch.is_empty() {
                break;
            }
            self.under_way.push(Box::pin(renew(Arc::clone(client), batch)));
        }
        for debt in client.take_due_debts(self.room_for_debts()) {
            self.debts_in_hand += 1;
            self.under_way.push(Box::pin(async move {
                debt.settle().await;
                Done::Settled
            }));
        }
    }

    /// One is always let through, so that renewals that hang do not keep a name locked by nobody.
    fn room_for_debts(&self) -> usize {
        self.concurrency.saturating_sub(self.under_way.len()).max(usize::from(self.debts_in_hand == 0))
    }

    /// The next leases of one term, up to what the store takes at once.
    fn next_batch(&mut self, most: usize) -> Vec<Arc<Core>> {
        let Some(first) = self.ready.pop_front() else { return Vec::new() };
        let attempt = first.rules.attempt;
        let mut batch = vec![first];
        while batch.len() < most && self.ready.front().is_some_and(|next| next.rules.attempt == attempt) {
            batch.extend(self.ready.pop_front());
        }
        batch.iter().for_each(|core| core.queued.store(false, Ordering::Relaxed));
        batch
    }

    fn ended(&mut self, done: Done) {
        match done {
            Done::Renewed(cores) => cores.into_iter().for_each(|core| self.look_at(core)),
            Done::Settled => self.debts_in_hand -= 1,
        }
    }

    fn pause(&self, client: &Client) -> Duration {
        let lease = self.timetable.first_key_value().map(|((at, _), _)| at.saturating_sub(self.elapsed));
        // Without room a debt that is due waits for an answer, not for a moment: a sleep of zero would spin.
        let has_room = self.room_for_debts() > 0;
        let debt = client.debts.next_due(&self.last).map(nanos).filter(|_| has_room);
        let pause = [lease, debt].into_iter().flatten().min().map_or(LONGEST_SLEEP, Duration::from_nanos);
        pause.min(LONGEST_SLEEP)
    }
}

/// One attempt for a batch. A lease that its owner ends meanwhile is let go at once.
async fn renew(client: Arc<Client>, batch: Vec<Arc<Core>>) -> Done {
    let (mut sent, mut bodies) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
    for core in &batch {
        if let Some(body) = core.begin_renewal() {
            sent.push(Some(UnderWay { core: Arc::clone(core), version: body.version, answered: false }));
            bodies.push(body);
        }
    }
    let Some(first) = batch.first().filter(|_| !bodies.is_empty()) else { return Done::Renewed(batch) };
    let limit = Duration::from_nanos(first.rules.attempt);
    let stops = sent.iter().flatten().enumerate().map(|(index, one)| {
        let core = Arc::clone(&one.core);
        async move {
            core.until_stopped().await;
            index
        }
    });
    let mut stops: FuturesUnordered<_> = stops.collect();
    let mut answers = pin!(client.port.renew(limit, bodies));
    let answers = loop {
        tokio::select! {
            biased;
            answers = &mut answers => break answers,
            Some(stopped) = stops.next() => sent[stopped] = None,
        }
        if sent.iter().all(Option::is_none) {
            break Vec::new();
        }
    };
    for (one, answer) in sent.into_iter().zip(answers) {
        if let Some(mut one) = one {
            one.answered = true;
            one.core.finish_renewal(one.version, answer);
        }
    }
    Done::Renewed(batch)
}

/// A renewal under way: abandoned when it is dropped without an answer.
struct UnderWay {
    core: Arc<Core>,
    version: u64,
    answered: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.answered {
            self.core.abandon_renewal(self.version);
        }
    }
}
