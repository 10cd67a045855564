//! A machine: its clocks, and a gate that stops everything which runs on it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Clock, Sleep, Stamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::chance::Chance;
use super::setting::Fault;
use super::world::World;

/// So many readings of a clock without any time passing are a busy loop.
const BUSY: u32 = 100_000;

/// Lets through while the machine runs.
#[derive(Debug, Default)]
pub struct Gate {
    stopped: Mutex<Stopped>,
    opened: Notify,
}

/// How often it was stopped and has not gone on since.
#[derive(Clone, Copy, Debug, Default)]
struct Stopped {
    paused: u32,
    frozen: u32,
    dead: bool,
}

/// How a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Running,
    /// Its code does not run; its clocks do.
    Paused,
    /// Its code does not run, and some of its clocks do not either: it cannot be asked what it believes.
    Frozen,
    /// Its code never runs again.
    Dead,
}

impl Gate {
    pub fn pause(&self) {
        self.stopped.lock().unwrap().paused += 1;
    }

    pub fn unpause(&self) {
        self.stopped.lock().unwrap().paused -= 1;
        self.opened.notify_waiters();
    }

    pub fn freeze(&self) {
        self.stopped.lock().unwrap().frozen += 1;
    }

    pub fn thaw(&self) {
        self.stopped.lock().unwrap().frozen -= 1;
        self.opened.notify_waiters();
    }

    pub fn is_frozen(&self) -> bool {
        self.stopped.lock().unwrap().frozen > 0
    }

    pub fn kill(&self) {
        self.stopped.lock().unwrap().dead = true;
    }

    pub fn state(&self) -> Run {
        match *self.stopped.lock().unwrap() {
            Stopped { dead: true, .. } => Run::Dead,
            Stopped { frozen: 1.., .. } => Run::Frozen,
            Stopped { paused: 1.., .. } => Run::Paused,
            Stopped { .. } => Run::Running,
        }
    }

    /// Returns at once while the machine runs, else when it runs again.
    pub async fn pass(&self) {
        loop {
            let mut opened = pin!(self.opened.notified());
            opened.as_mut().enable();
            if self.state() == Run::Running {
                return;
            }
            opened.await;
        }
    }

    /// `work`, which gets on only while the machine runs.
    pub async fn hold<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        let mut work = Box::pin(work);
        let mut passing: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
        poll_fn(move |context| {
            if self.state() != Run::Running && passing.is_none() {
                let gate = Arc::clone(&self);
                passing = Some(Box::pin(async move { gate.pass().await }));
            }
            if let Some(pass) = &mut passing {
                if pass.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                passing = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }
}

/// The clocks of a machine, whose sleeps do not end while it does not run.
#[derive(Clone, Debug)]
pub struct MachineClock {
    clocks: TestClock,
    gate: Arc<Gate>,
    rate: Arc<Mutex<i32>>,
    started: Instant,
    read_at: Arc<AtomicU64>,
    reads: Arc<AtomicU32>,
}

impl MachineClock {
    pub fn new(clocks: TestClock, rate_ppm: i32) -> Self {
        clocks.set_rate(rate_ppm);
        Self {
            clocks,
            gate: Arc::default(),
            rate: Arc::new(Mutex::new(rate_ppm)),
            started: Instant::now(),
            read_at: Arc::default(),
            reads: Arc::default(),
        }
    }

    pub fn clocks(&self) -> &TestClock {
        &self.clocks
    }

    pub fn set_rate(&self, ppm: i32) {
        self.clocks.set_rate(ppm);
        *self.rate.lock().unwrap() = ppm;
    }

    /// All clocks stop for so long, and nobody on the machine knows.
    pub fn freeze_for(&self, length: Duration) {
        let machine = self.clone();
        machine.clocks.freeze();
        machine.gate.freeze();
        tokio::spawn(async move {
            tokio::time::sleep(length).await;
            machine.clocks.thaw();
            machine.gate.thaw();
        });
    }

    /// The same clocks for a new process, whose gate is its own.
    pub fn restarted(&self) -> Self {
        Self { gate: Arc::default(), ..self.clone() }
    }

    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    fn notice_busy_loop(&self) {
        let now = self.started.elapsed().as_millis() as u64;
        if self.read_at.swap(now, Ordering::Relaxed) != now {
            self.reads.store(0, Ordering::Relaxed);
        }
        // Once only: what the panic drops reads the clock too.
        assert!(self.reads.fetch_add(1, Ordering::Relaxed) != BUSY, "a busy loop: no time passes");
    }
}

impl Clock for MachineClock {
    fn stamp(&self) -> Stamp {
        self.notice_busy_loop();
        self.clocks.stamp()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let rate = f64::from(*self.rate.lock().unwrap());
        // A fast machine sleeps for less than it thinks.
        let duration = duration.min(Duration::from_secs(100_000)).div_f64(1.0 + rate / 1_000_000.0);
        let (sleep, gate) = (tokio::time::sleep(duration), Arc::clone(&self.gate));
        Box::pin(async move {
            sleep.await;
            gate.pass().await;
        })
    }

    fn random(&self) -> u128 {
        self.clocks.random()
    }
}

/// When a future of the API is dropped before its end, or left alone.
#[derive(Clone, Copy, Debug)]
pub enum Cancel {
    Never,
    /// At the end of its n-th poll.
    AtPoll(u32),
    /// Some time later, between two polls.
    After(Duration),
    /// Not at all, but from the end of its n-th poll on it is not polled for so long.
    Stalls(u32, Duration),
}

impl Cancel {
    /// What the seed has for this call.
    pub fn draw(world: &World, chance: &Chance, term: Duration) -> Self {
        let happens = |fault| !world.is_healed() && chance.per_mille(world.plan.often(fault));
        if world.plan.often(Fault::Stall) > 0 && happens(Fault::Stall) {
            return Self::Stalls(chance.between(1, 8) as u32, chance.up_to(term * 2));
        }
        if !happens(Fault::Cancel) {
            return Self::Never;
        }
        match chance.between(0, 2) {
            0 => Self::After(chance.up_to(term)),
            1 => Self::AtPoll(1),
            _ => Self::AtPoll(chance.between(2, 8) as u32),
        }
    }

    /// What `work` returns, or `None` when it was dropped.
    pub async fn of<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = Box::pin(work);
        match self {
            Self::Never => Some(work.await),
            Self::After(limit) => tokio::select! {
                biased;
                output = &mut work => Some(output),
                () = tokio::time::sleep(limit) => None,
            },
            Self::Stalls(last, length) => {
                let (mut polls, mut stall): (u32, Option<Pin<Box<tokio::time::Sleep>>>) = (0, None);
                poll_fn(move |context| {
                    if let Some(stall) = &mut stall {
                        ready!(stall.as_mut().poll(context));
                    }
                    (polls, stall) = (polls + 1, None);
                    let polled = work.as_mut().poll(context);
                    if polled.is_pending() && polls == last {
                        let stall = stall.insert(Box::pin(tokio::time::sleep(length)));
                        // Also when it is over at once: the work has said that it is to be polled again.
                        _ = stall.as_mut().poll(context).map(|()| context.waker().wake_by_ref());
                    }
                    polled.map(Some)
                })
                .await
            }
            Self::AtPoll(last) => {
                let mut polls = 0;
                poll_fn(move |context| {
                    polls += 1;
                    match work.as_mut().poll(context) {
                        Poll::Ready(output) => Poll::Ready(Some(output)),
                        Poll::Pending if polls >= last => Poll::Ready(None),
                        Poll::Pending => Poll::Pending,
                    }
                })
                .await
            }
        }
    }
}
