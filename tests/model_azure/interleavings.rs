//! Clients that get into each other's way at every point, with late and repeated requests.
//!
//! Each test walks all paths of its clients, on a service that judges conditions first and on one that judges the
//! lease first. A holder believes for one step of ten seconds and not for two; two end a lease at the service.

use crate::attacks;

#[test]
fn two_contenders_never_hold_at_once_nor_get_the_same_token() {
    attacks::two_contenders().assert_harmless();
}

#[test]
fn two_contenders_of_a_name_that_nobody_had_before_do_not_either() {
    attacks::two_contenders_of_a_name_that_nobody_had_before().assert_harmless();
}

#[test]
fn nor_do_two_contenders_one_of_whom_stalls_for_a_term() {
    attacks::two_contenders_and_time().assert_harmless();
}

#[test]
fn a_clean_up_takes_nothing_from_another_and_does_not_lower_the_token() {
    attacks::a_contender_that_gives_up().assert_harmless();
}

#[test]
fn no_copy_of_a_claim_that_was_cleaned_up_leases_the_blob() {
    attacks::a_contender_that_gives_up_alone().assert_harmless();
}

#[test]
fn nor_does_one_of_a_name_that_nobody_had_before() {
    attacks::a_contender_of_a_name_that_nobody_had_before().assert_harmless();
}

#[test]
fn nor_does_one_of_a_claim_that_was_repeated() {
    attacks::a_contender_whose_repeated_claims_are_late().assert_harmless();
}

#[test]
fn nor_does_one_of_a_claim_whose_lease_was_over_before_it_was_written() {
    attacks::a_contender_that_stalls().assert_harmless();
}

#[test]
fn a_release_frees_its_own_lease_and_no_other() {
    attacks::a_holder_that_releases().assert_harmless();
}

#[test]
fn nothing_of_a_grant_changes_the_blob_after_its_release() {
    attacks::a_holder_with_late_copies_of_everything().assert_harmless();
}

#[test]
fn a_late_payload_never_takes_the_place_of_a_later_one() {
    attacks::a_holder_with_late_payloads().assert_harmless();
}

#[test]
fn a_closed_record_lets_nobody_in() {
    attacks::a_holder_that_closes().assert_harmless();
}

#[test]
fn an_outcome_is_recorded_or_it_is_honestly_unknown() {
    attacks::a_holder_that_closes_after_a_payload().assert_harmless();
}

#[test]
fn an_outcome_of_a_revoked_holder_is_recorded_or_it_is_honestly_unknown() {
    attacks::a_holder_that_closes_while_it_is_revoked().assert_harmless();
}

#[test]
fn an_outcome_of_a_holder_that_is_forced_out_is_recorded_or_it_is_honestly_unknown() {
    attacks::a_holder_that_closes_while_it_is_forced_out().assert_harmless();
}

#[test]
fn an_outcome_that_comes_after_a_takeover_is_not_recorded() {
    attacks::a_holder_that_closes_when_its_term_may_be_over().assert_harmless();
}

#[test]
fn a_holder_believes_no_longer_than_the_service_keeps_others_out() {
    attacks::a_takeover().assert_harmless();
}

#[test]
fn a_late_release_leaves_the_next_holder_alone() {
    attacks::a_late_release().assert_harmless();
}

#[test]
fn nobody_gets_in_while_a_revoked_holder_may_believe() {
    attacks::a_revoked_holder().assert_harmless();
}

#[test]
fn tokens_rise_also_when_a_holder_is_forced_out() {
    attacks::a_forced_holder().assert_harmless();
}

#[test]
fn a_late_revocation_lets_nobody_in_beside_the_next_holder() {
    attacks::a_revocation_that_comes_late().assert_harmless();
}

#[test]
fn of_a_hand_over_delivered_twice_one_wins() {
    attacks::a_hand_over_delivered_twice().assert_harmless();
}

#[test]
fn a_receiver_that_gives_up_takes_nothing_from_another() {
    attacks::a_hand_over_whose_receiver_gives_up().assert_harmless();
}

#[test]
fn a_hand_over_at_the_end_of_its_term_makes_no_second_holder() {
    attacks::a_hand_over_at_the_end_of_its_term().assert_harmless();
}

#[test]
fn no_copy_of_a_hand_over_that_was_cleaned_up_changes_the_lease() {
    attacks::a_hand_over_with_a_late_payload().assert_harmless();
}

#[test]
fn a_release_after_a_hand_over_frees_the_lease_for_good() {
    attacks::a_release_after_a_hand_over().assert_harmless();
}
