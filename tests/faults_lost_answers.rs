//! An answer that was lost costs a request, never a lease, and locks nobody out (faults B1 to B7).
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Claim, Claimed, Clock, Ended, Error, ErrorKind, Event, Events, Expect, Grant, Lease, Leases, LostReason,
    MemoryStore, Name, Record, Renewal, Status, Store, StoreErrorKind, Vacate, Written,
};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const WATCH: Duration = Duration::from_millis(30_300);
/// A holder believes for so long after the first send of its newest body known to be stored.
const TERM: Duration = Duration::from_millis(26_700);

/// All that loses an answer after the request was applied.
const LOST: [Fault; 3] = [
    Fault::LoseAnswer,
    Fault::FailAfterApplying(StoreErrorKind::Unavailable),
    Fault::FailAfterApplying(StoreErrorKind::Throttled),
];

async fn record(store: &MemoryStore) -> Record {
    let name = Name::new("job").unwrap();
    store.read(&name).await.unwrap().value.record.expect("there is a record")
}

/// A client that knows the store's time, with its own way to the store.
async fn ready(store: &MemoryStore, clock: &TestClock, holder: &str, seed: u64) -> (Scripted, Leases) {
    let clock = clock.another(seed);
    let way = Scripted::new(store.clone(), clock.clone());
    let leases = client(&way, &clock, holder);
    leases.inspect("other").await.unwrap();
    way.forget_calls();
    (way, leases)
}

fn writes(way: &Scripted) -> [usize; 4] {
    [Verb::Claim, Verb::Renew, Verb::Release, Verb::Burn].map(|verb| way.count(verb))
}

/// What was told so far.
async fn told(events: &mut Events) -> Vec<&'static str> {
    let mut told = Vec::new();
    while let Ok(Some(event)) = timeout(MILLI, events.next()).await {
        told.push(match event {
            Event::Acquired { .. } => "acquired",
            Event::Jeopardy { .. } => "jeopardy",
            Event::Recovered { .. } => "recovered",
            Event::Lost(_) => "lost",
            Event::Released { .. } => "released",
            _ => "other",
        });
    }
    told
}

// B1
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_gives_its_lease_with_one_more_request() {
    for fault in LOST {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let lost = way.on(Verb::Claim).fault(fault);
        let begun = Instant::now();
        let lease = a.try_acquire("job").await.unwrap().acquired().expect("nobody else wants it");
        assert_eq!(lost.times(), 1);
        assert_eq!((way.total(), way.count(Verb::Claim)), (2, 2), "{fault:?}");
        assert_eq!(begun.elapsed(), Duration::ZERO, "{fault:?}: the first lost answer is asked for at once");
        assert_eq!(record(store.inner()).await.token, lease.token().as_u64());
        sleep(3 * TTL).await;
        assert!(lease.held().is_held());
        assert_eq!(way.count(Verb::Burn), 0, "nothing is owed");
    }
}

// B1
#[tokio::test(start_paused = true)]
async fn the_term_of_a_claim_that_was_repeated_counts_from_its_first_send() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let late = way.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
    let begun = Instant::now();
    let lease = a.acquire("job").await.unwrap();
    assert_eq!((late.times(), way.total()), (1, 2));
    assert_eq!(begun.elapsed(), 5 * SECOND, "one attempt");
    assert_eq!(lease.held().remaining(), TERM - 5 * SECOND);
}

// B1
#[tokio::test(start_paused = true)]
async fn a_takeover_and_a_resume_whose_answers_were_lost_give_their_leases() {
    let (store, clock) = table();
    let (_, a) = ready(store.inner(), &clock, "a", 2).await;
    let (way, b) = ready(store.inner(), &clock, "b", 3).await;
    let rival = store.inner().take_over("job").unwrap();
    let lost = way.on(Verb::Claim).after(1).times(1).fault(Fault::LoseAnswer);
    let lease = b.acquire("job").await.unwrap();
    assert_eq!((lost.times(), way.count(Verb::Claim)), (1, 3), "refused, lost, repeated");
    assert!(lease.token() > rival);
    let token = lease.token();
    let handover = lease.into_handover().await.unwrap();
    let lost = way.on(Verb::Claim).fault(Fault::LoseAnswer);
    way.forget_calls();
    let lease = b.resume(handover).await.unwrap();
    assert_eq!((lost.times(), way.count(Verb::Claim)), (1, 2));
    assert!(lease.token() > token);
    assert_eq!(record(store.inner()).await.token, lease.token().as_u64());
    assert!(a.try_acquire("job").await.unwrap().acquired().is_none());
}

// B2
#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_no_loss_and_reads_nothing() {
    for fault in LOST {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let mut events = a.events();
        let lease = a.acquire("job").await.unwrap();
        let lost = way.on(Verb::Renew).after(1).fault(fault);
        for _ in 0..600 {
            sleep(SECOND / 10).await;
            assert!(lease.held().is_held(), "{fault:?}");
        }
        assert_eq!(lost.times(), 1);
        assert_eq!(told(&mut events).await, ["acquired", "jeopardy", "recovered"], "{fault:?}");
        let [claims, renewals, ..] = writes(&way);
        assert_eq!((claims, way.count(Verb::Read)), (1, 0), "{fault:?}");
        assert!((7..=8).contains(&renewals), "{fault:?}: {renewals}: one more than without the fault");
        let version = record(store.inner()).await.version;
        assert_eq!(version, Some(1 + renewals as u64), "every try is a new body");
    }
}

// B2
#[tokio::test(start_paused = true)]
async fn renewals_of_which_no_answer_comes_do_not_count() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let lease = a.acquire("job").await.unwrap();
    let lost = way.on(Verb::Renew).always().fault(Fault::LoseAnswer);
    let begun = Instant::now();
    let Ok(Ended::Lost(loss)) = timeout(2 * TTL, lease.held().lost()).await else { panic!("not lost") };
    assert_eq!(loss.reason(), &LostReason::Deadline);
    assert!(begun.elapsed() >= TERM && begun.elapsed() <= TERM + 2 * MILLI, "{:?}", begun.elapsed());
    assert!(lost.times() > 3 && loss.cause().is_some());
}

// B3
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_is_a_success_once() {
    for fault in LOST {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let mut events = a.events();
        let lease = a.acquire("job").await.unwrap();
        let lost = way.on(Verb::Release).fault(fault);
        assert_eq!(lease.release().await.unwrap(), Ended::Released);
        assert_eq!(lost.times(), 1);
        sleep(TTL).await;
        assert_eq!(writes(&way), [1, 0, 2, 0], "{fault:?}: sent once more, told \"not mine\"");
        assert_eq!(told(&mut events).await, ["acquired", "released"]);
        assert_eq!(a.stats().owed, 0);
    }
}

// B3
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_leaves_the_next_holder_alone() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let (_, b) = ready(store.inner(), &clock, "b", 3).await;
    let lease = a.acquire("job").await.unwrap();
    let lost = way.on(Verb::Release).fault(Fault::AnswerLate(60 * SECOND));
    let release = tokio::spawn(lease.release());
    sleep(SECOND).await;
    let next = b.try_acquire("job").await.unwrap().acquired().expect("it was released");
    let before = record(store.inner()).await;
    assert_eq!(release.await.unwrap().unwrap(), Ended::Released);
    assert_eq!((lost.times(), way.count(Verb::Release)), (1, 2));
    assert_eq!(record(store.inner()).await, before);
    sleep(2 * TTL).await;
    assert!(next.held().is_held());
}

// B3
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_makes_no_record_that_was_deleted() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let lease = a.acquire("job").await.unwrap();
    let lost = way.on(Verb::Release).fault(Fault::AnswerLate(60 * SECOND));
    let release = tokio::spawn(lease.release());
    sleep(SECOND).await;
    store.inner().delete("job");
    assert_eq!(release.await.unwrap().unwrap(), Ended::Released);
    assert_eq!((lost.times(), way.count(Verb::Release)), (1, 2));
    assert_eq!(a.inspect("job").await.unwrap().token, None);
}

// B3
#[tokio::test(start_paused = true)]
async fn the_works_own_result_is_what_the_caller_sees_whatever_becomes_of_the_release() {
    for fault in [Fault::LoseAnswer, Fault::Hang, Fault::Fail(StoreErrorKind::Denied)] {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let failed = way.on(Verb::Release).times(20).fault(fault);
        let lease = a.acquire("job").await.unwrap();
        let output: Result<u32, Error> = lease.run(|_held| async { Ok(7) }).await;
        assert_eq!(output.unwrap(), 7, "{fault:?}");
        assert!(failed.times() > 0);
    }
}

// B4
#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_dropped_at_any_moment_locks_nobody_out() {
    // Each request takes 100 ms there and 100 ms back: read, claim, then the lease is dropped with the future.
    for at in (0..50).map(|step| step * 10) {
        let (store, clock) = table();
        let machine = clock.another(2);
        let way = Scripted::new(store.inner().clone(), machine.clone());
        let a = client(&way, &machine, "a");
        let (_, b) = ready(store.inner(), &clock, "b", 3).await;
        let slow = [Verb::Read, Verb::Claim, Verb::Burn, Verb::Release]
            .map(|verb| way.on(verb).always().fault(Fault::AnswerLate(200 * MILLI)));
        drop(timeout(Duration::from_millis(at), a.acquire("job")).await);
        let dropped = Instant::now();
        sleep(MILLI).await;
        let attempt = b.try_acquire("job").await.unwrap();
        assert!(matches!(attempt, Attempt::Acquired(_)), "dropped at {at} ms: the clean-up is one request");
        a.flush().await;
        assert!(dropped.elapsed() <= 201 * MILLI, "at {at} ms: {:?}", dropped.elapsed());
        assert!(slow[0].times() == 1, "void");
        let [claims, _, releases, burns] = writes(&way);
        assert_eq!((claims, burns, releases), expected_requests(at), "at {at} ms");
    }
}

/// Claims, burns and releases of an acquire that was dropped after so many milliseconds.
fn expected_requests(at: u64) -> (usize, usize, usize) {
    match at {
        0..200 => (0, 0, 0),
        200..400 => (1, 1, 0),
        _ => (1, 0, 1),
    }
}

// B4
#[tokio::test(start_paused = true)]
async fn an_acquire_that_times_out_on_its_claim_says_so_and_is_cleaned_up() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let (_, b) = ready(store.inner(), &clock, "b", 3).await;
    let late = way.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
    let begun = Instant::now();
    let error = a.acquire_within("job", 2 * SECOND).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::TimedOut, Written::Unknown));
    assert_eq!((begun.elapsed(), late.times()), (2 * SECOND, 1));
    a.flush().await;
    assert_eq!(writes(&way), [1, 0, 0, 1]);
    assert!(b.try_acquire("job").await.unwrap().acquired().is_some());
}

// B4
#[tokio::test(start_paused = true)]
async fn a_clean_up_that_overtakes_its_claim_keeps_it_out_for_good() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let travels = way.on(Verb::Claim).fault(Fault::ApplyLate(8 * SECOND));
    let hangs = way.on(Verb::Claim).fault(Fault::Hang);
    drop(timeout(SECOND, a.acquire("job")).await);
    a.flush().await;
    assert_eq!((travels.times(), hangs.times()), (1, 1));
    assert_eq!(writes(&way), [2, 0, 0, 1]);
    let burnt = record(store.inner()).await;
    assert!(burnt.token > 0 && burnt.grant.is_none(), "the burn leaves the claim's token on a record that is free");
    sleep(10 * SECOND).await;
    assert_eq!(record(store.inner()).await, burnt, "the late claim was refused");
    let (_, b) = ready(store.inner(), &clock, "b", 3).await;
    let lease = b.try_acquire("job").await.unwrap().acquired().expect("it is free");
    assert!(lease.token().as_u64() > burnt.token);
}

/// A rival whose token is lower than any that a client with a store's time would propose.
async fn rival(store: &MemoryStore, grant: Grant) {
    let claim = Claim {
        name: Name::new("job").unwrap(),
        token: 1,
        grant,
        ttl_ms: 30_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    };
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
}

async fn rival_releases(store: &MemoryStore, grant: Grant) {
    let name = Name::new("job").unwrap();
    let release = Vacate { name, token: 1, grant, burn: false, close: None, now_ms: None };
    store.vacate(&release).await.unwrap();
}

// B4
#[tokio::test(start_paused = true)]
async fn a_claim_that_still_travels_when_its_second_copy_is_refused_is_cleaned_up() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let travels = way.on(Verb::Claim).fault(Fault::ApplyLate(8 * SECOND));
    let lost = way.on(Verb::Claim).fault(Fault::LoseRequest);
    let trying = tokio::spawn(async move { (a.try_acquire("job").await, a) });
    sleep(100 * MILLI).await;
    let grant = Grant::from_bits(7);
    rival(store.inner(), grant).await;
    let (attempt, a) = trying.await.unwrap();
    assert!(matches!(attempt.unwrap(), Attempt::Held(_)));
    assert_eq!((travels.times(), lost.times(), way.count(Verb::Claim)), (1, 1, 3));
    assert_eq!(a.stats().owed, 1, "the first copy may still land");
    assert_eq!(record(store.inner()).await.grant, Some(grant), "the clean-up leaves the rival alone");
    sleep(SECOND).await;
    rival_releases(store.inner(), grant).await;
    let released = Instant::now();
    timeout(TTL, a.flush()).await.expect("it is settled");
    // One attempt is the longest pause between two clean-ups.
    assert!(released.elapsed() <= 5 * SECOND, "{:?}", released.elapsed());
    let burnt = record(store.inner()).await;
    assert!(burnt.grant.is_none() && burnt.token > 1);
    sleep(10 * SECOND).await;
    assert_eq!(record(store.inner()).await, burnt, "the late claim was refused");
}

// B4
#[tokio::test(start_paused = true)]
async fn a_clean_up_that_arrives_late_neither_ends_a_later_grant_nor_lowers_the_token() {
    for released in [false, true] {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let (_, b) = ready(store.inner(), &clock, "b", 3).await;
        way.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
        let late = way.on(Verb::Burn).fault(Fault::ApplyLate(8 * SECOND));
        drop(timeout(SECOND, a.acquire("job")).await);
        a.flush().await;
        assert_eq!((late.times(), way.count(Verb::Burn)), (1, 2), "settled by the second");
        let lease = b.try_acquire("job").await.unwrap().acquired().expect("it is free");
        if released {
            lease.release().await.unwrap();
            let before = record(store.inner()).await;
            sleep(TTL).await;
            assert_eq!(record(store.inner()).await, before);
        } else {
            sleep(TTL).await;
            assert!(lease.held().is_held());
            assert_eq!(record(store.inner()).await.token, lease.token().as_u64());
        }
    }
}

// B4
#[tokio::test(start_paused = true)]
async fn where_the_clean_up_cannot_get_through_others_wait_a_term_at_most() {
    for fault in [Fault::LoseRequest, Fault::Hang, Fault::Fail(StoreErrorKind::Unavailable)] {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let (_, b) = ready(store.inner(), &clock, "b", 3).await;
        way.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
        let stuck = way.on(Verb::Burn).always().fault(fault);
        let begun = Instant::now();
        drop(timeout(MILLI, a.acquire("job")).await);
        let lease = b.acquire("job").await.unwrap();
        assert!(begun.elapsed() <= WATCH + 10 * MILLI, "{fault:?}: {:?}", begun.elapsed());
        assert!(stuck.times() > 3, "{fault:?}: it tries for a term");
        timeout(2 * TTL, a.flush()).await.expect("flush ends with the term");
        assert!(begun.elapsed() <= TTL + 10 * SECOND, "{fault:?}: flush ends with the term");
        assert_eq!(a.stats().owed, 0);
        assert!(lease.held().is_held());
    }
}

// B4
#[tokio::test(start_paused = true)]
async fn a_clean_up_outlives_the_client_that_owes_it() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    way.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
    let lost = way.on(Verb::Burn).times(2).fault(Fault::LoseRequest);
    drop(timeout(SECOND, a.acquire("job")).await);
    drop(a);
    sleep(3 * SECOND).await;
    assert_eq!((lost.times(), way.count(Verb::Burn)), (2, 3));
    assert!(record(store.inner()).await.grant.is_none());
}

// B4
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_with_its_client_is_released() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let lost = way.on(Verb::Release).times(2).fault(Fault::LoseRequest);
    let lease = a.acquire("job").await.unwrap();
    drop((lease, a));
    sleep(3 * SECOND).await;
    assert_eq!((lost.times(), writes(&way)), (2, [1, 0, 3, 0]));
    assert!(record(store.inner()).await.grant.is_none());
}

// B4
#[tokio::test(start_paused = true)]
async fn a_client_that_owes_nothing_more_is_freed_and_so_is_one_that_nobody_will_settle_for() {
    for (renewal, fault) in
        [(Renewal::Task, Fault::LoseAnswer), (Renewal::Task, Fault::Hang), (Renewal::Manual, Fault::LoseAnswer)]
    {
        let (store, clock) = table();
        let store = Arc::new(store);
        let builder = Leases::builder(Arc::clone(&store)).ttl(TTL).renewal(renewal);
        let a = builder.clock(clock.another(2)).build().unwrap();
        store.on(Verb::Release).always().fault(fault);
        let lease = a.acquire("job").await.unwrap();
        let late = store.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
        drop(timeout(SECOND, a.acquire("other job")).await);
        assert_eq!(late.times(), 1);
        drop((lease, a));
        sleep(2 * TTL).await;
        assert_eq!(Arc::strong_count(&store), 1, "{renewal:?}, {fault:?}: somebody still keeps it");
    }
}

// B4
#[tokio::test(start_paused = true)]
async fn with_manual_renewal_the_next_call_cleans_up() {
    let (store, clock) = table();
    let a = Leases::builder(store.clone()).renewal(Renewal::Manual).clock(clock.another(2)).build().unwrap();
    let (_, b) = ready(store.inner(), &clock, "b", 3).await;
    a.inspect("other").await.unwrap();
    let late = store.on(Verb::Claim).fault(Fault::AnswerLate(60 * SECOND));
    drop(timeout(SECOND, a.acquire("job")).await);
    sleep(5 * SECOND).await;
    assert_eq!((late.times(), store.count(Verb::Burn)), (1, 0), "nothing by itself");
    let other = a.try_acquire("another job").await.unwrap();
    assert_eq!(store.count(Verb::Burn), 1);
    assert!(b.try_acquire("job").await.unwrap().acquired().is_some());
    drop(other);
}

// B4
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_in_line_does_not_hold_up_those_behind_it() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let first = a.acquire("job").await.unwrap();
    let wait = |leases: &Leases| {
        tokio::spawn({
            let leases = leases.clone();
            async move { leases.acquire("job").await }
        })
    };
    let (second, third) = (wait(&a), wait(&a));
    sleep(SECOND).await;
    second.abort();
    sleep(SECOND).await;
    way.forget_calls();
    let released = Instant::now();
    first.release().await.unwrap();
    let lease: Lease = timeout(TTL, third).await.expect("it is called").unwrap().unwrap();
    assert_eq!(released.elapsed(), Duration::ZERO, "it is called at once");
    assert_eq!(writes(&way), [1, 0, 1, 0]);
    assert_eq!(a.stats().waiting, 0);
    assert!(lease.held().is_held());
}

// B6
#[tokio::test(start_paused = true)]
async fn an_older_renewal_that_arrives_after_a_newer_one_changes_nothing() {
    for fault in [Fault::ApplyLate(15 * SECOND), Fault::Twice(15 * SECOND)] {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let mut events = a.events();
        let lease = a.acquire("job").await.unwrap();
        let late = way.on(Verb::Renew).fault(fault);
        let (mut version, mut expires_at) = (Some(0), Some(0));
        for _ in 0..600 {
            sleep(SECOND / 10).await;
            let now = record(store.inner()).await;
            assert!(now.version >= version && now.expires_at_ms >= expires_at, "{fault:?}: it went back");
            (version, expires_at) = (now.version, now.expires_at_ms);
            assert!(lease.held().is_held());
        }
        assert_eq!(late.times(), 1);
        assert!(version >= Some(6) && !told(&mut events).await.contains(&"lost"));
    }
}

// B6
#[tokio::test(start_paused = true)]
async fn a_renewal_that_arrives_after_the_release_leaves_the_record_free() {
    for fault in [Fault::ApplyLate(15 * SECOND), Fault::Twice(15 * SECOND)] {
        let (store, clock) = table();
        let (way, a) = ready(store.inner(), &clock, "a", 2).await;
        let lease = a.acquire("job").await.unwrap();
        let late = way.on(Verb::Renew).fault(fault);
        sleep(11 * SECOND).await;
        lease.release().await.unwrap();
        assert_eq!(late.times(), 1);
        let free = record(store.inner()).await;
        sleep(TTL).await;
        assert_eq!(record(store.inner()).await, free, "{fault:?}");
        assert_eq!(a.inspect("job").await.unwrap().status, Status::Free);
    }
}

// B6
#[tokio::test(start_paused = true)]
async fn a_renewal_that_arrives_after_a_takeover_leaves_the_new_holder_alone() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    let (_, b) = ready(store.inner(), &clock, "b", 3).await;
    let lease = a.acquire("job").await.unwrap();
    // It lands while the new holder has not renewed, so that no order of versions keeps it out.
    let late = way.on(Verb::Renew).fault(Fault::ApplyLate(26 * SECOND));
    let down = way.on(Verb::Renew).always().fault(Fault::Hang);
    let new = b.acquire_within("job", 2 * TTL).await.unwrap();
    let taken = record(store.inner()).await;
    for _ in 0..600 {
        sleep(SECOND / 10).await;
        let now = record(store.inner()).await;
        assert_eq!((now.token, now.grant), (taken.token, taken.grant));
    }
    assert!(late.times() == 1 && down.times() > 0 && new.held().is_held() && !lease.held().is_held());
}

// B7
#[tokio::test(start_paused = true)]
async fn every_attempt_is_one_request_and_they_are_counted() {
    let (store, clock) = table();
    let (way, a) = ready(store.inner(), &clock, "a", 2).await;
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Throttled, StoreErrorKind::TimedOut] {
        let failed = way.on(Verb::Claim).times(3).fault(Fault::Fail(kind));
        way.forget_calls();
        assert_eq!(a.try_acquire("job").await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!((failed.times(), way.total()), (3, 3), "{kind:?}: a try has three requests");
    }
    let denied = way.on(Verb::Claim).fault(Fault::Fail(StoreErrorKind::Denied));
    way.forget_calls();
    let error = a.try_acquire("job").await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Denied, Written::No));
    assert_eq!((denied.times(), way.total()), (1, 1), "what cannot pass by itself is not tried again");
    assert_eq!((a.stats().requests["claim"], a.stats().requests["read"]), (10, 1));
    assert_eq!(clock.stamp().steady_since(&way.calls()[0].at), 0);
}
