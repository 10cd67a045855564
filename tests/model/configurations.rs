//! What is explored with nothing broken.

use leasehold::protocol::acquire::Goal;
use leasehold::protocol::broken::switch::Guard;
use stateright::{Checker, Model as _};

use crate::monitor::Witness;
use crate::refutations::{freezes, short_freeze, slow_and_fast};
use crate::setup::{Left, Setup};
use crate::world::Action;
use crate::{Model, assumptions};

#[test]
fn no_invariant_is_violated_within_the_small_bounds() {
    let _guard = Guard::nothing_broken();
    let explored: Vec<Explored> = small().into_iter().map(explore).collect();
    judge(&explored, 10_000_000);
}

/// All, or the one whose title is in `LEASEHOLD_CONFIGURATION`.
#[test]
#[ignore = "long: one tick more for each configuration, several times the states"]
fn no_invariant_is_violated_within_larger_bounds() {
    let _guard = Guard::nothing_broken();
    let wanted = std::env::var("LEASEHOLD_CONFIGURATION").ok();
    let all = small().into_iter().map(larger).chain(assumptions::kept_at_length());
    match wanted {
        None => judge(&all.map(explore).collect::<Vec<_>>(), 50_000_000),
        Some(title) => {
            let some: Vec<Explored> = all.filter(|setup| setup.title == title).map(explore).collect();
            assert!(!some.is_empty(), "no configuration is called {title:?}");
            some.iter().for_each(|explored| explored.assert_safe("with nothing broken"));
        }
    }
}

/// What came of one configuration.
pub(crate) struct Explored {
    title: &'static str,
    states: usize,
    seen: Vec<Witness>,
    violated: Vec<(&'static str, Vec<Action>)>,
}

impl Explored {
    pub(crate) fn is_safe(&self) -> bool {
        self.violated.is_empty()
    }

    pub(crate) fn assert_safe(&self, of: &str) {
        for (name, trace) in &self.violated {
            println!("{} violates: {name}", self.title);
            print_trace(trace);
        }
        assert!(self.is_safe(), "{} ({of}) violates an invariant", self.title);
    }
}

/// Explores one configuration to its end, depth first, because that keeps few states in memory.
pub(crate) fn explore(setup: Setup) -> Explored {
    let title = setup.title;
    let checker = Model::new(setup).checker().threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{states:>10} distinct states, depth {:>3}: {title}", checker.max_depth());
    let violated = checker.discoveries().into_iter().map(|(name, path)| (name, path.into_actions())).collect();
    let all = Witness::ALL.into_iter().map(|(witness, _)| witness);
    let seen = all.filter(|witness| checker.model().has_seen(*witness)).collect();
    Explored { title, states, seen, violated }
}

pub(crate) fn print_trace(actions: &[Action]) {
    for (at, action) in actions.iter().enumerate() {
        println!("    {:>2} {action:?}", at + 1);
    }
}

/// Nothing is violated, and everything that is worth it has happened somewhere.
fn judge(explored: &[Explored], at_least: usize) {
    let states: usize = explored.iter().map(|explored| explored.states).sum();
    println!("{states:>10} distinct states in all");
    explored.iter().for_each(|explored| explored.assert_safe("with nothing broken"));
    for (witness, name) in Witness::ALL {
        let by: Vec<_> = explored.iter().filter(|explored| explored.seen.contains(&witness)).collect();
        println!("sometimes {name}: in {} configurations", by.len());
        assert!(!by.is_empty(), "never seen: {name}");
    }
    assert!(states >= at_least, "only {states} states");
}

fn small() -> Vec<Setup> {
    vec![
        Setup::observed("observation: renewals, faults").with(|s| s.ticks = 4),
        Setup::observed("observation: renewals, copies").with(|s| {
            s.ticks = 4;
            s.left = Left { copies: 1, ..Left::default() };
        }),
        Setup::observed("observation: release, the fence").with(|s| {
            s.ticks = 3;
            s.release = true;
            s.left = Left { writes: 2, ..Left::default() };
        }),
        Setup::observed("attempts that take time, too late to be of use").with(|s| {
            s.rules.ttl = 3;
            s.rules.attempt = 1;
            s.renewals = 0;
            s.ticks = 4;
        }),
        Setup::observed("clean-up: give-up, release, copies").with(|s| {
            s.ticks = 2;
            s.release = true;
            s.renewals = 0;
            s.left = Left { faults: 1, copies: 1, give_ups: 1, ..Left::default() };
        }),
        Setup::observed("trying again and again, with one memory").with(|s| {
            s.goals = [Goal::Try; 2];
            s.attempts = [1, 3];
            s.ticks = 4;
            s.prompt = true;
            s.remembers = true;
            s.release = true;
            s.left = Left::default();
        }),
        Setup::observed("crash and restart").with(|s| {
            s.attempts = [2, 1];
            s.ticks = 4;
            s.left = Left { crashes: 1, ..Left::default() };
        }),
        Setup::observed("closed, by observation").with(|s| {
            s.ticks = 3;
            s.renewals = 0;
            s.closing = Some(1);
        }),
        Setup::observed("hand-over").with(|s| {
            s.ticks = 3;
            s.left = Left { hand_overs: 1, resumes: 2, ..Left::default() };
        }),
        Setup::observed("hand-over with faults, prompt").with(|s| {
            s.ticks = 4;
            s.prompt = true;
            s.left = Left { hand_overs: 1, resumes: 2, faults: 1, ..Left::default() };
        }),
        Setup::observed("revoke and ask").with(|s| {
            s.ticks = 4;
            s.left = Left { revokes: 1, asks: 1, ..Left::default() };
        }),
        Setup::observed("force").with(|s| {
            s.ticks = 3;
            s.release = true;
            s.left = Left { forces: 1, ..Left::default() };
        }),
        Setup::observed("payloads: order").with(|s| {
            s.attempts = [1, 0];
            s.renewals = 3;
            s.set_data = true;
            s.left = Left { faults: 1, copies: 1, ..Left::default() };
        }),
        Setup::observed("payloads: takeover").with(|s| {
            s.ticks = 3;
            s.set_data = true;
            s.release = true;
            s.left = Left::default();
        }),
        Setup::dated("store time: dates off by kappa, slow networks", 1).with(|s| {
            s.ticks = 4;
            s.goals = [Goal::Try; 2];
            s.renewals = 0;
            s.left.faults = 0;
        }),
        Setup::dated("store time: waiting, renewals", 1).with(|s| {
            s.ticks = 5;
            s.prompt = true;
            s.left.faults = 0;
        }),
        Setup::dated("store time: faults", 0).with(|s| {
            s.ticks = 5;
            s.prompt = true;
        }),
        Setup::dated("closed, by store time", 0).with(|s| {
            s.ticks = 5;
            s.prompt = true;
            s.renewals = 0;
            s.closing = Some(1);
            s.left.faults = 1;
        }),
        Setup::dated("deletion by hand, with store time as the floor of tokens", 0).with(deletion),
        slow_and_fast().with(|s| s.title = "rates at both ends of rho"),
        freezes().with(|s| s.title = "a freeze of all clocks, long enough to show"),
        short_freeze(true),
    ]
    .into_iter()
    .chain(assumptions::kept())
    .collect()
}

/// Tokens have room for more claims than there are in a tick, as milliseconds with three digits have.
pub(crate) fn deletion(s: &mut Setup) {
    s.scale = 8;
    s.rates = [8, 8];
    s.rules.ttl = 16;
    s.rules.poll = 8;
    s.rules.clocks.date_grain = 8;
    s.rules.clocks.floor_ms = (0, u64::MAX);
    s.goals = [Goal::Try, Goal::Try];
    s.attempts = [2, 1];
    s.prompt = true;
    s.quiet = 3;
    s.ticks = 7;
    s.left = Left { faults: 1, deletions: 1, ..Left::default() };
}

/// The same with more time.
fn larger(setup: Setup) -> Setup {
    setup.with(|s| s.ticks += 1)
}
