//! What is explored with nothing broken.

use std::collections::BTreeSet;

use leasehold::protocol::broken::switch::Guard;
use stateright::{Checker, Model as _};

use crate::refuted::refutations;
use crate::world::{Action, Left, Setup};
use crate::{Model, Witness};

#[test]
fn a_majority_does_no_harm_within_the_small_bounds() {
    let _guard = Guard::nothing_broken();
    let explored: Vec<_> = small().into_iter().map(explore).collect();
    let states: usize = explored.iter().map(|(states, _)| states).sum();
    println!("{states:>10} distinct states in all");
    for witness in Witness::ALL {
        let by = explored.iter().filter(|(_, seen)| seen.contains(&witness)).count();
        println!("sometimes {witness:?}: in {by} configurations");
        assert!(by > 0, "never seen: {witness:?}");
    }
    assert!(states >= 500_000, "only {states} states");
}

/// Else a refutation would say nothing about the rule.
#[test]
fn the_worlds_of_the_refutations_are_safe_with_nothing_broken() {
    let _guard = Guard::nothing_broken();
    let mut explored = BTreeSet::new();
    let worlds = refutations().into_iter().filter(|refutation| explored.insert(format!("{:?}", refutation.setup)));
    for refutation in worlds {
        explore(refutation.setup.with(|s| s.title = "a refutation's world, whole"));
    }
}

fn small() -> Vec<Setup> {
    vec![
        Setup::new("two contenders, a release").with(|s| {
            s.ticks = 2;
            s.release = true;
            s.left = Left { give_ups: 1, ..Left::default() };
        }),
        Setup::new("a crash half-way").with(|s| {
            s.ticks = 3;
            s.left = Left { crashes: 1, ..Left::default() };
        }),
        Setup::new("closing").with(|s| {
            s.ticks = 2;
            s.closing = true;
            s.left = Left { give_ups: 1, ..Left::default() };
        }),
        Setup::new("renewals, and a member that is joined again").with(|s| {
            s.ticks = 1;
            s.renewals = 2;
            s.attempts = [1, 0];
            s.left = Left { give_ups: 1, ..Left::default() };
        }),
        Setup::new("hand-over").with(|s| {
            s.ticks = 1;
            s.left = Left { hand_overs: 1, resumes: 2, ..Left::default() };
        }),
        Setup::new("a copy of a claim comes late").with(|s| {
            s.ticks = 2;
            s.attempts = [1, 0];
            s.release = true;
            s.closing = true;
            s.renewals = 1;
            s.left = Left { copies: 1, give_ups: 1, ..Left::default() };
        }),
    ]
}

pub(crate) fn explore(setup: Setup) -> (usize, Vec<Witness>) {
    let (title, depth) = (setup.title, setup.depth);
    let builder = Model::new(setup).checker().threads(2);
    match depth {
        Some(depth) => judge(title, &builder.target_max_depth(depth).spawn_bfs().join()),
        None => judge(title, &builder.spawn_dfs().join()),
    }
}

fn judge(title: &str, checker: &impl Checker<Model>) -> (usize, Vec<Witness>) {
    let states = checker.unique_state_count();
    println!("{states:>10} distinct states, depth {:>3}: {title}", checker.max_depth());
    let found = checker.discoveries();
    for (name, path) in &found {
        println!("{title} violates: {name}");
        print_trace(&path.clone().into_actions());
    }
    assert!(found.is_empty(), "{title} does harm");
    let seen = Witness::ALL.into_iter().filter(|witness| checker.model().has_seen(*witness));
    (states, seen.collect())
}

pub(crate) fn print_trace(actions: &[Action]) {
    for (at, action) in actions.iter().enumerate() {
        println!("    {:>2} {action:?}", at + 1);
    }
}
