//! A store that stalls, denies, throttles or is away.

use std::time::{Duration, Instant};

use leasehold::{Event, Held, LostReason, State};

use crate::ground::{Ground, RENEWAL, TTL, loss, soon, until};
use crate::support::faults::{Answer, Fault, Match};

/// Watches until the lease does not count any more. Gives the last moment before a look that still said "held".
async fn last_held(held: Held) -> Instant {
    let mut last = Instant::now();
    loop {
        let before = Instant::now();
        if !held.is_held() {
            return last;
        }
        last = before;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The moment when the last renewal (or the claim) left that the store has answered with success.
fn last_success(ground: &Ground, name: &str) -> Instant {
    let ours = ground.proxy.seen().into_iter().rev();
    let mut answered = ours.filter(|seen| seen.answered == Some(200) && seen.body.to_string().contains(name));
    answered.next().expect("it was acquired").arrived
}

#[tokio::test]
async fn a_renewal_that_stalls_for_ever_delays_neither_its_loss_nor_other_leases() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let (stuck, other) = (leases.acquire("stuck").await.unwrap(), leases.acquire("other").await.unwrap());
    let stalled =
        ground.proxy.on(Match::op("UpdateItem").containing(RENEWAL).containing("\"stuck\"")).fault(Fault::Stall);
    let lost = loss(soon("the loss", stuck.held().lost()).await);
    assert!(!stuck.held().is_held());
    assert_eq!(lost.reason(), &LostReason::Deadline);
    assert!(lost.cause().is_some_and(|cause| cause.contains("no answer in time")), "{lost}");
    assert!(stalled.happened() >= 2, "it went on trying");
    assert_eq!(leases.stats().lost["deadline"], 1);

    let version = ground.version("other").await;
    assert!(version > 1, "the other was renewed meanwhile");
    until("the other goes on", async || ground.version("other").await > version).await;
    assert_eq!(other.held().state(), State::Held);
}

#[tokio::test]
async fn a_lease_that_is_denied_its_renewals_is_lost_at_its_deadline_with_the_cause() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let mut events = leases.events();
    let lease = leases.acquire("job").await.unwrap();
    assert!(matches!(events.next().await, Some(Event::Acquired { .. })));
    let denied = ground.every(RENEWAL, Fault::Answer(Answer::forbidden()));
    match soon("jeopardy", events.next()).await {
        Some(Event::Jeopardy { cause: Some(cause), .. }) => {
            assert!(cause.contains("allow `dynamodb:UpdateItem`"), "{cause}");
        }
        event => panic!("{event:?}"),
    }
    assert!(lease.held().is_held(), "a refusal of the service proves nothing");
    let lost = loss(soon("the loss", lease.held().lost()).await);
    assert_eq!(lost.reason(), &LostReason::Deadline);
    assert!(lost.cause().is_some_and(|cause| cause.contains("allow `dynamodb:UpdateItem`")), "{lost}");
    assert!(denied.happened() >= 3, "it went on trying: {}", denied.happened());
}

#[tokio::test]
async fn permission_that_comes_back_in_time_costs_nothing() {
    let ground = Ground::new().await;
    let leases = ground.builder("a").await.ttl(Duration::from_secs(6)).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    let mut states = lease.held().watch();
    let denied = ground.every(RENEWAL, Fault::Answer(Answer::forbidden()));
    assert_eq!(soon("jeopardy", states.changed()).await, Some(State::Jeopardy));
    denied.stop();
    assert_eq!(soon("recovery", states.changed()).await, Some(State::Held));
    assert!(leases.stats().lost.values().all(|lost| *lost == 0));
}

#[tokio::test]
async fn throttled_renewals_slow_down_and_no_lease_is_lost() {
    let ground = Ground::new().await;
    let leases = ground.builder("a").await.ttl(Duration::from_secs(6)).build().unwrap();
    let mut held = Vec::new();
    for number in 0..20 {
        held.push(leases.acquire(format!("job/{number}")).await.unwrap());
    }
    let throttled = ground.proxy.on(Match::op("UpdateItem").containing(RENEWAL)).rate(0.3, 7);
    let throttled = throttled.fault(Fault::Answer(Answer::throttled()));
    ground.proxy.reset_counts();
    for lease in &held {
        // Two whole periods each, and a success in both.
        let name = lease.name().as_str();
        until("it is renewed twice", async || {
            let ours =
                ground.sent(RENEWAL).into_iter().filter(|seen| seen.body.to_string().contains(&format!("\"{name}\"")));
            ours.filter(|seen| seen.answered == Some(200)).count() >= 2
        })
        .await;
    }
    assert!(throttled.happened() >= 10, "{}", throttled.happened());
    assert_eq!(leases.stats().held, 20);
    assert!(leases.stats().lost.values().all(|lost| *lost == 0));
}

#[tokio::test]
async fn a_throttled_acquire_waits_and_a_throttled_try_is_unavailable() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let throttled = ground.proxy.on(Match::op("UpdateItem")).first(5).fault(Fault::Answer(Answer::throttled()));
    let error = leases.try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), leasehold::ErrorKind::Unavailable);
    assert_eq!(error.written(), leasehold::Written::No, "the service rejects before it writes");
    assert_eq!(leases.stats().owed, 0, "so nothing is owed");
    drop(soon("capacity comes back", leases.acquire("job")).await.unwrap());
    assert_eq!(throttled.happened(), 5);
}

#[tokio::test]
async fn a_store_that_is_away_for_longer_than_the_term_costs_the_lease_and_nothing_else() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let mut events = leases.events();
    let lease = leases.acquire("job").await.unwrap();
    let token = lease.token();
    let watching = tokio::spawn(last_held(lease.held()));
    ground.proxy.down();
    let lost = loss(soon("the loss", lease.held().lost()).await);
    assert!(!lease.held().is_held());
    assert_eq!(lost.reason(), &LostReason::Deadline);
    let cause = lost.cause().expect("the last failure").to_owned();
    assert!(cause.contains("connection") || cause.contains("no answer"), "{cause}");
    let last_held = soon("is_held is false", watching).await.unwrap();
    assert!(last_held < last_success(&ground, "job") + TTL, "held after a rival may think so");
    loop {
        match soon("the event", events.next()).await {
            Some(Event::Lost(told)) => break assert_eq!(told, lost),
            Some(_) => {}
            None => panic!("no loss was told"),
        }
    }
    drop(lease);

    ground.proxy.up();
    let again = soon("it is acquired again", leases.acquire("job")).await.unwrap();
    assert!(again.token() > token);
    assert!(again.held().is_held());
}
