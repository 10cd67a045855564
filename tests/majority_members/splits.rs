//! Clients that split the members among themselves, and what a crash half-way leaves.

use std::time::Duration;

use leasehold::{Attempt, Claim, Claimed, ErrorKind, Expect, Grant, Status, Store, StoreErrorKind};

use crate::ground::{Fault, Ground, TTL, Verb, settle};

#[tokio::test(start_paused = true)]
async fn three_clients_that_hold_one_member_each_give_back_and_one_gets_it() {
    for seed in 0..10 {
        let ground = Ground::new().await;
        let clients: Vec<_> = (0..3).map(|at| ground.client(seed * 10 + at)).collect();
        for client in &clients {
            client.inspect("job").await.unwrap();
        }
        // Each is first at another member, and the others are slow to get there.
        let late = Duration::from_millis(3);
        for (at, member) in ground.members.iter().enumerate() {
            for call in (0..3).filter(|call| call % 3 != at) {
                member.on(Verb::Claim).after(call).fault(Fault::ArriveLate(late));
            }
        }
        let mut waiting = Vec::new();
        for client in clients {
            waiting.push(tokio::spawn(async move {
                let lease = client.acquire("job").await.unwrap();
                let token = lease.token();
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(lease.held().is_held());
                lease.release().await.unwrap();
                token
            }));
        }
        let mut tokens = Vec::new();
        for one in waiting {
            tokens.push(tokio::time::timeout(TTL * 2, one).await.expect("everybody gets it in the end").unwrap());
        }
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), 3, "each token once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_split_leaves_no_member_locked() {
    let ground = Ground::new().await;
    // A rival is first at two of three, and is gone.
    let store = ground.store(1);
    let claim = ground.claim(2_000_000_000_000_000, Expect::Vacant);
    let rival = |token| Claim { token, grant: Grant::from_bits(u128::from(token)), ..claim.clone() };
    ground.members[0].on(Verb::Claim).fault(Fault::ArriveLate(Duration::from_millis(5)));
    ground.members[1].on(Verb::Claim).fault(Fault::ArriveLate(Duration::from_millis(5)));
    let (mine, theirs) = (rival(claim.token), rival(claim.token + 1));
    let claiming = {
        let (store, mine) = (store.clone(), mine.clone());
        tokio::spawn(async move { store.claim(&mine).await })
    };
    tokio::time::sleep(Duration::from_millis(2)).await;
    for member in &ground.members[..2] {
        let set =
            leasehold::MemberSet(u64::from_str_radix(&store.describe().identity["majority:".len()..], 16).unwrap());
        let theirs = Claim { set: Some(set), ..theirs.clone() };
        assert_eq!(member.inner().claim(&theirs).await.unwrap().value, Claimed::Granted);
    }
    assert!(matches!(claiming.await.unwrap().unwrap().value, Claimed::Refused(_)));
    assert_eq!(ground.held_at("job").await, [true, true, false], "the third was given back");
    assert_eq!(ground.record(2, "job").await.unwrap().token, mine.token, "and is shut to a late copy");
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_some_members_accepted_leaves_only_a_gap_in_the_tokens() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let first = a.acquire("job").await.unwrap();
    let token = first.token();
    first.release().await.unwrap();
    settle().await;
    // Its claim has reached one member only.
    let set = ground.record(0, "job").await.unwrap().set;
    let crashed = Claim { set, ..ground.claim(token.as_u64() + 7, Expect::Vacant) };
    assert_eq!(ground.members[1].inner().claim(&crashed).await.unwrap().value, Claimed::Granted);
    let b = ground.client(2);
    assert_eq!(b.inspect("job").await.unwrap().status, Status::Free);
    let Attempt::Acquired(lease) = b.try_acquire("job").await.unwrap() else { panic!("held") };
    assert!(lease.token().as_u64() > crashed.token);
    tokio::time::sleep(TTL * 2).await;
    assert!(lease.held().is_held());
    assert_eq!(ground.held_at("job").await, [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_two_members_accepted_locks_the_name_for_a_term() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    a.acquire("job").await.unwrap().release().await.unwrap();
    settle().await;
    let last = ground.record(0, "job").await.unwrap();
    let crashed = Claim { set: last.set, ..ground.claim(last.token + 7, Expect::Vacant) };
    for member in &ground.members[..2] {
        assert_eq!(member.inner().claim(&crashed).await.unwrap().value, Claimed::Granted);
    }
    let b = ground.client(2);
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    let begun = tokio::time::Instant::now();
    let lease = b.acquire("job").await.unwrap();
    assert!(begun.elapsed() > TTL && begun.elapsed() < TTL + Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(lease.token().as_u64() > crashed.token);
}

/// A holder's other members must not be spoilt by tries that cannot succeed.
#[tokio::test(start_paused = true)]
async fn a_try_that_must_fail_writes_nothing_anywhere() {
    let ground = Ground::new().await;
    ground.set_available(2, false);
    let lease = ground.client(1).acquire("job").await.unwrap();
    ground.set_available(2, true);
    let b = ground.client(2);
    ground.members.iter().for_each(|member| member.forget_calls());
    for _ in 0..5 {
        assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(_)));
    }
    for member in &ground.members {
        assert_eq!((member.count(Verb::Claim), member.count(Verb::Burn)), (0, 0));
    }
    tokio::time::sleep(TTL * 2 / 3).await;
    assert_eq!(ground.held_at("job").await, [true; 3], "the third could be joined");
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_takes_no_writes_keeps_nobody_out_after_a_split() {
    for away in 0..3 {
        let ground = Ground::new().await;
        let a = ground.client(1);
        for member in &ground.members {
            member.on(Verb::Claim).always().fault(Fault::Fail(StoreErrorKind::Throttled));
        }
        let _ = a.try_acquire("job").await;
        ground.heal();
        // It answers reads, and has no room or no right to write.
        ground.members[away].on(Verb::Claim).always().fault(Fault::Fail(StoreErrorKind::Denied));
        let lease = a.acquire_within("job", TTL).await.expect("the others are a majority");
        assert!(lease.held().is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_forbid_claims_are_an_error_and_no_holder() {
    let ground = Ground::new().await;
    for member in &ground.members[1..] {
        member.on(Verb::Claim).always().fault(Fault::Fail(StoreErrorKind::Denied));
    }
    let error = ground.client(1).try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!(ground.held_at("job").await, [false; 3], "what one of them took was given back");
}
