//! The spans in which somebody held, as the journal has them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::journal::{Entry, Said};

/// One grant, as far as it was seen.
#[derive(Clone, Debug)]
pub struct Hold {
    pub lease: String,
    pub worker: usize,
    pub life: usize,
    pub token: u64,
    /// Before it was asked for.
    pub began: Duration,
    /// After the acquire has returned.
    pub from: Duration,
    /// The last moment at which its holder certainly believed in it.
    pub to: Option<Duration>,
    /// When its holder said that it lets go of it.
    pub let_go: Option<Duration>,
    /// For how long nobody may hold it from then on.
    pub closed_for: Option<Duration>,
    /// Its writes that the resource has refused.
    pub stale: usize,
}

/// In the order of their grants.
pub fn holds(entries: &[Entry]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    let mut open: BTreeMap<(usize, usize, &str), Open> = BTreeMap::new();
    for entry in entries {
        let Entry { at, worker, life, lease, said } = entry;
        let here = open.entry((*worker, *life, lease)).or_default();
        if let Said::Granted(token) = said {
            here.hold = Some(holds.len());
            let (lease, token, began) = (lease.clone(), *token, here.began);
            let (worker, life, from) = (*worker, *life, *at);
            let (to, let_go, closed_for) = (None, None, None);
            holds.push(Hold { lease, worker, life, token, began, from, to, let_go, closed_for, stale: 0 });
        }
        let hold = here.hold.map(|number| &mut holds[number]);
        match (said, hold) {
            (Said::Begins, _) => here.began = *at,
            (Said::Looks(_), _) => here.looked = *at,
            (Said::Held(_), Some(hold)) => hold.to = Some(here.looked),
            (Said::Stale(_), Some(hold)) => hold.stale += 1,
            (Said::Releases(_), Some(hold)) => hold.let_go = Some(*at),
            (Said::Closed(ms), Some(hold)) => hold.closed_for = Some(Duration::from_millis(*ms)),
            _ => {}
        }
    }
    holds
}

/// Where one process is with one lease.
#[derive(Default)]
struct Open {
    began: Duration,
    looked: Duration,
    hold: Option<usize>,
}
