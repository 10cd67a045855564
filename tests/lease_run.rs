//! Work under a lease: whose error wins, what a loss does to the work, and that the release always follows it.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{Ended, Error, ErrorKind, Held, Lease, Leases, Lost, LostReason, Renewal, Status, StoreErrorKind};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep};

/// 30 s less 1 % less the margin of 3 s.
const TERM: Duration = Duration::from_millis(26_700);
const MARGIN: Duration = Duration::from_secs(3);

/// An error of the work's own.
#[derive(Debug, PartialEq)]
enum Failed {
    Work,
    Saw(u64, bool),
    Lost(LostReason),
}

impl From<Lost> for Failed {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost.reason().clone())
    }
}

async fn held() -> (Scripted, Leases, Lease) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    (store, leases, lease)
}

/// How many releases were sent before the work had ended, and when that was.
type Seen = Mutex<Option<(usize, Instant)>>;

/// Counts the releases that were sent before it is dropped: the work has to end first.
struct Work(Scripted, Arc<Seen>);

impl Work {
    fn new(store: &Scripted) -> (Self, Arc<Seen>) {
        let seen = Arc::default();
        (Self(store.clone(), Arc::clone(&seen)), seen)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some((self.0.count(Verb::Release), Instant::now()));
    }
}

async fn released_after(seen: &Seen, store: &Scripted, leases: &Leases) {
    sleep(Duration::from_millis(1)).await;
    let releases = seen.lock().unwrap().expect("the work has ended").0;
    assert_eq!((releases, store.count(Verb::Release)), (0, 1), "released once, after the work");
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    let sent = store.count(Verb::Renew);
    sleep(TTL).await;
    assert_eq!(store.count(Verb::Renew), sent);
}

async fn never<T>() -> T {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn work_that_succeeds_gives_its_value_and_is_followed_by_the_release() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    let token = lease.token();
    let out = lease.run(|held: Held| async move {
        let _work = work;
        sleep(TTL * 3).await;
        assert!(held.is_held());
        Ok::<_, Failed>(held.token())
    });
    assert_eq!(out.await, Ok(token));
    released_after(&seen, &store, &leases).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_gives_its_own_error_and_is_followed_by_the_release() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    let out = lease.run(|_| async move {
        let _work = work;
        sleep(TTL).await;
        Err::<(), _>(Failed::Work)
    });
    assert_eq!(out.await, Err(Failed::Work));
    released_after(&seen, &store, &leases).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_followed_by_the_release() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    let task = tokio::spawn(lease.run(|_| async move {
        let _work = work;
        sleep(TTL).await;
        if true {
            panic!("the work has panicked");
        }
        Ok::<_, Failed>(())
    }));
    assert!(task.await.unwrap_err().is_panic());
    released_after(&seen, &store, &leases).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_before_its_first_await_is_followed_by_the_release() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    let refuse = |_: Held| -> std::future::Ready<Result<(), Failed>> {
        let _work = work;
        panic!("the closure has panicked")
    };
    assert!(tokio::spawn(lease.run(refuse)).await.unwrap_err().is_panic());
    released_after(&seen, &store, &leases).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_is_cancelled_is_dropped_first_and_then_released() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    let run = lease.run(|_| async move {
        let _work = work;
        never::<Result<(), Failed>>().await
    });
    assert!(tokio::time::timeout(TTL, run).await.is_err());
    released_after(&seen, &store, &leases).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_before_it_begins_is_released() {
    let (store, leases, lease) = held().await;
    let (work, seen) = Work::new(&store);
    drop(lease.run(|_| async move {
        let _work = work;
        Ok::<_, Failed>(())
    }));
    sleep(Duration::from_millis(1)).await;
    assert!(seen.lock().unwrap().is_some());
    assert_eq!(store.count(Verb::Release), 1);
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
}

#[tokio::test(start_paused = true)]
async fn on_loss_the_work_is_told_and_its_own_error_still_wins() {
    let (store, _leases, lease) = held().await;
    let denied = store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Denied));
    let begun = Instant::now();
    let out = lease.run(|held| async move {
        assert!(matches!(held.lost().await, Ended::Lost(lost) if lost.reason() == &LostReason::Deadline));
        assert_eq!(begun.elapsed(), TERM);
        sleep(MARGIN - Duration::from_millis(10)).await;
        Err::<(), _>(Failed::Work)
    });
    assert_eq!(out.await, Err(Failed::Work));
    assert!(denied.times() >= 3);
}

#[tokio::test(start_paused = true)]
async fn work_that_succeeds_after_the_loss_gives_the_loss() {
    let (store, _leases, lease) = held().await;
    store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Denied));
    let out = lease.run(|held| async move {
        held.lost().await;
        Ok::<_, Failed>(())
    });
    assert_eq!(out.await, Err(Failed::Lost(LostReason::Deadline)));
}

#[tokio::test(start_paused = true)]
async fn on_loss_the_work_may_drain_for_the_margin_and_is_dropped_then_and_released_after() {
    let (store, _leases, lease) = held().await;
    let hung = store.on(Verb::Renew).always().fault(Fault::Hang);
    let ((work, seen), begun) = (Work::new(&store), Instant::now());
    let drained = Arc::new(Mutex::new(Instant::now()));
    let last = Arc::clone(&drained);
    let finished = lease.run_to_end(|_| async move {
        let _work = work;
        loop {
            sleep(Duration::from_millis(10)).await;
            *last.lock().unwrap() = Instant::now();
        }
    });
    let finished: leasehold::Finished<()> = finished.await;
    assert!(finished.output.is_none());
    assert!(matches!(finished.ended, Ended::Lost(lost) if lost.reason() == &LostReason::Deadline));
    finished.released.unwrap();
    let (releases, dropped) = seen.lock().unwrap().unwrap();
    assert_eq!((releases, dropped - begun), (0, TERM + MARGIN));
    assert!(*drained.lock().unwrap() - begun >= TERM + MARGIN - Duration::from_millis(20), "it drained to the end");
    assert_eq!(store.count(Verb::Release), 1);
    assert!(hung.times() >= 3);
}

#[tokio::test(start_paused = true)]
async fn work_that_wakes_after_its_machine_slept_goes_on_only_after_the_loss_is_known() {
    // D5
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let (wake, woken) = tokio::sync::oneshot::channel();
    let looks = leases.clone();
    let work = tokio::spawn(lease.run(|held| async move {
        woken.await.unwrap();
        // Counted when the loss is found, which this does not ask for.
        Err::<(), _>(Failed::Saw(looks.stats().lost["deadline"], held.is_held()))
    }));
    // Between two looks at the clock, which come every second.
    sleep(Duration::from_millis(1_500)).await;
    clock.suspend(TTL * 3);
    wake.send(()).unwrap();
    assert_eq!(work.await.unwrap(), Err(Failed::Saw(1, false)));
}

#[tokio::test(start_paused = true)]
async fn a_longest_hold_stops_the_work_a_margin_before_it_and_is_released_by_its_end() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let begun = Instant::now();
    let lease = leases.request("job").at_most(Duration::from_secs(60)).acquire().await.unwrap();
    let (work, seen) = Work::new(&store);
    let out = lease.run(|_| async move {
        let _work = work;
        never::<Result<(), Failed>>().await
    });
    assert_eq!(out.await, Err(Failed::Lost(LostReason::AtMost)));
    let (releases, dropped) = seen.lock().unwrap().unwrap();
    assert_eq!((releases, dropped - begun), (0, Duration::from_secs(60)));
    sleep(TTL).await;
    assert_eq!(store.count(Verb::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn a_taken_lease_is_not_released_and_the_loss_names_the_rival() {
    let (store, leases, lease) = held().await;
    let rival = store.inner().take_over("job").unwrap();
    let out = lease.run(|_| never::<Result<(), Error>>()).await.unwrap_err();
    assert_eq!(out.kind(), ErrorKind::Lost);
    assert!(
        matches!(out.lost().unwrap().reason(), LostReason::Taken { holder: Some(by), token } if by.as_str() == "rival" && *token == rival)
    );
    assert_eq!(store.count(Verb::Release), 0);
    assert_eq!(leases.inspect("job").await.unwrap().token, Some(rival));
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_does_not_hide_what_the_work_gave() {
    let (store, leases, lease) = held().await;
    let failed = store.on(Verb::Release).times(3).fault(Fault::Fail(StoreErrorKind::Unavailable));
    let finished = lease.run_to_end(|_| async { 7 }).await;
    assert_eq!((finished.output, finished.ended), (Some(7), Ended::Released));
    assert_eq!(finished.released.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(failed.times(), 3);
    leases.flush().await;
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free, "it was owed");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_release_is_a_success() {
    // B3
    let (store, _leases, lease) = held().await;
    let lost = store.on(Verb::Release).fault(Fault::LoseAnswer);
    let finished = lease.run_to_end(|_| async { 7 }).await;
    assert_eq!((finished.output, finished.ended), (Some(7), Ended::Released));
    finished.released.unwrap();
    assert_eq!((lost.times(), store.count(Verb::Release)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn run_is_refused_with_manual_renewal_and_the_work_is_not_begun() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let manual = || leases.request("job").renewal(Renewal::Manual).acquire();
    let begun = Arc::new(Mutex::new(false));
    let begin = Arc::clone(&begun);
    let out = manual().await.unwrap().run(move |_| async move {
        *begin.lock().unwrap() = true;
        Ok::<_, Error>(())
    });
    let error = out.await.unwrap_err();
    assert!(!*begun.lock().unwrap());
    assert!(error.to_string().contains("`run` needs renewal in the background"), "{error}");
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    let finished = manual().await.unwrap().run_to_end(|_| async { 7 }).await;
    assert_eq!(finished.output, None);
    finished.released.unwrap();
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
}
