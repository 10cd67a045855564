//! Members that are away, hang or answer late.

use std::time::Duration;

use leasehold::recipes::{Election, Sight, step_down};
use leasehold::{Attempt, Ended, ErrorKind, Expect, Lease, Leases, LostReason, Name, Status, Store, Vacate};

use crate::ground::{ATTEMPT, Fault, Ground, TTL, Verb, renewal, settle};

#[tokio::test(start_paused = true)]
async fn losing_one_of_three_loses_no_lease_and_grants_none_twice() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let leases = twenty(&a).await;
    for away in 0..3 {
        ground.set_available(away, false);
        for _ in 0..9 {
            tokio::time::sleep(TTL / 3).await;
            assert!(leases.iter().all(|lease| lease.held().is_held()), "with member {away} away");
        }
        nobody_gets(&b).await;
        ground.set_available(away, true);
        // Each renewal joins it again where it lacks the grant, and the next one counts it.
        tokio::time::sleep(TTL).await;
    }
    assert_eq!(a.stats().held, 20);
}

#[tokio::test(start_paused = true)]
async fn losing_two_of_three_ends_every_lease_by_its_deadline_and_grants_nothing() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let leases = twenty(&a).await;
    ground.set_available(0, false);
    ground.set_available(2, false);
    tokio::time::sleep(TTL).await;
    for lease in &leases {
        assert!(!lease.held().is_held());
        let Ended::Lost(lost) = lease.held().lost().await else { panic!("not lost") };
        assert_eq!(lost.reason(), &LostReason::Deadline);
    }
    tokio::time::sleep(TTL * 3).await;
    for number in 0..20 {
        let error = b.try_acquire(format!("job {number}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_members_are_back_a_waiter_holds_within_a_term_and_a_poll() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let lease = a.acquire("job").await.unwrap();
    let waiter = tokio::spawn(async move { b.acquire("job").await.unwrap() });
    ground.set_available(0, false);
    ground.set_available(1, false);
    tokio::time::sleep(TTL * 2).await;
    assert!(!lease.held().is_held() && !waiter.is_finished());
    ground.set_available(0, true);
    ground.set_available(1, true);
    std::mem::forget(lease);
    let back = tokio::time::Instant::now();
    let next = waiter.await.unwrap();
    assert!(back.elapsed() <= TTL + TTL / 100 + Duration::from_secs(2) + ATTEMPT, "{:?}", back.elapsed());
    assert!(next.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_delays_neither_an_acquire_nor_a_renewal_nor_a_release() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    a.acquire("warm").await.unwrap().release().await.unwrap();
    for verb in [Verb::Read, Verb::Claim, Verb::Renew, Verb::Burn, Verb::Release] {
        ground.members[1].on(verb).always().fault(Fault::Hang);
    }
    let begun = tokio::time::Instant::now();
    let lease = a.acquire("job").await.unwrap();
    lease.renew().await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(20), "{:?}", begun.elapsed());
    tokio::time::sleep(TTL * 5).await;
    assert!(lease.held().is_held());
    let begun = tokio::time::Instant::now();
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert!(begun.elapsed() < Duration::from_millis(20), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_arrives_after_its_caller_gave_up_locks_nobody_out() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    for member in &ground.members {
        member.on(Verb::Claim).fault(Fault::ApplyLate(Duration::from_secs(7)));
    }
    assert!(a.try_acquire("job").await.is_ok(), "it is made anew");
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Whoever holds now, a late copy of the first claim has not come between.
    a.shutdown(Duration::from_secs(1)).await.unwrap();
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
}

#[tokio::test(start_paused = true)]
async fn late_answers_and_copies_of_renewals_change_nothing() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let lease = a.acquire("job").await.unwrap();
    for (member, fault) in
        [Fault::AnswerLate(ATTEMPT * 2), Fault::Twice(TTL / 2), Fault::ApplyLate(TTL / 2)].into_iter().enumerate()
    {
        ground.members[member].on(Verb::Renew).times(4).fault(fault);
    }
    tokio::time::sleep(TTL * 4).await;
    assert!(lease.held().is_held());
    lease.release().await.unwrap();
    tokio::time::sleep(TTL).await;
    assert_eq!(ground.held_at("job").await, [false; 3], "no late copy has changed the record");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_on_a_minority_extends_nothing() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let lease = a.acquire("job").await.unwrap();
    settle().await;
    ground.members[0].on(Verb::Renew).always().fault(Fault::LoseRequest);
    ground.members[1].on(Verb::Renew).always().fault(Fault::LoseRequest);
    tokio::time::sleep(TTL - Duration::from_secs(3)).await;
    assert!(ground.record(2, "job").await.unwrap().version > Some(2), "the third goes on accepting");
    assert!(!lease.held().is_held());
}

#[tokio::test(start_paused = true)]
async fn acceptances_of_different_calls_are_not_added_up() {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    store.claim(&claim).await.unwrap();
    settle().await;
    // Every member accepts one of three, and none a majority of one.
    for version in 2..8 {
        let accepts = version as usize % 3;
        for away in (0..3).filter(|member| *member != accepts) {
            ground.members[away].on(Verb::Renew).fault(Fault::LoseRequest);
        }
        let answer = store.renew(&[renewal(&claim, version)]).await.remove(0);
        assert!(answer.is_err(), "{answer:?}");
        settle().await;
        assert_eq!(ground.record(accepts, "job").await.unwrap().version, Some(version));
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_dropped_half_way_leaves_no_claim_behind() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    for dropped_after in 0..40 {
        for member in &ground.members {
            member.on(Verb::Read).after(1).fault(Fault::AnswerLate(Duration::from_millis(10)));
            member.on(Verb::Claim).fault(Fault::AnswerLate(Duration::from_millis(10)));
        }
        let name = format!("job {dropped_after}");
        let limit = Duration::from_millis(dropped_after);
        let _ = tokio::time::timeout(limit, a.acquire(&name)).await;
        ground.heal();
        a.flush().await;
        settle().await;
        let got = b.try_acquire(&name).await.unwrap();
        assert!(matches!(got, Attempt::Acquired(_)), "dropped after {dropped_after} ms");
    }
}

async fn twenty(client: &Leases) -> Vec<Lease> {
    let mut leases = Vec::new();
    for number in 0..20 {
        leases.push(client.acquire(format!("job {number}")).await.unwrap());
    }
    settle().await;
    leases
}

async fn nobody_gets(client: &Leases) {
    for number in 0..20 {
        let attempt = client.try_acquire(format!("job {number}")).await.unwrap();
        assert!(matches!(attempt, Attempt::Held(_)), "job {number} was granted twice");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_member_has_and_no_majority_shows_is_told_as_nobodys() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let election = Election::new(&b, "job");
    let mut observer = election.observe();
    let lease = a.acquire("job").await.unwrap();
    settle().await;
    // A rival's claim that was given back has left a higher token on one member.
    let (theirs, name) = (ground.claim(4_000_000_000_000_000, Expect::Vacant), Name::new("job").unwrap());
    ground.members[2].inner().delete("job");
    let burn = Vacate { name, token: theirs.token, grant: theirs.grant, burn: true, close: None, now_ms: None };
    ground.members[2].inner().vacate(&burn).await.unwrap();
    ground.set_available(1, false);

    let seen = b.inspect("job").await.unwrap();
    assert_eq!((&seen.status, seen.token), (&Status::Held, None), "it may be held, and nobody can say by whom");
    let Attempt::Held(by) = b.try_acquire("job").await.unwrap() else { panic!("it is held") };
    assert_eq!((by.token(), by.is_closed()), (None, false));
    let error = step_down(&b, "job", TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let first = tokio::time::timeout(TTL / 3, observer.next()).await;
    assert!(first.is_err(), "{first:?}");

    ground.set_available(1, true);
    let Sight::Leader(leader) = observer.next().await.unwrap() else { panic!("it leads") };
    assert_eq!(leader.token, lease.token());
}
