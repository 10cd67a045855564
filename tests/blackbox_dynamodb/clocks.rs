//! Workers whose clocks libfaketime changes. It has to be installed: `apt-get install faketime`.

use crate::blackbox::{self, FakeClock};
use crate::on_dynamodb::plan;
use crate::run_all;

/// Rates that differ by less than a hundredth, which is what is assumed of clocks.
#[test]
#[ignore = "needs libfaketime"]
fn nothing_is_violated_with_clocks_that_go_fast_and_slow_within_what_is_assumed() {
    let rates = ["+0 x1.004", "+0 x0.996", "+0 x1.002", "+0 x0.998"];
    let clocks = || rates.map(|spec| FakeClock { spec: spec.into(), wall_only: false }).to_vec();
    let verdicts = run_all(|ground| {
        let plan = |seed| plan(ground, seed).of("clocks_that_go_fast_and_slow", "rates").with_clocks(clocks());
        blackbox::seeds(201..=203).into_iter().map(plan).collect()
    });
    blackbox::assert_clean(&verdicts);
}

/// Nothing is assumed of wall clocks.
#[test]
#[ignore = "needs libfaketime"]
fn nothing_is_violated_with_wall_clocks_that_are_off_by_hours_and_run_wild() {
    let walls = ["-1h", "+2h x3.0", "+0 x0.2", "-30d"];
    let clocks = || walls.map(|spec| FakeClock { spec: spec.into(), wall_only: true }).to_vec();
    let verdicts = run_all(|ground| {
        let plan = |seed| plan(ground, seed).of("wall_clocks_that_are_off", "walls").with_clocks(clocks());
        blackbox::seeds(211..=213).into_iter().map(plan).collect()
    });
    blackbox::assert_clean(&verdicts);
}

/// The control: two of four clocks so slow that a renewal comes after the term, which others measure rightly. The
/// harness's own clock is not among them, so it sees what follows.
#[test]
#[ignore = "needs libfaketime"]
fn holders_whose_clocks_go_at_a_quarter_of_the_speed_are_seen_to_overlap() {
    let clocks = vec![FakeClock { spec: "+0 x0.25".into(), wall_only: false }; 2];
    let test = "holders_whose_clocks_go_at_a_quarter";
    let verdicts = run_all(|ground| vec![plan(ground, 221).of(test, "quarter-speed").with_clocks(clocks)]);
    assert!(verdicts[0].violates("overlap") > 0 && verdicts[0].violates("inside the margin") > 0, "{}", verdicts[0]);
}
