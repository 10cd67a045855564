//! Schedules: once a tick across a fleet, whatever the wall clocks say, and what a crash does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::Error;
use leasehold::recipes::{Schedule, Tick, Turn};
use tokio::time::{Instant, sleep};

use super::monitor::Stretches;
use super::{Process, World};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// So long that no test comes to its end by itself: 1,000 days after 1970 and so on.
const LONG: Duration = Duration::from_secs(300 * 24 * 60 * 60);

pub async fn a_fleet_whose_wall_clocks_are_apart_runs_each_tick_once(world: World) {
    // On a paused clock a day of hours; behind a socket a few ticks of seconds.
    let (period, watched) = match world.clock {
        Some(_) => (Duration::from_secs(3600), DAY),
        None => (Duration::from_secs(8), Duration::from_secs(26)),
    };
    let (ran, runs) = (Arc::new(Mutex::new(BTreeMap::<u64, u32>::new())), Stretches::default());
    let mut fleet = Vec::new();
    for n in 0..4u32 {
        let process = world.ahead(&format!("node-{n}"), period * n / 10).await;
        let schedule = Schedule::new(&process.leases, "report", period).unwrap();
        let (ran, runs, who) = (Arc::clone(&ran), runs.clone(), process.who().to_owned());
        process.spawn(async move {
            loop {
                let turn = schedule.turn().await.unwrap();
                let (tick, token) = (turn.tick(), turn.held().token());
                let _working = runs.begin(&who, token);
                *ran.lock().unwrap().entry(tick.id).or_default() += 1;
                turn.run(async |_| {
                    sleep(period / 100).await;
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
            }
        });
        fleet.push(process);
    }
    sleep(watched).await;
    fleet.iter().for_each(Process::kill);
    let ran = ran.lock().unwrap().clone();
    assert!(ran.values().all(|times| *times == 1), "{ran:?}");
    // The first of the fleet begins a tick early, and none is left out.
    let (first, last) = (ran.keys().next().unwrap(), ran.keys().last().unwrap());
    assert_eq!(ran.len() as u64, last - first + 1, "{ran:?}");
    assert!(ran.len() as u128 >= watched.as_nanos() / period.as_nanos(), "{ran:?}");
    // A busy machine may note a beginning a little late.
    let late = if world.clock.is_some() { Duration::ZERO } else { period / 16 };
    assert!(runs.tokens_rise() && runs.closest().unwrap() + late >= period / 2, "{runs:?}");
}

pub async fn a_tick_whose_run_was_killed_is_skipped_and_the_next_is_run(world: World) {
    let (a, b, tomorrow) = (world.process("a").await, world.process("b").await, world.ahead("c", LONG).await);
    let of = |process: &Process| Schedule::new(&process.leases, "report", LONG).unwrap().at_least(world.ttl / 10);
    let turn = of(&a).try_turn().await.unwrap().expect("it is due");
    let tick = turn.tick();
    killed(&a, turn).await;
    // While its term runs, and long after.
    for _ in 0..6 {
        assert!(of(&b).try_turn().await.unwrap().is_none(), "it has begun");
        sleep(world.ttl / 4).await;
    }
    let next = of(&tomorrow);
    let next = world.soon("the next tick", next.turn()).await.unwrap();
    assert_eq!((next.tick().id, next.tick().missed), (tick.id + 1, 0));
    next.run(async |_| Ok::<_, Error>(())).await.unwrap();
    assert!(of(&b).try_turn().await.unwrap().is_none(), "nor is it begun after the next");
}

pub async fn with_retry_a_tick_whose_run_was_killed_is_begun_again_with_a_higher_token(world: World) {
    let (a, b) = (world.process("a").await, world.process("b").await);
    let of =
        |process: &Process| Schedule::new(&process.leases, "report", LONG).unwrap().at_least(world.ttl / 10).retry();
    let turn = of(&a).try_turn().await.unwrap().expect("it is due");
    let (tick, token) = (turn.tick(), turn.held().token());
    killed(&a, turn).await;
    let again = retried(&world, &of(&b)).await;
    assert!(again.tick().id == tick.id && again.held().token() > token);
    // One that fails is begun again, one that succeeds is not.
    again.run(async |_| Err::<(), _>(leasehold::Name::new("").unwrap_err())).await.unwrap_err();
    let last = retried(&world, &of(&b)).await;
    last.run(async |_| Ok::<_, Error>(())).await.unwrap();
    sleep(world.ttl / 2).await;
    let c = world.process("c").await;
    for process in [&b, &c] {
        assert!(of(process).try_turn().await.unwrap().is_none());
    }
}

/// A node that looks now and then: `turn` looks sixty times in a period, and this one is long.
async fn retried(world: &World, schedule: &Schedule) -> Turn {
    let looks = async {
        loop {
            match schedule.try_turn().await.unwrap() {
                Some(turn) => return turn,
                None => sleep(world.poll).await,
            }
        }
    };
    world.soon("it is begun again", looks).await
}

async fn killed(process: &Process, turn: Turn) {
    let runs = process.spawn(turn.run(async |_| std::future::pending::<Result<(), Error>>().await));
    tokio::task::yield_now().await;
    process.kill();
    assert!(runs.await.unwrap_err().is_cancelled());
}

pub async fn no_two_runs_begin_closer_than_at_least_whatever_the_wall_clocks_say(world: World) {
    // A period's ticks look used up to nobody here: each node is years from the other.
    let (right, wrong) = (world.process("right").await, world.ahead("wrong", 2000 * DAY).await);
    let at_least = world.ttl / 5;
    let of = |process: &Process| Schedule::new(&process.leases, "report", DAY).unwrap().at_least(at_least);
    let (runs, began) = (Stretches::default(), Instant::now());
    let mut ticks: Vec<Tick> = Vec::new();
    while runs.all().len() < 5 {
        for process in [&right, &wrong] {
            if let Some(turn) = of(process).try_turn().await.unwrap() {
                let _working = runs.begin(process.who(), turn.held().token());
                ticks.push(turn.tick());
                turn.run(async |_| Ok::<_, Error>(())).await.unwrap();
            }
        }
        sleep(at_least / 20).await;
        assert!(
            began.elapsed() < world.ttl * 4 + Duration::from_secs(90),
            "the wrong clock stops everybody: {ticks:?}"
        );
    }
    assert!(runs.closest().unwrap() >= at_least * 9 / 10, "{:?}", runs.closest());
    let who: Vec<_> = runs.all().into_iter().map(|run| run.who).collect();
    assert!(who.contains(&"right".to_owned()) && who.contains(&"wrong".to_owned()), "{who:?}");
    assert!(ticks.iter().any(|tick| tick.missed > 0), "{ticks:?}");
}
