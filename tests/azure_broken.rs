//! Positive controls: each rule of the Azure store is broken inside the real code, and an attack that is harmless to the
//! whole one violates the invariant that the rule is for.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]
#![allow(dead_code, reason = "only the attacks that a broken rule lets through are used here")]

mod support;

#[path = "model_azure/actors.rs"]
mod actors;
#[path = "model_azure/attacks.rs"]
mod attacks;
#[path = "azure_store/ground.rs"]
mod ground;
#[path = "azure_store/lenient.rs"]
mod lenient;
#[path = "model_azure/schedule.rs"]
mod schedule;
#[path = "model_azure/world.rs"]
mod world;

use leasehold::protocol::broken::Broken;

use crate::attacks::Attack;
use crate::world::Violation;

/// What the attack comes to while the rule is broken.
fn broken(rule: Broken, attack: &Attack) -> Option<Violation> {
    let _broken = rule.switch_on();
    attack.violation()
}

#[test]
fn without_a_tag_on_acquire_a_late_acquire_leases_a_blob_that_was_burnt_or_released() {
    let rule = Broken::AzureAcquireWithoutIfMatch;
    assert_eq!(broken(rule, &attacks::a_contender_that_gives_up_alone()), Some(Violation::Afterlife), "I9");
    assert_eq!(broken(rule, &attacks::a_holder_with_late_copies_of_everything()), Some(Violation::Afterlife), "I10");
}

#[test]
fn without_a_tag_on_writes_a_late_payload_undoes_a_later_one_and_a_clean_up_lowers_the_token() {
    let rule = Broken::AzureWriteWithoutIfMatch;
    assert_eq!(broken(rule, &attacks::a_holder_with_late_payloads()), Some(Violation::OlderPayload));
    let fell = broken(rule, &attacks::a_contender_that_gives_up());
    assert!(matches!(fell, Some(Violation::TokenFell { .. })), "I5: {fell:?}");
}

#[test]
fn without_a_renewal_a_hand_over_is_believed_longer_than_the_service_leases_it() {
    let fell = broken(Broken::AzureHandoverWithoutRenewal, &attacks::a_hand_over_at_the_end_of_its_term());
    assert!(matches!(fell, Some(Violation::NotLeased(_) | Violation::TwoHolders(..))), "I4 or I3: {fell:?}");
}

#[test]
fn a_revocation_without_the_rest_of_the_term_lets_others_in_while_the_holder_believes() {
    let fell = broken(Broken::AzureBreakAtOnce, &attacks::a_revoked_holder());
    assert!(matches!(fell, Some(Violation::NotLeased(_) | Violation::TwoHolders(..))), "I4 or I3: {fell:?}");
}

#[test]
fn a_clean_up_that_only_releases_lets_a_late_copy_lease_the_blob() {
    let rule = Broken::AzureCleanupWithoutBurn;
    assert_eq!(broken(rule, &attacks::a_contender_that_gives_up_alone()), Some(Violation::Afterlife), "I9");
}

/// No attack on the strict service can show this: only an emulator answers with another's id.
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_any_lease_id_believes_in_anothers_lease() {
    let _broken = Broken::AzureAnyLeaseId.switch_on();
    assert_eq!(lenient::renewal_of_anothers_lease().await, None, "I4: it counts as renewed");
}

#[test]
fn every_rule_of_the_store_has_its_control_here() {
    use Broken::{
        AzureAcquireWithoutIfMatch, AzureAnyLeaseId, AzureBreakAtOnce, AzureCleanupWithoutBurn,
        AzureHandoverWithoutRenewal, AzureWriteWithoutIfMatch,
    };
    let controlled = [
        AzureAcquireWithoutIfMatch,
        AzureWriteWithoutIfMatch,
        AzureHandoverWithoutRenewal,
        AzureBreakAtOnce,
        AzureAnyLeaseId,
        AzureCleanupWithoutBurn,
    ];
    assert!(Broken::AZURE.iter().all(|rule| controlled.contains(rule)));
}
