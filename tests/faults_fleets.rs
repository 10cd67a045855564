//! Faults of clients with thousands of leases: slow, throttled and hung requests, and a store that comes back.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::{Lease, Leases, State, StoreErrorKind};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep};

async fn acquire_all(leases: &Leases, count: usize) -> Vec<Lease> {
    let calls = (0..count).map(|number| leases.acquire(format!("job/{number}")));
    futures_util::future::try_join_all(calls).await.unwrap()
}

// D9

/// A client that holds 5,000 leases for 20 s each, on a store that takes 20 ms for every request.
async fn five_thousand() -> (Scripted, Leases, Vec<Lease>) {
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).ttl(Duration::from_secs(20)).clock(clock.clone()).build().unwrap();
    let held = acquire_all(&leases, 5_000).await;
    (store, leases, held)
}

fn all_held_again_and_again(leases: &Leases, held: &[Lease]) {
    assert!(leases.stats().lost.values().all(|lost| *lost == 0), "{:?}", leases.stats().lost);
    assert_eq!(held.iter().filter(|lease| lease.held().state() == State::Held).count(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn of_five_thousand_leases_whose_requests_take_20_ms_none_is_lost_or_in_jeopardy() {
    let (store, leases, held) = five_thousand().await;
    let slow = store.on(Verb::Renew).always().fault(Fault::AnswerLate(Duration::from_millis(20)));
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        all_held_again_and_again(&leases, &held);
    }
    assert!(slow.times() >= 8 * 5_000, "renewed three times a term: {}", slow.times());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_for_10_s_costs_none_of_five_thousand_leases() {
    let (store, leases, held) = five_thousand().await;
    let hung = store.on(Verb::Renew).of("job/17").fault(Fault::AnswerLate(Duration::from_secs(10)));
    let slow = store.on(Verb::Renew).always().fault(Fault::AnswerLate(Duration::from_millis(20)));
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        let others = held.iter().filter(|lease| lease.name().as_str() != "job/17");
        assert!(others.into_iter().all(|lease| lease.held().state() == State::Held), "the others do not notice");
    }
    assert_eq!(hung.times(), 1);
    assert!(slow.times() >= 8 * 5_000);
    // Its own next tries have brought that one back as well.
    all_held_again_and_again(&leases, &held);
}

// D10

#[tokio::test(start_paused = true)]
async fn when_half_of_all_renewals_are_throttled_for_two_periods_none_of_a_thousand_leases_is_lost() {
    for seed in 1..=5 {
        let (store, clock) = table();
        let leases = client(&store, &clock, "a");
        let _held = acquire_all(&leases, 1_000).await;
        sleep(TTL).await;
        store.forget_calls();
        let throttled = store.on(Verb::Renew).share(500, seed).always().fault(Fault::Fail(StoreErrorKind::Throttled));
        sleep(TTL / 3 * 2).await;
        store.heal();
        let sent = store.count(Verb::Renew);
        sleep(TTL).await;
        assert!(throttled.times() > 1000, "each is renewed twice, and half of that fails");
        assert_eq!(leases.stats().held, 1000, "seed {seed}: {:?}", leases.stats().lost);
        assert!(sent < 2 * 2000 + 1000, "they slow down: {sent}");
    }
}

// H4

const VERBS: [Verb; 5] = [Verb::Claim, Verb::Renew, Verb::Release, Verb::Burn, Verb::Read];
const FLEET: usize = 2_000;
const MOMENT: Duration = Duration::from_millis(100);

/// Holds the lease again and again, for ever.
async fn hold_on(leases: Leases, name: String) {
    loop {
        let lease = leases.acquire(&name).await.unwrap();
        lease.held().lost().await;
    }
}

/// What arrived in each tenth of a second of the last term, and how many leases are held at its end.
async fn after_an_outage(fault: Fault) -> (Vec<usize>, usize) {
    let (store, clock) = table();
    let fleet: Vec<_> = (0..4).map(|number| client(&store, &clock.another(number + 2), "process")).collect();
    let start = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            tokio::spawn(hold_on(fleet[number % 4].clone(), format!("job/{number}")));
        }
    };
    // Half of them are held when the store goes away; the others are begun all at once while it is away.
    start(0..FLEET / 2);
    sleep(TTL).await;
    let failed: Vec<_> = VERBS.iter().map(|verb| store.on(*verb).always().fault(fault)).collect();
    sleep(TTL * 8).await;
    start(FLEET / 2..FLEET);
    sleep(TTL * 2).await;
    assert!(failed.iter().map(|failed| failed.times()).sum::<usize>() > FLEET);
    assert_eq!(fleet.iter().map(|leases| leases.stats().held).sum::<usize>(), 0, "{fault:?}: all are lost");

    store.heal();
    let mut arrived = Vec::new();
    let back = Instant::now();
    while back.elapsed() < TTL {
        store.forget_calls();
        sleep(MOMENT).await;
        arrived.push(store.total());
    }
    (arrived, fleet.iter().map(|leases| leases.stats().held).sum())
}

#[tokio::test(start_paused = true)]
async fn two_thousand_leases_of_a_store_that_was_away_are_acquired_again_spread_over_seconds() {
    for fault in [Fault::Fail(StoreErrorKind::Unavailable), Fault::Hang] {
        let (arrived, held) = after_an_outage(fault).await;
        assert_eq!(held, FLEET, "{fault:?}: all are held again within a term");
        let most = arrived.iter().max().unwrap();
        assert!(*most <= FLEET / 10, "{fault:?}: {most} requests in a tenth of a second");
    }
}
