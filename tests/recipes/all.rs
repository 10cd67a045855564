//! Several names, all or nothing.

use leasehold::recipes::{AllAttempt, acquire_all, acquire_all_within, try_acquire_all};
use leasehold::{Error, ErrorKind, LostReason, Status};
use tokio::time::sleep;

use super::World;
use super::monitor::Stretches;

pub async fn either_all_are_taken_or_none(world: World) {
    let (a, b) = (world.process("a").await, world.process("b").await);
    let one = a.leases.acquire("y").await.unwrap();
    let AllAttempt::Held(name, by) = try_acquire_all(&b.leases, ["z", "x", "y"]).await.unwrap() else {
        panic!("y is held")
    };
    assert_eq!((name.as_str(), by.holder()), ("y", Some("a")));
    assert_eq!(b.leases.stats().held, 0);
    let error = acquire_all_within(&b.leases, ["x", "y", "z"], world.poll * 3).await.unwrap_err();
    assert_eq!((error.kind(), error.lease().unwrap().as_str()), (ErrorKind::TimedOut, "y"), "{error}");
    assert_eq!(b.leases.stats().held, 0);
    // Nothing is left behind: a has all of them at once.
    one.release().await.unwrap();
    b.leases.flush().await;
    let AllAttempt::Acquired(all) = try_acquire_all(&a.leases, ["y", "z", "x", "y"]).await.unwrap() else {
        panic!("they were given back")
    };
    let names: Vec<_> = all.leases().iter().map(|lease| lease.name().as_str().to_owned()).collect();
    assert_eq!(names, ["x", "y", "z"], "in order, each once");
    assert_eq!(all.held().of("y").unwrap().token(), all.leases()[1].token());
    all.release().await.unwrap();
    assert_eq!(a.leases.inspect("x").await.unwrap().status, Status::Free);
}

pub async fn overlapping_sets_do_not_deadlock_and_kills_leave_no_partial_hold(world: World) {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let (pairs, mut crowd) = ([(0, 1), (2, 1), (2, 3), (0, 3), (1, 3), (2, 0)], Vec::new());
    let worked = NAMES.map(|_| Stretches::default());
    for (n, (first, second)) in pairs.into_iter().enumerate() {
        let process = world.process(&format!("client-{n}")).await;
        let (leases, who, hold) = (process.leases.clone(), process.who().to_owned(), world.ttl / 12);
        let of_each = [worked[first].clone(), worked[second].clone()];
        let dies = n % 3 == 0;
        let come_through = process.spawn(async move {
            for round in 0..2 {
                let all = acquire_all(&leases, [NAMES[first], NAMES[second]]).await.unwrap();
                let ran = all.run(async |held| {
                    let begin = |place: usize, name: &str| of_each[place].begin(&who, held.of(name).unwrap().token());
                    let _working = (begin(0, NAMES[first]), begin(1, NAMES[second]));
                    sleep(hold).await;
                    // Some die with both in their hands, in the second round.
                    if dies && round == 1 {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Error>(())
                });
                ran.await.unwrap();
            }
        });
        crowd.push((process, come_through, dies));
    }
    let (dead, living): (Vec<_>, Vec<_>) = crowd.into_iter().partition(|(_, _, dies)| *dies);
    // Each is killed as soon as it has both for the second time; until then the others may wait for it.
    let killer = async {
        let mut left: Vec<_> = dead.iter().map(|(process, _, _)| process).collect();
        while !left.is_empty() {
            sleep(world.poll / 4).await;
            left.retain(|process| {
                let begun = |one: &Stretches| one.all().iter().filter(|one| one.who == process.who()).count();
                let twice = worked.iter().map(begun).sum::<usize>() == 4;
                if twice {
                    process.kill();
                }
                !twice
            });
        }
    };
    let others = futures_util::future::join_all(living.into_iter().map(|(_process, done, _)| done));
    let (ended, ()) = world.soon("no deadlock", futures_util::future::join(others, killer)).await;
    ended.into_iter().for_each(|ended| ended.unwrap());
    for one in &worked {
        assert!(one.tokens_rise() && one.most_at_once() == 1, "{one:?}");
    }
    let late = world.process("late").await;
    let all = world.soon("nothing is left", acquire_all(&late.leases, NAMES)).await.unwrap();
    assert!(all.held().is_held());
}

pub async fn work_under_all_is_stopped_when_one_is_lost_and_the_rest_is_given_back(world: World) {
    let (a, operator) = (world.process("a").await, world.process("operator").await);
    let all = acquire_all(&a.leases, ["x", "y"]).await.unwrap();
    let token = all.leases()[1].token();
    let (working, log) = (Stretches::default().begin("a", token).noting(&world.log), world.log.clone());
    let runs = a.spawn(all.run(async move |held| {
        let _working = working;
        held.lost().await;
        log.note("a", "work was told", "");
        std::future::pending::<Result<(), Error>>().await
    }));
    operator.leases.revoke("y", token).await.unwrap();
    let error = world.soon("it is lost", runs).await.unwrap().unwrap_err();
    let lost = error.lost().unwrap();
    assert_eq!((lost.name().as_str(), lost.reason()), ("y", &LostReason::Revoked));
    assert_eq!(operator.leases.inspect("x").await.unwrap().status, Status::Free);
    let done = world.log.of("a");
    let at = |what: &str| done.iter().position(|done| done == what).unwrap_or_else(|| panic!("{what}: {done:?}"));
    assert!(at("work was told") < at("work has ended") && at("work has ended") < at("release"), "{done:?}");
}
