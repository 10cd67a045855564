//! Answers that were lost, repeated or late, with an SDK client that has its own retries on.

use std::time::Duration;

use leasehold::{Attempt, Ended, ErrorKind, Grant, Renewal, State, Store, Written};

use crate::ground::{CLAIM, Ground, RELEASE, RENEWAL, claim, number, soon, text};
use crate::support::faults::{Answer, Fault};

fn lost_or_spoilt() -> [Fault; 3] {
    [Fault::LoseAnswer, Fault::AnswerAfterApply(Answer::internal_error()), Fault::Truncate]
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_granted_within_one_more_request() {
    for fault in lost_or_spoilt() {
        let ground = Ground::new().await;
        let leases = ground.quiet("a").await;
        let lost = ground.next(CLAIM, fault.clone());
        let lease = leases.try_acquire("job").await.unwrap().acquired().expect("nobody else has it");
        assert_eq!(lost.happened(), 1, "{fault:?}");
        let sent = ground.proxy.seen();
        assert_eq!(ground.operations(), ["UpdateItem", "UpdateItem"], "{fault:?}");
        assert_eq!(sent[0].body, sent[1].body, "the same body: {fault:?}");
        let item = ground.item("job").await.unwrap();
        assert_eq!(number(&item, "lh_token"), lease.token().as_u64());
        assert_eq!(leases.stats().owed, 0, "a granted claim is owed no clean-up");
    }
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_costs_no_loss_and_no_read() {
    for fault in lost_or_spoilt() {
        let ground = Ground::new().await;
        let leases = ground.quiet("a").await;
        let lease = leases.acquire("job").await.unwrap();
        ground.proxy.reset_counts();
        let lost = ground.next(RENEWAL, fault.clone());
        lease.renew().await.unwrap();
        assert_eq!(lost.happened(), 1);
        assert_eq!(ground.operations(), ["UpdateItem", "UpdateItem"], "{fault:?}");
        assert_eq!((lease.held().is_held(), lease.held().state()), (true, State::Held), "{fault:?}");
        assert!(leases.stats().lost.values().all(|lost| *lost == 0));
        assert_eq!(ground.version("job").await, 3, "each try is a body of its own");
    }
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_a_success_whatever_the_second_answer_says() {
    for fault in lost_or_spoilt() {
        let ground = Ground::new().await;
        let leases = ground.quiet("a").await;
        let lease = leases.acquire("job").await.unwrap();
        ground.proxy.reset_counts();
        let lost = ground.next(RELEASE, fault.clone());
        assert_eq!(lease.release().await.unwrap(), Ended::Released, "{fault:?}");
        assert_eq!(lost.happened(), 1);
        assert_eq!(ground.operations(), ["UpdateItem", "UpdateItem"], "the second was told: not yours");
        assert!(!ground.item("job").await.unwrap().contains_key("lh_grant"));
    }
}

#[tokio::test]
async fn a_repeated_release_leaves_the_rival_alone_that_has_come_meanwhile() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lease = leases.acquire("job").await.unwrap();
    let lost = ground.next(RELEASE, Fault::LoseAnswer);
    let second = ground.nth(2, RELEASE, Fault::HoldRequest);
    let rival = ground.bystander("b").await;
    let release = tokio::spawn(lease.release());
    soon("the first is lost", lost.until_happened(1)).await;
    let theirs = soon("the name is free", rival.acquire("job")).await.unwrap();
    soon("the second is on its way", second.until_happened(1)).await;
    second.release();
    assert_eq!(soon("an answer", release).await.unwrap().unwrap(), Ended::Released);
    assert!(theirs.held().is_held());
    theirs.renew().await.expect("the record is theirs");
}

#[tokio::test]
async fn the_works_own_result_is_what_run_gives_when_the_release_is_lost() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let lost = ground.every(RELEASE, Fault::LoseAnswer);
    let lease = leases.acquire("job").await.unwrap();
    let output = lease.run(|_| async { Ok::<_, leasehold::Error>("done") }).await;
    assert_eq!(output.unwrap(), "done");
    assert!(lost.happened() >= 1);
}

#[tokio::test]
async fn requests_that_arrive_twice_have_one_effect() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let twice: Vec<_> = [CLAIM, RENEWAL, RELEASE].map(|verb| ground.next(verb, Fault::Duplicate)).into();
    let lease = leases.acquire("job").await.unwrap();
    let token = lease.token().as_u64();
    lease.renew().await.unwrap();
    assert_eq!(ground.version("job").await, 2);
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert!(twice.iter().all(|twice| twice.happened() == 1));
    let item = ground.item("job").await.unwrap();
    assert_eq!((number(&item, "lh_token"), item.contains_key("lh_grant")), (token, false));
    assert_eq!(ground.operations().len(), 3, "the client has sent each once");
}

#[tokio::test]
async fn late_copies_of_everything_leave_the_next_holder_alone() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let late: Vec<_> = [CLAIM, RENEWAL, RELEASE].map(|verb| ground.next(verb, Fault::LateDuplicate)).into();
    let lease = leases.acquire("job").await.unwrap();
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    let rival = ground.bystander("b").await;
    let theirs = rival.acquire("job").await.unwrap();
    let before = ground.item("job").await.unwrap();
    for late in &late {
        late.release();
        soon("it lands", late.until_landed(1)).await;
    }
    assert_eq!(ground.item("job").await.unwrap(), before);
    theirs.renew().await.expect("the record is theirs");
}

#[tokio::test]
async fn a_late_copy_of_a_claim_does_not_lock_a_free_name() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let late = ground.next(CLAIM, Fault::LateDuplicate);
    leases.acquire("job").await.unwrap().release().await.unwrap();
    late.release();
    soon("it lands", late.until_landed(1)).await;
    assert!(!ground.item("job").await.unwrap().contains_key("lh_grant"));
}

#[tokio::test]
async fn an_older_renewal_that_comes_after_a_newer_one_turns_nothing_back() {
    let ground = Ground::new().await;
    let leases = ground.builder("a").await.ttl(Duration::from_secs(6)).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    let older = ground.next(RENEWAL, Fault::HoldRequest);
    // The attempt times out, and the next try is answered.
    lease.renew().await.unwrap();
    soon("one is held back", older.until_happened(1)).await;
    let before = ground.item("job").await.unwrap();
    assert!(number(&before, "lh_version") >= 3);
    older.release();
    soon("it lands", older.until_landed(1)).await;
    let after = ground.item("job").await.unwrap();
    assert!(number(&after, "lh_version") >= number(&before, "lh_version"), "it went back");
    assert!(number(&after, "lh_expires_at_ms") >= number(&before, "lh_expires_at_ms"), "it went back");
    assert!(lease.held().is_held());
    lease.renew().await.expect("still ours");
}

#[tokio::test]
async fn the_sdk_makes_one_attempt_for_each_of_ours() {
    let ground = Ground::new().await;
    // Without a keeper, so that every request is one of a call.
    let leases = ground.builder("a").await.renewal(Renewal::Manual).build().unwrap();
    let lease = leases.acquire("mine").await.unwrap();
    ground.proxy.reset_counts();
    let broken = ground.proxy.on(crate::support::faults::Match::any()).fault(Fault::Answer(Answer::internal_error()));

    let error = leases.try_acquire("job").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown));
    let claims = ground.sent(CLAIM).len() as u64;
    assert_eq!((claims, leases.stats().requests["claim"]), (3, 1 + 3), "one try is three requests of ours");

    ground.proxy.reset_counts();
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ground.sent(RENEWAL).len(), 3);
    ground.proxy.reset_counts();
    assert_eq!(leases.inspect("job").await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ground.proxy.count("GetItem"), 1);
    ground.proxy.reset_counts();
    assert_eq!(leases.list("").all().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ground.proxy.count("Scan"), 1);

    broken.stop();
    let counted = leases.stats().requests;
    ground.proxy.reset_counts();
    lease.release().await.unwrap();
    leases.flush().await;
    let counted_since = leases.stats().requests.values().sum::<u64>() - counted.values().sum::<u64>();
    assert_eq!(ground.proxy.total() as u64, counted_since, "the client's own count is what the wire has seen");
}

#[tokio::test]
async fn a_claim_that_was_refused_while_its_first_copy_travels_is_burnt_before_that_copy_lands() {
    let ground = Ground::new().await;
    let leases = ground.quiet("a").await;
    let rival = ground.rival().await;
    let first = ground.next(CLAIM, Fault::ResetAndHold);
    let second = ground.nth(2, CLAIM, Fault::HoldRequest);
    let trying = tokio::spawn({
        let leases = leases.clone();
        async move { leases.try_acquire("job").await }
    });
    soon("the second copy is on its way", second.until_happened(1)).await;
    let theirs = Grant::from_bits(7);
    rival.claim(&claim("job", 1, theirs)).await.unwrap();
    second.release();
    assert!(
        matches!(soon("an answer", trying).await.unwrap().unwrap(), Attempt::Held(by) if by.holder() == Some("rival"))
    );
    assert_eq!(leases.stats().owed, 1, "the first copy may still be applied");

    let release = leasehold::Vacate {
        name: leasehold::Name::new("job").unwrap(),
        token: 1,
        grant: theirs,
        burn: false,
        close: None,
        now_ms: None,
    };
    rival.vacate(&release).await.unwrap();
    soon("the clean-up gets through", leases.flush()).await;
    first.release();
    soon("it lands", first.until_landed(1)).await;
    let item = ground.item("job").await.unwrap();
    assert!(!item.contains_key("lh_grant"), "locked by nobody: {}", text(&item, "lh_holder"));
}
