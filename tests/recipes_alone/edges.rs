//! Wrong calls, clients that end, and answers that a reader would ask about.

use std::time::Duration;

use leasehold::recipes::{Election, Schedule, Semaphore, Sight, Yielded, acquire_all, acquire_all_within, step_down};
use leasehold::{Attempt, Ended, Error, ErrorKind, Held, LostReason, Unreadable};
use tokio::time::{Instant, sleep, timeout};

use crate::recipes::manual;
use crate::recipes::process::Process;
use crate::{POLL, TTL, judge, table};

#[tokio::test(start_paused = true)]
async fn wrong_calls_are_refused_before_anything_is_sent() {
    let (world, _store) = table();
    let a = world.process("a").await;
    let hour = Duration::from_secs(3600);
    let kinds = [
        Semaphore::new(&a.leases, "permits", 0).unwrap_err(),
        Semaphore::new(&a.leases, "permits", 1001).unwrap_err(),
        Semaphore::new(&a.leases, "", 1).unwrap_err(),
        Semaphore::new(&a.leases, "x".repeat(255), 1).unwrap_err(),
        Schedule::new(&a.leases, "report", Duration::from_millis(999)).unwrap_err(),
        Schedule::new(&a.leases, "report", hour * 24 * 367).unwrap_err(),
        Schedule::new(&a.leases, "re\nport", hour).unwrap_err(),
        acquire_all(&a.leases, [] as [&str; 0]).await.unwrap_err(),
        acquire_all(&a.leases, ["a", ""]).await.unwrap_err(),
        Election::new(&a.leases, "leader").publish(vec![0; 4097]).campaign().await.unwrap_err(),
        Election::new(&a.leases, "leader").publish(vec![0; 4097]).lead(async |_| Ok::<_, Error>(())).await.unwrap_err(),
    ];
    for error in kinds {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(world.log.of("a"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_nobody_would_renew_is_refused_before_it_claims() {
    let (world, _store) = table();
    let a = world.process_with("a", manual).await;
    let error = Election::new(&a.leases, "leader").lead(async |_| Ok::<_, Error>(())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(world.log.of("a"), [""; 0]);
    // By hand it can.
    Election::new(&a.leases, "leader").campaign().await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_client_is_shut_down_ends_and_does_not_campaign_again() {
    let (world, _store) = table();
    let a = world.process("a").await;
    let election = Election::new(&a.leases, "leader");
    let leads =
        a.spawn(async move { election.lead(async |_| std::future::pending::<Result<(), Error>>().await).await });
    sleep(TTL).await;
    a.leases.shutdown(TTL).await.unwrap();
    let error = timeout(TTL, leads).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert_eq!(world.log.count("a", "claim"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_deposed_leaders_work_returns_is_dropped_and_the_next_term_is_a_new_call() {
    let (world, store) = table();
    let a = world.process("a").await;
    let election = Election::new(&a.leases, "leader");
    let mut terms = 0;
    let led = election.lead(|held: Held| {
        terms += 1;
        let (term, store) = (terms, store.clone());
        async move {
            match term {
                1 | 2 => {
                    let token = store.take_over(held.name()).unwrap();
                    let Ended::Lost(lost) = held.lost().await else { panic!("it was deposed") };
                    assert!(matches!(lost.reason(), LostReason::Taken { token: by, .. } if *by == token));
                    if term == 1 { Ok("late") } else { Err(Error::from(lost)) }
                }
                _ => Ok("in time"),
            }
        }
    });
    assert_eq!(led.await.unwrap(), Some("in time"));
    assert_eq!(terms, 3);
}

#[tokio::test(start_paused = true)]
async fn an_observer_tells_errors_and_goes_on() {
    let (world, store) = table();
    let (a, o) = (world.process("a").await, world.process("o").await);
    let lease = Election::new(&a.leases, "leader").campaign().await.unwrap();
    let mut observer = Election::new(&o.leases, "leader").observe();
    assert!(matches!(observer.next().await.unwrap(), Sight::Leader(leader) if leader.token == lease.token()));
    store.set_available(false);
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(observer.next().await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(begun.elapsed() >= POLL * 5, "it keeps to its pace");
    store.set_available(true);
    lease.release().await.unwrap();
    assert_eq!(observer.next().await.unwrap(), Sight::Nobody);
    store.put_unreadable("leader", Unreadable::Format).unwrap();
    assert_eq!(observer.next().await.unwrap_err().kind(), ErrorKind::Unreadable);
}

#[tokio::test(start_paused = true)]
async fn after_a_deletion_an_observer_does_not_take_a_lower_token_for_a_new_leader() {
    let (world, store) = judge();
    let (a, b, o) = (world.process("a").await, world.process("b").await, world.process("o").await);
    let lead = async |process: &Process| Election::new(&process.leases, "leader").campaign().await.unwrap();
    lead(&a).await.release().await.unwrap();
    let newest = lead(&a).await;
    let mut observer = Election::new(&o.leases, "leader").observe();
    assert!(matches!(observer.next().await.unwrap(), Sight::Leader(leader) if leader.token == newest.token()));
    store.delete("leader");
    let lower = lead(&b).await;
    assert!(lower.token() < newest.token(), "this store has no floor for tokens");
    assert!(timeout(TTL, observer.next()).await.is_err(), "it is not shown");
    assert!(
        matches!(Election::new(&o.leases, "leader").observe().next().await.unwrap(), Sight::Leader(leader) if leader.token == lower.token())
    );
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_this_client_gives_back_is_taken_at_once_in_the_order_of_the_queue() {
    let (world, _store) = table();
    let a = world.process("a").await;
    let semaphore = Semaphore::new(&a.leases, "permits", 100).unwrap();
    let mut out = Vec::new();
    for _ in 0..100 {
        out.push(semaphore.acquire().await.unwrap());
    }
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for n in 0..3 {
        let (semaphore, sender) = (semaphore.clone(), sender.clone());
        a.spawn(async move {
            let lease = semaphore.acquire().await.unwrap();
            sender.send((n, lease)).unwrap();
        });
        sleep(Duration::from_millis(1)).await;
    }
    sleep(TTL).await;
    for n in 0..3 {
        let (given, begun) = (out.swap_remove(70), Instant::now());
        let name = given.name().clone();
        given.release().await.unwrap();
        let (first, lease) = timeout(TTL, order.recv()).await.expect("it is taken").unwrap();
        assert_eq!((first, lease.name(), begun.elapsed() < POLL / 10), (n, &name, true), "{:?}", begun.elapsed());
        out.push(lease);
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_alone_finds_each_of_five_permits_within_a_poll() {
    let (world, _store) = judge();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let of = |process: &Process| Semaphore::new(&process.leases, "permits", 5).unwrap();
    let mut out = Vec::new();
    for _ in 0..5 {
        out.push(of(&a).acquire().await.unwrap());
    }
    for _ in 0..20 {
        let semaphore = of(&b);
        let waits = b.spawn(async move { (semaphore.acquire().await.unwrap(), Instant::now()) });
        sleep(POLL * 7 / 3).await;
        let released = Instant::now();
        out.remove(0).release().await.unwrap();
        let (lease, at) = timeout(TTL, waits).await.expect("it is found").unwrap();
        assert!(at - released <= POLL, "{:?}", at - released);
        lease.release().await.unwrap();
        out.push(of(&a).acquire().await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn clients_with_different_numbers_of_permits_hold_at_most_the_largest_number_together() {
    let (world, _store) = table();
    let (few, many) = (world.process("few").await, world.process("many").await);
    let (two, four) =
        (Semaphore::new(&few.leases, "permits", 2).unwrap(), Semaphore::new(&many.leases, "permits", 4).unwrap());
    let mut out = Vec::new();
    while let Attempt::Acquired(lease) = four.try_acquire().await.unwrap() {
        out.push(lease);
    }
    assert_eq!(out.len(), 4);
    assert!(matches!(two.try_acquire().await.unwrap(), Attempt::Held(_)));
    let above = out.iter().position(|lease| lease.name().as_str() == "permits/3").unwrap();
    out.swap_remove(above).release().await.unwrap();
    assert!(matches!(two.try_acquire().await.unwrap(), Attempt::Held(_)), "it is not one of its permits");
    out.clear();
    many.leases.flush().await;
    assert!(
        matches!(two.try_acquire().await.unwrap(), Attempt::Acquired(lease) if lease.name().as_str() < "permits/2")
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_all_that_loses_one_of_those_it_has_gives_back_and_begins_again() {
    let (world, store) = table();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let last = a.leases.acquire("y").await.unwrap();
    let leases = b.leases.clone();
    let waits = b.spawn(async move { acquire_all(&leases, ["x", "y"]).await.unwrap() });
    sleep(POLL * 3).await;
    let rival = store.take_over("x").unwrap();
    sleep(TTL * 2).await;
    assert!(!waits.is_finished());
    last.release().await.unwrap();
    let all = timeout(TTL, waits).await.unwrap().unwrap();
    assert!(all.held().is_held() && all.leases()[0].token() > rival, "both, at one moment");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_for_all_gives_back_what_it_has() {
    let (world, _store) = table();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _last = a.leases.acquire("y").await.unwrap();
    assert!(timeout(TTL * 2, acquire_all(&b.leases, ["x", "y"])).await.is_err());
    let error = acquire_all_within(&b.leases, ["x", "y"], POLL * 2).await.unwrap_err();
    assert_eq!(error.lease().unwrap().as_str(), "y");
    b.leases.flush().await;
    assert!(a.leases.try_acquire("x").await.unwrap().acquired().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_does_not_go_is_reported_and_its_successor_is_left_alone() {
    let (world, _store) = table();
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let deaf = a.leases.acquire("shard").await.unwrap();
    let begun = Instant::now();
    let still = step_down(&c.leases, "shard", POLL * 5).await.unwrap();
    assert_eq!(still, Yielded::StillHeld(deaf.token()));
    assert!((TTL..=TTL + POLL * 8).contains(&begun.elapsed()), "a term and the grace: {:?}", begun.elapsed());
    assert!(deaf.held().is_held() && deaf.held().asked().is_some());
    // The wish was for that grant alone.
    let token = deaf.token();
    deaf.release().await.unwrap();
    let next = b.leases.acquire("shard").await.unwrap();
    assert_eq!(c.leases.ask("shard", token, POLL).await.unwrap_err().kind(), ErrorKind::Refused);
    sleep(TTL).await;
    assert_eq!(next.held().asked(), None);
    // Who waits to be asked learns of the end as well.
    let asked = b.spawn(next.held().until_asked());
    next.release().await.unwrap();
    assert_eq!(timeout(POLL, asked).await.unwrap().unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn who_gives_all_the_time_there_is_waits_until_the_holder_has_gone() {
    let (world, _store) = table();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let lease = a.leases.acquire("shard").await.unwrap();
    let token = lease.token();
    let asks = b.spawn({
        let leases = b.leases.clone();
        async move { step_down(&leases, "shard", Duration::MAX).await }
    });
    sleep(TTL * 3).await;
    lease.release().await.unwrap();
    assert_eq!(timeout(POLL * 2, asks).await.unwrap().unwrap().unwrap(), Yielded::Gone(token));
}
