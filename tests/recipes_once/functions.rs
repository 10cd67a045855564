//! Once in functions: nothing in the background, and an end to every invocation (F1, F2, A6).

use std::time::Duration;

use leasehold::recipes::{Failed, OnceError, Outcome};
use leasehold::{ErrorKind, Held, LostReason, Written};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::ground::{Broke, Effects, Ground, JUDGES, Judge, SECOND};
use crate::support::scripted::{Fault, TTL, Verb};

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_nothing_runs_and_nothing_is_sent_after_it_has_returned() {
    // F2
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.function(2).knows_the_time().await;
        let effects = Effects::default();
        assert!(matches!(a.handle(&effects).await, Ok(Outcome::Done(_))), "{judge:?}");
        assert!(matches!(a.handle(&effects).await, Ok(Outcome::AlreadyDone(_))), "{judge:?}");
        let failed = a.once().run("other", |_| async { Err::<Vec<u8>, _>(Failed::Retry(Broke("again"))) }).await;
        assert!(matches!(failed, Err(OnceError::Work(_))));
        let sent = a.way.total();
        assert_eq!((Handle::current().metrics().num_alive_tasks(), a.leases.stats().owed), (0, 0), "{judge:?}");
        sleep(TTL * 10).await;
        assert_eq!((a.way.total(), a.way.count(Verb::Renew)), (sent, 0), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_knows_the_time_makes_two_requests_for_a_first_run_and_one_for_a_repeat() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.function(2).knows_the_time().await;
    let effects = Effects::default();
    a.handle(&effects).await.unwrap();
    assert_eq!((a.way.count(Verb::Claim), a.way.count(Verb::Release), a.way.total()), (1, 1, 2));
    a.way.forget_calls();
    a.handle(&effects).await.unwrap();
    assert_eq!(a.way.total(), 1);
    let fresh = ground.function(3);
    fresh.handle(&effects).await.unwrap();
    assert_eq!((fresh.way.count(Verb::Read), fresh.way.total()), (1, 1), "a cold start looks, and is told");
}

#[tokio::test(start_paused = true)]
async fn manual_work_that_outlives_its_term_is_dropped_and_one_that_renews_is_recorded() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, effects) = (ground.function(2), Effects::default());
        let begun = Instant::now();
        let never = |_| std::future::pending::<Result<Vec<u8>, Failed<Broke>>>();
        let ran = a.once().run("message", never).await;
        let Err(OnceError::Lost(lost)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_eq!(lost.reason(), &LostReason::Deadline);
        assert!(begun.elapsed() <= TTL, "{judge:?}: {:?}", begun.elapsed());

        let renews = |held: Held| {
            let effects = effects.clone();
            async move {
                for _ in 0..6 {
                    sleep(TTL / 2).await;
                    held.ensure(TTL / 2).await.map_err(|_| Failed::Retry(Broke("lost")))?;
                }
                effects.happen();
                Ok::<_, Failed<Broke>>("long work")
            }
        };
        assert_eq!(a.once().run("message", renews).await.unwrap(), Outcome::Done(b"long work".to_vec()), "{judge:?}");
        assert!(a.way.count(Verb::Renew) >= 5);
    }
}

#[tokio::test(start_paused = true)]
async fn work_is_told_a_margin_before_the_invocations_deadline_and_its_lease_is_free_at_it() {
    // A6
    for judge in JUDGES {
        for manual in [false, true] {
            let ground = Ground::new(judge);
            let a = if manual { ground.function(2) } else { ground.machine(2) };
            let begun = Instant::now();
            let work = |held: Held| async move {
                held.lost().await;
                let told = begun.elapsed();
                assert_eq!(told, Duration::from_secs(17), "{judge:?}");
                std::future::pending::<Result<Vec<u8>, Failed<Broke>>>().await
            };
            let once = a.once().at_most(20 * SECOND);
            let ran = timeout(TTL, once.run("message", work)).await.expect("it ends by its deadline");
            let Err(OnceError::Lost(lost)) = ran else { panic!("{judge:?}: {ran:?}") };
            assert_eq!((lost.reason(), begun.elapsed()), (&LostReason::AtMost, 20 * SECOND));
            let record = ground.record("message").await;
            assert_eq!((record.grant, record.closed), (None, None), "{judge:?}: others need not wait");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_later_deadline_is_not_disturbed_by_it() {
    // A6
    let ground = Ground::new(Judge::StoreTime);
    let effects = Effects::default();
    let once = ground.machine(2).once().at_most(20 * SECOND);
    assert!(matches!(crate::ground::handle(&once, &effects).await, Ok(Outcome::Done(_))));
    sleep(TTL).await;
    assert!(matches!(ground.machine(3).handle(&effects).await, Ok(Outcome::AlreadyDone(_))));
}

#[tokio::test(start_paused = true)]
async fn an_invocation_with_no_time_left_sends_nothing_and_does_not_work() {
    // A6: the margin is 3 s.
    let ground = Ground::new(Judge::StoreTime);
    let (a, effects) = (ground.machine(2), Effects::default());
    for left in [Duration::ZERO, 3 * SECOND] {
        let ran = crate::ground::handle(&a.once().at_most(left), &effects).await;
        let Err(OnceError::Lease(error)) = ran else { panic!("{ran:?}") };
        assert_eq!((error.kind(), a.way.total(), effects.count()), (ErrorKind::Invalid, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_frozen_with_all_clocks_in_its_work_is_recorded_only_if_nobody_has_replaced_it() {
    // F1: the store tells, and nobody else can.
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.function(2);
    let clock = a.clock.clone();
    let freezes = |held: Held| async move {
        clock.freeze();
        sleep(TTL * 3).await;
        clock.thaw();
        Ok::<_, Failed<Broke>>(format!("by {}", held.token()))
    };
    let ran = a.once().run("message", freezes).await;
    let Ok(Outcome::Done(value)) = ran else { panic!("nobody else came: {ran:?}") };
    let told = ground.machine(3).handle(&Effects::default()).await.unwrap();
    assert_eq!(told, Outcome::AlreadyDone(value));
}

#[tokio::test(start_paused = true)]
async fn a_manual_run_whose_recording_hangs_ends_and_its_next_call_records_it() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, effects) = (ground.function(2), Effects::default());
    let hung = a.way.on(Verb::Release).times(3).fault(Fault::Hang);
    let ran = a.handle(&effects).await;
    let Err(OnceError::NotRemembered { outcome: Ok(value), .. }) = ran else { panic!("{ran:?}") };
    assert_eq!((hung.times(), a.leases.stats().owed), (3, 1));
    a.leases.flush().await;
    let told = ground.machine(3).handle(&effects).await.unwrap();
    assert_eq!(told, Outcome::AlreadyDone(value));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_store_hangs_at_the_end_returns_by_its_deadline_all_the_same() {
    // A6: else the invocation is killed, and with it the answers for the other messages of its batch.
    for manual in [false, true] {
        for (works_for, outcome) in [(16, Ok("done")), (16, Err("fails")), (60, Ok("too late"))] {
            let ground = Ground::new(Judge::StoreTime);
            let a = if manual { ground.function(2) } else { ground.machine(2) }.knows_the_time().await;
            a.way.on(Verb::Release).always().fault(Fault::Hang);
            let work = |_| async move {
                sleep(works_for * SECOND).await;
                outcome.map_err(|why| Failed::Retry(Broke(why)))
            };
            let begun = Instant::now();
            let ran = a.once().at_most(20 * SECOND).run("message", work).await;
            assert!(begun.elapsed() <= 20 * SECOND + SECOND / 2, "{outcome:?}: {:?}", begun.elapsed());
            match (works_for, ran) {
                (16, Err(OnceError::NotRemembered { outcome: Ok(value), error })) => {
                    assert_eq!((value, error.written()), (b"done".to_vec(), Written::Unknown));
                }
                (16, Err(OnceError::Work(Broke("fails")))) => {}
                (60, Err(OnceError::Lost(lost))) => assert_eq!(lost.reason(), &LostReason::AtMost),
                (_, ran) => panic!("{outcome:?}: {ran:?}"),
            }
            a.way.heal();
            a.leases.flush().await;
            sleep(TTL / 2).await;
            let record = ground.record("message").await;
            let closed = works_for == 16 && outcome.is_ok();
            assert_eq!((record.grant, record.closed.is_some()), (None, closed), "{outcome:?}: it is owed, and sent");
        }
    }
}
