//! What the tests look at: who did what with which token, and when by true time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{Fence, FencingToken};
use tokio::sync::watch;
use tokio::time::Instant;

use super::way::{Entry, Log};

/// A stretch of true time in which somebody worked.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub who: String,
    pub token: FencingToken,
    pub begun: Instant,
    pub ended: Option<Instant>,
}

/// Everybody's stretches, in the order in which they began. Clones are the same.
#[derive(Clone, Debug)]
pub struct Stretches {
    all: Arc<Mutex<Vec<Stretch>>>,
    changed: Arc<watch::Sender<usize>>,
}

/// Work under way: it has ended when this is dropped.
#[derive(Debug)]
pub struct Working {
    stretches: Stretches,
    place: usize,
    log: Option<Log>,
}

impl Default for Stretches {
    fn default() -> Self {
        Self { all: Arc::default(), changed: Arc::new(watch::Sender::new(0)) }
    }
}

impl Stretches {
    pub fn begin(&self, who: &str, token: FencingToken) -> Working {
        let mut all = self.all.lock().unwrap();
        all.push(Stretch { who: who.to_owned(), token, begun: Instant::now(), ended: None });
        let place = all.len() - 1;
        drop(all);
        self.changed.send_replace(place + 1);
        Working { stretches: self.clone(), place, log: None }
    }

    pub fn all(&self) -> Vec<Stretch> {
        self.all.lock().unwrap().clone()
    }

    /// The n-th that begins, counted from 1.
    pub async fn nth(&self, n: usize) -> Stretch {
        self.changed.subscribe().wait_for(|begun| *begun >= n).await.expect("there is a sender");
        self.all()[n - 1].clone()
    }

    /// The most that were under way at the same moment.
    pub fn most_at_once(&self) -> usize {
        let all = self.all();
        let at = |moment: Instant| {
            let under_way = |one: &&Stretch| one.begun <= moment && one.ended.is_none_or(|ended| ended > moment);
            all.iter().filter(under_way).count()
        };
        all.iter().map(|one| at(one.begun)).max().unwrap_or(0)
    }

    /// Whether each began with a higher token than all before it, so that no two share one.
    pub fn tokens_rise(&self) -> bool {
        self.all().is_sorted_by(|before, after| before.token < after.token)
    }

    /// The shortest time from one beginning to the next.
    pub fn closest(&self) -> Option<Duration> {
        self.all().windows(2).map(|two| two[1].begun - two[0].begun).min()
    }
}

impl Working {
    /// Its end is noted in the log, beside the requests.
    pub fn noting(mut self, log: &Log) -> Self {
        self.log = Some(log.clone());
        self
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut all = self.stretches.all.lock().unwrap();
        let one = &mut all[self.place];
        one.ended = Some(Instant::now());
        if let Some(log) = &self.log {
            log.note(&one.who, "work has ended", "");
        }
    }
}

/// Whether somebody gave up a lease before its work had ended. A lease is given up by the first of these that is sent.
pub fn given_up_early(log: &Log, who: &str) -> bool {
    let entries = log.entries();
    let first = |is: &dyn Fn(&Entry) -> bool| entries.iter().position(|entry| entry.who == who && is(entry));
    let given_up = first(&|entry| entry.what == "release" || entry.what == "close");
    let ended = first(&|entry| entry.what == "work has ended").expect("its work has ended");
    given_up.expect("it was given up") < ended
}

/// What leaders write to. It refuses those that come too late.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    fence: Arc<Fence>,
    refused: Arc<Mutex<Vec<FencingToken>>>,
}

impl Resource {
    pub fn write(&self, token: FencingToken) -> bool {
        let accepted = self.fence.admit(token).is_ok();
        if !accepted {
            self.refused.lock().unwrap().push(token);
        }
        accepted
    }

    pub fn refused(&self) -> Vec<FencingToken> {
        self.refused.lock().unwrap().clone()
    }
}
