//! Schedules and clocks: ticks that were missed, clocks that are set, and what happens without the tick's number.

use std::time::Duration;

use leasehold::recipes::{Schedule, Turn};
use leasehold::testing::TestClock;
use leasehold::{Attempt, Error, LostReason, MemoryStore};
use tokio::time::{Instant, sleep, timeout};

use crate::recipes::World;
use crate::recipes::process::Process;
use crate::support::scripted::{Fault, Scripted, Verb};
use crate::{TTL, judge, table};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
/// The wall clock of a test begins so long past an hour.
const PAST_THE_HOUR: Duration = Duration::from_secs(13 * 60 + 20);

fn of(process: &Process) -> Schedule {
    Schedule::new(&process.leases, "report", HOUR).unwrap()
}

async fn run(turn: Turn) {
    turn.run(async |_| Ok::<_, Error>(())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ticks_begin_on_the_hour_and_at_the_offset() {
    let (world, _store) = table();
    let a = world.process("a").await;
    let begun = Instant::now();
    let first = of(&a).try_turn().await.unwrap().expect("this hour is due");
    let tick = first.tick().id;
    run(first).await;
    let second = of(&a).turn().await.unwrap();
    let after = begun.elapsed() - (HOUR - PAST_THE_HOUR);
    assert!((second.tick().id, second.tick().missed) == (tick + 1, 0) && after <= world.poll, "{after:?}");
    run(second).await;
    // A quarter past: the tick of the next quarter has not begun.
    let shifted = Schedule::new(&a.leases, "other", HOUR).unwrap().offset(MINUTE * 15);
    assert_eq!(
        shifted.try_turn().await.unwrap().expect("due").tick().id,
        tick,
        "the one that began at a quarter past the last hour"
    );
    sleep(MINUTE * 15).await;
    assert_eq!(shifted.try_turn().await.unwrap().expect("due").tick().id, tick + 1);
}

#[tokio::test(start_paused = true)]
async fn ticks_that_nobody_ran_are_skipped_and_the_next_turn_says_how_many() {
    let (world, _store) = table();
    let a = world.process("a").await;
    let first = of(&a).try_turn().await.unwrap().unwrap();
    assert_eq!(first.tick().missed, 0, "none is known");
    let tick = first.tick().id;
    run(first).await;
    sleep(HOUR * 5).await;
    let next = of(&world.process("b").await).try_turn().await.unwrap().expect("it is due");
    assert_eq!((next.tick().id, next.tick().missed), (tick + 5, 4));
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_node_notices_within_a_minute_that_its_wall_clock_was_set() {
    let clock = TestClock::new();
    let store = MemoryStore::like_a_table(clock.another(99));
    let leases = leasehold::Leases::builder(store).clock(clock.clone()).build().unwrap();
    let schedule = Schedule::new(&leases, "report", HOUR).unwrap();
    run(schedule.turn().await.unwrap()).await;
    sleep(HOUR).await;
    let waits = tokio::spawn(async move {
        run(schedule.turn().await.unwrap()).await;
        schedule.turn().await.unwrap().tick()
    });
    sleep(MINUTE).await;
    assert!(!waits.is_finished());
    // Over the record's closing and to the next hour, while the node sleeps.
    sleep(MINUTE * 35).await;
    clock.set_wall_forward(HOUR);
    timeout(MINUTE * 2, waits).await.expect("noticed").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_is_not_begun_again_in_its_tick_and_its_error_is_the_callers() {
    let (world, _store) = table();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let turn = of(&a).try_turn().await.unwrap().unwrap();
    let error = turn.run(async |_| Err::<(), _>(leasehold::Name::new("").unwrap_err())).await.unwrap_err();
    assert_eq!(error.kind(), leasehold::ErrorKind::Invalid);
    assert!(of(&b).try_turn().await.unwrap().is_none());
    // Nor one that panics.
    sleep(HOUR).await;
    let turn = of(&a).try_turn().await.unwrap().unwrap();
    assert!(
        a.spawn(turn.run(async |_| if true { panic!("a bug") } else { Ok::<_, Error>(()) }))
            .await
            .unwrap_err()
            .is_panic()
    );
    a.leases.flush().await;
    assert!(of(&b).try_turn().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_its_lease_says_so_and_leaves_its_tick_used_up() {
    let (world, _store) = table();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let turn = of(&a).try_turn().await.unwrap().unwrap();
    let token = turn.held().token();
    let runs = a.spawn(turn.run(async move |held| {
        held.lost().await;
        Ok::<_, Error>(())
    }));
    b.leases.revoke("report", token).await.unwrap();
    let error = timeout(TTL, runs).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.lost().unwrap().reason(), &LostReason::Revoked);
    for _ in 0..10 {
        assert!(of(&b).try_turn().await.unwrap().is_none(), "also when its term is over");
        sleep(TTL / 4).await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_is_longer_than_at_least_and_a_tick_of_no_hold_at_all_are_used_up_all_the_same() {
    for at_least in [Duration::ZERO, MINUTE] {
        for retry in [false, true] {
            let (world, _store) = judge();
            let (a, b) = (world.process("a").await, world.process("b").await);
            let of = |process: &Process| {
                if retry { of(process).at_least(at_least).retry() } else { of(process).at_least(at_least) }
            };
            let turn = of(&a).try_turn().await.unwrap().unwrap();
            turn.run(async |_| {
                sleep(MINUTE * 2).await;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
            assert_eq!((world.log.count("a", "close"), world.log.count("a", "release")), (0, 1));
            for process in [&a, &b] {
                assert!(of(process).try_turn().await.unwrap().is_none(), "{at_least:?} {retry}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_nearly_a_period_ahead_runs_the_next_tick_early_and_nobody_runs_it_again() {
    let (world, _store) = table();
    let (right, early) = (world.process("right").await, world.ahead("early", MINUTE * 50).await);
    let mut ran = Vec::new();
    // Every minute both look, for five hours, with no hold to help: only the number tells.
    for _ in 0..5 * 60 {
        for process in [&right, &early] {
            if let Some(turn) = of(process).at_least(Duration::ZERO).try_turn().await.unwrap() {
                ran.push(turn.tick().id);
                run(turn).await;
            }
        }
        sleep(MINUTE).await;
    }
    assert!(ran.is_sorted_by(|before, after| after - before == 1) && ran.len() >= 6, "each once, in order: {ran:?}");
}

/// A job as a plain lease, by nodes that are two minutes apart: what the recipe is for.
async fn plain(world: &World) -> usize {
    let mut runs = 0;
    for ahead in [Duration::ZERO, MINUTE * 2] {
        let node = world.ahead("any", ahead).await;
        if let Attempt::Acquired(lease) = node.leases.try_acquire("report").await.unwrap() {
            runs += 1;
            lease.release().await.unwrap();
        }
    }
    runs
}

#[tokio::test(start_paused = true)]
async fn without_number_and_closing_two_nodes_run_the_same_tick() {
    let (world, _store) = table();
    assert_eq!(plain(&world).await, 2, "the control");
    let (world, _store) = table();
    let mut runs = 0;
    for ahead in [Duration::ZERO, MINUTE * 2] {
        if let Some(turn) = of(&world.ahead("any", ahead).await).try_turn().await.unwrap() {
            runs += 1;
            run(turn).await;
        }
    }
    assert_eq!(runs, 1);
}

/// Two nodes of a schedule that keeps nobody out after a run, on one store.
fn two_nodes(seed: u64) -> (Scripted, Schedule, Schedule) {
    let clock = TestClock::new();
    let store = Scripted::new(MemoryStore::like_a_table(clock.another(99)), clock.clone());
    let node = |node: u64| {
        let clock = clock.another(seed * 2 + node);
        let leases = leasehold::Leases::builder(store.clone()).clock(clock).build().unwrap();
        Schedule::new(&leases, "report", HOUR).unwrap().at_least(Duration::ZERO)
    };
    (store.clone(), node(0), node(1))
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_slow_does_not_begin_a_tick_that_was_begun_and_ended_meanwhile() {
    for seed in 0..10 {
        let (store, quick, slow) = two_nodes(seed);
        run(slow.try_turn().await.unwrap().unwrap()).await;
        sleep(HOUR).await;
        store.on(Verb::Claim).fault(Fault::ArriveLate(Duration::from_millis(500)));
        let looks = tokio::spawn(async move { slow.try_turn().await.unwrap().map(|turn| turn.tick()) });
        // It knows the store's time worse than the slow one does, so that its token may be lower.
        sleep(Duration::from_millis(10)).await;
        let turn = quick.try_turn().await.unwrap().expect("nobody has it yet");
        run(turn).await; // The number alone keeps it to once a tick.
        assert_eq!(looks.await.unwrap(), None, "the same tick again, with seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_tick_of_a_name_is_begun_once_although_there_is_no_record_that_a_claim_could_name() {
    for seed in 0..20 {
        let (store, quick, slow) = two_nodes(seed);
        store.on(Verb::Claim).fault(Fault::ArriveLate(Duration::from_millis(500)));
        let other = tokio::spawn(async move { begins(&slow).await });
        sleep(Duration::from_millis(10)).await;
        let begun = usize::from(begins(&quick).await) + usize::from(other.await.unwrap());
        assert_eq!(begun, 1, "the same tick, with seed {seed}");
    }
}

/// Whether it has had a turn; that has ended then.
async fn begins(schedule: &Schedule) -> bool {
    let Some(turn) = schedule.try_turn().await.unwrap() else { return false };
    run(turn).await;
    true
}
