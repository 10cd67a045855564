//! A holder that is dead or stuck is replaced in time, and one that is alive is left alone (faults A1 to A7).
//!
//! The term is 30 s: a holder believes for 26.7 s after its last renewal, and a rival that only watches takes over
//! after 30.3 s.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Clock, Ended, ErrorKind, Event, Held, Lease, Leases, LostReason, MemoryStore, Renewal, Stamp, Status,
    Takeover,
};
use support::scripted::{Fault, Happened, Scripted, TTL, Verb};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
/// For so long a rival must have watched a write.
const WATCH: Duration = Duration::from_millis(30_300);

/// A store, and who judges there.
#[derive(Clone, Copy, Debug)]
enum World {
    /// A table: clients judge, by the store's time or by watching.
    StoreTime,
    /// The same table, with clients that only watch.
    ObservedOnly,
    /// A store without a time of its own.
    NoStoreTime,
}

const WORLDS: [World; 3] = [World::StoreTime, World::ObservedOnly, World::NoStoreTime];

/// One store, and every client with its own way to it: what fails on one does not fail on the other.
struct Setup {
    world: World,
    store: MemoryStore,
    clock: TestClock,
}

impl Setup {
    fn new(world: World) -> Self {
        let clock = TestClock::new();
        let store = match world {
            World::NoStoreTime => MemoryStore::judged_by_clients(clock.another(99)),
            _ => MemoryStore::like_a_table(clock.another(99)),
        };
        Self { world, store, clock }
    }

    /// A client on a machine of its own.
    fn client(&self, holder: &str, seed: u64, renewal: Renewal) -> (Scripted, Leases) {
        let clock = self.clock.another(seed);
        let way = Scripted::new(self.store.clone(), clock.clone());
        let takeover = match self.world {
            World::ObservedOnly => Takeover::ObservedOnly,
            _ => Takeover::StoreTime,
        };
        let builder = Leases::builder(way.clone()).holder(holder).ttl(TTL).takeover(takeover).renewal(renewal);
        // A margin of 1 s, so that a renewal at nine tenths of the term is still in time.
        (way, builder.margin(SECOND).clock(clock).build().unwrap())
    }

    /// So long after the holder's last renewal nobody may have taken over.
    fn earliest(&self) -> Duration {
        match self.world {
            World::StoreTime => TTL,
            _ => WATCH,
        }
    }

    fn now(&self) -> Stamp {
        self.clock.stamp()
    }

    fn since(&self, earlier: &Stamp) -> Duration {
        Duration::from_nanos(self.now().steady_since(earlier))
    }
}

/// A holder that renewed for 25 s and was then killed: nothing of it reaches the store any more.
struct Dead {
    lease: Lease,
    last_renewal: Stamp,
    hung: Happened,
    _client: Leases,
}

/// It holds and renews.
struct Alive {
    way: Scripted,
    leases: Leases,
    lease: Lease,
}

async fn a_holder(setup: &Setup) -> Alive {
    let (way, leases) = setup.client("a", 2, Renewal::Task);
    let lease = leases.acquire("job").await.unwrap();
    Alive { way, leases, lease }
}

async fn a_holder_that_dies(setup: &Setup) -> Dead {
    a_holder(setup).await.dies().await
}

impl Alive {
    async fn dies(self) -> Dead {
        sleep(25 * SECOND).await;
        let hung = self.way.on(Verb::Renew).always().fault(Fault::Hang);
        let renewals: Vec<_> = self.way.calls().into_iter().filter(|call| call.verb == Verb::Renew).collect();
        let last_renewal = renewals.last().expect("it has renewed").at;
        Dead { lease: self.lease, last_renewal, hung, _client: self.leases }
    }
}

impl Dead {
    /// The fault has happened, the holder knows that its lease is over, and the new token is above its own.
    fn was_replaced_by(&self, lease: &Lease) {
        assert!(self.hung.times() > 0, "the holder has not tried to renew: void");
        assert!(!self.lease.held().is_held());
        assert!(lease.token() > self.lease.token());
    }
}

/// Waits for it, and not for ever.
async fn soon(leases: &Leases) -> Lease {
    leases.acquire_within("job", 10 * TTL).await.unwrap()
}

/// Tries once a second until it is acquired.
async fn try_every_second(leases: &Leases) -> Lease {
    for _ in 0..100 {
        if let Some(lease) = leases.try_acquire("job").await.unwrap().acquired() {
            return lease;
        }
        sleep(SECOND).await;
    }
    panic!("never acquired");
}

// A1
#[tokio::test(start_paused = true)]
async fn a_process_that_tries_every_second_wins_within_the_term_and_two_of_its_periods() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let holder = a_holder(&setup).await;
        let (_, b) = setup.client("b", 3, Renewal::Task);
        let trying = tokio::spawn(async move { (try_every_second(&b).await, b) });
        let dead = holder.dies().await;
        assert!(!trying.is_finished(), "a live holder was replaced");
        let (lease, _b) = trying.await.unwrap();
        let took = setup.since(&dead.last_renewal);
        assert!(took >= setup.earliest() && took <= WATCH + 2 * SECOND, "{world:?}: {took:?}");
        dead.was_replaced_by(&lease);
    }
}

// A1
#[tokio::test(start_paused = true)]
async fn each_try_on_a_dead_holder_is_one_request_and_the_winning_one_two() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let dead = a_holder_that_dies(&setup).await;
        let (way, b) = setup.client("b", 3, Renewal::Task);
        let (mut tries, mut before) = (0, 0);
        let lease = loop {
            before += 1;
            if let Some(lease) = b.try_acquire("job").await.unwrap().acquired() {
                break lease;
            }
            tries += 1;
            assert!(tries < 100, "{world:?}: never acquired");
            assert_eq!(way.total(), before, "{world:?}: a try that is told Held");
            sleep(SECOND).await;
        };
        let took = setup.since(&dead.last_renewal);
        assert!(took >= setup.earliest() && tries <= 31, "{world:?}: {took:?}, {tries} tries");
        assert_eq!(way.total(), tries + 2, "{world:?}: the one that wins");
        assert_eq!((way.count(Verb::Release), way.count(Verb::Burn)), (0, 0));
        dead.was_replaced_by(&lease);
    }
}

// A1
#[tokio::test(start_paused = true)]
async fn a_waiter_takes_over_at_the_end_of_its_count() {
    for world in [World::ObservedOnly, World::NoStoreTime] {
        let setup = Setup::new(world);
        let dead = a_holder_that_dies(&setup).await;
        let (_, b) = setup.client("b", 3, Renewal::Task);
        let begun = setup.now();
        let lease = soon(&b).await;
        let took = setup.since(&begun);
        assert!(took >= WATCH && took < WATCH + Duration::from_millis(10), "{world:?}: {took:?}");
        dead.was_replaced_by(&lease);
    }
}

// A1, A2
#[tokio::test(start_paused = true)]
async fn a_waiter_that_comes_late_takes_over_by_the_stores_time_without_watching_a_term() {
    let setup = Setup::new(World::StoreTime);
    let dead = a_holder_that_dies(&setup).await;
    sleep((TTL - 5 * SECOND).saturating_sub(setup.since(&dead.last_renewal))).await;
    let (_, b) = setup.client("b", 3, Renewal::Task);
    let lease = soon(&b).await;
    let took = setup.since(&dead.last_renewal);
    assert!(took >= TTL && took <= TTL + 5 * SECOND, "{took:?} after the last renewal");
    dead.was_replaced_by(&lease);
}

// A2
#[tokio::test(start_paused = true)]
async fn a_new_process_wins_in_two_requests_by_the_stores_time_and_else_says_what_it_has_seen() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let dead = a_holder_that_dies(&setup).await;
        sleep(TTL.saturating_sub(setup.since(&dead.last_renewal))).await;
        let (early, too_early) = setup.client("b", 3, Renewal::Manual);
        let attempt = too_early.try_acquire("job").await.unwrap();
        assert!(matches!(attempt, Attempt::Held(_)), "{world:?}: a term after the last renewal");
        assert_eq!(early.total(), 1);
        sleep(5 * SECOND).await;
        let (way, fresh) = setup.client("b", 4, Renewal::Manual);
        match (world, fresh.try_acquire("job").await.unwrap()) {
            (World::StoreTime, Attempt::Acquired(lease)) => {
                assert_eq!(way.total(), 2);
                dead.was_replaced_by(&lease);
            }
            (World::ObservedOnly | World::NoStoreTime, Attempt::Held(by)) => {
                assert_eq!(way.total(), 1, "{world:?}");
                assert_eq!((by.unchanged_for(), by.of()), (Duration::ZERO, Some(WATCH)));
                assert_eq!((by.holder(), by.token()), (Some("a"), Some(dead.lease.token())));
            }
            (_, other) => panic!("{world:?}: {other:?}"),
        }
    }
}

// A2
#[tokio::test(start_paused = true)]
async fn a_process_that_tries_again_is_told_how_long_it_has_watched() {
    let setup = Setup::new(World::ObservedOnly);
    let _dead = a_holder_that_dies(&setup).await;
    let (_, b) = setup.client("b", 3, Renewal::Manual);
    for seconds in [0, 7, 21] {
        let Attempt::Held(by) = b.try_acquire("job").await.unwrap() else { panic!("not held") };
        assert_eq!(by.unchanged_for().as_secs(), seconds);
        assert_eq!(by.of(), Some(WATCH));
        sleep(if seconds == 0 { 7 * SECOND } else { 14 * SECOND }).await;
    }
}

// A3
#[tokio::test(start_paused = true)]
async fn a_try_on_a_held_lease_is_answered_after_one_request_and_never_sleeps() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let (_, a) = setup.client("a", 2, Renewal::Task);
        let lease = a.acquire("job").await.unwrap();
        let (way, b) = setup.client("b", 3, Renewal::Task);
        for tries in 1..=200 {
            let before = setup.now();
            let Attempt::Held(by) = b.try_acquire("job").await.unwrap() else { panic!("{world:?}: taken over") };
            assert_eq!(setup.since(&before), Duration::ZERO, "{world:?}: it slept");
            assert_eq!(way.total(), tries, "{world:?}");
            assert_eq!((by.holder(), by.token()), (Some("a"), Some(lease.token())));
            assert!(by.unchanged_for() <= 12 * SECOND, "{world:?}: the count goes on over a renewal");
            sleep(SECOND).await;
        }
        assert!(lease.held().is_held());
    }
}

// A4
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_up_names_the_holder_its_token_and_how_far_it_has_watched() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let dead = a_holder_that_dies(&setup).await;
        let (way, b) = setup.client("b", 3, Renewal::Task);
        let begun = setup.now();
        let error = b.acquire_within("job", 12 * SECOND).await.unwrap_err();
        assert_eq!(setup.since(&begun), 12 * SECOND, "{world:?}");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let by = error.held_by().expect("it has seen the holder");
        assert_eq!((by.holder(), by.token()), (Some("a"), Some(dead.lease.token())));
        assert_eq!((by.unchanged_for(), by.of()), (12 * SECOND, Some(WATCH)), "{world:?}");
        let said = format!("held by a with token {}, seen unchanged for 12.0 s of 30.3 s", dead.lease.token());
        assert!(error.to_string().contains(&said), "{error}");
        assert_eq!((way.count(Verb::Burn), way.count(Verb::Release)), (0, 0), "it owes nothing");
        assert!(dead.hung.times() > 0);
    }
}

// A4
#[tokio::test(start_paused = true)]
async fn a_waiter_that_comes_again_goes_on_counting() {
    for world in [World::ObservedOnly, World::NoStoreTime] {
        let setup = Setup::new(world);
        let dead = a_holder_that_dies(&setup).await;
        let (_, b) = setup.client("b", 3, Renewal::Task);
        let begun = setup.now();
        b.acquire_within("job", 12 * SECOND).await.unwrap_err();
        b.acquire_within("job", 12 * SECOND).await.unwrap_err();
        let lease = b.acquire_within("job", 12 * SECOND).await.unwrap();
        let took = setup.since(&begun);
        assert!(took >= WATCH && took < WATCH + Duration::from_millis(10), "{world:?}: {took:?}");
        dead.was_replaced_by(&lease);
    }
}

// A5
#[tokio::test(start_paused = true)]
async fn a_waiter_counts_again_from_a_renewal_at_nine_tenths_of_the_term() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let (_, a) = setup.client("a", 2, Renewal::Manual);
        let lease = a.acquire("job").await.unwrap();
        let (_, b) = setup.client("b", 3, Renewal::Task);
        let waiter = tokio::spawn(async move { (soon(&b).await, b) });
        sleep(27 * SECOND).await;
        lease.renew().await.unwrap();
        let renewed = setup.now();
        let (taken, _b) = waiter.await.unwrap();
        let took = setup.since(&renewed);
        // It sees the new write at its next poll, a second later at the most.
        let latest = WATCH + SECOND + Duration::from_millis(10);
        assert!(took >= setup.earliest() && took <= latest, "{world:?}: {took:?}");
        assert!(!lease.held().is_held() && taken.token() > lease.token());
    }
}

// A7
#[tokio::test(start_paused = true)]
async fn a_revocation_with_another_token_changes_nothing() {
    let setup = Setup::new(World::StoreTime);
    let (way, a) = setup.client("a", 2, Renewal::Task);
    let old = a.acquire("job").await.unwrap();
    let old_token = old.token();
    old.release().await.unwrap();
    let lease = a.acquire("job").await.unwrap();
    let (_, operator) = setup.client("operator", 3, Renewal::Manual);
    let error = operator.revoke("job", old_token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(operator.force("job", old_token).await.unwrap_err().kind(), ErrorKind::Refused);
    assert!(!operator.inspect("job").await.unwrap().revoked);
    let renewed = way.count(Verb::Renew);
    sleep(3 * TTL).await;
    assert!(lease.held().is_held() && way.count(Verb::Renew) >= renewed + 8);
}

// A7
#[tokio::test(start_paused = true)]
async fn a_revoked_holder_learns_it_at_its_next_renewal_and_the_next_token_is_higher() {
    for world in WORLDS {
        let setup = Setup::new(world);
        let (way, a) = setup.client("a", 2, Renewal::Task);
        let mut events = a.events();
        let lease = a.acquire("job").await.unwrap();
        let (_, operator) = setup.client("operator", 3, Renewal::Manual);
        sleep(12 * SECOND).await;
        let revoked = setup.now();
        operator.revoke("job", lease.token()).await.unwrap();
        assert_eq!(reason(lease.held()).await, LostReason::Revoked, "{world:?}");
        assert!(setup.since(&revoked) <= 10 * SECOND, "{world:?}: at the next renewal");
        assert!(matches!(events.next().await, Some(Event::Acquired { .. })));
        assert!(matches!(events.next().await, Some(Event::Lost(lost)) if lost.reason() == &LostReason::Revoked));
        let token = lease.token();
        way.forget_calls();
        assert!(matches!(lease.release().await.unwrap(), Ended::Lost(lost) if lost.reason() == &LostReason::Revoked));
        sleep(SECOND).await;
        assert_eq!(way.total(), 0, "{world:?}: a revoked lease is neither renewed nor released");
        let (_, b) = setup.client("b", 4, Renewal::Task);
        let taken = soon(&b).await;
        assert!(setup.since(&revoked) >= Duration::from_millis(26_700), "{world:?}: not before the term is over");
        assert!(taken.token() > token);
    }
}

// A7
#[tokio::test(start_paused = true)]
async fn a_forced_lease_is_free_at_once_and_its_holder_learns_it_was_revoked() {
    let setup = Setup::new(World::StoreTime);
    let (_, a) = setup.client("a", 2, Renewal::Task);
    let lease = a.acquire("job").await.unwrap();
    let (_, operator) = setup.client("operator", 3, Renewal::Manual);
    operator.force("job", lease.token()).await.unwrap();
    assert_eq!(operator.inspect("job").await.unwrap().status, Status::Free);
    assert_eq!(reason(lease.held()).await, LostReason::Revoked);
    let taken = operator.try_acquire("job").await.unwrap().acquired().expect("it is free");
    assert!(taken.token() > lease.token());
}

// A7, with an answer that was lost
#[tokio::test(start_paused = true)]
async fn a_revocation_whose_answer_was_lost_is_a_success_also_when_somebody_has_come_after() {
    for (force, others_come) in [(false, false), (true, false), (true, true)] {
        let setup = Setup::new(World::StoreTime);
        let (_, a) = setup.client("a", 2, Renewal::Task);
        let lease = a.acquire("job").await.unwrap();
        let (_, b) = setup.client("b", 4, Renewal::Task);
        let waiter = others_come.then(|| tokio::spawn(async move { soon(&b).await }));
        let (way, operator) = setup.client("operator", 3, Renewal::Manual);
        let late = way.on(Verb::Revoke).fault(Fault::AnswerLate(60 * SECOND));
        match force {
            true => operator.force("job", lease.token()).await.unwrap(),
            false => operator.revoke("job", lease.token()).await.unwrap(),
        }
        assert_eq!((late.times(), way.count(Verb::Revoke)), (1, 2));
        match waiter {
            Some(waiter) => assert!(waiter.await.unwrap().token() > lease.token()),
            None => assert!(operator.inspect("job").await.unwrap().revoked),
        }
        let reason = reason(lease.held()).await;
        assert!(matches!(reason, LostReason::Revoked | LostReason::Taken { .. }), "{reason:?}");
    }
}

async fn reason(held: Held) -> LostReason {
    match timeout(10 * TTL, held.lost()).await {
        Ok(Ended::Lost(lost)) => lost.reason().clone(),
        other => panic!("not lost: {other:?}"),
    }
}
