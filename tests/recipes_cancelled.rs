//! Every future of the recipes, dropped at every place where it waits: nobody is locked out by what was begun.
//!
//! `Once` has its own in `tests/recipes_once/cancelled.rs`, and in the simulation.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use leasehold::recipes::{
    Election, Schedule, Semaphore, acquire_all, acquire_all_within, run_until_asked, step_down, try_acquire_all,
};
use leasehold::{Error, Held, Leases};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep, timeout};

const SLOW: Duration = Duration::from_millis(400);
const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_secs(10);

type Call = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A recipe's future, what it is called on, and the names that it takes.
struct Case {
    what: &'static str,
    names: &'static [&'static str],
    /// Which of them another has when it begins, for three seconds.
    taken: &'static [&'static str],
    call: fn(Leases) -> Call,
}

async fn work(_: Held) -> Result<(), Error> {
    sleep(SECOND).await;
    sleep(SECOND).await;
    Ok(())
}

macro_rules! case {
    ($what:literal, $names:expr, taken $taken:expr, |$leases:ident| $call:expr) => {
        Case { what: $what, names: &$names, taken: &$taken, call: |$leases| Box::pin(async move { $call }) }
    };
}

fn cases() -> Vec<Case> {
    const TWO: [&str; 2] = ["x", "y"];
    const PERMITS: [&str; 2] = ["permits/0", "permits/1"];
    vec![
        case!("try_acquire_all", TWO, taken [], |leases| try_acquire_all(&leases, TWO).await.map(drop)),
        case!("acquire_all", TWO, taken["y"], |leases| acquire_all(&leases, TWO).await.map(drop)),
        case!("acquire_all_within", TWO, taken["y"], |leases| acquire_all_within(&leases, TWO, LIMIT).await.map(drop)),
        case!("All::run", TWO, taken [], |leases| {
            acquire_all(&leases, TWO).await?.run(|_| async { sleep(SECOND).await; Ok::<_, Error>(()) }).await
        }),
        case!("All::release", TWO, taken [], |leases| acquire_all(&leases, TWO).await?.release().await.map(drop)),
        case!("campaign", ["leader"], taken["leader"], |leases| {
            Election::new(&leases, "leader").campaign().await.map(drop)
        }),
        case!("lead", ["leader"], taken [], |leases| Election::new(&leases, "leader").lead(work).await.map(drop)),
        case!("Semaphore::try_acquire", PERMITS, taken["permits/0"], |leases| {
            Semaphore::new(&leases, "permits", 2)?.try_acquire().await.map(drop)
        }),
        case!("Semaphore::acquire", PERMITS, taken PERMITS, |leases| {
            Semaphore::new(&leases, "permits", 2)?.acquire().await.map(drop)
        }),
        case!("Semaphore::acquire_within", PERMITS, taken PERMITS, |leases| {
            Semaphore::new(&leases, "permits", 2)?.acquire_within(LIMIT).await.map(drop)
        }),
        case!("try_turn", ["tick"], taken [], |leases| {
            Schedule::new(&leases, "tick", PERIOD)?.try_turn().await.map(drop)
        }),
        case!("turn", ["tick"], taken["tick"], |leases| {
            Schedule::new(&leases, "tick", PERIOD)?.turn().await.map(drop)
        }),
        case!("Turn::run", ["tick"], taken [], |leases| {
            Schedule::new(&leases, "tick", PERIOD)?.turn().await?.run(work).await
        }),
        case!("run_until_asked", ["shard"], taken [], |leases| {
            run_until_asked(leases.acquire("shard").await?, work).await.output.unwrap_or(Ok(()))
        }),
        case!("step_down", ["shard"], taken["shard"], |leases| step_down(&leases, "shard", SECOND).await.map(drop)),
    ]
}

/// Dropped at the end of its n-th poll; `Some` if it ended before.
async fn until_poll<T>(n: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut polls) = (Box::pin(work), 0);
    poll_fn(move |context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls >= n => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Another has these for three seconds.
async fn take(other: &Leases, names: &[&'static str]) {
    for name in names {
        let lease = other.acquire(name).await.unwrap();
        tokio::spawn(async move {
            sleep(SECOND * 3).await;
            lease.release().await.unwrap();
        });
    }
}

/// Requests and answers take their time, so that there is a place to wait before and after each is applied.
fn slow(way: &Scripted, fault: Fault) {
    for verb in [Verb::Claim, Verb::Read, Verb::Release, Verb::Renew, Verb::Ask] {
        way.on(verb).always().fault(fault);
    }
}

/// Whether it was dropped before it ended.
async fn dropped_at(case: &Case, n: usize, fault: Fault) -> bool {
    let (store, clock) = table();
    // Its own way to the store: the others' is not slow.
    let way = Scripted::new(store.inner().clone(), clock.clone());
    let (a, b) = (client(&way, &clock, "a"), client(&store, &clock.another(2), "b"));
    take(&b, case.taken).await;
    slow(&way, fault);
    let ended = until_poll(n, (case.call)(a.clone())).await;
    if let Some(Err(error)) = &ended {
        panic!("{}: {error}", case.what);
    }
    timeout(TTL, a.flush())
        .await
        .unwrap_or_else(|_| panic!("{}: dropped at {n}, it owes something for ever", case.what));
    assert_eq!((a.stats().held, a.stats().waiting), (0, 0), "{}: dropped at {n}", case.what);
    let begun = Instant::now();
    for name in case.names {
        let lease = b.acquire_within(name, LIMIT).await;
        let lease = lease.unwrap_or_else(|error| panic!("{}: dropped at {n}, it locks others out: {error}", case.what));
        lease.release().await.unwrap();
    }
    // What a rival holds for three seconds, or a tick closes for half a period, is no lock of the dropped call.
    assert!(begun.elapsed() <= PERIOD, "{}: dropped at {n}, it locks others out: {:?}", case.what, begun.elapsed());
    ended.is_none()
}

#[tokio::test(start_paused = true)]
async fn whatever_recipe_is_dropped_wherever_it_waits_nobody_is_locked_out() {
    for case in cases() {
        for fault in [Fault::ArriveLate(SLOW), Fault::AnswerLate(SLOW)] {
            let mut places = 0;
            while dropped_at(&case, places + 1, fault).await {
                places += 1;
                assert!(places < 300, "{}: it never ends", case.what);
            }
            println!("{}: {places} places, {fault:?}", case.what);
            assert!(places >= 2, "{}: it waits nowhere, {places}", case.what);
        }
    }
}

/// The control: a recipe that forgets what it has taken.
#[tokio::test(start_paused = true)]
async fn a_recipe_that_leaks_a_lease_is_noticed() {
    let leaks = async |n| {
        let leak = case!("leak", ["x"], taken [], |leases| {
            std::mem::forget(leases.acquire("x").await?);
            sleep(SECOND).await;
            Ok(())
        });
        tokio::spawn(async move { dropped_at(&leak, n, Fault::AnswerLate(SLOW)).await }).await
    };
    assert!(leaks(1).await.unwrap(), "dropped before it has anything");
    let mut n = 2;
    while leaks(n).await.is_ok() {
        n += 1;
        assert!(n < 20, "not noticed");
    }
}
