//! The expressions of the DynamoDB store do exactly what `protocol::record` says, on random records and verbs.

mod support;

#[path = "dynamodb_expressions/cases.rs"]
mod cases;
#[path = "dynamodb_expressions/hostile.rs"]
mod hostile;
#[path = "dynamodb_expressions/items.rs"]
mod items;
#[path = "dynamodb_expressions/table.rs"]
mod table;

use leasehold::protocol::record::Outcome;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::cases::case;
use crate::table::Table;

/// Enough for every verb, expectation and branch to be accepted and refused many times.
const CASES: u32 = 2000;

#[test]
fn a_write_happens_exactly_when_the_record_accepts_and_leaves_exactly_that_record() {
    let _whole = whole();
    let (table, mut tally) = (Table::start(), cases::Tally::default());
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) });
    let tally_of = std::cell::RefCell::new(&mut tally);
    let ran = runner.run(&case(), |case| {
        let outcome = case.outcome();
        let (answer, left) = table.run(&case);
        tally_of.borrow_mut().count(&case, &outcome);
        same(case.answer(&outcome), answer)?;
        same(case.leaves(&outcome), left)
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    tally.assert_all_verbs_are_accepted_and_refused_often();
}

/// How many of the cases that a broken rule does not touch are run all the same.
#[cfg(feature = "__broken")]
const SAMPLE: usize = 100;

/// Each rule is broken in the expressions as it is in the record, and the test above would notice either alone.
#[cfg(feature = "__broken")]
#[test]
fn each_broken_rule_is_broken_alike_in_both_places_and_would_be_noticed_in_one() {
    use leasehold::protocol::broken::{Broken, switch::Guard};
    use proptest::strategy::{Strategy, ValueTree};

    let table = Table::start();
    for rule in [
        Broken::TokenNotAbove,
        Broken::RenewalUnconditional,
        Broken::RenewalWithoutVersionOrder,
        Broken::RenewalKeepsOldExpiresAt,
        Broken::CleanupByName,
        Broken::CleanupWithoutBurn,
        Broken::BurnClearsClosed,
        Broken::AskBumpsVersion,
        Broken::ClosingKeepsPayload,
        Broken::ClaimKeepsData,
        Broken::TakeoverByCounterOnly,
        Broken::ClosedIdentityWithoutToken,
        Broken::RenewalShortensTtl,
    ] {
        let mut runner = TestRunner::deterministic();
        let cases: Vec<_> = (0..1500).map(|_| case().new_tree(&mut runner).expect("a case").current()).collect();
        let whole: Vec<_> = {
            let _whole = Guard::nothing_broken();
            cases.iter().map(|case| case.leaves(&case.outcome())).collect()
        };
        let _broken = rule.switch_on();
        let mut noticed = 0;
        for (number, (case, whole)) in cases.iter().zip(whole).enumerate() {
            let (outcome, left) = (case.outcome(), case.leaves(&case.outcome()));
            // A copy of what is there already is told apart after the write; the broken condition lets it through.
            if outcome == Outcome::Already || (number >= SAMPLE && left == whole) {
                continue;
            }
            assert_eq!(left, table.run(case).1, "{rule:?} is broken differently: {case:?}");
            noticed += usize::from(left != whole);
        }
        println!("{rule:?}: {noticed} of {} cases notice", cases.len());
        assert!(noticed > 0, "{rule:?} makes no difference");
    }
}

/// Keeps every rule whole meanwhile, where another test of this process breaks some.
#[cfg(feature = "__broken")]
fn whole() -> leasehold::protocol::broken::switch::Guard {
    leasehold::protocol::broken::switch::Guard::nothing_broken()
}

#[cfg(not(feature = "__broken"))]
fn whole() {}

fn same<T: PartialEq + std::fmt::Debug>(expected: T, found: T) -> Result<(), TestCaseError> {
    if expected == found {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("expected {expected:?}\n   found {found:?}")))
}

/// Whether a verb's outcome changes the item.
fn writes(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Write(_))
}
