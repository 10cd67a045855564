//! A run whose future is dropped at every place where it waits.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use leasehold::recipes::{Failed, Outcome};
use tokio::time::{Instant, sleep};

use crate::ground::{Broke, Effects, Ground, JUDGES, Judge, Machine, Ran, SECOND, WATCH};
use crate::support::scripted::{Fault, Verb};

/// Requests and answers take their time, so that there is a place to wait at each, before and after it is applied.
/// What repeats a request that was cut off in the one way is slow in the other.
fn slow(first: [Fault; 2]) -> impl Fn(&Machine) {
    move |machine| {
        for verb in [Verb::Claim, Verb::Release, Verb::Read] {
            for fault in first {
                machine.way.on(verb).fault(fault);
            }
        }
    }
}

const REQUESTS_FIRST: [Fault; 2] = [Fault::ArriveLate(SECOND), Fault::AnswerLate(SECOND)];
const ANSWERS_FIRST: [Fault; 2] = [Fault::AnswerLate(SECOND), Fault::ArriveLate(SECOND)];

/// A run whose work goes on for three seconds and then leaves its outcome here, and returns it.
async fn run(machine: &Machine, returned: Arc<Mutex<Option<Vec<u8>>>>) -> Ran {
    let work = |held: leasehold::Held| async move {
        for _ in 0..3 {
            sleep(SECOND).await;
        }
        let outcome = format!("of the cancelled run, by {}", held.token()).into_bytes();
        *returned.lock().unwrap() = Some(outcome.clone());
        Ok::<_, Failed<Broke>>(outcome)
    };
    machine.once().run("message", work).await
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

/// Whoever comes next, a second after the drop, and what he is told in the end.
async fn next(ground: &Ground, returned: &Mutex<Option<Vec<u8>>>, longest: Duration) -> bool {
    let (b, effects, begun) = (ground.machine(3), Effects::default(), Instant::now());
    let (ran, _) = b.handle_in_the_end(&effects).await;
    let waited = begun.elapsed() - SECOND * effects.count() as u32;
    assert!(waited <= longest, "{:?}: locked out for {waited:?}", ground.judge);
    let told = match ran.unwrap() {
        Outcome::Done(second) => second,
        Outcome::AlreadyDone(first) => {
            let returned = returned.lock().unwrap().clone();
            assert_eq!(Some(first.clone()), returned, "{:?}: not what the work has returned", ground.judge);
            first
        }
        other => panic!("{other:?}"),
    };
    let last = ground.machine(4).handle(&effects).await.unwrap();
    assert_eq!(last, Outcome::AlreadyDone(told));
    effects.count() == 0
}

/// Drops it at every poll there is. How many places there were, and after how many the outcome was remembered.
async fn at_every_place(judge: Judge, spoil: impl Fn(&Machine), manual: bool, longest: Duration) -> (usize, usize) {
    let (mut places, mut remembered) = (0, 0);
    for n in 1..200 {
        let ground = Ground::new(judge);
        let a = if manual { ground.function(2) } else { ground.machine(2) };
        spoil(&a);
        let returned = Arc::default();
        if let Some(ran) = until_poll(n, run(&a, Arc::clone(&returned))).await {
            assert!(matches!(ran, Ok(Outcome::Done(_))), "{ran:?}");
            return (places, remembered);
        }
        if !manual {
            // What was on its way arrives, and what is owed for it is settled: no name is locked by nobody.
            sleep(3 * SECOND).await;
        }
        places += 1;
        remembered += usize::from(next(&ground, &returned, longest).await);
    }
    panic!("it never ends")
}

#[tokio::test(start_paused = true)]
async fn a_run_dropped_anywhere_locks_nobody_out_and_leaves_no_outcome_but_its_own() {
    for judge in JUDGES {
        for order in [REQUESTS_FIRST, ANSWERS_FIRST] {
            let (places, remembered) = at_every_place(judge, slow(order), false, Duration::ZERO).await;
            println!("{judge:?}: dropped at {places} places, remembered after {remembered}");
            assert!(places >= 6, "{judge:?}: {places}");
            assert!(
                (1..places).contains(&remembered),
                "{judge:?}: the closing went on in the background: {remembered}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_dropped_anywhere_whose_clean_up_is_lost_locks_others_out_for_its_term_at_most() {
    for judge in JUDGES {
        for order in [REQUESTS_FIRST, ANSWERS_FIRST] {
            let cut_off = |machine: &Machine| {
                machine.way.on(Verb::Release).fault(order[0]);
                for verb in [Verb::Release, Verb::Burn] {
                    machine.way.on(verb).always().fault(Fault::LoseRequest);
                }
                slow(order)(machine);
            };
            let (places, _) = at_every_place(judge, cut_off, false, WATCH + 6 * SECOND).await;
            assert!(places >= 6, "{judge:?}: {places}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_dropped_anywhere_locks_others_out_for_its_term_at_most() {
    // B4, F2: nobody sends what it owes.
    for judge in JUDGES {
        for (order, recorded) in [(REQUESTS_FIRST, 0), (ANSWERS_FIRST, 1)] {
            let (places, remembered) = at_every_place(judge, slow(order), true, WATCH + 6 * SECOND).await;
            assert!(places >= 6, "{judge:?}: {places}");
            assert_eq!(remembered, recorded, "{judge:?}: what has arrived is recorded, nothing else");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_was_dropped_while_it_recorded_does_so_in_its_next_call() {
    let ground = Ground::new(Judge::StoreTime);
    let a = ground.function(2);
    let hung = a.way.on(Verb::Release).fault(Fault::Hang);
    let returned = Arc::default();
    let run = run(&a, Arc::clone(&returned));
    assert!(tokio::time::timeout(4 * SECOND, run).await.is_err());
    assert_eq!((hung.times(), a.leases.stats().owed), (1, 1));
    let again = a.handle(&Effects::default()).await.unwrap();
    assert_eq!(Some(again), returned.lock().unwrap().clone().map(Outcome::AlreadyDone));
    assert_eq!(a.leases.stats().owed, 0);
}
