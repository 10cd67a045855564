//! Closing releases: an outcome is one only on a majority.

use std::time::Duration;

use leasehold::{Attempt, Claimed, Close, Data, Ended, ErrorKind, Expect, Status, Store, Vacate, Vacated};

use crate::ground::{Fault, Ground, TTL, Verb, release, settle};

fn outcome() -> Option<Data> {
    Data::new(b"done")
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_on_all_members_and_keeps_everybody_out_for_its_time() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    ground.set_available(1, false);
    let lease = a.acquire("job").await.unwrap();
    ground.set_available(1, true);
    assert_eq!(lease.close(TTL, outcome()).await.unwrap(), Ended::Released);
    settle().await;
    for member in 0..3 {
        let record = ground.record(member, "job").await.unwrap();
        assert_eq!((record.closed.is_some(), record.data), (true, outcome()), "member {member}");
    }
    let Attempt::Held(by) = b.try_acquire("job").await.unwrap() else { panic!("it is closed") };
    assert_eq!(by.data(), Some(&b"done"[..]));
    assert_eq!(b.inspect("job").await.unwrap().status, Status::Closed);
    tokio::time::sleep(TTL + Duration::from_secs(6)).await;
    assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Acquired(_)));
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_only_a_minority_recorded_is_unknown_and_no_outcome() {
    let ground = Ground::new().await;
    let (a, b) = (ground.client(1), ground.client(2));
    let lease = a.acquire("job").await.unwrap();
    settle().await;
    ground.members[0].on(Verb::Burn).always().fault(Fault::LoseRequest);
    ground.members[1].on(Verb::Burn).always().fault(Fault::LoseRequest);
    let error = lease.close(TTL * 2, outcome()).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Unavailable, leasehold::Written::Unknown));
    assert!(ground.record(2, "job").await.unwrap().closed.is_some());
    let shown = b.inspect("job").await.unwrap();
    assert_ne!(shown.status, Status::Closed);
    assert_eq!(shown.data.filter(|data| data.as_bytes() == b"done"), None);
    // The debt that is left is settled when the members are back.
    ground.heal();
    tokio::time::sleep(TTL / 2).await;
    assert_eq!(b.inspect("job").await.unwrap().status, Status::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_closing_delays_the_next_grant_and_shows_one_outcome() {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    let close = Close { for_ms: 90_000, until_ms: None, data: outcome() };
    let burn = Vacate { burn: true, close: Some(close), ..release(&claim) };
    ground.members[2].inner().vacate(&burn).await.unwrap();
    // The other two still carry the grant of the one who crashed.
    let b = ground.client(2);
    let begun = tokio::time::Instant::now();
    let lease = b.acquire("job").await.unwrap();
    assert!(begun.elapsed() > TTL && begun.elapsed() < TTL * 2, "{:?}", begun.elapsed());
    assert_eq!(ground.held_at("job").await, [true, true, false], "the third is shut for itself");
    lease.close(TTL, Data::new(b"second")).await.unwrap();
    settle().await;
    assert_eq!(b.inspect("job").await.unwrap().data, Data::new(b"second"));
    assert_eq!(ground.record(2, "job").await.unwrap().data, Data::new(b"second"), "over the older one");
}

#[tokio::test(start_paused = true)]
async fn a_closing_is_not_ok_because_a_majority_has_answered() {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    // Two members have a later holder by now.
    let set = ground.record(0, "job").await.unwrap().set;
    for member in &ground.members[..2] {
        let next = leasehold::Claim { set, ..ground.claim(9, Expect::Handed(claim.grant)) };
        assert_eq!(member.inner().claim(&next).await.unwrap().value, Claimed::Granted);
    }
    let close = Close { for_ms: 90_000, until_ms: None, data: outcome() };
    let closing = Vacate { close: Some(close), ..release(&claim) };
    let error = store.vacate(&closing).await.unwrap_err();
    assert_eq!(error.applied, leasehold::Applied::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_closing_whose_answers_were_lost_is_recognised_by_what_the_members_show() {
    let ground = Ground::new().await;
    let lease = ground.client(1).acquire("job").await.unwrap();
    settle().await;
    ground.members.iter().for_each(|member| drop(member.on(Verb::Burn).fault(Fault::LoseAnswer)));
    assert_eq!(lease.close(TTL, outcome()).await.unwrap(), Ended::Released);
}

#[tokio::test(start_paused = true)]
async fn a_second_closing_by_the_same_grant_is_told_what_is_there() {
    let ground = Ground::new().await;
    let (store, claim) = (ground.store(1), ground.claim(5, Expect::Vacant));
    assert_eq!(store.claim(&claim).await.unwrap().value, Claimed::Granted);
    let close = Close { for_ms: 90_000, until_ms: None, data: outcome() };
    let closing = Vacate { close: Some(close), ..release(&claim) };
    assert_eq!(store.vacate(&closing).await.unwrap().value, Vacated::Vacated);
    settle().await;
    let Vacated::Refused(view) = store.vacate(&closing).await.unwrap().value else { panic!("accepted twice") };
    assert_eq!(view.record.unwrap().closed.unwrap().by, Some(5));
}
