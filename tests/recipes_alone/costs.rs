//! What each recipe costs, as docs/recipes.md says it: requests to a store like a cloud table, of clients that know its time.

use std::time::Duration;

use leasehold::recipes::{
    AllAttempt, Election, Schedule, Semaphore, Yielded, acquire_all, run_until_asked, step_down, try_acquire_all,
};
use leasehold::{Attempt, Error};
use tokio::time::sleep;

use crate::recipes::World;
use crate::recipes::process::Process;
use crate::{POLL, TTL, table};

/// A client that knows the store's time, of which nothing was counted yet.
async fn known(world: &World, who: &str) -> Process {
    let process = world.process(who).await;
    process.leases.inspect("some other").await.unwrap();
    world.log.forget();
    process
}

#[tokio::test(start_paused = true)]
async fn a_term_of_a_leader_is_a_claim_a_renewal_each_third_of_the_term_and_a_release() {
    let (world, _store) = table();
    let a = known(&world, "a").await;
    let election = Election::new(&a.leases, "leader").publish("10.0.0.7");
    let led = election
        .lead(async |_| {
            sleep(TTL * 2 + TTL / 20).await;
            Ok::<_, Error>(())
        })
        .await;
    led.unwrap();
    let done = world.log.of("a");
    let renewals = done.iter().filter(|what| *what == "renew").count();
    assert!((6..=7).contains(&renewals), "{done:?}");
    assert_eq!((&done[0][..], &done[done.len() - 1][..], done.len()), ("claim", "release", renewals + 2), "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn an_observer_reads_once_a_poll_however_often_it_is_called() {
    let (world, _store) = table();
    let o = known(&world, "o").await;
    let mut observer = Election::new(&o.leases, "leader").observe();
    observer.next().await.unwrap();
    for _ in 0..1000 {
        // As in a `select!` whose other branches are busy.
        assert!(tokio::time::timeout(Duration::from_millis(60), observer.next()).await.is_err());
    }
    let reads = world.log.of("o").len();
    assert!((60..=121).contains(&reads), "{reads} in a minute, and each pause is half a poll at the least");
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_a_claim_and_a_release_and_at_most_a_claim_for_each_that_is_out() {
    let (world, _store) = table();
    let (a, b) = (known(&world, "a").await, known(&world, "b").await);
    let of = |process: &Process| Semaphore::new(&process.leases, "permits", 5).unwrap();
    let permit = of(&a).acquire().await.unwrap();
    permit.release().await.unwrap();
    assert_eq!(world.log.of("a"), ["claim", "release"]);
    let mut out = Vec::new();
    for _ in 0..5 {
        out.push(of(&a).acquire().await.unwrap());
    }
    world.log.forget();
    assert!(matches!(of(&b).try_acquire().await.unwrap(), Attempt::Held(_)));
    assert_eq!(world.log.of("b"), ["claim"; 5]);
    assert!(matches!(of(&a).try_acquire().await.unwrap(), Attempt::Held(_)));
    assert_eq!(world.log.count("a", "claim"), 0, "what it holds itself costs nothing");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_a_permit_send_five_reads_a_poll_however_many_they_and_the_permits_are() {
    for permits in [2, 5, 100] {
        let (world, _store) = table();
        let (a, b) = (known(&world, "a").await, known(&world, "b").await);
        let semaphore = Semaphore::new(&a.leases, "permits", permits).unwrap();
        let mut out = Vec::new();
        for _ in 0..permits {
            out.push(semaphore.acquire().await.unwrap());
        }
        let semaphore = Semaphore::new(&b.leases, "permits", permits).unwrap();
        let waiter = || {
            let semaphore = semaphore.clone();
            b.spawn(async move { semaphore.acquire().await.unwrap() })
        };
        let waiters: Vec<_> = (0..10).map(|_| waiter()).collect();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(world.log.of("b").len(), permits as usize, "each once, by one of the ten");
        world.log.forget();
        sleep(POLL * 60).await;
        let done = world.log.of("b");
        assert!(done.iter().all(|what| what == "read"), "{done:?}");
        let looks = permits.min(5) as usize;
        assert!((looks * 60..=looks * 121).contains(&done.len()), "{} reads of {permits} in a minute", done.len());
        drop((waiters, out));
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_k_names_are_k_claims_and_k_releases() {
    let (world, _store) = table();
    let (a, b) = (known(&world, "a").await, known(&world, "b").await);
    let all = acquire_all(&a.leases, ["z", "x", "y"]).await.unwrap();
    all.run(async |_| Ok::<_, Error>(())).await.unwrap();
    assert_eq!(world.log.of("a"), ["claim", "claim", "claim", "release", "release", "release"]);
    let names: Vec<_> = world.log.entries().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["x", "y", "z", "z", "y", "x"], "in order, and back");
    sleep(POLL * 5).await; // so that the store's time alone gives higher tokens
    let _last = a.leases.acquire("z").await.unwrap();
    world.log.forget();
    assert!(matches!(try_acquire_all(&b.leases, ["z", "x", "y"]).await.unwrap(), AllAttempt::Held(..)));
    assert_eq!(world.log.of("b"), ["claim", "claim", "claim", "release", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_a_read_a_claim_and_a_closing_and_one_read_for_every_other_node() {
    let (world, _store) = table();
    let hour = Duration::from_secs(3600);
    let mut fleet = Vec::new();
    for who in ["a", "b", "c"] {
        let process = known(&world, who).await;
        let schedule = Schedule::new(&process.leases, "report", hour).unwrap();
        process.spawn(async move {
            loop {
                schedule.turn().await.unwrap().run(async |_| Ok::<_, Error>(())).await.unwrap();
            }
        });
        fleet.push(process);
    }
    sleep(hour).await;
    world.log.forget();
    sleep(hour * 5).await;
    let all = |what: &str| ["a", "b", "c"].map(|who| world.log.count(who, what)).iter().sum::<usize>();
    assert_eq!((all("claim"), all("close"), all("release"), all("renew")), (5, 5, 0, 0));
    // Each node reads once; who has the tick reads once more, for the next. It may still know the time, or not.
    let reads = all("read");
    assert!((5 * 4..=5 * 6).contains(&reads), "{reads} reads in five ticks of three nodes");
}

#[tokio::test(start_paused = true)]
async fn a_step_down_is_a_read_an_ask_and_a_read_a_poll_until_the_holder_has_gone() {
    let (world, _store) = table();
    let (a, c) = (known(&world, "a").await, known(&world, "c").await);
    let lease = a.leases.acquire("shard").await.unwrap();
    let works = a.spawn(run_until_asked(lease, async |held| held.until_asked().await));
    let yielded = step_down(&c.leases, "shard", TTL).await.unwrap();
    assert!(matches!(yielded, Yielded::Gone(_)));
    assert!(works.await.unwrap().output.is_some());
    let done = world.log.of("c");
    assert_eq!(done[..2], ["read", "ask"], "{done:?}");
    assert!(
        done[2..].iter().all(|what| what == "read") && done.len() <= 2 + 2 * 10 + 1,
        "within a third of the term: {done:?}"
    );
    assert_eq!(world.log.count("a", "release"), 1);
}
