//! Runs that crash, are paused, or lose their lease.

use std::sync::Arc;

use leasehold::recipes::{Failed, OnceError, Outcome};
use leasehold::{ErrorKind, Fence, LostReason, Written};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::ground::{Broke, Effects, Ground, JUDGES, Judge, Machine, Ran, SECOND, WATCH};
use crate::support::scripted::{Fault, TTL, Verb};

/// A run whose work waits to be told to go on.
fn waiting_run(machine: &Machine) -> (Arc<Notify>, tokio::task::JoinHandle<Ran>) {
    let go_on = Arc::new(Notify::new());
    let (once, told) = (machine.once(), Arc::clone(&go_on));
    let run = async move {
        let work = async |token| {
            told.notified().await;
            Ok::<_, Failed<Broke>>(format!("the zombie's, by {token}"))
        };
        once.run("message", |held| work(held.token())).await
    };
    (go_on, tokio::spawn(run))
}

#[tokio::test(start_paused = true)]
async fn a_crashed_run_is_taken_over_with_a_higher_token_and_one_outcome_is_remembered() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let (a, b, c) = (ground.machine(2), ground.machine(3), ground.machine(4));
        let (_, crashed) = waiting_run(&a);
        sleep(15 * SECOND).await;
        let (first, renewed) = (ground.record("message").await, a.way.calls().into_iter().last().unwrap().at);
        a.die();
        crashed.abort();

        let effects = Effects::default();
        let (ran, _) = b.handle_in_the_end(&effects).await;
        let Ok(Outcome::Done(value)) = ran else { panic!("{ran:?}") };
        let (after, now) = (ground.record("message").await, leasehold::Clock::stamp(&a.clock));
        let took = std::time::Duration::from_nanos(now.steady_since(&renewed)) - SECOND;
        let most = if judge == Judge::Store { TTL } else { WATCH } + 15 * SECOND;
        assert!((TTL..=most).contains(&took), "{judge:?}: {took:?} after the last renewal");
        assert!(after.token > first.token);
        assert_eq!(c.handle(&effects).await.unwrap(), Outcome::AlreadyDone(value), "{judge:?}");
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_frozen_run_that_was_replaced_is_not_recorded_and_it_is_told_so() {
    // C1, I10: none of its clocks has seen the freeze, so only the store knows.
    for judge in JUDGES {
        let ground = Ground::new(judge);
        // As in a function: nothing renews, so nothing but the closing release can tell.
        let (a, b, c) = (ground.function(2), ground.machine(3), ground.machine(4));
        let (go_on, zombie) = waiting_run(&a);
        sleep(SECOND).await;
        a.clock.freeze();
        let effects = Effects::default();
        let (ran, _) = b.handle_in_the_end(&effects).await;
        let Ok(Outcome::Done(value)) = ran else { panic!("{ran:?}") };
        let recorded = ground.record("message").await;
        a.clock.thaw();
        a.way.forget_calls();
        go_on.notify_one();

        let Err(OnceError::NotRemembered { outcome: Ok(lost), error }) = zombie.await.unwrap() else {
            panic!("{judge:?}: it was replaced")
        };
        assert!(lost.starts_with(b"the zombie's"));
        assert_eq!((error.kind(), error.written()), (ErrorKind::Lost, Written::No), "{judge:?}: {error}");
        let LostReason::Taken { token, .. } = *error.lost().unwrap().reason() else { panic!("{error}") };
        assert_eq!(token.as_u64(), recorded.token);
        assert_eq!((a.way.count(Verb::Release), a.way.total()), (1, 1), "{judge:?}: one request has told it");
        assert_eq!(ground.record("message").await, recorded, "{judge:?}: nothing has changed");
        assert_eq!(c.handle(&effects).await.unwrap(), Outcome::AlreadyDone(value));
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_runs_outcome_is_not_recorded_although_nobody_has_replaced_it_yet() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.function(2);
        let (go_on, zombie) = waiting_run(&a);
        sleep(SECOND).await;
        a.way.forget_calls();
        // Between two looks at the clock, which come every second.
        a.clock.suspend(TTL * 3);
        go_on.notify_one();
        let ran = zombie.await.unwrap();
        let Err(OnceError::NotRemembered { error, .. }) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_eq!(error.lost().unwrap().reason(), &LostReason::Deadline, "{judge:?}");
        let record = ground.record("message").await;
        assert_eq!((record.grant, record.closed), (None, None), "{judge:?}: given back for the others' sake");
        assert!(matches!(ground.machine(3).handle(&Effects::default()).await, Ok(Outcome::Done(_))), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_late_write_of_a_replaced_run_is_kept_out_by_its_token() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.function(2), ground.machine(3));
    let (resource, go_on) = (Arc::new(Fence::new()), Arc::new(Notify::new()));
    let (once, fence, told) = (a.once(), Arc::clone(&resource), Arc::clone(&go_on));
    let zombie = tokio::spawn(async move {
        let work = |held: leasehold::Held| async move {
            told.notified().await;
            fence.admit(held.token()).map_err(|_| Failed::Retry(Broke("stale")))?;
            Ok("written")
        };
        once.run("message", work).await
    });
    sleep(SECOND).await;
    a.clock.freeze();
    let fence = Arc::clone(&resource);
    let run = |fence: Arc<Fence>| async move {
        let work = |held: leasehold::Held| async move {
            fence.raise(held.token()).map_err(|_| Failed::Retry(Broke("stale")))?;
            Ok::<_, Failed<Broke>>("written")
        };
        b.once().run("message", work).await.unwrap()
    };
    sleep(TTL + 6 * SECOND).await;
    assert!(matches!(run(fence).await, Outcome::Done(_)));
    a.clock.thaw();
    go_on.notify_one();
    assert!(matches!(zombie.await.unwrap(), Err(OnceError::Work(Broke("stale")))));
}

#[tokio::test(start_paused = true)]
async fn work_whose_lease_is_lost_is_told_dropped_after_the_margin_and_nothing_is_recorded() {
    for judge in JUDGES {
        let ground = Ground::new(judge);
        let a = ground.machine(2);
        let hung = a.way.on(Verb::Renew).always().fault(Fault::Hang);
        let (dropped, begun) = (Arc::new(std::sync::Mutex::new(None)), Instant::now());
        struct Work(Arc<std::sync::Mutex<Option<Instant>>>);
        impl Drop for Work {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = Some(Instant::now());
            }
        }
        let work = Work(Arc::clone(&dropped));
        let never = |held: leasehold::Held| async move {
            let _work = work;
            held.lost().await;
            std::future::pending::<Result<Vec<u8>, Failed<Broke>>>().await
        };
        let ran = a.once().run("message", never).await;
        let Err(OnceError::Lost(lost)) = ran else { panic!("{judge:?}: {ran:?}") };
        assert_eq!(lost.reason(), &LostReason::Deadline);
        assert!(hung.times() >= 2);
        let dropped = dropped.lock().unwrap().expect("the work is gone") - begun;
        assert_eq!(dropped, std::time::Duration::from_millis(29_700), "{judge:?}: 0.99 of the term");
        assert_eq!(ground.record("message").await.closed, None);
        assert_eq!(a.way.count(Verb::Release), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_returns_after_the_loss_is_not_remembered_and_its_value_is_given_back() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.machine(2);
    a.way.on(Verb::Renew).always().fault(Fault::Hang);
    let work = |held: leasehold::Held| async move {
        held.lost().await;
        Ok::<_, Failed<Broke>>("done in the margin")
    };
    let ran = a.once().run("message", work).await;
    let Err(OnceError::NotRemembered { outcome: Ok(value), error }) = ran else { panic!("{ran:?}") };
    assert_eq!((&value[..], error.kind(), error.written()), (&b"done in the margin"[..], ErrorKind::Lost, Written::No));
    assert_eq!(error.operation(), leasehold::Operation::Close);
    assert_eq!(ground.record("message").await.closed, None);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_run_is_not_remembered() {
    // A7
    let ground = Ground::new(Judge::StoreTime);
    let (a, operator) = (ground.function(2), ground.machine(3));
    let (go_on, run) = waiting_run(&a);
    sleep(SECOND).await;
    let token = operator.leases.inspect("message").await.unwrap().token.unwrap();
    operator.leases.revoke("message", token).await.unwrap();
    go_on.notify_one();
    let Err(OnceError::NotRemembered { error, .. }) = run.await.unwrap() else { panic!("it was revoked") };
    assert_eq!(error.lost().unwrap().reason(), &LostReason::Revoked);
    assert_eq!(ground.record("message").await.closed, None);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_run_again_by_the_next_delivery() {
    let ground = Ground::new(Judge::StoreTime);
    let (a, b) = (ground.machine(2), ground.machine(3));
    let once = a.once();
    let panics = tokio::spawn(async move {
        let work = |_| async { panic!("a bug") as Result<Vec<u8>, Failed<Broke>> };
        once.run("message", work).await
    });
    assert!(timeout(SECOND, panics).await.unwrap().unwrap_err().is_panic());
    a.leases.flush().await;
    assert!(matches!(b.handle(&Effects::default()).await, Ok(Outcome::Done(_))));
}
