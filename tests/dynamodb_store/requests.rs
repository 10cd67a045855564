//! How many requests go out, and what a lost or a missing answer leads to.

use std::thread;

use leasehold::store::Store;
use leasehold::{Applied, Claimed, Renewed, Revoked, StoreErrorKind, Vacated};

use crate::bodies::{Fixture, a, ask, b, burn, claim, closing, release, renew, revoke};
use crate::support::faults::{Answer, Fault, Match};

const REFUSED: &str = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";

#[tokio::test]
async fn opening_is_one_request_and_every_accepted_verb_is_one() {
    let fixture = Fixture::start().await;
    let store = &fixture.store;
    let mut sent = 0;
    let mut one_more = |what: &str| {
        sent += 1;
        assert_eq!((fixture.proxy.total(), fixture.proxy.count("UpdateItem")), (sent, sent), "{what}");
    };
    fixture.claimed(1, a()).await;
    one_more("claim");
    assert_eq!(fixture.renewed(renew(a(), 2)).await, Renewed::Renewed(None));
    one_more("renew");
    store.ask(&ask(1)).await.expect("answered");
    one_more("ask");
    assert_eq!(store.revoke(&revoke(1, false)).await.expect("answered").value, Revoked::Revoked);
    one_more("revoke");
    assert_eq!(store.revoke(&revoke(1, true)).await.expect("answered").value, Revoked::Revoked);
    one_more("force");
    assert_eq!(fixture.vacated(burn(2, b())).await, Vacated::Vacated);
    one_more("burn");
    fixture.claimed(3, b()).await;
    one_more("claim of a free record");
    assert_eq!(fixture.vacated(closing(3, b())).await, Vacated::Vacated);
    one_more("closing release");
}

#[tokio::test]
async fn a_refused_verb_is_one_request_and_shows_the_record() {
    let fixture = Fixture::start().await;
    fixture.claimed(1, a()).await;
    let answers = [
        matches!(fixture.store.claim(&claim(2, b())).await.expect("answered").value, Claimed::Refused(v) if v.grant() == Some(a())),
        matches!(fixture.renewed(renew(b(), 2)).await, Renewed::Refused(v) if v.grant() == Some(a())),
        matches!(fixture.vacated(release(1, b())).await, Vacated::Refused(v) if v.token() == 1),
        matches!(fixture.vacated(burn(2, b())).await, Vacated::Refused(v) if v.token() == 1),
    ];
    assert_eq!(answers, [true; 4]);
    assert_eq!(fixture.proxy.total(), 5);
}

#[tokio::test]
async fn a_verb_on_no_record_is_refused_after_one_more_read() {
    let fixture = Fixture::start().await;
    assert!(matches!(fixture.renewed(renew(a(), 2)).await, Renewed::Refused(view) if view.record.is_none()));
    assert_eq!((fixture.proxy.count("UpdateItem"), fixture.proxy.count("GetItem")), (1, 1));
}

#[tokio::test]
async fn our_retries_on_the_sdk_makes_one_attempt_each() {
    let fixture = Fixture::start().await;
    let away = fixture.proxy.on(Match::any()).fault(Fault::Answer(Answer::internal_error()));
    for attempt in 1..=3 {
        let error = fixture.store.claim(&claim(1, a())).await.expect_err("scripted");
        assert_eq!((error.applied, error.kind), (Applied::Unknown, StoreErrorKind::Unavailable));
        assert_eq!(fixture.proxy.total(), attempt);
    }
    away.stop();
    let throttled = fixture.proxy.on(Match::any()).fault(Fault::Answer(Answer::throttled()));
    fixture.store.read(&claim(1, a()).name).await.expect_err("scripted");
    fixture.store.list("", None).await.expect_err("scripted");
    assert_eq!((fixture.proxy.total(), throttled.happened()), (5, 2));
}

#[tokio::test]
async fn the_callers_client_keeps_its_retries() {
    let fixture = Fixture::start().await;
    fixture.proxy.on(Match::any()).fault(Fault::Answer(Answer::internal_error()));
    fixture.store.claim(&claim(1, a())).await.expect_err("scripted");
    fixture.proxy.reset_counts();
    fixture.client.list_tables().send().await.expect_err("scripted");
    assert_eq!(fixture.proxy.total(), 3);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_granted_when_it_is_sent_again() {
    let fixture = Fixture::start().await;
    let lost = fixture.next_write(Fault::LoseAnswer);
    let error = fixture.store.claim(&claim(1, a())).await.expect_err("reset");
    assert_eq!((error.applied, lost.happened()), (Applied::Unknown, 1));
    fixture.claimed(1, a()).await;
    assert_eq!(fixture.proxy.total(), 2);
}

#[tokio::test]
async fn a_revocation_whose_answer_was_lost_is_known_by_its_grant() {
    let fixture = Fixture::start().await;
    fixture.claimed(1, a()).await;
    fixture.next_write(Fault::LoseAnswer);
    fixture.store.revoke(&revoke(1, false)).await.expect_err("reset");
    assert_eq!(fixture.store.revoke(&revoke(1, false)).await.expect("answered").value, Revoked::Revoked);
}

#[tokio::test]
async fn without_the_item_in_the_refusal_one_read_tells_whose_record_it_is() {
    let fixture = Fixture::start().await;
    fixture.claimed(1, a()).await;
    fixture.proxy.reset_counts();
    fixture.proxy.on(Match::op("UpdateItem")).fault(Fault::AnswerAfterApply(Answer::new(400, REFUSED)));

    let rival = fixture.store.claim(&claim(2, b())).await.expect("answered");
    assert!(matches!(rival.value, Claimed::Refused(view) if view.grant() == Some(a())));
    fixture.claimed(1, a()).await;

    assert_eq!((fixture.proxy.count("UpdateItem"), fixture.proxy.count("GetItem")), (2, 2));
    assert!(
        fixture
            .proxy
            .seen()
            .iter()
            .filter(|seen| seen.operation == "GetItem")
            .all(|seen| seen.body["ConsistentRead"] == true)
    );
}

#[tokio::test]
async fn a_record_that_became_free_between_the_refusal_and_the_read_is_no_grant() {
    let fixture = Fixture::start().await;
    // The claim is refused, and nothing is there to be read.
    fixture.next_write(Fault::Answer(Answer::new(400, REFUSED)));
    let answer = fixture.store.claim(&claim(1, a())).await.expect("answered");
    assert!(matches!(answer.value, Claimed::Refused(view) if view.record.is_none()));
}

#[tokio::test]
async fn a_refusal_whose_read_fails_leaves_open_whether_an_earlier_copy_was_applied() {
    let fixture = Fixture::start().await;
    fixture.next_write(Fault::AnswerAfterApply(Answer::new(400, REFUSED)));
    fixture.proxy.on(Match::op("GetItem")).fault(Fault::Answer(Answer::throttled()));
    let error = fixture.store.claim(&claim(1, a())).await.expect_err("scripted");
    assert_eq!((error.applied, error.kind), (Applied::Unknown, StoreErrorKind::Throttled));
}

#[tokio::test]
async fn a_date_counts_only_on_an_answer_with_the_services_request_id() {
    let fixture = Fixture::start().await;
    let read = async || fixture.store.read(&claim(1, a()).name).await.expect("answered").date_ms;
    assert!(read().await.is_some_and(|date| date > 1_700_000_000_000 && date % 1000 == 0));

    let anonymous = fixture.proxy.on(Match::any()).fault(Fault::WithoutHeader("x-amzn-requestid"));
    assert_eq!(read().await, None);
    anonymous.stop();
    let nonsense =
        fixture.proxy.on(Match::any()).fault(Fault::WithHeader("date", "Sun, 99 Nov 9999 99:99:99 GMT".into()));
    assert_eq!(read().await, None);
    nonsense.stop();
    fixture.proxy.on(Match::any()).fault(Fault::WithHeader("date", "Sun, 06 Nov 1994 08:49:37 GMT".into()));
    assert_eq!(read().await, Some(784_111_777_000));
}

#[tokio::test]
async fn refusals_and_errors_of_the_service_carry_its_time() {
    let fixture = Fixture::start().await;
    fixture.claimed(1, a()).await;
    assert!(fixture.store.claim(&claim(2, b())).await.expect("answered").date_ms.is_some());
    fixture.next_write(Fault::Answer(Answer::throttled()));
    assert!(fixture.store.claim(&claim(2, b())).await.expect_err("scripted").date_ms.is_some());
}

#[tokio::test]
async fn the_store_shares_the_callers_connection() {
    let fixture = Fixture::start().await;
    fixture.client.list_tables().send().await.expect("up");
    fixture.claimed(1, a()).await;
    assert_eq!(fixture.proxy.connections_opened(), 0, "the one that opening the store has opened is kept");
}

#[tokio::test]
async fn an_isolated_store_works_while_the_runtime_of_the_caller_is_blocked() {
    let fixture = Fixture::start().await;
    let apart = fixture.store.isolated().expect("it has connections");
    assert_eq!(apart.describe(), fixture.store.describe());
    // Joining blocks this test's only thread, and with it the caller's connections.
    let claimed = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { apart.claim(&claim(1, a())).await.expect("answered").value })
    });
    assert_eq!(claimed.join().expect("no panic"), Claimed::Granted);
    assert_eq!(fixture.proxy.connections_opened(), 1);
    assert_eq!(fixture.view().await.grant(), Some(a()));
}

#[tokio::test]
async fn an_isolated_store_makes_one_attempt_too() {
    let fixture = Fixture::start().await;
    fixture.proxy.on(Match::any()).fault(Fault::Answer(Answer::internal_error()));
    fixture.store.isolated().expect("it has connections").claim(&claim(1, a())).await.expect_err("scripted");
    assert_eq!(fixture.proxy.total(), 1);
}
