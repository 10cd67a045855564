//! Clients that get into each other's way at every point, with late and repeated requests.
//!
//! Each test walks all paths of its clients, on a service that judges conditions first and on one that judges the
//! lease first. A holder believes for one step of ten seconds and not for two; two end a lease at the service.

use crate::attacks;

#[test]
fn two_contenders() {
    attacks::two_contenders().assert_harmless();
}

#[test]
fn two_contenders_of_a_name_that_nobody_had_before() {
    attacks::two_contenders_of_a_name_that_nobody_had_before().assert_harmless();
}

#[test]
fn a_contender_that_gives_up() {
    attacks::a_contender_that_gives_up().assert_harmless();
}

#[test]
fn a_contender_that_gives_up_alone() {
    attacks::a_contender_that_gives_up_alone().assert_harmless();
}

#[test]
fn a_contender_whose_repeated_claims_are_all_late() {
    attacks::a_contender_whose_repeated_claims_are_all_late().assert_harmless();
}

#[test]
fn two_contenders_and_time() {
    attacks::two_contenders_and_time().assert_harmless();
}

#[test]
fn a_holder_that_releases() {
    attacks::a_holder_that_releases().assert_harmless();
}

#[test]
fn a_holder_with_late_copies_of_everything() {
    attacks::a_holder_with_late_copies_of_everything().assert_harmless();
}

#[test]
fn a_holder_with_late_payloads() {
    attacks::a_holder_with_late_payloads().assert_harmless();
}

#[test]
fn a_holder_that_closes() {
    attacks::a_holder_that_closes().assert_harmless();
}

#[test]
fn a_holder_that_closes_alone() {
    attacks::a_holder_that_closes_alone().assert_harmless();
}

#[test]
fn a_holder_that_closes_while_it_is_revoked() {
    attacks::a_holder_that_closes_while_it_is_revoked().assert_harmless();
}

#[test]
fn a_holder_that_closes_while_it_is_forced_out() {
    attacks::a_holder_that_closes_while_it_is_forced_out().assert_harmless();
}

#[test]
fn a_takeover() {
    attacks::a_takeover().assert_harmless();
}

#[test]
fn a_late_release() {
    attacks::a_late_release().assert_harmless();
}

#[test]
fn a_revoked_holder() {
    attacks::a_revoked_holder().assert_harmless();
}

#[test]
fn a_forced_holder() {
    attacks::a_forced_holder().assert_harmless();
}

#[test]
fn a_hand_over_delivered_twice() {
    attacks::a_hand_over_delivered_twice().assert_harmless();
}

#[test]
fn a_hand_over_whose_receiver_gives_up() {
    attacks::a_hand_over_whose_receiver_gives_up().assert_harmless();
}

#[test]
fn a_hand_over_at_the_end_of_its_term() {
    attacks::a_hand_over_at_the_end_of_its_term().assert_harmless();
}

#[test]
fn a_hand_over_with_a_late_payload() {
    attacks::a_hand_over_with_a_late_payload().assert_harmless();
}

#[test]
fn a_release_after_a_hand_over() {
    attacks::a_release_after_a_hand_over().assert_harmless();
}
