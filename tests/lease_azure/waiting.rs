//! Dead holders, waiters and crowds (faults A1, A3 to A6, H1, H2).

use std::time::Duration;

use leasehold::{Attempt, Ended, ErrorKind, LostReason, Renewal};
use tokio::time::{Instant, sleep};

use crate::ground::{Ground, MILLI, SECOND, TERM, TTL, reason};
use crate::support::azure::{Fault, Op};

fn dies(ground: &Ground) -> crate::ground::Machine {
    ground.machine_with("dead", 1, |builder| builder.renewal(Renewal::Manual))
}

// A1
#[tokio::test(start_paused = true)]
async fn whoever_tries_every_second_wins_within_a_second_of_the_end_of_the_term() {
    let ground = Ground::with_a_free_lease().await;
    let (dead, b) = (dies(&ground), ground.machine("b", 2));
    let _lease = dead.acquire().await;
    let died = Instant::now();
    let lease = loop {
        match b.try_acquire().await {
            Some(lease) => break lease,
            None => sleep(SECOND).await,
        }
    };
    assert!((TTL..=TTL + SECOND).contains(&died.elapsed()), "{:?}", died.elapsed());
    assert!(lease.held().is_held());
}

// A1
#[tokio::test(start_paused = true)]
async fn a_service_that_lets_nobody_in_for_a_minute_after_the_end_costs_that_minute_and_no_error() {
    let ground = Ground::with_a_free_lease().await;
    ground.fake.set(|knobs| knobs.leeway.busy_after_expiry = Duration::from_secs(60));
    let (dead, b) = (dies(&ground), ground.machine("b", 2));
    let _lease = dead.acquire().await;
    let died = Instant::now();
    let lease = b.acquire().await;
    let waited = died.elapsed();
    assert!((TTL + 60 * SECOND..TTL + 63 * SECOND).contains(&waited), "{waited:?}");
    assert!(lease.held().is_held());
    assert_eq!(b.leases.stats().owed, 0, "refused claims are owed nothing");
}

// A2
#[tokio::test(start_paused = true)]
async fn a_process_that_has_just_begun_takes_over_at_once_after_the_term() {
    let ground = Ground::with_a_free_lease().await;
    let _lease = dies(&ground).acquire().await;
    sleep(TTL - SECOND).await;
    assert!(ground.machine("b", 2).try_acquire().await.is_none());
    sleep(SECOND).await;
    assert!(ground.machine("c", 3).try_acquire().await.is_some());
}

// A3
#[tokio::test(start_paused = true)]
async fn a_try_at_a_held_lease_answers_after_one_request_and_never_sleeps() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let _lease = a.acquire().await;
    let begun = Instant::now();
    ground.forget();
    assert!(b.try_acquire().await.is_none());
    assert_eq!((ground.asked(), begun.elapsed()), (vec![Op::HeadBlob], Duration::ZERO));
}

// A4
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_requests_fail_until_its_time_is_over_says_so_and_names_no_holder() {
    for op in [Op::HeadBlob, Op::Acquire] {
        let ground = Ground::with_a_free_lease().await;
        ground.fake.on(op).always().fault(Fault::Answer(500, "InternalError"));
        let a = ground.machine("a", 1);
        let error = a.leases.acquire_within("job", 20 * SECOND).await.unwrap_err();
        assert_eq!((error.kind(), error.held_by()), (ErrorKind::TimedOut, None), "{error}");
        assert!(error.to_string().contains("500 InternalError"), "{error}");
    }
}

// A4
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_over_names_the_holder_and_its_token() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("orders-3", 1), ground.machine("b", 2));
    let lease = a.acquire().await;
    let error = b.leases.acquire_within("job", 5 * SECOND).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let by = error.held_by().expect("it was seen");
    assert_eq!((by.holder(), by.token()), (Some("orders-3"), Some(lease.token())));
    // The service judges: how long it was seen unchanged tells nothing.
    assert_eq!(by.of(), None);
    let text = error.to_string();
    assert!(!text.contains("failed"), "{text}");
    assert!(text.contains("orders-3") && text.contains(&lease.token().to_string()), "{text}");
    assert!(matches!(b.leases.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.holder() == Some("orders-3")));
}

// A5
#[tokio::test(start_paused = true)]
async fn a_late_renewal_of_a_holder_that_then_dies_makes_a_waiter_wait_a_whole_term_more() {
    let ground = Ground::with_a_free_lease().await;
    let (dead, b) = (dies(&ground), ground.machine("b", 2));
    let lease = dead.acquire().await;
    let waits = tokio::spawn(async move { b.acquire().await });
    sleep(TERM - MILLI).await;
    lease.renew().await.unwrap();
    let renewed = Instant::now();
    let _theirs = waits.await.unwrap();
    assert!((TTL..TTL + 2 * SECOND).contains(&renewed.elapsed()), "{:?}", renewed.elapsed());
}

// A6
#[tokio::test(start_paused = true)]
async fn a_longest_hold_ends_the_lease_and_frees_it() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.machine("b", 2));
    let begun = Instant::now();
    let lease = a.leases.request("job").at_most(40 * SECOND).acquire().await.unwrap();
    assert_eq!(reason(&lease).await, LostReason::AtMost);
    assert!(begun.elapsed() < 40 * SECOND && begun.elapsed() > 37 * SECOND);
    assert!(matches!(lease.release().await.unwrap(), Ended::Lost(_)));
    assert!(b.try_acquire().await.is_some());
}

// H2
#[tokio::test(start_paused = true)]
async fn a_clean_release_is_taken_by_a_waiter_here_at_once_and_elsewhere_within_one_poll() {
    let ground = Ground::with_a_free_lease().await;
    let (a, b) = (ground.machine("a", 1), ground.warm("b", 2).await);
    let lease = a.acquire().await;
    let here = a.leases.clone();
    let here = tokio::spawn(async move { here.acquire("job").await.unwrap() });
    sleep(SECOND).await;
    let released = Instant::now();
    lease.release().await.unwrap();
    let lease = here.await.unwrap();
    assert_eq!(released.elapsed(), Duration::ZERO, "here");
    let elsewhere = tokio::spawn(async move { b.acquire().await });
    sleep(3 * SECOND).await;
    let released = Instant::now();
    lease.release().await.unwrap();
    let _theirs = elsewhere.await.unwrap();
    assert!(released.elapsed() <= SECOND, "elsewhere: {:?}", released.elapsed());
}

// H1
#[tokio::test(start_paused = true)]
async fn of_a_crowd_on_one_name_each_gets_it_once_and_tokens_rise() {
    let ground = Ground::with_a_free_lease().await;
    let mut working = tokio::task::JoinSet::new();
    for process in 0..5 {
        let machine = ground.machine(&format!("process {process}"), 10 + process);
        for _ in 0..4 {
            let (leases, fake) = (machine.leases.clone(), ground.fake.clone());
            working.spawn(async move {
                let lease = leases.acquire("job").await.unwrap();
                sleep(200 * MILLI).await;
                assert!(lease.held().is_held());
                let token = lease.token().as_u64();
                let stored = fake.peek("job").unwrap().metadata["lh_token"].clone();
                assert_eq!(stored, token.to_string(), "nobody else came in between");
                lease.release().await.unwrap();
                token
            });
        }
    }
    let tokens = working.join_all().await;
    let mut distinct = tokens.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((tokens.len(), distinct.len()), (20, 20));
    assert_eq!(ground.leased_by(), None);
    let won = ground.fake.count(Op::SetMetadata);
    assert_eq!(won, 20, "one claim for each grant was written");
}
