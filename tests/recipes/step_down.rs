//! "Please finish and hand over".

use std::time::Duration;

use leasehold::recipes::{Election, Yielded, run_until_asked, step_down};
use leasehold::{Ended, Error, Held, LostReason};
use tokio::time::{Instant, sleep};

use super::World;
use super::monitor::{Stretches, given_up_early};

pub async fn a_holder_that_is_asked_finishes_and_the_next_in_line_follows(world: World) {
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let lease = a.leases.acquire("shard").await.unwrap();
    let (token, turns, drain) = (lease.token(), Stretches::default(), world.margin / 2);
    let working = turns.begin("a", token).noting(&world.log);
    let works = a.spawn(run_until_asked(lease, move |held| async move {
        let _working = working;
        let asked = held.until_asked().await;
        sleep(drain).await; // what was begun is finished
        asked
    }));
    let (next, leases) = (turns.clone(), b.leases.clone());
    let follows = b.spawn(async move {
        let lease = leases.acquire("shard").await.unwrap();
        (next.begin("b", lease.token()), lease)
    });
    sleep(world.ttl / 6).await;
    let grace = world.ttl;
    let yielded = world.soon("it yields", step_down(&c.leases, "shard", grace)).await.unwrap();
    assert_eq!(yielded, Yielded::Gone(token));
    let finished = world.soon("it has finished", works).await.unwrap();
    if world.asks {
        let asked = finished.output.expect("in time").expect("asked");
        assert_eq!((asked.grace(), asked.by.unwrap().as_str()), (grace, "c"));
        assert_eq!(finished.ended, Ended::Released);
    } else {
        assert_eq!(finished.output, Some(None), "told by the loss");
        assert!(matches!(finished.ended, Ended::Lost(lost) if lost.reason() == &LostReason::Revoked));
    }
    let (_working, next) = world.soon("the next follows", follows).await.unwrap();
    assert!(next.token() > token && turns.most_at_once() == 1);
    assert!(!world.asks || !given_up_early(&world.log, "a"));
}

pub async fn work_that_does_not_listen_is_dropped_and_only_then_released(world: World) {
    let (a, c) = (world.process("a").await, world.process("c").await);
    let turns = Stretches::default();
    let election = Election::new(&a.leases, "shard");
    let (of, log) = (turns.clone(), world.log.clone());
    let leads = a.spawn(async move {
        let deaf = |held: Held| {
            let working = of.begin("a", held.token()).noting(&log);
            async move {
                let _working = working;
                std::future::pending::<Result<(), Error>>().await
            }
        };
        election.lead(deaf).await
    });
    let first = world.soon("a leads", turns.nth(1)).await;
    let (grace, begun) = (world.margin / 2, Instant::now());
    let yielded = world.soon("it yields", step_down(&c.leases, "shard", grace)).await.unwrap();
    assert_eq!(yielded, Yielded::Gone(first.token));
    if !world.asks {
        // Deposed, not asked: it campaigns again.
        let again = world.soon("a leads again", turns.nth(2)).await;
        assert!(again.token > first.token && turns.all()[0].ended.unwrap() <= again.begun);
        return;
    }
    assert_eq!(world.soon("it has resigned", leads).await.unwrap().unwrap(), None, "and does not campaign again");
    assert!(!given_up_early(&world.log, "a"), "{:?}", world.log.of("a"));
    if world.clock.is_some() {
        let longest = world.ttl / 3 + grace + world.poll * 2;
        assert!((grace..=longest).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}

pub async fn nobody_is_asked_where_nobody_holds(world: World) {
    let (a, c) = (world.process("a").await, world.process("c").await);
    let grace = Duration::from_secs(1);
    assert_eq!(step_down(&c.leases, "shard", grace).await.unwrap(), Yielded::Nobody, "it never was");
    a.leases.acquire("shard").await.unwrap().release().await.unwrap();
    assert_eq!(step_down(&c.leases, "shard", grace).await.unwrap(), Yielded::Nobody);
    assert_eq!(world.log.count("c", "ask"), 0);
}
