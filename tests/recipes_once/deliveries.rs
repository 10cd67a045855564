//! Deliveries of one message, with nothing lost.

use std::time::Duration;

use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::{Data, ErrorKind, Status, Written};
use tokio::time::{Instant, sleep};

use crate::ground::{Broke, Effects, Ground, JUDGES, Judge, Ran, SECOND, receipt};
use crate::support::scripted::Verb;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(start_paused = true)]
async fn two_deliveries_have_one_effect_and_the_second_is_one_refused_request() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2).knows_the_time().await, ground.machine(3).knows_the_time().await);
        let effects = Effects::default();
        let Ok(Outcome::Done(first)) = a.handle(&effects).await else { panic!("nobody else is at it") };
        let looks = a.way.count(Verb::Read);
        assert_eq!((a.way.count(Verb::Claim), a.way.count(Verb::Release), a.way.total()), (1, 1, 2 + looks));
        // A client without the store's time has to look before it claims a name of which it knows nothing.
        assert_eq!(looks, usize::from(matches!(judge, Judge::Store | Judge::NoStoreTime)), "{judge:?}");

        for again in [&b, &a] {
            again.way.forget_calls();
            assert_eq!(again.handle(&effects).await.unwrap(), Outcome::AlreadyDone(first.clone()), "{judge:?}");
            assert_eq!((again.way.total(), again.way.count(Verb::Release)), (1, 0), "{judge:?}");
        }
        assert_eq!(effects.count(), 1);
        assert_eq!(first, receipt(ground.record("message").await.closed.unwrap().by.unwrap().try_into().unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_comes_while_another_is_at_work_is_told_who_is() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let effects = Effects::default();
        let busy = async {
            sleep(SECOND / 2).await;
            let Outcome::InProgress(by) = b.handle(&effects).await.unwrap() else { panic!("a is at it") };
            assert_eq!((by.holder(), by.is_closed(), by.data()), (Some("machine-2"), false, None), "{judge:?}");
            // The same client: asked for nothing.
            let before = a.way.total();
            assert!(
                matches!(a.handle(&effects).await, Ok(Outcome::InProgress(by)) if by.holder() == Some("machine-2"))
            );
            assert_eq!(a.way.total(), before, "{judge:?}");
        };
        let (first, ()) = tokio::join!(a.handle(&effects), busy);
        assert!(matches!(first, Ok(Outcome::Done(_))));
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_deliveries_at_once_have_one_effect() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let effects = Effects::default();
        let machines: Vec<_> = (2..12).map(|seed| ground.machine(seed)).collect();
        let ran = futures_util::future::join_all((0..100).map(|n| machines[n % 10].handle(&effects))).await;
        let done = ran.iter().filter(|ran| matches!(ran, Ok(Outcome::Done(_)))).count();
        let busy = ran.iter().filter(|ran| matches!(ran, Ok(Outcome::InProgress(_)))).count();
        assert_eq!((done, busy, effects.count()), (1, 99, 1), "{judge:?}");
    }
}

/// How long it took until the work ran again, with a try every second.
async fn runs_again_after(ground: &Ground, fresh: bool, keep: Duration) -> Duration {
    let (a, b) = (ground.machine(2), ground.machine(3));
    let effects = Effects::default();
    let first = crate::ground::handle(&a.once().keep(keep), &effects).await.unwrap();
    assert!(matches!(first, Outcome::Done(_)));
    let begun = Instant::now();
    for seed in 10.. {
        let again = if fresh { ground.machine(seed).handle(&effects).await } else { b.handle(&effects).await };
        match again.unwrap() {
            Outcome::AlreadyDone(_) => sleep(SECOND).await,
            Outcome::Done(second) => {
                let token = ground.record("message").await.token;
                assert!(token > 1 && second == receipt(token.try_into().unwrap()));
                assert_eq!(effects.count(), 2);
                break;
            }
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < keep * 2, "never again");
    }
    begun.elapsed() - SECOND
}

#[tokio::test(start_paused = true)]
async fn a_repeat_after_the_outcomes_time_runs_again_with_a_higher_token_and_none_before() {
    for judge in JUDGES {
        let again = runs_again_after(&Ground::new(judge), false, HOUR).await;
        // The late end of the store's time at the closing, and the early end at the claim.
        let late = match judge {
            Judge::Store => SECOND,
            Judge::StoreTime => 6 * SECOND,
            Judge::ObservedOnly | Judge::NoStoreTime => HOUR / 100 + SECOND,
        };
        assert!((HOUR..=HOUR + late).contains(&again), "{judge:?}: {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_runs_it_again_where_the_store_or_its_time_tells() {
    for judge in [Judge::Store, Judge::StoreTime] {
        let again = runs_again_after(&Ground::new(judge), true, HOUR).await;
        assert!((HOUR..=HOUR + 6 * SECOND).contains(&again), "{judge:?}: {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_only_watching_tells_a_fresh_process_is_told_the_outcome_until_it_has_watched_for_as_long() {
    for judge in [Judge::ObservedOnly, Judge::NoStoreTime] {
        let ground = Ground::new(judge);
        let effects = Effects::default();
        let first = crate::ground::handle(&ground.machine(2).once().keep(HOUR), &effects).await;
        let Ok(Outcome::Done(first)) = first else { panic!("nobody else is at it") };
        sleep(10 * HOUR).await;
        let fresh = ground.machine(3);
        assert_eq!(fresh.handle(&effects).await.unwrap(), Outcome::AlreadyDone(first), "{judge:?}");
        sleep(HOUR).await;
        assert!(matches!(fresh.handle(&effects).await, Ok(Outcome::AlreadyDone(_))), "{judge:?}: 36 s too soon");
        sleep(HOUR / 100).await;
        assert!(matches!(fresh.handle(&effects).await, Ok(Outcome::Done(_))), "{judge:?}");
        assert_eq!(effects.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_remembered_for_four_days_unless_told_otherwise() {
    let ground = Ground::new(Judge::StoreTime);
    let effects = Effects::default();
    ground.machine(2).handle(&effects).await.unwrap();
    assert_eq!(ground.record("message").await.closed.unwrap().for_ms, Some(4 * 24 * 3600 * 1000));
    sleep(4 * DAY).await;
    assert!(matches!(ground.machine(3).handle(&effects).await, Ok(Outcome::AlreadyDone(_))));
    sleep(6 * SECOND).await;
    assert!(matches!(ground.machine(4).handle(&effects).await, Ok(Outcome::Done(_))));
}

#[tokio::test(start_paused = true)]
async fn keys_do_not_disturb_each_other() {
    let ground = Ground::new(Judge::StoreTime);
    let once = ground.machine(2).once();
    for key in ["a", "b"] {
        let ran = once.run(key, |_| async move { Ok::<_, Failed<Broke>>(key) }).await;
        assert_eq!(ran.unwrap(), Outcome::Done(key.into()));
    }
    for key in ["a", "b"] {
        let ran = once.run(key, |_| async { panic!("it has run") as Result<Vec<u8>, Failed<Broke>> }).await;
        assert_eq!(ran.unwrap(), Outcome::AlreadyDone(key.into()));
    }
}

async fn fails(once: &Once, with: Failed<Broke>) -> Ran {
    once.run("message", |_| async { Err::<Vec<u8>, _>(with) }).await
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_told_as_it_failed_and_runs_again_at_once() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let failed = fails(&a.once(), Broke("the bank is closed").into()).await;
        assert!(matches!(failed, Err(OnceError::Work(Broke("the bank is closed")))), "{judge:?}: {failed:?}");
        assert_eq!(a.leases.inspect("message").await.unwrap().status, Status::Free);
        let effects = Effects::default();
        assert!(matches!(b.handle(&effects).await, Ok(Outcome::Done(_))), "{judge:?}");
        assert!(matches!(a.handle(&effects).await, Ok(Outcome::AlreadyDone(_))), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_to_be_remembered_is_and_its_work_does_not_run_again() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let failed = fails(&a.once(), Failed::Remember(Broke("no such account"), b"404".to_vec())).await;
        assert!(matches!(failed, Err(OnceError::Work(Broke("no such account")))), "{judge:?}: {failed:?}");
        let effects = Effects::default();
        for again in [&b, &a] {
            assert_eq!(again.handle(&effects).await.unwrap(), Outcome::AlreadyFailed(b"404".to_vec()), "{judge:?}");
        }
        assert_eq!(effects.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_outcome_is_remembered_and_an_empty_one_too() {
    for length in [0, Once::MAX_OUTCOME] {
        let ground = Ground::new(Judge::StoreTime);
        let once = ground.machine(2).once();
        let value = vec![7; length];
        let ran = once.run("message", |_| async { Ok::<_, Failed<Broke>>(value.clone()) }).await;
        assert_eq!(ran.unwrap(), Outcome::Done(value.clone()));
        let again = ground.machine(3).handle(&Effects::default()).await;
        assert_eq!(again.unwrap(), Outcome::AlreadyDone(value));
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_too_large_is_given_back_and_not_remembered() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    let value = vec![7; Once::MAX_OUTCOME + 1];
    let ran = a.once().run("message", |_| async { Ok::<_, Failed<Broke>>(value.clone()) }).await;
    let Err(OnceError::NotRemembered { outcome: Ok(back), error }) = ran else { panic!("{ran:?}") };
    assert_eq!((back, error.kind(), error.written()), (value, ErrorKind::Invalid, Written::No));
    assert!(error.to_string().contains("an outcome has at most 4091 bytes, this one has 4092"), "{error}");
    let status = ground.machine(3).leases.inspect("message").await.unwrap().status;
    assert_eq!((status, a.leases.stats().owed), (Status::Free, 0), "nobody waits for its term");

    let note = Failed::Remember(Broke("no such account"), vec![7; Once::MAX_OUTCOME + 1]);
    let ran = fails(&a.once(), note).await;
    let Err(OnceError::NotRemembered { outcome: Err(work), error }) = ran else { panic!("{ran:?}") };
    assert_eq!((work, error.kind()), (Broke("no such account"), ErrorKind::Invalid), "the work's own error is told");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_closed_for_another_reason_is_no_outcome() {
    for data in [None, Some(&b"a plain payload"[..]), Some(b"once"), Some(b"once\x09later"), Some(b"onc")] {
        let ground = Ground::new(Judge::StoreTime);
        let (a, b) = (ground.machine(2), ground.machine(3));
        let lease = a.leases.acquire("message").await.unwrap();
        let token = lease.token();
        lease.close(HOUR, data.map(|data| Data::new(data).unwrap())).await.unwrap();
        let effects = Effects::default();
        let Outcome::InProgress(by) = b.handle(&effects).await.unwrap() else { panic!("no outcome: {data:?}") };
        assert_eq!((by.is_closed(), by.token(), by.data()), (true, Some(token), data));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_holder_publishes_while_it_works_is_no_outcome() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.machine(2), ground.machine(3));
    let _lease = a.leases.request("message").data(b"once\x01a checkpoint".to_vec()).acquire().await.unwrap();
    let Outcome::InProgress(by) = b.handle(&Effects::default()).await.unwrap() else { panic!("a holds it") };
    assert_eq!((by.is_closed(), by.data()), (false, Some(&b"once\x01a checkpoint"[..])));
}

#[test]
fn no_debug_shows_an_outcome() {
    let secret = || b"a receipt".to_vec();
    let error = leasehold::Name::new("").unwrap_err();
    let shown = [
        format!("{:?}", Outcome::Done(secret())),
        format!("{:?}", Outcome::AlreadyDone(secret())),
        format!("{:?}", Outcome::AlreadyFailed(secret())),
        format!("{:?}", Failed::Remember(Broke("its own"), secret())),
        format!("{:?}", OnceError::<Broke>::NotRemembered { outcome: Ok(secret()), error }),
    ];
    for shown in shown {
        assert!(shown.contains("9 bytes") && !shown.contains("97"), "{shown}");
    }
}
