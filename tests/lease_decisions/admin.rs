//! `src/lease/admin.rs`: how a lease stands, and an operator's means.

use leasehold::{
    Applied, Closed, Description, Error, ErrorKind, FencingToken, Inspection, Label, Operation, Record, Standing,
    Status, StepDown, StoreErrorKind, Unreadable, View, Written,
};

use crate::SECOND;
use crate::told::{Said, Told, free, held, like_a_table, shows, stands, that_judges};

/// The store's date at the beginning. Its clock is at least a second before it, or at most two after it.
const DATE: u64 = 1_790_000_000_000;
const LOST: Said = Said::Fails(StoreErrorKind::Unavailable, Applied::Unknown);

async fn inspection(description: Description, said: Said) -> Inspection {
    Told::new(description, [said]).client().inspect("job").await.unwrap()
}

async fn status(description: Description, said: Said) -> Status {
    inspection(description, said).await.status
}

fn ends_at(expires_at_ms: u64) -> Said {
    let mut record = held(7);
    record.expires_at_ms = Some(expires_at_ms);
    shows(record)
}

fn closed_until(until_ms: u64) -> Record {
    let mut record = free(7);
    record.closed = Some(Closed { for_ms: Some(60_000), until_ms: Some(until_ms), by: Some(7) });
    record
}

// How it stands.

#[tokio::test(start_paused = true)]
async fn a_lease_has_expired_only_after_its_end_on_the_earliest_clock_of_the_store() {
    assert_eq!(status(like_a_table(), ends_at(DATE - 1001)).await, Status::Expired);
    assert_eq!(status(like_a_table(), ends_at(DATE - 1000)).await, Status::NotKnownToHaveExpired);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_held_only_while_its_end_is_ahead_on_the_latest_clock_of_the_store() {
    assert_eq!(status(like_a_table(), ends_at(DATE + 2000)).await, Status::Held);
    assert_eq!(status(like_a_table(), ends_at(DATE + 1999)).await, Status::NotKnownToHaveExpired);
}

#[tokio::test(start_paused = true)]
async fn a_closed_lease_is_free_only_after_its_end_on_the_earliest_clock_of_the_store() {
    assert_eq!(status(like_a_table(), shows(closed_until(DATE - 1001))).await, Status::Free);
    assert_eq!(status(like_a_table(), shows(closed_until(DATE - 1000))).await, Status::Closed);
}

#[tokio::test(start_paused = true)]
async fn where_the_store_judges_its_word_is_passed_on() {
    assert_eq!(status(that_judges(), stands(Standing::Held, held(7))).await, Status::Held);
    assert_eq!(status(that_judges(), stands(Standing::Expired, held(7))).await, Status::Expired);
    assert_eq!(status(that_judges(), stands(Standing::Expired, closed_until(DATE))).await, Status::Free);
    assert_eq!(status(that_judges(), stands(Standing::Held, closed_until(DATE))).await, Status::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_which_nobody_can_say_who_holds_it_is_held_without_a_token() {
    let found = inspection(like_a_table(), stands(Standing::Held, free(7))).await;
    assert_eq!((found.status, found.token), (Status::Held, None));
    let found = inspection(like_a_table(), shows(free(7))).await;
    assert_eq!((found.status, found.token), (Status::Free, FencingToken::new(7)));
    let found = inspection(like_a_table(), shows(closed_until(DATE))).await;
    assert_eq!((found.status, found.token), (Status::Closed, FencingToken::new(7)));
}

#[tokio::test(start_paused = true)]
async fn only_a_wish_for_the_grant_that_is_there_is_shown() {
    for (token, shown) in [(7, true), (6, false)] {
        let mut record = held(7);
        record.asked = Some(StepDown { token, grace_ms: 1, by: Label::new("operator").ok() });
        assert_eq!(inspection(like_a_table(), shows(record)).await.asked.is_some(), shown, "asked of {token}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_counts_what_it_has_skipped_so_far() {
    let mut list = Told::new(like_a_table(), [shows(held(7))]).client().list("");
    assert_eq!(list.skipped(), 0);
    assert!(list.next().await.unwrap().is_some());
    assert_eq!(list.skipped(), 3);
    assert!(list.next().await.unwrap().is_some());
    assert!(list.next().await.unwrap().is_none());
    assert_eq!(list.skipped(), 6);
}

// An operator's means.

/// What comes of an ask, a revocation and a force of token 7, and how many requests each has sent.
async fn each(script: &[Said]) -> Vec<(Operation, Result<(), Error>, usize)> {
    let token = FencingToken::new(7).unwrap();
    let mut results = Vec::new();
    for operation in [Operation::Ask, Operation::Revoke, Operation::Force] {
        let store = Told::new(like_a_table(), script.to_vec());
        let leases = store.client();
        let result = match operation {
            Operation::Ask => leases.ask("job", token, SECOND).await,
            Operation::Revoke => leases.revoke("job", token).await,
            _ => leases.force("job", token).await,
        };
        results.push((operation, result, store.total()));
    }
    results
}

async fn each_is_refused(script: &[Said], kind: ErrorKind, words: &str) {
    for (operation, result, _) in each(script).await {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.operation(), error.store()), (kind, operation, Some("told")), "{error}");
        assert_eq!(error.lease().unwrap().as_str(), "job");
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_then_a_later_grant_is_a_success() {
    for (operation, result, sent) in each(&[LOST, shows(held(8))]).await {
        assert!(result.is_ok() && sent == 2, "{operation:?}: {result:?} after {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_then_a_forced_record_is_a_success() {
    let mut forced = free(7);
    forced.revoked = true;
    for (operation, result, sent) in each(&[LOST, shows(forced.clone())]).await {
        assert!(result.is_ok() && sent == 2, "{operation:?}: {result:?} after {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_make_a_success_of_another_refusal() {
    each_is_refused(&[LOST, shows(free(7))], ErrorKind::Refused, "nobody holds it now").await;
    each_is_refused(&[LOST, shows(free(6))], ErrorKind::Refused, "nobody holds it now").await;
    each_is_refused(&[LOST, shows(held(6))], ErrorKind::Refused, "held with token 6, not 7: look again first").await;
    let mut revoked = held(6);
    revoked.revoked = true;
    each_is_refused(&[LOST, shows(revoked)], ErrorKind::Refused, "held with token 6, not 7").await;
    let mut forced = free(6);
    forced.revoked = true;
    each_is_refused(&[LOST, shows(forced)], ErrorKind::Refused, "nobody holds it now").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_lost_answer_a_later_grant_is_a_refusal() {
    each_is_refused(&[shows(held(8))], ErrorKind::Refused, "held with token 8, not 7").await;
    each_is_refused(&[shows(free(7))], ErrorKind::Refused, "nobody holds it now").await;
}

#[tokio::test(start_paused = true)]
async fn to_end_what_is_not_there_or_not_readable_says_so() {
    each_is_refused(&[Said::Shows(View::absent())], ErrorKind::Refused, "there is no such lease").await;
    let foreign = Said::Shows(View::unreadable(Unreadable::Foreign));
    each_is_refused(&[foreign], ErrorKind::Unreadable, "the record is left alone: it is not a lease").await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_by_itself_is_sent_once_and_an_outage_three_times() {
    let denied = Said::Fails(StoreErrorKind::Denied, Applied::No);
    for (operation, result, sent) in each(&[denied, Said::Accepts]).await {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.written(), sent), (ErrorKind::Denied, Written::No, 1), "{operation:?}");
    }
    for (operation, result, sent) in each(&[LOST, LOST, LOST, Said::Accepts]).await {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.written(), sent),
            (ErrorKind::Unavailable, Written::Unknown, 3),
            "{operation:?}"
        );
    }
    for (operation, result, sent) in each(&[LOST, LOST, Said::Accepts]).await {
        assert!(result.is_ok() && sent == 3, "{operation:?}: {result:?} after {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_try_is_sent_at_once_and_the_third_after_a_pause() {
    let store = Told::new(like_a_table(), [LOST, LOST, Said::Accepts]);
    store.client().revoke("job", FencingToken::new(7).unwrap()).await.unwrap();
    let at = store.sent().at;
    assert_eq!(at[1].steady_since(&at[0]), 0);
    assert!(at[2].steady_since(&at[1]) > 100_000_000);
}
