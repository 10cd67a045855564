//! What the judge says of holds that are made up: each rule has a story that breaks it, and one beside it that does not.

use std::time::Duration;

use super::fake_clock::{FakeClock, check};
use super::forces::Forces;
use super::holds::{Hold, holds};
use super::journal::{Entry, Said};
use super::plan::{Options, PERMITS};
use super::rules::{inside_the_margin, opened_early, overlaps, takeovers, terms, tokens, too_many};

const TTL: Duration = Duration::from_millis(2000);
const OPTIONS: Options = Options { ttl_ms: 2000, margin_ms: 200, poll_ms: 250, thread: false, observed_only: false };

/// Of some workers: who, when in milliseconds, what.
type Line = (usize, u64, Said);

fn entries_of(lease: &str, lines: &[Line]) -> Vec<Entry> {
    let entry = |(worker, at, said): &Line| {
        let (at, said) = (Duration::from_millis(*at), said.clone());
        Entry { at, worker: *worker, life: 1, lease: lease.into(), said }
    };
    lines.iter().map(entry).collect()
}

fn story(lines: &[Line]) -> Vec<Hold> {
    holds(&entries_of("counter", lines))
}

fn bad_overlaps(holds: &[Hold]) -> usize {
    overlaps(&holds.iter().collect::<Vec<_>>(), &Forces::default(), TTL).bad.len()
}

#[test]
fn two_grants_with_one_token_are_a_violation() {
    let twice =
        story(&[(0, 0, Said::Begins), (0, 1, Said::Granted(7)), (1, 0, Said::Begins), (1, 9, Said::Granted(7))]);
    assert!(tokens(&twice.iter().collect::<Vec<_>>())[0].starts_with("token twice"));
}

#[test]
fn a_token_below_that_of_a_grant_that_had_returned_before_is_a_violation_and_of_one_that_had_not_is_none() {
    let after = |begins| {
        let mut lines = vec![(0, 0, Said::Begins), (0, 10, Said::Granted(8)), (1, begins, Said::Begins)];
        lines.sort_by_key(|(_, at, _)| *at);
        lines.push((1, 20, Said::Granted(7)));
        tokens(&story(&lines).iter().collect::<Vec<_>>())
    };
    assert!(after(11)[0].starts_with("token fell"));
    assert!(after(9).is_empty());
}

/// Worker 0 looks at 100 and again at `last`, and says nothing more; worker 1 is granted it at `granted`.
fn succession(last: u64, granted: u64, let_go: bool) -> Vec<Hold> {
    story(&succession_of(last, granted, let_go))
}

fn succession_of(last: u64, granted: u64, let_go: bool) -> Vec<Line> {
    let mut lines = vec![
        (0, 0, Said::Begins),
        (0, 10, Said::Granted(7)),
        (0, 100, Said::Looks(7)),
        (0, 101, Said::Held(7)),
        (1, 102, Said::Begins),
        (0, last, Said::Looks(7)),
        (0, last + 1, Said::Held(7)),
        (1, granted, Said::Granted(8)),
        (1, granted + 1, Said::Looks(8)),
        (1, granted + 2, Said::Held(8)),
    ];
    if let_go {
        lines.push((0, last + 2, Said::Releases(7)));
    }
    lines.sort_by_key(|(_, at, _)| *at);
    lines
}

#[test]
fn a_grant_before_the_last_moment_of_anothers_belief_is_an_overlap() {
    assert_eq!(bad_overlaps(&succession(500, 450, false)), 1);
    assert_eq!(bad_overlaps(&succession(500, 501, false)), 0);
}

#[test]
fn a_look_that_was_not_confirmed_is_no_belief() {
    let mut lines =
        vec![(0, 0, Said::Begins), (0, 10, Said::Granted(7)), (0, 100, Said::Looks(7)), (0, 101, Said::Held(7))];
    // Frozen here, past the term: it finds that it has lost it.
    lines.extend([(0, 9000, Said::Looks(7)), (0, 9001, Said::Lost(7))]);
    assert_eq!(story(&lines)[0].to, Some(Duration::from_millis(100)));
}

#[test]
fn a_takeover_within_the_margin_is_a_violation_unless_the_holder_had_let_go() {
    let bad = |holds: Vec<Hold>| {
        let holds: Vec<_> = holds.iter().collect();
        inside_the_margin(&takeovers(&holds, &Forces::default()), &OPTIONS).len()
    };
    assert_eq!(bad(succession(500, 699, false)), 1);
    assert_eq!(bad(succession(500, 700, false)), 0);
    assert_eq!(bad(succession(500, 510, true)), 0);
}

#[test]
fn a_grant_of_what_is_closed_is_a_violation_and_one_after_it_has_opened_is_none() {
    let bad = |granted: u64, closed: bool| {
        let mut lines = vec![(0, 0, Said::Begins), (0, 10, Said::Granted(7)), (0, 100, Said::Releases(7))];
        lines.extend(closed.then_some((0, 110, Said::Closed(1000))));
        lines.extend([(1, 120, Said::Begins), (1, granted, Said::Granted(8))]);
        opened_early(&story(&lines).iter().collect::<Vec<_>>()).len()
    };
    assert_eq!(bad(1000, true), 1);
    assert_eq!(bad(1100, true), 0);
    assert_eq!(bad(1000, false), 0);
}

/// What is bad, and what is excused, where worker 0 believes until `last` though worker 1 is granted it at 450, and worker 2
/// as an operator says these things.
fn forced(last: u64, said: &[(u64, Said)]) -> (usize, usize, usize) {
    let mut lines = succession_of(last, 450, false);
    lines.extend(said.iter().map(|(at, said)| (2, *at, said.clone())));
    lines.sort_by_key(|(_, at, _)| *at);
    let entries = entries_of("counter", &lines);
    let all = holds(&entries);
    let (holds, forces) = (all.iter().collect::<Vec<_>>(), Forces::of(&entries, &all));
    let overlaps = overlaps(&holds, &forces, TTL);
    (overlaps.bad.len(), inside_the_margin(&takeovers(&holds, &forces), &OPTIONS).len(), overlaps.excused)
}

#[test]
fn only_who_was_forced_out_may_believe_beside_another_and_only_for_a_term() {
    let of_seven = [(400, Said::Forces(7)), (420, Said::Forced(7))];
    assert_eq!(forced(500, &of_seven), (0, 0, 1));
    assert_eq!(forced(2419, &of_seven), (0, 0, 1));
    assert_eq!(forced(2421, &of_seven), (1, 0, 0), "longer than a term");
    assert_eq!(forced(500, &[(400, Said::Forces(8)), (420, Said::Forced(8))]), (1, 1, 0), "the other one");
    assert_eq!(forced(500, &[(460, Said::Forces(7)), (470, Said::Forced(7))]), (1, 1, 0), "after the grant");
    assert_eq!(forced(500, &[(400, Said::Forces(7)), (420, Said::Spared(7))]), (1, 1, 0), "it was not");
    // Nobody has said what became of it: it was done before the next grant at the latest.
    assert_eq!(forced(2449, &[(400, Said::Forces(7))]), (0, 0, 1));
    assert_eq!(forced(2451, &[(400, Said::Forces(7))]), (1, 0, 0));
}

#[test]
fn a_forced_out_holder_whose_grant_is_answered_late_may_believe_beside_another() {
    let mut lines =
        vec![(0, 0, Said::Begins), (1, 10, Said::Begins), (2, 20, Said::Forces(7)), (2, 30, Said::Forced(7))];
    lines.extend([
        (1, 40, Said::Granted(8)),
        (0, 50, Said::Granted(7)),
        (0, 60, Said::Looks(7)),
        (0, 61, Said::Held(7)),
    ]);
    lines.extend([(1, 70, Said::Looks(8)), (1, 71, Said::Held(8))]);
    let entries = entries_of("counter", &lines);
    let all = holds(&entries);
    let (holds, forces) = (all.iter().collect::<Vec<_>>(), Forces::of(&entries, &all));
    assert_eq!((overlaps(&holds, &forces, TTL).bad.len(), takeovers(&holds, &forces).len()), (0, 0));
    assert_eq!(bad_overlaps(&all), 1);
}

/// How many crowds there are when worker 2 gets a permit from worker 0, who believes until `last`, and worker 1 has the
/// other one.
fn crowds(last: u64, granted: u64) -> usize {
    let permit = |permit: &str, worker, token, from, to| {
        let lines = [
            (worker, from, Said::Granted(token)),
            (worker, to, Said::Looks(token)),
            (worker, to + 1, Said::Held(token)),
        ];
        holds(&entries_of(permit, &lines))
    };
    let all =
        [permit(PERMITS[0], 0, 7, 10, last), permit(PERMITS[1], 1, 3, 20, 900), permit(PERMITS[0], 2, 8, granted, 800)];
    too_many(&all.iter().flatten().collect::<Vec<_>>(), PERMITS.len()).len()
}

#[test]
fn three_inside_of_a_semaphore_of_two_are_a_violation_and_two_are_none() {
    assert_eq!(crowds(500, 499), 1);
    assert_eq!(crowds(500, 500), 0);
}

#[test]
fn a_term_that_falls_and_one_of_two_leaders_are_violations_and_one_of_many_entries_is_none() {
    let bad = |log: &[(i64, &str)]| {
        let log: Vec<_> = log.iter().map(|(term, leader)| (*term, (*leader).to_owned())).collect();
        terms("leader", &log).len()
    };
    assert_eq!(bad(&[(7, "0.1"), (7, "0.1"), (9, "1.1")]), 0);
    assert_eq!(bad(&[(9, "0.1"), (7, "1.1")]), 1);
    assert_eq!(bad(&[(7, "0.1"), (7, "1.1")]), 1);
}

/// What is said of a clock that should go by 1.004, and goes at `rate` for 20 s from when the wall clock is off by `off`.
fn unproven(planned: FakeClock, rate: f64, off: i64) -> usize {
    const EPOCH: i64 = 1_800_000_000;
    let said = |at, said| Entry { at: Duration::from_millis(at), worker: 0, life: 1, lease: "clocks".into(), said };
    let readings = (0..40).flat_map(|number| {
        let read_at = number as f64 / 2.0;
        let steady = 5_000_000_000 + (read_at * rate * 1e9) as u64;
        let clocks = [steady, steady, steady, steady + ((EPOCH + off - 5) * 1_000_000_000) as u64];
        // Stamped some milliseconds before and after.
        [said(number * 500 + 3000, Said::Reads), said(number * 500 + 3008, Said::Clocks(clocks))]
    });
    check(&[planned], &readings.collect::<Vec<_>>(), Duration::from_secs(EPOCH as u64)).unproven.len()
}

#[test]
fn clocks_that_are_not_faked_as_planned_leave_a_run_void_and_those_that_are_do_not() {
    assert_eq!(unproven(FakeClock::rate(1.004), 1.004, 0), 0);
    assert_eq!(unproven(FakeClock::rate(1.004), 1.0, 0), 4);
    assert_eq!(unproven(FakeClock::rate(1.004), 0.996, 0), 4);
    assert_eq!(unproven(FakeClock::wall(-3600, 1.0), 1.0, -3600), 0);
    assert_eq!(unproven(FakeClock::wall(-3600, 1.0), 1.0, 0), 1);
    assert_eq!(unproven(FakeClock::wall(0, 0.2), 1.0, 0), 1);
    assert!(!check(&[FakeClock::rate(1.004)], &[], Duration::ZERO).unproven.is_empty(), "not read at all");
}
