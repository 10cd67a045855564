//! Whatever is paused, lost or set wrong, two owners never work at once (faults C1 to C10).
//!
//! The term is 30 s: a holder believes for 26.7 s after its last renewal, and a rival that only watches takes over
//! after 30.3 s.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Clock, Ended, ErrorKind, Event, Fence, Lease, Leases, LostReason, MemoryStore, Name, Record, Renewal,
    State, Status, Store, StoreErrorKind, Takeover, View,
};
use support::counting_sleeps::CountingSleeps;
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const WATCH: Duration = Duration::from_millis(30_300);
const TERM: Duration = Duration::from_millis(26_700);

fn client_on(store: &Scripted, clock: impl Clock) -> Leases {
    Leases::builder(store.clone()).ttl(TTL).clock(clock).build().unwrap()
}

/// A client on a machine of its own, with its own way to the store.
struct Machine {
    clock: TestClock,
    way: Scripted,
    leases: Leases,
}

impl Machine {
    fn new(store: &Scripted, clock: &TestClock, holder: &str, seed: u64) -> Self {
        let clock = clock.another(seed);
        let way = Scripted::new(store.inner().clone(), clock.clone());
        let leases = client(&way, &clock, holder);
        Self { clock, way, leases }
    }

    fn manual(store: &Scripted, clock: &TestClock, holder: &str, seed: u64) -> Self {
        let Self { clock, way, .. } = Self::new(store, clock, holder, seed);
        let builder = Leases::builder(way.clone()).holder(holder).ttl(TTL).renewal(Renewal::Manual);
        let leases = builder.clock(clock.clone()).build().unwrap();
        Self { clock, way, leases }
    }

    async fn acquire(&self) -> Lease {
        self.leases.acquire_within("job", 10 * TTL).await.unwrap()
    }

    fn writes(&self) -> [usize; 4] {
        [Verb::Claim, Verb::Renew, Verb::Release, Verb::Burn].map(|verb| self.way.count(verb))
    }
}

async fn view(store: &MemoryStore) -> View {
    store.read(&Name::new("job").unwrap()).await.unwrap().value
}

async fn record(store: &Scripted) -> Record {
    view(store.inner()).await.record.expect("there is a record")
}

async fn lost(lease: &Lease) -> LostReason {
    match timeout(10 * TTL, lease.held().lost()).await {
        Ok(Ended::Lost(lost)) => lost.reason().clone(),
        other => panic!("not lost: {other:?}"),
    }
}

// C1
#[tokio::test(start_paused = true)]
async fn a_holder_that_wakes_after_its_term_does_not_hold_before_any_request_and_the_fence_refuses_it() {
    let (store, clock) = table();
    // Nothing of a paused process runs: neither here, where only the caller would renew.
    let (a, b) = (Machine::manual(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
    let fence = Fence::new();
    let old = a.acquire().await;
    fence.raise(old.token()).unwrap();
    let sent = a.way.total();
    let new = b.acquire().await;
    fence.raise(new.token()).unwrap();
    assert!(!old.held().is_held());
    assert_eq!((old.held().remaining(), a.way.total()), (Duration::ZERO, sent), "it asked nobody");
    assert!(fence.admit(old.token()).is_err(), "the old holder's late write");
    assert!(fence.admit(new.token()).is_ok());
    assert_eq!(old.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(a.way.total(), sent, "a lost lease is not renewed");
}

// C1
#[tokio::test(start_paused = true)]
async fn a_holder_whose_machine_slept_does_not_hold_before_any_request() {
    let (store, clock) = table();
    let (a, b) = (Machine::new(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
    let old = a.acquire().await;
    a.clock.freeze();
    let sent = a.way.total();
    let new = b.acquire().await;
    let slept = Duration::from_nanos(b.clock.stamp().boot - a.clock.stamp().boot);
    assert_eq!(a.way.total(), sent, "it was asleep");
    a.clock.thaw();
    a.clock.suspend(slept);
    assert!(!old.held().is_held());
    assert_eq!(a.way.total(), sent, "it asked nobody");
    assert_eq!(lost(&old).await, LostReason::Deadline);
    assert!(new.held().is_held() && new.token() > old.token());
}

// C2
#[tokio::test(start_paused = true)]
async fn a_release_after_a_takeover_leaves_the_new_holder_alone() {
    let (store, clock) = table();
    let (a, b) = (Machine::new(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
    let old = a.acquire().await;
    let down = a.way.on(Verb::Renew).always().fault(Fault::Hang);
    let new = b.acquire().await;
    let before = record(&store).await;
    assert!(matches!(old.release().await.unwrap(), Ended::Lost(lost) if lost.reason() == &LostReason::Deadline));
    assert_eq!(record(&store).await, before);
    assert!(down.times() > 0);
    assert!(a.way.count(Verb::Release) <= 1, "one best effort");
    sleep(3 * TTL).await;
    assert!(new.held().is_held());
}

// C2
#[tokio::test(start_paused = true)]
async fn a_drop_and_a_shutdown_after_a_takeover_leave_the_new_holder_alone() {
    let (store, clock) = table();
    let (a, b) = (Machine::manual(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
    let old = a.acquire().await;
    let new = b.acquire().await;
    let before = record(&store).await;
    drop(old);
    a.leases.shutdown(SECOND).await.unwrap();
    assert_eq!(record(&store).await, before);
    assert!(new.held().is_held());
}

// C2
#[tokio::test(start_paused = true)]
async fn a_release_does_not_make_a_record_that_is_gone() {
    for drops in [false, true] {
        let (store, clock) = table();
        let a = Machine::new(&store, &clock, "a", 2);
        let lease = a.acquire().await;
        store.inner().delete("job");
        if drops {
            drop(lease);
            a.leases.flush().await;
        } else {
            lease.release().await.unwrap();
        }
        sleep(TTL).await;
        assert_eq!(a.writes(), [1, 0, 1, 0]);
        assert_eq!(view(store.inner()).await, View::absent());
    }
}

// C3
#[tokio::test(start_paused = true)]
async fn a_refused_contender_that_goes_away_writes_nothing() {
    let (store, clock) = table();
    let (a, b) = (Machine::new(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
    let lease = a.acquire().await;
    let before = record(&store).await;
    for _ in 0..3 {
        drop(b.leases.try_acquire("job").await.unwrap());
    }
    drop(timeout(2 * SECOND, b.leases.acquire("job")).await);
    b.leases.acquire_within("job", SECOND).await.unwrap_err();
    b.leases.flush().await;
    assert_eq!(b.leases.stats().owed, 0);
    b.leases.shutdown(SECOND).await.unwrap();
    assert_eq!(record(&store).await, before);
    let [claims, others @ ..] = b.writes();
    assert!(claims >= 3, "its claims were refused by the store");
    assert_eq!(others, [0, 0, 0]);
    assert!(lease.held().is_held());
}

// C4
#[tokio::test(start_paused = true)]
async fn a_record_without_an_end_is_only_taken_over_by_watching() {
    let (store, clock) = table();
    let dead = clock.another(2);
    let builder = Leases::builder(store.clone()).takeover(Takeover::ObservedOnly).renewal(Renewal::Manual);
    let a = builder.ttl(TTL).clock(dead).build().unwrap();
    let old = a.acquire("job").await.unwrap();
    assert_eq!(record(&store).await.expires_at_ms, None);
    sleep(10 * HOUR).await;
    let b = Machine::new(&store, &clock, "b", 3);
    assert_eq!(b.leases.inspect("job").await.unwrap().status, Status::NotKnownToHaveExpired);
    let begun = Instant::now();
    let Attempt::Held(by) = b.leases.try_acquire("job").await.unwrap() else { panic!("taken over") };
    assert_eq!((by.unchanged_for(), by.of()), (Duration::ZERO, Some(WATCH)));
    let new = b.acquire().await;
    assert!(begun.elapsed() >= WATCH && begun.elapsed() <= WATCH + 10 * MILLI, "{:?}", begun.elapsed());
    assert!(new.token() > old.token());
}

/// What an inspection answers to a method that it does not have. A method of its own would be called instead, and
/// this file would not compile.
trait HasNot {
    fn renew(&self) -> &'static str {
        "no such method"
    }
    fn release(&self) -> &'static str {
        "no such method"
    }
}

impl HasNot for leasehold::Inspection {}
impl HasNot for leasehold::Held {}

// C5
#[tokio::test(start_paused = true)]
async fn what_only_looks_at_a_lease_can_neither_renew_nor_release_it() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    let lease = a.acquire().await;
    let inspection = a.leases.inspect("job").await.unwrap();
    assert_eq!((inspection.renew(), inspection.release()), ("no such method", "no such method"));
    assert_eq!((lease.held().renew(), lease.held().release()), ("no such method", "no such method"));
    drop((inspection, lease.held()));
    sleep(MILLI).await;
    assert_eq!(a.writes(), [1, 0, 0, 0]);
}

// C6
#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_the_lease_is_lost_at_its_deadline_and_the_event_has_fired() {
    for fault in [Fault::Hang, Fault::LoseRequest, Fault::Fail(StoreErrorKind::Denied)] {
        let (store, clock) = table();
        let a = Machine::new(&store, &clock, "a", 2);
        let mut events = a.leases.events();
        let lease = a.acquire().await;
        let held = lease.held();
        let down = a.way.on(Verb::Renew).always().fault(fault);
        sleep(TERM - MILLI).await;
        assert!(held.is_held(), "{fault:?}: it is ours until the deadline");
        assert_eq!(held.remaining(), MILLI);
        sleep(MILLI).await;
        assert!(!held.is_held(), "{fault:?}");
        assert_eq!(held.remaining(), Duration::ZERO);
        assert!(down.times() > 0);
        let told = timeout(5 * MILLI, async {
            loop {
                match events.next().await.unwrap() {
                    Event::Lost(lost) => return lost,
                    Event::Acquired { .. } | Event::Jeopardy { .. } => {}
                    other => panic!("{fault:?}: {other:?}"),
                }
            }
        });
        assert_eq!(told.await.expect("the event has fired").reason(), &LostReason::Deadline);
        let tries = down.times();
        a.way.heal();
        sleep(2 * TTL).await;
        assert_eq!((down.times(), a.way.count(Verb::Renew)), (tries, tries), "{fault:?}: loss is final");
        assert!(!held.is_held());
    }
}

// C7
#[tokio::test(start_paused = true)]
async fn a_grant_whose_term_is_nearly_over_when_it_arrives_is_given_back() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    a.leases.inspect("other").await.unwrap();
    let late = a.way.on(Verb::Claim).fault(Fault::AnswerLate(4 * SECOND));
    let sleeper = a.clock.clone();
    tokio::spawn(async move {
        sleep(2 * SECOND).await;
        sleeper.suspend(15 * SECOND);
    });
    let lease = a.acquire().await;
    assert_eq!(late.times(), 1);
    // 26.7 s less the 19 s that the first grant took would have left less than two attempts of 5 s.
    assert_eq!(a.writes(), [2, 0, 1, 0], "given back by a release, and claimed anew");
    assert_eq!(lease.held().remaining(), TERM);
    assert_eq!(record(&store).await.token, lease.token().as_u64());
}

// C7
#[tokio::test(start_paused = true)]
async fn a_grant_that_was_computed_on_a_clock_that_stood_still_is_given_back() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    a.leases.inspect("other").await.unwrap();
    a.clock.freeze();
    sleep(10 * SECOND).await;
    let lease = a.acquire().await;
    a.clock.thaw();
    // The answer's date shows that the first claim's end was computed from a time that was over.
    assert_eq!(a.writes(), [2, 0, 1, 0], "given back, and claimed anew");
    let expires_at = record(&store).await.expires_at_ms.expect("it knows the store's time by now");
    let due = (store_ms(&clock) + 30_000)..=(store_ms(&clock) + 34_000);
    assert!(due.contains(&expires_at));
    assert!(lease.held().is_held());
}

fn store_ms(clock: &TestClock) -> u64 {
    clock.stamp().real / 1_000_000
}

// C7
#[tokio::test(start_paused = true)]
async fn a_grant_that_has_just_enough_left_is_not_given_back() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    a.leases.inspect("other").await.unwrap();
    let late = a.way.on(Verb::Claim).fault(Fault::AnswerLate(4 * SECOND));
    let sleeper = a.clock.clone();
    tokio::spawn(async move {
        sleep(2 * SECOND).await;
        // Two attempts and the margin are left of 29.7 s: 12.7 s have gone on top of the 4 s.
        sleeper.suspend(Duration::from_millis(12_690));
    });
    let lease = a.acquire().await;
    assert_eq!((late.times(), a.writes()), (1, [1, 0, 0, 0]));
    assert_eq!(lease.held().remaining(), Duration::from_millis(10_010));
}

// C7
#[tokio::test(start_paused = true)]
async fn a_try_whose_grants_all_come_too_late_fails_and_leaves_the_name_free() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    a.leases.inspect("other").await.unwrap();
    let late = a.way.on(Verb::Claim).always().fault(Fault::AnswerLate(4 * SECOND));
    let sleeper = a.clock.clone();
    let naps = tokio::spawn(async move {
        loop {
            sleep(3 * SECOND).await;
            sleeper.suspend(20 * SECOND);
        }
    });
    let error = a.leases.try_acquire("job").await.unwrap_err();
    naps.abort();
    assert_eq!((error.kind(), late.times()), (ErrorKind::Unavailable, 3));
    a.leases.flush().await;
    assert_eq!(a.writes(), [3, 0, 3, 0]);
    assert_eq!(record(&store).await.grant, None);
}

// C8, as far as a store without native leases can show it
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_deadline_does_not_revive_the_lease() {
    let (store, clock) = table();
    let a = Machine::manual(&store, &clock, "a", 2);
    let lease = a.acquire().await;
    let late = a.way.on(Verb::Renew).fault(Fault::AnswerLate(2 * SECOND));
    sleep(TERM - SECOND).await;
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((late.times(), a.writes()), (1, [1, 1, 0, 0]));
    assert!(record(&store).await.version == Some(2), "the store has accepted it");
    assert_eq!(lost(&lease).await, LostReason::Deadline);
    assert!(!lease.held().is_held());
}

/// What is wrong with a wall clock.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    AheadFromTheStart,
    BehindFromTheStart,
    JumpsForward,
    JumpsBack,
}

const WRONGS: [Wrong; 4] = [Wrong::AheadFromTheStart, Wrong::BehindFromTheStart, Wrong::JumpsForward, Wrong::JumpsBack];

impl Wrong {
    fn at_the_start(self, clock: &TestClock) {
        match self {
            Self::AheadFromTheStart => clock.set_wall_forward(HOUR),
            Self::BehindFromTheStart => clock.set_wall_back(HOUR),
            _ => {}
        }
    }

    fn later(self, clock: &TestClock) {
        match self {
            Self::JumpsForward => clock.set_wall_forward(HOUR),
            Self::JumpsBack => clock.set_wall_back(HOUR),
            _ => {}
        }
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn a_contender_with_a_wrong_wall_clock_takes_nothing_from_a_live_holder() {
    for wrong in WRONGS {
        let (store, clock) = table();
        let (a, b) = (Machine::new(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
        let lease = a.acquire().await;
        wrong.at_the_start(&b.clock);
        let waiter = tokio::spawn({
            let leases = b.leases.clone();
            async move { leases.acquire_within("job", 300 * SECOND).await }
        });
        sleep(45 * SECOND).await;
        wrong.later(&b.clock);
        for _ in 0..100 {
            assert!(b.leases.inspect("job").await.unwrap().status != Status::Expired, "{wrong:?}");
            assert!(lease.held().is_held(), "{wrong:?}");
            sleep(SECOND).await;
        }
        assert!(!waiter.is_finished(), "{wrong:?}");
        assert_eq!(record(&store).await.token, lease.token().as_u64());
        lease.release().await.unwrap();
        let next = timeout(2 * SECOND, waiter).await.expect("a free lease is taken within a poll").unwrap().unwrap();
        assert!(next.held().is_held(), "{wrong:?}");
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn a_contender_with_a_wrong_wall_clock_takes_over_from_a_dead_holder_neither_early_nor_late() {
    for wrong in WRONGS {
        let (store, clock) = table();
        let (a, b) = (Machine::new(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
        let old = a.acquire().await;
        let dead = a.way.on(Verb::Renew).always().fault(Fault::Hang);
        wrong.at_the_start(&b.clock);
        let begun = Instant::now();
        let contender = b.clock.clone();
        let waiter = tokio::spawn(async move { (b.acquire().await, b) });
        sleep(10 * SECOND).await;
        wrong.later(&contender);
        let (new, _b) = waiter.await.unwrap();
        let took = begun.elapsed();
        assert!(took >= TTL && took <= WATCH + 10 * MILLI, "{wrong:?}: {took:?}");
        assert!(!old.held().is_held() && new.held().is_held() && dead.times() > 0);
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn a_holder_with_a_wrong_wall_clock_holds_for_its_term_and_no_longer() {
    for wrong in [Wrong::AheadFromTheStart, Wrong::BehindFromTheStart, Wrong::JumpsBack] {
        let (store, clock) = table();
        let (a, b) = (Machine::manual(&store, &clock, "a", 2), Machine::new(&store, &clock, "b", 3));
        wrong.at_the_start(&a.clock);
        let lease = a.acquire().await;
        let waiter = tokio::spawn(async move { (b.acquire().await, b) });
        sleep(10 * SECOND).await;
        wrong.later(&a.clock);
        sleep(TERM - 10 * SECOND - MILLI).await;
        assert!(lease.held().is_held(), "{wrong:?}");
        sleep(MILLI).await;
        assert!(!lease.held().is_held(), "{wrong:?}");
        assert!(!waiter.is_finished(), "{wrong:?}");
        assert!(waiter.await.unwrap().0.token() > lease.token());
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn an_ntp_step_costs_a_fleet_a_renewal_each_and_no_lease() {
    for wrong in WRONGS {
        let (store, clock) = table();
        let a = Machine::new(&store, &clock, "a", 2);
        wrong.at_the_start(&a.clock);
        let mut leases = Vec::new();
        for number in 0..50 {
            leases.push(a.leases.acquire(format!("job {number}")).await.unwrap());
        }
        sleep(3 * TTL + SECOND / 2).await;
        a.way.forget_calls();
        wrong.later(&a.clock);
        // The longest sleep of the keeper: so soon it has noticed.
        sleep(SECOND + MILLI).await;
        let extra = a.way.count(Verb::Renew);
        match wrong {
            Wrong::JumpsForward => assert_eq!(extra, 50, "one each, at once"),
            _ => assert!(extra <= 10, "{wrong:?}: {extra}: no more than in any second"),
        }
        for lease in &leases {
            assert!(lease.held().is_held() && lease.held().state() == State::Held, "{wrong:?}");
        }
        sleep(3 * TTL).await;
        assert!(leases.iter().all(|lease| lease.held().is_held()), "{wrong:?}");
        assert_eq!(a.leases.stats().lost.values().sum::<u64>(), 0);
        assert!((450..=550).contains(&a.way.count(Verb::Renew)), "{wrong:?}: every 10 s each");
    }
}

// C9
#[tokio::test(start_paused = true)]
async fn a_step_forward_makes_a_lease_uncertain_until_a_renewal_that_left_after_it() {
    let (store, clock) = table();
    let a = Machine::manual(&store, &clock, "a", 2);
    let lease = a.acquire().await;
    sleep(5 * SECOND).await;
    a.clock.set_wall_forward(HOUR);
    assert!(!lease.held().is_held());
    assert_eq!(lease.held().state(), State::Jeopardy);
    lease.renew().await.unwrap();
    assert!(lease.held().is_held());
    assert_eq!(a.writes(), [1, 1, 0, 0]);
    // It could not say when its term ends on the store's clock, and must not leave the old end there.
    assert_eq!(record(&store).await.expires_at_ms, None);
    a.clock.set_wall_back(HOUR);
    sleep(TERM - MILLI).await;
    assert!(lease.held().is_held(), "the step back is ignored");
    sleep(MILLI).await;
    assert!(!lease.held().is_held());
}

// C9
#[tokio::test(start_paused = true)]
async fn a_step_that_no_renewal_disproves_is_a_loss_at_the_deadline() {
    let (store, clock) = table();
    let a = Machine::new(&store, &clock, "a", 2);
    let lease = a.acquire().await;
    let begun = Instant::now();
    let down = a.way.on(Verb::Renew).always().fault(Fault::LoseRequest);
    sleep(2 * SECOND).await;
    a.clock.set_wall_forward(HOUR);
    assert!(!lease.held().is_held());
    assert_eq!(lost(&lease).await, LostReason::ClockSuspect);
    assert!(begun.elapsed() >= TERM && begun.elapsed() <= TERM + 2 * MILLI, "{:?}", begun.elapsed());
    assert!((5..=40).contains(&down.times()), "{}: it tries with pauses", down.times());
}

// C9
#[tokio::test(start_paused = true)]
async fn a_client_that_doubts_its_clock_does_not_spin() {
    let (store, clock) = table();
    let (machine, sleeps) = (clock.another(2), Arc::new(AtomicUsize::new(0)));
    let leases = client_on(&store, CountingSleeps(machine.clone(), Arc::clone(&sleeps)));
    let lease = leases.acquire("job").await.unwrap();
    let (held, watching) = (lease.held(), lease.held());
    let watcher = tokio::spawn(async move { held.lost().await });
    let down = store.on(Verb::Renew).always().fault(Fault::Hang);
    sleep(2 * SECOND).await;
    machine.set_wall_forward(HOUR);
    sleep(SECOND).await;
    let before = sleeps.load(Ordering::Relaxed);
    sleep(20 * SECOND).await;
    assert_eq!(watching.state(), State::Jeopardy);
    let per_second = (sleeps.load(Ordering::Relaxed) - before) / 20;
    assert!(per_second <= 10, "{per_second} sleeps a second");
    assert!(down.times() > 0 && !watcher.is_finished());
}

// C10
#[tokio::test(start_paused = true)]
async fn a_second_client_with_the_same_label_is_a_rival_like_any_other() {
    let (store, clock) = table();
    let (a, b) = (Machine::new(&store, &clock, "same", 2), Machine::new(&store, &clock, "same", 3));
    let lease = a.acquire().await;
    let attempt = b.leases.try_acquire("job").await.unwrap();
    assert!(matches!(attempt, Attempt::Held(by) if by.holder() == Some("same")));
    let error = b.leases.acquire_within("job", 2 * TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    b.leases.shutdown(SECOND).await.unwrap();
    assert_eq!(b.writes()[1..], [0, 0, 0], "it neither renews nor ends the other's lease");
    assert!(lease.held().is_held());
    assert_eq!(record(&store).await.token, lease.token().as_u64());
}
