//! Closing releases whose requests or answers are lost, late or doubled: faults B1, B3 and B6 of an outcome.

use std::time::Duration;

use leasehold::recipes::{OnceError, Outcome};
use leasehold::{Attempt, Error, ErrorKind, Event, LostReason, StoreErrorKind, Unreadable, Written};
use tokio::time::{sleep, timeout};

use crate::ground::{Effects, Ground, JUDGES, Judge, Machine, Ran, SECOND, handle, receipt};
use crate::support::scripted::{Fault, TTL, Verb};

/// All that leaves its caller in doubt although the request was applied.
const APPLIED: [Fault; 4] = [
    Fault::LoseAnswer,
    Fault::FailAfterApplying(StoreErrorKind::Unavailable),
    Fault::FailAfterApplying(StoreErrorKind::Throttled),
    Fault::AnswerLate(Duration::from_secs(60)),
];

fn not_remembered(ran: Ran) -> (Vec<u8>, Error) {
    match ran {
        Err(OnceError::NotRemembered { outcome: Ok(value), error }) => (value, error),
        other => panic!("{other:?}"),
    }
}

/// What somebody is told who comes later and has done nothing himself.
async fn told_later(machine: &Machine) -> Option<Vec<u8>> {
    match machine.handle(&Effects::default()).await.unwrap() {
        Outcome::AlreadyDone(value) => Some(value),
        Outcome::Done(_) => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_recorded_and_whose_answer_was_lost_is_done_once() {
    // B3
    for judge in JUDGES {
        for fault in APPLIED {
            let ground = Ground::new(judge);
            let (a, b) = (ground.machine(2), ground.machine(3));
            let (effects, mut events) = (Effects::default(), a.leases.events());
            let lost = a.way.on(Verb::Release).fault(fault);
            let ran = a.handle(&effects).await;
            let Ok(Outcome::Done(value)) = ran else { panic!("{judge:?}, {fault:?}: {ran:?}") };
            assert_eq!((lost.times(), a.way.count(Verb::Release)), (1, 2), "the record has told it");
            assert_eq!(told_later(&b).await, Some(value), "{judge:?}, {fault:?}");
            let mut released = 0;
            while let Ok(Some(event)) = timeout(SECOND, events.next()).await {
                released += usize::from(matches!(event, Event::Released { .. }));
            }
            assert_eq!((released, effects.count(), a.leases.stats().owed), (1, 1, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_request_a_proxy_has_repeated_is_done() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.machine(2);
        let repeated = a.way.on(Verb::Release).fault(Fault::Repeated);
        let ran = a.handle(&Effects::default()).await;
        let Ok(Outcome::Done(value)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_eq!((repeated.times(), a.way.count(Verb::Release)), (1, 1));
        assert_eq!(told_later(&ground.machine(3)).await, Some(value), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_lost_on_its_way_is_sent_again_and_recorded_once() {
    for judge in JUDGES {
        for fault in [Fault::LoseRequest, Fault::Hang, Fault::Fail(StoreErrorKind::Throttled)] {
            let ground = Ground::new(judge);
            let a = ground.machine(2);
            let lost = a.way.on(Verb::Release).fault(fault);
            let ran = a.handle(&Effects::default()).await;
            let Ok(Outcome::Done(value)) = ran else { panic!("{judge:?}, {fault:?}: {ran:?}") };
            assert_eq!((lost.times(), a.way.count(Verb::Release)), (1, 2));
            assert_eq!(told_later(&ground.machine(3)).await, Some(value), "{judge:?}, {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_known_to_be_recorded_also_when_the_token_was_raised_since() {
    // A claim that a rival has given up while this run held raises the token of the free record.
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, rival) = (ground.machine(2), ground.machine(3).knows_the_time().await);
        a.way.on(Verb::Release).fault(Fault::AnswerLate(60 * SECOND));
        let effects = Effects::default();
        let burnt = async {
            sleep(SECOND / 2).await;
            assert!(rival.leases.try_acquire("message").await.unwrap().acquired().is_none());
            sleep(2 * SECOND).await;
            let late = rival.way.on(Verb::Claim).fault(Fault::LoseRequest);
            let hung = rival.way.on(Verb::Claim).fault(Fault::Hang);
            let gives_up = timeout(SECOND / 10, rival.leases.acquire("message")).await;
            assert!(gives_up.is_err() && late.times() + hung.times() > 0, "{judge:?}");
            rival.leases.flush().await;
        };
        let (ran, ()) = tokio::join!(a.handle(&effects), burnt);
        let record = ground.record("message").await;
        let by = record.closed.unwrap().by.unwrap();
        assert!(record.token > by, "{judge:?}: burnt");
        let Ok(Attempt::Held(told)) = rival.leases.try_acquire("message").await else { panic!("it is closed") };
        assert_eq!(told.token().unwrap().as_u64(), by, "{judge:?}: of the one who has closed it");
        let Ok(Outcome::Done(value)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_eq!(value, receipt(by.try_into().unwrap()));
        assert_eq!(told_later(&ground.machine(4)).await, Some(value));
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_was_lost_and_then_taken_over_is_not_known_and_only_the_others_outcome_is_remembered() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let effects = Effects::default();
        // The first copy never arrives; before the second, somebody has taken over.
        let lost = a.way.on(Verb::Release).fault(Fault::Hang);
        let rival = async {
            sleep(3 * SECOND).await;
            ground.store.take_over("message").unwrap();
        };
        let (ran, ()) = tokio::join!(a.handle(&effects), rival);
        let (value, error) = not_remembered(ran);
        assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown), "{judge:?}: {error}");
        assert_eq!((lost.times(), a.way.count(Verb::Release), a.leases.stats().owed), (1, 2, 0));
        let (ran, _) = b.handle_in_the_end(&effects).await;
        let Ok(Outcome::Done(second)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_ne!(second, value);
        assert_eq!(told_later(&ground.machine(4)).await, Some(second), "{judge:?}");
        assert_eq!(effects.count(), 2, "and the two are told apart by their tokens only");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_time_was_over_before_its_answer_came_is_not_called_lost() {
    // It was recorded, the record has opened, and somebody else has run: nobody can say any more.
    let ground = Ground::new(Judge::Store);
    let (a, b) = (ground.machine(2), ground.machine(3));
    a.way.on(Verb::Release).fault(Fault::AnswerLate(60 * SECOND));
    let effects = Effects::default();
    let (once, next) = (a.once().keep(SECOND), async {
        sleep(3 * SECOND).await;
        b.handle(&effects).await
    });
    let (ran, next) = tokio::join!(handle(&once, &effects), next);
    assert!(matches!(next, Ok(Outcome::Done(_))));
    let (_, error) = not_remembered(ran);
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_could_not_be_recorded_in_three_tries_is_recorded_in_the_background() {
    for judge in JUDGES {
        for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Throttled, StoreErrorKind::TimedOut] {
            let ground = Ground::new(judge);
            let a = ground.machine(2);
            let down = a.way.on(Verb::Release).times(5).fault(Fault::Fail(kind));
            let (value, error) = not_remembered(a.handle(&Effects::default()).await);
            assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, Written::Unknown), "{judge:?}");
            assert_eq!(error.operation(), leasehold::Operation::Close);
            assert_eq!((down.times(), a.leases.stats().owed), (3, 1));
            a.leases.flush().await;
            assert_eq!((down.times(), a.way.count(Verb::Release), a.leases.stats().owed), (5, 6, 0));
            assert_eq!(told_later(&ground.machine(3)).await, Some(value), "{judge:?}, {kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_denied_is_recorded_when_that_is_mended() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let denied = a.way.on(Verb::Release).fault(Fault::Fail(StoreErrorKind::Denied));
    let (value, error) = not_remembered(a.handle(&Effects::default()).await);
    assert_eq!((error.kind(), error.written(), denied.times()), (ErrorKind::Denied, Written::Unknown, 1));
    a.leases.flush().await;
    assert_eq!(told_later(&ground.machine(3)).await, Some(value));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_still_owed_when_another_takes_over_is_never_recorded() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let effects = Effects::default();
        let down = a.way.on(Verb::Release).always().fault(Fault::LoseRequest);
        let (value, _) = not_remembered(a.handle(&effects).await);
        let (ran, _) = b.handle_in_the_end(&effects).await;
        let Ok(Outcome::Done(second)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert!(down.times() > 3 && second != value);
        let recorded = ground.record("message").await;
        a.way.heal();
        a.leases.flush().await;
        sleep(TTL * 3).await;
        assert_eq!(ground.record("message").await, recorded, "{judge:?}");
        assert_eq!(told_later(&ground.machine(4)).await, Some(second));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_of_a_closing_changes_nothing_any_more() {
    // I10
    for judge in JUDGES {
        for fault in [Fault::ApplyLate(90 * SECOND), Fault::Twice(90 * SECOND)] {
            let ground = Ground::new(judge);
            let (a, b) = (ground.machine(2), ground.machine(3));
            let effects = Effects::default();
            let late = a.way.on(Verb::Release).fault(fault);
            let ran = handle(&a.once().keep(10 * SECOND), &effects).await;
            assert!(matches!(ran, Ok(Outcome::Done(_))), "{judge:?}, {fault:?}: {ran:?}");
            let second = loop {
                match b.handle(&effects).await.unwrap() {
                    Outcome::Done(second) => break second,
                    _ => sleep(SECOND).await,
                }
            };
            let recorded = ground.record("message").await;
            sleep(120 * SECOND).await;
            assert_eq!((ground.record("message").await, late.times()), (recorded, 1), "{judge:?}, {fault:?}");
            assert_eq!(told_later(&ground.machine(4)).await, Some(second));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_runs_the_work_once() {
    // B1
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.machine(2);
        let (effects, lost) = (Effects::default(), a.way.on(Verb::Claim).fault(Fault::LoseAnswer));
        assert!(matches!(a.handle(&effects).await, Ok(Outcome::Done(_))), "{judge:?}");
        assert_eq!((lost.times(), effects.count()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_begin_says_so_and_does_not_work() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let effects = Effects::default();
    a.way.on(Verb::Read).always().fault(Fault::Fail(StoreErrorKind::Unavailable));
    let ran = a.handle(&effects).await;
    let Err(OnceError::Lease(error)) = ran else { panic!("{ran:?}") };
    assert_eq!((error.kind(), error.written(), effects.count()), (ErrorKind::Unavailable, Written::No, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_under_something_unreadable_is_not_recorded_and_the_error_says_what_is_there() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let effects = Effects::default();
    let spoils = async {
        sleep(SECOND / 2).await;
        ground.store.put_unreadable("message", Unreadable::Format).unwrap();
    };
    let (ran, ()) = tokio::join!(a.handle(&effects), spoils);
    let (_, error) = not_remembered(ran);
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unreadable, Written::No), "{error}");
    assert_eq!(a.leases.stats().owed, 0);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_record_was_deleted_is_not_recorded() {
    // D6
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let effects = Effects::default();
    let deletes = async {
        sleep(SECOND / 2).await;
        ground.store.delete("message");
    };
    let (ran, ()) = tokio::join!(a.handle(&effects), deletes);
    let (_, error) = not_remembered(ran);
    assert_eq!(error.lost().unwrap().reason(), &LostReason::Deleted);
    assert_eq!(error.written(), Written::No);
}
