//! The reason for it all: holders that race, die and wake late lose no update of a counter behind a fence.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

use super::bench::{Answered, Bench, failed};
use super::{Case, Checked, Stop, cases, ensure};
use crate::protocol::observer::{Judgement, Observer};
use crate::protocol::rules::{Clocks, Ratio};
use crate::time::{Clock, RHO_PERCENT, SystemClock};
use crate::types::Claim;

const WORKERS: u64 = 6;
/// How many updates each worker makes.
const UPDATES: u64 = 5;
/// So many workers abandon their first lease after they have read the counter, and write when they wake late.
const ABANDON: u64 = 3;

const SECOND: u64 = 1_000_000_000;
/// What a client assumes of its clocks. It goes by observation alone here.
const CLOCKS: Clocks = Clocks {
    rho: Ratio { num: RHO_PERCENT, den: 100 },
    kappa: SECOND,
    date_grain: SECOND,
    milli: SECOND / 1000,
    widest: 30 * SECOND,
    oldest: 600 * SECOND,
    floor_ms: (0, 0),
};

pub(super) fn cases() -> Vec<Case> {
    cases![waits: true, racing_and_dying_holders_lose_no_update_behind_a_fence]
}

async fn racing_and_dying_holders_lose_no_update_behind_a_fence(b: Bench) -> Checked {
    let (fenced, bare) = tokio::join!(race(&b, "fenced", true), race(&b, "bare", false));
    let (fenced, bare) = (fenced?, bare?);
    ensure!(fenced.stale == 0, "{} stale writes passed the fence", fenced.stale);
    ensure!(fenced.value == WORKERS * UPDATES, "the counter is {}, not {}", fenced.value, WORKERS * UPDATES);
    ensure!(fenced.accepted == fenced.value, "{} writes made it {}", fenced.accepted, fenced.value);
    ensure!(fenced.late == ABANDON, "{} of {ABANDON} abandoned holders woke late", fenced.late);
    tokens_rise(&fenced.grants)?;
    if bare.stale == 0 || bare.value >= bare.accepted {
        return Err(Stop::Void("without a fence the same workers have lost nothing either".into()));
    }
    Ok(())
}

/// What a lease guards. With a fence it refuses a token below the highest that it has seen.
#[derive(Clone, Debug, Default)]
struct Counter {
    fence: bool,
    highest: u64,
    value: u64,
    accepted: u64,
    /// Accepted writes whose token was below the highest.
    stale: u64,
    /// Writes of holders that were abandoned.
    late: u64,
    grants: Vec<Granted>,
}

/// A grant, and when its claim was sent and answered.
#[derive(Clone, Debug)]
struct Granted {
    sent: u64,
    answered: u64,
    token: u64,
}

impl Counter {
    fn write(&mut self, token: u64, value: u64) -> bool {
        let stale = token < self.highest;
        if stale && self.fence {
            return false;
        }
        self.highest = self.highest.max(token);
        self.value = value;
        self.accepted += 1;
        self.stale += u64::from(stale);
        true
    }
}

async fn race(b: &Bench, tail: &'static str, fence: bool) -> Result<Counter, Stop> {
    let counter = Arc::new(Mutex::new(Counter { fence, ..Counter::default() }));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        workers.spawn(work(b.clone(), tail, worker < ABANDON, Arc::clone(&counter)));
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap_or_else(|error| failed(format!("a worker panicked: {error}")))?;
    }
    Ok(locked(&counter, |counter| counter.clone()))
}

async fn work(b: Bench, tail: &str, mut abandons: bool, counter: Arc<Mutex<Counter>>) -> Checked {
    let mut late = JoinSet::new();
    let mut left = UPDATES;
    while left > 0 {
        let claim = acquire(&b, tail, &counter).await?;
        let value = locked(&counter, |counter| counter.value);
        b.sleep_ms(2).await;
        if abandons {
            abandons = false;
            late.spawn(wake_late(b.clone(), claim.token, value + 1, Arc::clone(&counter)));
            continue;
        }
        if locked(&counter, |counter| counter.write(claim.token, value + 1)) {
            left -= 1;
        }
        b.send(&b.release_of(&claim)).await?;
    }
    while late.join_next().await.is_some() {}
    Ok(())
}

/// A holder that comes to itself when another has held and written since.
async fn wake_late(b: Bench, token: u64, value: u64, counter: Arc<Mutex<Counter>>) {
    while locked(&counter, |counter| counter.highest <= token) {
        b.sleep_ms(5).await;
    }
    locked(&counter, |counter| {
        counter.late += 1;
        counter.write(token, value);
    });
}

async fn acquire(b: &Bench, tail: &str, counter: &Mutex<Counter>) -> Result<Claim, Stop> {
    let mut observer = Observer::default();
    let name = b.name(tail);
    loop {
        let view = b.read(&name).await?;
        let now = SystemClock.stamp();
        match observer.judge(&view, &now, None, &CLOCKS) {
            Judgement::Claimable(expect) => {
                let claim = Claim { expect, ttl_ms: b.facts.short_ms, ..b.claim(tail, view.token() + 1) };
                let answer = b.send(&claim).await?;
                if let Answered::Accepted = answer {
                    let answered = SystemClock.stamp().boot;
                    let granted = Granted { sent: now.boot, answered, token: claim.token };
                    locked(counter, |counter| counter.grants.push(granted));
                    return Ok(claim);
                }
            }
            Judgement::NotYet(_) => {}
            Judgement::Unreadable => return failed("the counter's lease is unreadable"),
        }
        b.sleep_ms(1 + (SystemClock.random() % u128::from(b.facts.short_ms / 25 + 1)) as u64).await;
    }
}

/// No token is granted twice, and who began after another had ended has the higher one.
fn tokens_rise(grants: &[Granted]) -> Checked {
    for (index, one) in grants.iter().enumerate() {
        for other in &grants[index + 1..] {
            ensure!(one.token != other.token, "token {} was granted twice", one.token);
            let apart = one.answered < other.sent || other.answered < one.sent;
            let in_order = (one.sent < other.sent) == (one.token < other.token);
            ensure!(!apart || in_order, "tokens {} and {} were not granted in their order", one.token, other.token);
        }
    }
    Ok(())
}

fn locked<T>(counter: &Mutex<Counter>, work: impl FnOnce(&mut Counter) -> T) -> T {
    work(&mut counter.lock().unwrap_or_else(PoisonError::into_inner))
}
