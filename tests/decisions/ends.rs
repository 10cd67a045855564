//! Releases, clean-ups, payloads, and how soon a failure is worth another try.

use leasehold::protocol::cleanup::{Cleanup, Debt, Settlement};
use leasehold::protocol::payload::Payload;
use leasehold::protocol::release::{Release, Released};
use leasehold::protocol::retry::{Retry, Tries};
use leasehold::{Applied, Closed, StoreErrorKind, Unreadable, Vacated, View};

use super::{RULES, at, grant, record};

fn refused(token: u64) -> Vacated {
    Vacated::Refused(View::of(record(token, None)))
}

fn debt(burn: bool) -> Cleanup {
    Cleanup::new(Debt { token: 7, grant: grant(1), since: at(100), burn })
}

#[test]
fn a_burn_is_settled_when_it_is_accepted_or_a_token_keeps_its_claim_out() {
    let answered = |answer| debt(true).answered(&answer, &at(200), &RULES, 1000);
    assert_eq!(answered(Vacated::Vacated), Settlement::Settled);
    assert_eq!(answered(refused(6)), Settlement::Again(10));
    assert_eq!(answered(refused(7)), Settlement::Settled);
    assert_eq!(answered(refused(8)), Settlement::Settled);
    assert_eq!(answered(Vacated::Refused(View::unreadable(Unreadable::Session))), Settlement::Settled);
}

#[test]
fn a_release_that_is_owed_is_settled_by_any_answer() {
    assert_eq!(debt(false).answered(&refused(1), &at(200), &RULES, 1000), Settlement::Settled);
}

#[test]
fn what_is_owed_is_sent_again_later_and_later_until_the_term_of_the_last_copy_is_over() {
    let mut cleanup = debt(true);
    assert_eq!(cleanup.failed(&at(200), &RULES, 1000), Settlement::Again(10));
    assert_eq!(cleanup.answered(&refused(6), &at(300), &RULES, 1000), Settlement::Again(20));
    assert_eq!(cleanup.failed(&at(1099), &RULES, 1000), Settlement::Again(40));
    assert_eq!(cleanup.failed(&at(1100), &RULES, 1000), Settlement::RanOut);
}

fn closed_by(token: u64) -> Vacated {
    let mut record = record(token, None);
    record.closed = Some(Closed { for_ms: Some(5), until_ms: None, by: Some(token) });
    Vacated::Refused(View::of(record))
}

#[test]
fn a_plain_release_is_done_by_any_answer() {
    assert_eq!(Release::new(false).answered(&Vacated::Vacated, 7), Released::Done);
    assert_eq!(Release::new(false).answered(&refused(9), 7), Released::Done);
}

#[test]
fn a_closing_release_that_is_refused_is_recorded_if_the_record_says_so_and_unknown_if_a_copy_may_have_been() {
    let mut release = Release::new(true);
    assert_eq!(release.answered(&refused(7), 7), Released::NotRecorded);
    assert_eq!(release.answered(&closed_by(7), 7), Released::Done);
    assert_eq!(release.answered(&closed_by(8), 7), Released::NotRecorded);
    assert_eq!(release.failed(Applied::No), Released::Again);
    assert!(release.is_beyond_doubt());
    assert_eq!(release.answered(&refused(7), 7), Released::NotRecorded);
    assert_eq!(release.failed(Applied::Unknown), Released::Again);
    assert!(!release.is_beyond_doubt());
    assert_eq!(release.failed(Applied::No), Released::Again);
    assert_eq!(release.answered(&refused(7), 7), Released::Unknown, "once in doubt, always in doubt");
    assert_eq!(release.answered(&Vacated::Refused(View::absent()), 7), Released::Unknown);
    assert_eq!(release.answered(&closed_by(7), 7), Released::Done);
}

#[test]
fn a_record_that_somebody_holds_is_no_outcome_even_under_an_old_closing() {
    let mut held = record(8, Some(2));
    held.closed = Some(Closed { for_ms: Some(5), until_ms: None, by: Some(7) });
    assert_eq!(Release::new(true).answered(&Vacated::Refused(View::of(held)), 7), Released::NotRecorded);
}

#[test]
fn a_payload_is_carried_until_it_or_a_newer_one_is_stored_or_refused_for_good() {
    let mut payload = Payload::default();
    assert!(!payload.is_new());
    assert_eq!((payload.set(), payload.set()), (1, 2));
    assert!(payload.is_new());
    assert_eq!((payload.of_body(true), payload.of_body(false)), (2, 0));
    payload.accept(1);
    assert!(payload.is_new());
    payload.accept(2);
    payload.accept(1);
    assert_eq!((payload.accepted(), payload.is_new()), (2, false));

    payload.set();
    payload.refuse(2);
    assert_eq!((payload.refused(), payload.is_new()), (0, true), "what is stored was not refused");
    payload.refuse(3);
    payload.refuse(1);
    assert_eq!((payload.refused(), payload.is_new()), (3, false));
    payload.set();
    assert!(payload.is_new());
    assert_eq!(payload.of_body(false), 2, "a body without one leaves what is stored");
}

#[test]
fn the_second_try_comes_at_once_and_later_ones_after_pauses() {
    let mut tries = Tries::default();
    let pauses = [(); 3].map(|()| tries.failed(Retry::Later, &RULES, 1000));
    assert_eq!(pauses, [Some(0), Some(20), None]);
    assert_eq!(Tries::default().failed(Retry::Never, &RULES, 1000), None);
}

#[test]
fn what_another_write_is_in_the_way_of_is_tried_sixteen_times_after_the_shortest_pause() {
    let mut tries = Tries::default();
    for _ in 1..16 {
        assert_eq!(tries.failed(Retry::Soon, &RULES, 1000), Some(10));
    }
    assert_eq!(tries.failed(Retry::Soon, &RULES, 1000), None);
}

#[test]
fn a_kind_of_failure_says_how_soon_another_try_is_worth_it() {
    assert_eq!(Retry::after(StoreErrorKind::Contended), Retry::Soon);
    assert_eq!(Retry::after(StoreErrorKind::Throttled), Retry::MuchLater);
    assert_eq!(Retry::after(StoreErrorKind::Unavailable), Retry::Later);
    assert_eq!(Retry::after(StoreErrorKind::Denied), Retry::Never);
}
