//! Orders of requests, and lost answers.

use leasehold::protocol::broken::switch::Guard;

use super::holder::{Begins, Holder};
use super::object::Flaw;
use super::walk::{Setup, drawn_orders, every_order};

/// The holder that was paused, and its successor.
pub fn two_holders() -> Vec<Holder> {
    vec![holder(7, &["a1", "a2"]), holder(8, &["b1"])]
}

fn two_short_holders() -> Vec<Holder> {
    vec![holder(7, &["a1"]), holder(8, &["b1"])]
}

fn three_holders() -> Vec<Holder> {
    vec![holder(7, &["a1", "a2", "a3"]), holder(8, &["b1", "b2"]), holder(9, &["c1", "c2"])]
}

/// Two tasks of one holder, each with a raise of its own.
fn one_token_twice() -> Vec<Holder> {
    let task = |items| Holder { shares: true, ..holder(7, items) };
    vec![task(&["a1", "a2"]), task(&["b1"])]
}

fn holder(token: u64, items: &'static [&'static str]) -> Holder {
    Holder { token, items, begins: Begins::default(), shares: false }
}

fn holds_in_every_order(setup: &Setup) {
    let _whole = Guard::nothing_broken();
    let found = every_order(setup, "");
    println!("{} orders", found.runs);
    assert!(found.runs > 10, "{}", found.runs);
    assert_eq!(found.violation, None, "after {} orders", found.runs);
}

#[test]
fn in_every_order_of_two_holders_no_lower_token_is_accepted_after_a_higher() {
    holds_in_every_order(&Setup { flaw: Flaw::None, holders: two_holders, faults: 0, repeats: false });
}

#[test]
fn in_every_order_with_a_request_lost_or_late_every_answer_is_true() {
    holds_in_every_order(&Setup { flaw: Flaw::None, holders: two_holders, faults: 1, repeats: false });
}

#[test]
fn two_tasks_with_one_token_never_write_over_each_other_unseen() {
    holds_in_every_order(&Setup { flaw: Flaw::None, holders: one_token_twice, faults: 1, repeats: false });
}

/// Every order of the two with two faults each would be a million and more.
#[test]
fn two_and_three_holders_on_a_bad_line_are_kept_in_order() {
    let _whole = Guard::nothing_broken();
    for (holders, faults) in [(two_short_holders as fn() -> _, 3), (three_holders, 6)] {
        let found = drawn_orders(&Setup { flaw: Flaw::None, holders, faults, repeats: false }, 20_000);
        assert_eq!(found.violation, None);
    }
}

#[test]
fn a_client_that_repeats_its_requests_neither_breaks_the_order_nor_writes_twice() {
    holds_in_every_order(&Setup { flaw: Flaw::None, holders: two_holders, faults: 3, repeats: true });
}
