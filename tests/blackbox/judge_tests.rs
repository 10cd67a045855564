//! What the judge says of holds that are made up: each rule has a story that breaks it, and one beside it that does not.

use std::time::Duration;

use super::fake_clock::{FakeClock, check};
use super::holds::{Hold, holds};
use super::journal::{Entry, Said};
use super::judge::{inside_the_margin, opened_early, overlaps, takeovers, tokens};
use super::plan::Options;

const OPTIONS: Options = Options { ttl_ms: 2000, margin_ms: 200, poll_ms: 250, thread: false, observed_only: false };

/// Of two workers: who, when in milliseconds, what.
fn story(lines: &[(usize, u64, Said)]) -> Vec<Hold> {
    let entries: Vec<_> = lines
        .iter()
        .map(|(worker, at, said)| {
            let (at, said) = (Duration::from_millis(*at), said.clone());
            Entry { at, worker: *worker, life: 1, lease: "counter".into(), said }
        })
        .collect();
    holds(&entries)
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
    story(&lines)
}

#[test]
fn a_grant_before_the_last_moment_of_anothers_belief_is_an_overlap() {
    let bad = |holds: Vec<Hold>| overlaps(&holds.iter().collect::<Vec<_>>()).len();
    assert_eq!(bad(succession(500, 450, false)), 1);
    assert_eq!(bad(succession(500, 501, false)), 0);
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
        inside_the_margin(&takeovers(&holds), &OPTIONS).len()
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
