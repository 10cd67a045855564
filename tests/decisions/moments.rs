//! What is known of the store's clock, and the ends of terms that come from it.

use leasehold::protocol::expiry::{Computed, expires_at};
use leasehold::protocol::observer::{Judgement, Observer};
use leasehold::protocol::rules::{Clocks, Rules};
use leasehold::protocol::store_time::{StoreTime, early_end, late_end};
use leasehold::protocol::tokens;
use leasehold::{Sample, Stamp, View};

use super::{RULES, TIMED, at, record, sample, with_wall};

fn knowing(samples: &[Sample], now: Stamp) -> StoreTime {
    let mut time = StoreTime::default();
    samples.iter().for_each(|sample| time.learn(*sample, &now, &RULES.clocks));
    time
}

#[test]
fn one_answer_bounds_the_stores_clock_from_both_sides() {
    let clocks = RULES.clocks;
    // Asked at 100, answered at 150.
    let slow = Sample { date: 1000, sent: at(100), received: at(150) };
    assert_eq!((early_end(&slow, &at(150), &clocks), late_end(&slow, &at(150), &clocks)), (990, 1071));
    assert_eq!((early_end(&slow, &at(350), &clocks), late_end(&slow, &at(350), &clocks)), (1188, 1273));
    // The early end is on the slower of two clocks, the late one on the fastest of all.
    let frozen = Stamp { boot: 150, ..at(350) };
    assert_eq!((early_end(&slow, &frozen, &clocks), late_end(&slow, &frozen, &clocks)), (990, 1273));
    assert_eq!(late_end(&slow, &with_wall(150, 350), &clocks), 1273);
}

#[test]
fn several_answers_are_bounded_by_the_best_of_each_side() {
    let narrow = Sample { date: 1000, sent: at(100), received: at(100) };
    let wide = Sample { date: 1010, sent: at(60), received: at(110) };
    let time = knowing(&[narrow, wide], at(110));
    assert_eq!(time.late(&at(110), &RULES.clocks), Some(1031));
    assert_eq!(time.early(&at(110), &RULES.clocks), Some(1000));
    assert_eq!(time.interval(&at(110), &RULES.clocks), Some((1000, 1031)));
}

#[test]
fn two_answers_that_agree_on_one_moment_only_both_count() {
    let (above, below) = (Sample { date: 1020, ..sample(1000) }, Sample { date: 990, ..sample(1000) });
    assert_eq!(knowing(&[above, below], at(1000)).interval(&at(1000), &RULES.clocks), Some((1010, 1010)));
}

#[test]
fn a_taker_believes_an_end_when_the_early_end_is_past_it() {
    let judged = |date: u64, believed: bool| {
        let time = knowing(&[Sample { date, ..sample(1000) }], at(1000));
        let mut record = record(7, Some(1));
        record.expires_at_ms = Some(2020);
        let time = believed.then_some(&time);
        Observer::default().judge(&View::of(record), &at(1000), time, &RULES.clocks)
    };
    assert!(matches!(judged(2030, true), Judgement::NotYet(_)));
    assert!(matches!(judged(2031, true), Judgement::Claimable(_)));
    assert!(matches!(judged(2031, false), Judgement::NotYet(_)));
}

#[test]
fn an_answer_that_contradicts_all_before_is_the_only_one_that_counts() {
    let time = knowing(&[sample(1000), Sample { date: 500, ..sample(1000) }], at(1000));
    assert_eq!(time.interval(&at(1000), &RULES.clocks), Some((490, 520)));
}

#[test]
fn an_interval_that_has_grown_too_wide_is_of_no_use_and_an_old_answer_says_nothing() {
    let clocks = RULES.clocks;
    let time = knowing(&[sample(1000)], at(1000));
    // It is 30 wide, and grows by some 2 % of what passes.
    assert!(time.interval(&at(4400), &clocks).is_some());
    assert_eq!(time.interval(&at(4600), &clocks), None);
    assert!(time.early(&at(6000), &clocks).is_some());
    assert_eq!((time.early(&at(6001), &clocks), time.late(&at(6001), &clocks)), (None, None));
    let exactly = Clocks { widest: 30, ..clocks };
    assert!(time.interval(&at(1000), &exactly).is_some());
    assert_eq!(time.interval(&at(1000), &Clocks { widest: 29, ..clocks }), None);
}

#[test]
fn a_term_ends_a_term_after_the_late_end_rounded_up_to_what_a_record_can_say() {
    let time = knowing(&[sample(1000)], at(1000));
    assert_eq!(expires_at(&at(1000), &time, &TIMED), Some(2020));
    assert_eq!(expires_at(&at(1000), &time, &RULES), None, "not used");
    assert_eq!(expires_at(&at(1000), &StoreTime::default(), &TIMED), None, "not known");
    let coarse = Rules { clocks: Clocks { milli: 1000, ..TIMED.clocks }, ..TIMED };
    assert_eq!(expires_at(&at(1000), &time, &coarse), Some(3000));
}

#[test]
fn a_date_agrees_with_the_interval_that_an_end_was_computed_from_within_the_slack() {
    let basis = knowing(&[sample(1000)], at(1000));
    let (first_sent, rules) = (at(1000), TIMED);
    let agrees = |date: u64, now: Stamp, rules: &Rules| {
        let computed = Computed { first_sent: &first_sent, basis: &basis };
        computed.agrees_with(Some(Sample { date, ..sample(1000) }), &now, rules)
    };
    assert!(agrees(1030, at(1000), &rules) && !agrees(1031, at(1000), &rules));
    assert!(agrees(970, at(1000), &rules) && !agrees(969, at(1000), &rules));
    // What has passed since widens the late side only.
    assert!(agrees(1131, at(1100), &rules) && !agrees(1133, at(1100), &rules));
    assert!(!agrees(969, at(1100), &rules));
    let manual = Rules { manual: true, ..rules };
    assert!(agrees(9000, at(1000), &manual), "the cap takes the place of this half");
    assert!(!agrees(969, at(1000), &manual));
    assert!(!Computed { first_sent: &first_sent, basis: &basis }.agrees_with(None, &at(1000), &rules));
}

#[test]
fn a_floor_is_whole_seconds_of_the_stores_early_time_within_a_century() {
    let clocks = RULES.clocks;
    assert_eq!(tokens::floor(1239, &clocks), Some(1230));
    assert_eq!((tokens::floor(99, &clocks), tokens::floor(100, &clocks)), (None, Some(100)));
    assert_eq!((tokens::floor(999_999, &clocks), tokens::floor(1_000_000, &clocks)), (Some(999_990), None));
    let fine = Clocks { date_grain: 1000, milli: 10, floor_ms: (0, u64::MAX), ..clocks };
    assert_eq!(tokens::floor(2999, &fine), Some(200), "2 of them, in milliseconds");
    assert_eq!(tokens::propose(0, Some(100), 1999), Some(1099), "three digits at the most");
}
