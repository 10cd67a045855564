//! Semaphores: never more than n, and as many as before after any number of kills.

use leasehold::Attempt;
use leasehold::recipes::Semaphore;
use tokio::time::sleep;

use super::World;
use super::monitor::Stretches;

pub async fn never_more_than_n_hold_and_everybody_comes_through(world: World) {
    let (valid, mut crowd) = (Stretches::default(), Vec::new());
    for n in 0..8 {
        let process = world.process(&format!("client-{n}")).await;
        let semaphore = Semaphore::new(&process.leases, "permits", 3).unwrap();
        let (valid, who, hold) = (valid.clone(), process.who().to_owned(), world.ttl / 6);
        let come_through = process.spawn(async move {
            for _ in 0..2 {
                let lease = semaphore.acquire().await.unwrap();
                let working = valid.begin(&who, lease.token());
                sleep(hold).await;
                assert!(lease.held().is_held());
                drop(working);
                lease.release().await.unwrap();
            }
        });
        crowd.push((process, come_through));
    }
    for (_process, come_through) in crowd {
        world.soon("it comes through", come_through).await.unwrap();
    }
    assert_eq!((valid.all().len(), valid.most_at_once()), (16, 3), "all of them at a time, and never more");
}

pub async fn a_killed_holders_permit_comes_back_and_there_are_as_many_as_before(world: World) {
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let of = |process: &super::Process| Semaphore::new(&process.leases, "permits", 2).unwrap();
    let (dies, stays) = (of(&a).acquire().await.unwrap(), of(&b).acquire().await.unwrap());
    assert_ne!(dies.name(), stays.name());
    let (name, token) = (dies.name().clone(), dies.token());
    let waits = of(&c);
    let waits = c.spawn(async move { waits.acquire().await.unwrap() });
    sleep(world.ttl / 2).await;
    assert!(!waits.is_finished());
    a.kill();
    std::mem::forget(dies);
    let third = world.soon("the permit comes back", waits).await.unwrap();
    assert_eq!(third.name(), &name);
    assert!(third.token() > token && stays.held().is_held());
    // Two, not one and not three.
    assert!(of(&b).try_acquire().await.unwrap().acquired().is_none());
    stays.release().await.unwrap();
    third.release().await.unwrap();
    let d = world.process("d").await;
    let both = [of(&d).acquire().await.unwrap(), of(&d).acquire().await.unwrap()];
    assert!(of(&b).try_acquire().await.unwrap().acquired().is_none(), "{both:?}");
}

pub async fn a_late_release_changes_nothing(world: World) {
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let of = |process: &super::Process| Semaphore::new(&process.leases, "permit", 1).unwrap();
    let late = of(&a).acquire().await.unwrap();
    let waits = of(&b);
    let waits = b.spawn(async move { waits.acquire().await.unwrap() });
    sleep(world.ttl / 6).await;
    a.freeze();
    let holds = world.soon("its term is over", waits).await.unwrap();
    a.thaw();
    late.release().await.unwrap(); // and once more, by being dropped
    a.leases.flush().await;
    assert!(matches!(of(&c).try_acquire().await.unwrap(), Attempt::Held(by) if by.holder() == Some("b")));
    holds.renew().await.unwrap();
    let error = of(&c).acquire_within(world.poll * 2).await.unwrap_err();
    assert_eq!(error.kind(), leasehold::ErrorKind::TimedOut);
    assert_eq!(error.held_by().and_then(|by| by.holder()), Some("b"));
}
