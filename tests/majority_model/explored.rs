//! What is explored with nothing broken.

use std::collections::BTreeSet;

use leasehold::protocol::broken::switch::Guard;
use stateright::{Checker, Model as _};

use crate::refuted::refutations;
use crate::world::{Action, FIVE, Left, Setup};
use crate::{Model, Witness, lists};

#[test]
fn a_majority_does_no_harm_within_the_small_bounds() {
    let _guard = Guard::nothing_broken();
    let explored: Vec<_> = ordinary().map(explore).collect();
    let states: usize = explored.iter().map(|(states, _)| states).sum();
    println!("{states:>10} distinct states in all");
    for witness in Witness::ALL {
        let by = explored.iter().filter(|(_, seen)| seen.contains(witness)).count();
        println!("sometimes {witness:?}: in {by} configurations");
        assert!(by > 0, "never seen: {witness:?}");
    }
    assert!(states >= 5_000_000, "only {states} states");
}

#[test]
#[ignore = "takes minutes"]
fn a_majority_does_no_harm_within_larger_bounds() {
    let _guard = Guard::nothing_broken();
    let only = std::env::var("LEASEHOLD_CONFIGURATION").ok();
    let wanted = |setup: &Setup| only.as_deref().is_none_or(|only| setup.title.contains(only));
    let setups: Vec<_> = large().into_iter().chain([lists::kept_out_longer()]).filter(wanted).collect();
    assert!(!setups.is_empty(), "no configuration has {only:?} in its title");
    setups.into_iter().for_each(|setup| drop(explore(setup)));
}

/// Else a refutation would say nothing about the rule.
#[test]
fn the_worlds_of_the_refutations_are_safe_with_nothing_broken() {
    let _guard = Guard::nothing_broken();
    // The other test explores those.
    let mut explored: BTreeSet<String> = ordinary().map(|setup| format!("{setup:?}")).collect();
    let worlds = refutations().into_iter().filter(|refutation| explored.insert(format!("{:?}", refutation.setup)));
    for refutation in worlds {
        explore(refutation.setup.with(|s| s.title = "a refutation's world, whole"));
    }
}

fn ordinary() -> impl Iterator<Item = Setup> {
    small().into_iter().chain(lists::small())
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
        revocation(),
        revoked_and_taken(),
        asked(),
        asked_too_late(),
        payloads(),
        payloads_read(),
        members_read(),
        two_looks(),
        closed(),
        five_race(),
        five_crash(),
        five_renewal(),
    ]
}

/// Bounds that take minutes: `cargo test --features __model,__broken --test majority_model -- --ignored`.
fn large() -> Vec<Setup> {
    vec![
        revocation().with(|s| (s.ttl, s.ticks, s.attempts, s.renewals, s.depth) = (1, 1, [1, 1], 1, Some(12))),
        asked().with(|s| (s.ttl, s.renewals) = (2, 2)),
        revoked_and_taken().with(|s| (s.ttl, s.ticks, s.rival_from, s.depth) = (2, 4, 4, Some(17))),
        payloads().with(|s| s.rival_from = 1),
        payloads_read().with(|s| s.reads_apart = [false, true]),
        members_read().with(|s| (s.ttl, s.renewals, s.left.give_ups) = (1, 1, 0)),
        two_looks().with(|s| (s.renewals, s.payloads, s.depth) = (1, 1, Some(14))),
        closed().with(|s| s.reads_apart = [false, true]),
        closed_and_burnt().with(|s| s.ticks = 1),
    ]
}

/// The holder hears of it by its renewals.
pub(crate) fn revocation() -> Setup {
    Setup::new("a revocation").with(|s| {
        s.shows = &[Witness::Revoked, Witness::LostByRevocation];
        s.attempts = [1, 0];
        s.ticks = 1;
        s.renewals = 2;
        s.left = Left { revocations: 1, ..Left::default() };
    })
}

/// A rival comes when the term of the renewal is over.
fn revoked_and_taken() -> Setup {
    Setup::new("a revocation, and a takeover").with(|s| {
        s.shows = &[Witness::Revoked, Witness::TakenOverAfterARevocation];
        s.dated = true;
        s.ttl = 1;
        s.ticks = 2;
        s.rival_from = 2;
        s.renewals = 1;
        s.depth = Some(14);
        s.left = Left { revocations: 1, ..Left::default() };
    })
}

/// A wish reaches the members one by one, while the holder renews or releases.
pub(crate) fn asked() -> Setup {
    Setup::new("an ask, renewals, a release").with(|s| {
        s.shows = &[Witness::Asked, Witness::WishHeard];
        s.attempts = [1, 0];
        s.ticks = 1;
        s.renewals = 1;
        s.release = true;
        s.left = Left { asks: 1, ..Left::default() };
    })
}

/// It names a holder who is dead, and somebody takes over.
pub(crate) fn asked_too_late() -> Setup {
    Setup::new("an ask of somebody who is dead, and a takeover").with(|s| {
        s.shows = &[Witness::TakenOver, Witness::Renewed, Witness::Asked];
        s.attempts = [1, 0];
        s.predecessor = true;
        s.dated = true;
        s.ttl = 1;
        s.ticks = 1;
        s.renewals = 1;
        s.left = Left { asks: 1, ..Left::default() };
    })
}

/// A rival takes over what it has seen.
fn payloads() -> Setup {
    Setup::new("payloads").with(|s| {
        s.shows = &[Witness::SetData, Witness::PayloadTakenOver, Witness::RenewedByOneThatWasJoinedAgain];
        s.dated = true;
        s.ttl = 1;
        s.ticks = 2;
        s.renewals = 1;
        s.payloads = 1;
        s.rival_from = 2;
    })
}

/// Somebody else reads again and again, while the bodies of two renewals are under way.
pub(crate) fn payloads_read() -> Setup {
    Setup::new("payloads, read by somebody else").with(|s| {
        s.shows = &[Witness::SetData];
        s.attempts = [1, 0];
        s.ticks = 0;
        s.renewals = 2;
        s.payloads = 2;
        s.reader = true;
        s.left = Left { give_ups: 1, ..Left::default() };
    })
}

pub(crate) fn members_read() -> Setup {
    Setup::new("members read at different moments").with(|s| {
        s.shows = &[Witness::TakenOver, Witness::GrantedAfterAWriteBetweenReads];
        s.ticks = 2;
        s.reads_apart = [false, true];
        // One of them may not answer.
        s.left = Left { give_ups: 1, ..Left::default() };
    })
}

/// Between the two looks of a taker there may be another grant.
pub(crate) fn two_looks() -> Setup {
    Setup::new("a taker that looks twice").with(|s| {
        s.shows = &[Witness::TakenOver];
        s.predecessor = true;
        s.dated = true;
        s.ttl = 1;
        s.ticks = 3;
        s.ahead = [0, 1];
        s.looks_twice = true;
    })
}

/// For longer than a term, by observation alone.
pub(crate) fn closed() -> Setup {
    Setup::new("closed, and opened by observation").with(|s| {
        s.shows = &[Witness::Closed, Witness::Opened];
        s.ttl = 1;
        s.ticks = 2;
        s.closing = true;
        s.closed_for = Some(2);
    })
}

/// Five members, so that three are a majority.
pub(crate) fn five_race() -> Setup {
    Setup::new("five members, two contenders").with(|s| {
        s.shows = &[Witness::Granted, Witness::GivenBack];
        s.lists = [FIVE; 2];
        s.ticks = 0;
    })
}

fn five_crash() -> Setup {
    five_race().with(|s| {
        s.title = "five members, two contenders, a crash";
        s.left = Left { crashes: 1, ..Left::default() };
    })
}

fn five_renewal() -> Setup {
    five_race().with(|s| {
        s.title = "five members, a renewal, a release";
        s.shows = &[Witness::Renewed];
        s.attempts = [1, 0];
        s.renewals = 1;
        s.release = true;
    })
}

/// A contender with a higher token burns its claim where the other has closed.
pub(crate) fn closed_and_burnt() -> Setup {
    Setup::new("closed, and burnt").with(|s| {
        s.shows = &[Witness::Closed];
        s.ticks = 0;
        s.attempts = [2, 1];
        s.closing = true;
        s.closed_for = Some(1);
        s.ahead = [0, 1];
        s.left = Left { give_ups: 1, ..Left::default() };
    })
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
    let seen: Vec<_> = Witness::ALL.iter().copied().filter(|witness| checker.model().has_seen(*witness)).collect();
    println!("  {seen:?}");
    let missed = checker.model().setup.shows.iter().find(|witness| !seen.contains(witness));
    assert_eq!(missed, None, "never seen: {title}");
    (states, seen)
}

pub(crate) fn print_trace(actions: &[Action]) {
    for (at, action) in actions.iter().enumerate() {
        println!("    {:>2} {action:?}", at + 1);
    }
}
