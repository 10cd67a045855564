//! A list of members that is changed, or a wiped member brought back, with errors in the middle.

use std::time::Duration;

use leasehold::{
    Attempt, Claimed, Close, Data, ErrorKind, Expect, Grant, Name, Store, StoreErrorKind, Unreadable, Vacate,
};

use crate::ground::{Fault, Ground, MARK, TTL, Verb, release, settle};

/// A lease that was closed with an outcome, and one that was released; then a member is wiped.
async fn closed_and_wiped(wiped: usize) -> Ground {
    let ground = Ground::new().await;
    let a = ground.client(1);
    a.acquire("done").await.unwrap().close(TTL * 100, Data::new(b"outcome")).await.unwrap();
    settle().await;
    a.shutdown(Duration::from_secs(1)).await.unwrap();
    for name in [MARK, "done", "job"] {
        ground.members[wiped].inner().delete(name);
    }
    tokio::time::sleep(TTL * 2).await;
    ground
}

#[tokio::test(start_paused = true)]
async fn a_move_that_is_made_again_after_an_error_keeps_the_outcomes() {
    for (wiped, failing, verb) in every_place() {
        let ground = closed_and_wiped(wiped).await;
        ground.members[failing].on(verb).of("done").fault(Fault::Fail(StoreErrorKind::Unavailable));
        ground.store(3).move_from(&ground.store(4)).await.unwrap_err();
        tokio::time::sleep(TTL * 2).await;
        ground.store(5).move_from(&ground.store(6)).await.unwrap();
        ground.store(5).set_up_again().await.unwrap();
        let told = ground.client(7).try_acquire("done").await.unwrap();
        let Attempt::Held(by) = told else { panic!("forgotten: {wiped} wiped, {verb:?} failed at {failing}") };
        assert_eq!((by.is_closed(), by.data()), (true, Some(&b"outcome"[..])), "{wiped} {failing} {verb:?}");
    }
}

fn every_place() -> Vec<(usize, usize, Verb)> {
    let places = (0..3).flat_map(|wiped| (0..3).map(move |failing| (wiped, failing)));
    places.flat_map(|(wiped, failing)| [Verb::Claim, Verb::Burn].map(|verb| (wiped, failing, verb))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_wiped_member_of_the_old_list_does_not_count_for_its_majority() {
    let ground = closed_and_wiped(2).await;
    let mut members = vec![ground.members[0].clone(), ground.members[2].clone()];
    members.extend_from_slice(&Ground::others_bare().members[..1]);
    members.sort_by_key(|member| member.describe().identity);
    let next = Ground { clock: ground.clock.clone(), members };
    ground.set_available(1, false);
    // One that has forgotten everything, and one that may have been away, cannot tell what was granted last.
    let error = next.store(3).move_from(&ground.store(4)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Misconfigured), "{error}");
}

/// A lease that was closed with an outcome which these members have recorded; then every client is stopped.
async fn closed_at(recorded: [bool; 3]) -> Ground {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let lease = a.acquire("done").await.unwrap();
    settle().await;
    for member in (0..3).filter(|member| !recorded[*member]) {
        ground.members[member].on(Verb::Burn).always().of("done").fault(Fault::LoseRequest);
    }
    let majority = recorded.iter().filter(|recorded| **recorded).count() >= 2;
    assert_eq!(lease.close(TTL * 100, Data::new(b"outcome")).await.is_ok(), majority);
    settle().await;
    let _ = a.shutdown(Duration::from_secs(1)).await;
    ground.heal();
    tokio::time::sleep(TTL * 2).await;
    ground
}

/// The list of which the first member was replaced by a new one.
fn first_replaced(ground: &Ground) -> Ground {
    let mut members = ground.members[1..].to_vec();
    members.extend_from_slice(&Ground::others_bare().members[..1]);
    members.sort_by_key(|member| member.describe().identity);
    Ground { clock: ground.clock.clone(), members }
}

async fn outcome_of(next: &Ground) -> Option<Vec<u8>> {
    next.store(5).set_up_again().await.unwrap();
    match next.client(7).try_acquire("done").await.unwrap() {
        Attempt::Held(by) if by.is_closed() => by.data().map(<[u8]>::to_vec),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_kept_though_one_of_those_that_recorded_it_does_not_answer_the_move() {
    let ground = closed_at([true, true, false]).await;
    let next = first_replaced(&ground);
    ground.set_available(0, false);
    next.store(3).move_from(&ground.store(4)).await.unwrap();
    assert_eq!(outcome_of(&next).await.as_deref(), Some(&b"outcome"[..]));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_a_move_had_begun_to_bring_is_kept_though_the_member_that_showed_it_is_gone() {
    let ground = closed_at([true, true, false]).await;
    let next = first_replaced(&ground);
    // The only other member that has recorded it is claimed, and not closed again.
    ground.members[1].on(Verb::Burn).of("done").fault(Fault::Fail(StoreErrorKind::Unavailable));
    next.store(3).move_from(&ground.store(4)).await.unwrap_err();
    ground.set_available(0, false);
    tokio::time::sleep(TTL * 2).await;
    next.store(5).move_from(&ground.store(6)).await.unwrap();
    assert_eq!(outcome_of(&next).await.as_deref(), Some(&b"outcome"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_closing_of_a_minority_is_no_outcome_after_a_move_that_is_made_again() {
    let ground = Ground::new().await;
    let claim = ground.claim(5, Expect::Vacant);
    assert_eq!(ground.store(1).claim(&claim).await.unwrap().value, Claimed::Granted);
    settle().await;
    // Its holder dies when one member has it. An outcome without data, as the record before it has none.
    let close = Some(Close { for_ms: 90_000_000, until_ms: None, data: None });
    let burn = Vacate { burn: true, close, ..release(&claim) };
    ground.members[0].inner().vacate(&burn).await.unwrap();
    tokio::time::sleep(TTL * 2).await;
    let next = first_replaced(&ground);
    for member in &ground.members[1..] {
        member.on(Verb::Burn).of("job").fault(Fault::Fail(StoreErrorKind::Unavailable));
        next.store(3).move_from(&ground.store(4)).await.unwrap_err();
        tokio::time::sleep(TTL * 2).await;
    }
    next.store(5).move_from(&ground.store(6)).await.unwrap();
    next.store(5).set_up_again().await.unwrap();
    assert!(next.client(7).try_acquire("job").await.unwrap().acquired().is_some(), "nobody has closed it");
}

#[tokio::test(start_paused = true)]
async fn whether_a_record_was_closed_is_not_guessed_where_a_later_grant_may_have_opened_it() {
    let ground = closed_at([true, true, false]).await;
    // The third is burnt by a later claim.
    let (record, store) = (ground.record(2, "done").await.unwrap(), ground.members[2].inner());
    let name = Name::new("done").unwrap();
    let grant = record.grant.unwrap();
    let burn = Vacate { name, token: record.token, grant, burn: true, close: None, now_ms: None };
    store.vacate(&burn).await.unwrap();
    let later = Vacate { token: record.token + 5, grant: Grant::from_bits(1), ..burn };
    store.vacate(&later).await.unwrap();
    let next = first_replaced(&ground);
    ground.set_available(0, false);
    let error = next.store(3).move_from(&ground.store(4)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("have not answered"), "{error}");
    ground.set_available(0, true);
    next.store(3).move_from(&ground.store(4)).await.unwrap();
    assert_eq!(outcome_of(&next).await.as_deref(), Some(&b"outcome"[..]));
}

#[tokio::test(start_paused = true)]
async fn records_are_moved_from_tables_that_have_items_which_are_no_leases() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let lease = a.acquire("job").await.unwrap();
    let token = lease.token();
    lease.release().await.unwrap();
    settle().await;
    a.shutdown(Duration::from_secs(1)).await.unwrap();
    tokio::time::sleep(TTL * 2).await;
    ground.members.iter().for_each(|one| one.inner().put_unreadable("other", Unreadable::Format).unwrap());
    let next = first_replaced(&ground);
    assert_eq!(next.store(3).move_from(&ground.store(4)).await.unwrap(), 1);
    for member in 0..3 {
        assert!(next.record(member, "job").await.unwrap().token > token.as_u64(), "member {member}");
    }
}

/// One that a list skips is not absent: what was granted last may be there.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_not_taken_for_absent_by_a_move() {
    let ground = closed_at([true, true, true]).await;
    let mut members = ground.members[2..].to_vec();
    members.extend_from_slice(&Ground::others_bare().members[..2]);
    members.sort_by_key(|member| member.describe().identity);
    let next = Ground { clock: ground.clock.clone(), members };
    ground.members[0].inner().put_unreadable("done", Unreadable::Format).unwrap();
    ground.set_available(1, false);
    let error = next.store(3).move_from(&ground.store(4)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable, "{error}");
    ground.set_available(1, true);
    next.store(3).move_from(&ground.store(4)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_move_to_a_list_that_is_set_up_already_is_refused_and_changes_nothing() {
    let ground = closed_at([true, true, true]).await;
    // A majority of the old members leaves, so the old list still looks whole afterwards.
    let mut members = vec![ground.members[0].clone()];
    members.extend_from_slice(&Ground::others_bare().members[..2]);
    members.sort_by_key(|member| member.describe().identity);
    let next = Ground { clock: ground.clock.clone(), members };
    next.store(3).move_from(&ground.store(4)).await.unwrap();
    assert_eq!(outcome_of(&next).await.as_deref(), Some(&b"outcome"[..]));
    let client = next.client(8);
    let lease = client.acquire("new").await.unwrap();
    let error = next.store(9).move_from(&ground.store(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("set up together already"), "{error}");
    tokio::time::sleep(TTL * 2).await;
    assert!(lease.held().is_held());
}
