//! Another's write is in the way of a request and it is not applied (a conflict between regions, a transaction, a
//! busy file): soon again, on every operation, and never a loss.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::{Attempt, Ended, ErrorKind, Leases, Lost, Renewal, State, StoreErrorKind};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep};

/// The shortest pause with a term of 30 s: a sixteenth of an attempt of 5 s, the half of it by chance.
const PAUSE: Duration = Duration::from_micros(312_500);
const OFTEN: usize = 10;

fn contended(store: &Scripted, verb: Verb, times: usize) -> support::scripted::Happened {
    store.on(verb).times(times).fault(Fault::Fail(StoreErrorKind::Contended))
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_meets_others_again_and_again_is_no_loss_and_its_pauses_do_not_grow() {
    let (store, clock) = table();
    let lease = client(&store, &clock, "a").acquire("job").await.unwrap();
    let met = contended(&store, Verb::Renew, 2 * OFTEN);
    while met.times() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let first = Instant::now();
    while met.times() < 2 * OFTEN || lease.held().state() != State::Held {
        assert!(lease.held().is_held());
        sleep(Duration::from_millis(10)).await;
    }
    assert!(first.elapsed() <= PAUSE * (2 * OFTEN as u32 + 1), "{:?}", first.elapsed());
    sleep(2 * TTL).await;
    assert_eq!(lease.held().state(), State::Held);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_meets_another_looks_who_it_was_instead_of_claiming_again() {
    let (store, clock) = table();
    let lease = client(&store, &clock, "a").acquire("job").await.unwrap();
    let rival = client(&store, &clock, "b");
    rival.inspect("job").await.unwrap();
    let (claims, reads) = (store.count(Verb::Claim), store.count(Verb::Read));
    contended(&store, Verb::Claim, 1);
    let Attempt::Held(by) = rival.try_acquire("job").await.unwrap() else { panic!("it is held") };
    assert_eq!(by.token(), Some(lease.token()));
    assert_eq!((store.count(Verb::Claim) - claims, store.count(Verb::Read) - reads), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_meets_others_three_times_gets_what_is_free_all_the_same() {
    let (store, clock) = table();
    contended(&store, Verb::Claim, 3);
    assert!(client(&store, &clock, "a").try_acquire("job").await.unwrap().acquired().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_try_that_always_meets_others_ends_with_an_error_and_a_few_claims() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    contended(&store, Verb::Claim, usize::MAX);
    let error = leases.try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(store.count(Verb::Claim), 4);
}

#[tokio::test(start_paused = true)]
async fn a_release_a_revocation_and_an_ask_that_meet_others_get_through() {
    let (store, clock) = table();
    let (leases, operator) = (client(&store, &clock, "a"), client(&store, &clock, "o"));
    let lease = leases.acquire("job").await.unwrap();
    let asks = contended(&store, Verb::Ask, OFTEN);
    operator.ask("job", lease.token(), TTL).await.unwrap();
    let releases = contended(&store, Verb::Release, OFTEN);
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    let lease = leases.acquire("job").await.unwrap();
    let revocations = contended(&store, Verb::Revoke, OFTEN);
    operator.revoke("job", lease.token()).await.unwrap();
    assert!(matches!(lease.held().lost().await, Ended::Lost(Lost { .. })));
    assert_eq!((asks.times(), releases.times(), revocations.times()), (OFTEN, OFTEN, OFTEN));
}

#[tokio::test(start_paused = true)]
async fn a_manual_renewal_that_meets_others_gets_through() {
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).ttl(TTL).clock(clock).renewal(Renewal::Manual).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    let met = contended(&store, Verb::Renew, OFTEN);
    lease.renew().await.unwrap();
    assert_eq!(met.times(), OFTEN);
    contended(&store, Verb::Renew, OFTEN);
    sleep(Duration::from_secs(15)).await;
    lease.held().ensure(Duration::from_secs(20)).await.unwrap();
}
