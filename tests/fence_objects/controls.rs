//! Positive controls: each rule is broken in turn, in the store, in the code or by its user, and the orders show it.

use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;

use super::holder::{Begins, Holder};
use super::object::Flaw;
use super::orders::two_holders;
use super::walk::{Setup, every_order};

fn two_that_begin_with_a_read() -> Vec<Holder> {
    two_holders().into_iter().map(|holder| Holder { begins: Begins::WithARead, ..holder }).collect()
}

/// Goes through the orders until one of them violates this rule, which one has to.
fn violates(rule: &str, setup: Setup) {
    let found = every_order(&setup, rule);
    let what = found.violation.unwrap_or_else(|| panic!("{rule:?} was not seen in {} orders", found.runs));
    println!("order {}: {what}", found.runs);
}

fn of_two(flaw: Flaw, faults: usize) -> Setup {
    Setup { flaw, holders: two_holders, faults, repeats: false }
}

#[test]
fn a_store_that_ignores_the_condition_accepts_a_lower_token() {
    let _whole = Guard::nothing_broken();
    violates("I7", of_two(Flaw::IgnoresTags, 0));
}

#[test]
fn without_the_comparison_a_lower_token_is_accepted() {
    let _broken = Broken::FenceAdmitsLower.switch_on();
    violates("I7", of_two(Flaw::None, 0));
}

#[test]
fn where_the_tag_does_not_cover_the_fence_a_lower_token_is_accepted_if_nobody_looks_at_the_tag() {
    let _broken = Broken::FenceTakesTheSameTag.switch_on();
    violates("I7", of_two(Flaw::TagOfContent, 0));
}

#[test]
fn without_write_ids_a_writer_whose_answer_was_lost_is_told_what_is_not_true() {
    let _broken = Broken::FenceWithoutWriteIds.switch_on();
    violates("was told Not, and stored 1 times", of_two(Flaw::None, 1));
}

#[test]
fn a_raise_that_writes_nothing_for_its_own_token_leaves_a_write_in_doubt_to_be_stored_later() {
    let _broken = Broken::FenceRaiseOfOwnTokenIsNoWrite.switch_on();
    violates("was told Not, and stored 1 times", of_two(Flaw::None, 1));
}

#[test]
fn a_holder_that_reads_before_it_raises_writes_over_what_it_has_not_seen() {
    let _whole = Guard::nothing_broken();
    violates("unseen", Setup { flaw: Flaw::None, holders: two_that_begin_with_a_read, faults: 0, repeats: false });
}
