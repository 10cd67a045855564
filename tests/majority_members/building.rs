//! What a majority is built of, and which stores count as members.

use std::sync::Arc;
use std::time::Duration;

use leasehold::majority::MajorityStore;
use leasehold::{
    Attempt, Close, Description, Error, ErrorKind, Expect, Leases, MemoryStore, Name, Renewal, Store, StoreErrorKind,
    TokenFloor, Unreadable, Vacate,
};

use crate::ground::{Fault, Ground, MARK, TTL, Verb, settle};
use crate::support::scripted::Scripted;

#[test]
fn an_even_number_of_members_fewer_than_three_or_more_than_five_are_refused() {
    for number in [0, 1, 2, 4, 6, 7] {
        let error = MajorityStore::new((0..number).map(|_| MemoryStore::new())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(&format!("three or five members, not {number}")), "{error}");
    }
    for number in [3, 5] {
        assert!(MajorityStore::new((0..number).map(|_| MemoryStore::new())).is_ok());
    }
}

#[test]
fn two_names_for_one_store_are_refused() {
    let store = MemoryStore::new();
    let error = MajorityStore::new([store.clone(), MemoryStore::new(), store]).unwrap_err();
    assert!(error.to_string().contains("the same store"), "{error}");
}

#[test]
fn a_replica_a_store_that_is_not_linearizable_and_a_majority_are_no_members() {
    let with = |store: Arc<dyn Store>| {
        MajorityStore::builder().member(store).member(MemoryStore::new()).member(MemoryStore::new()).build()
    };
    let refused = |result: Result<MajorityStore, Error>, kind: ErrorKind, word: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(word), "{error}");
    };
    let odd = |change: fn(&mut Description)| Arc::new(Odd(MemoryStore::new(), change));
    refused(with(odd(|about| about.replica = true)), ErrorKind::Misconfigured, "replica");
    refused(with(odd(|about| about.linearizable = false)), ErrorKind::Misconfigured, "linearizable");
    refused(
        with(odd(|about| about.ttl = Duration::from_secs(90_000)..=Duration::from_secs(90_001))),
        ErrorKind::Invalid,
        "no term",
    );
    let inner = MajorityStore::new([MemoryStore::new(), MemoryStore::new(), MemoryStore::new()]).unwrap();
    refused(with(Arc::new(inner)), ErrorKind::Invalid, "majority");
}

#[test]
fn the_order_of_the_members_does_not_matter() {
    let stores: Vec<_> = (0..3).map(|_| MemoryStore::new()).collect();
    let of = |order: [usize; 3]| MajorityStore::new(order.map(|at| stores[at].clone())).unwrap().describe();
    assert_eq!(of([0, 1, 2]), of([2, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn members_that_were_not_set_up_are_refused_and_nothing_is_written() {
    let ground = Ground::bare(3);
    let error = ground.client(1).acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("set_up"), "{error}");
    for member in 0..3 {
        assert_eq!(ground.record(member, MARK).await, None, "the library never writes a mark by itself");
        assert_eq!(ground.record(member, "job").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_up_is_written_once_and_one_that_was_interrupted_is_completed() {
    let ground = Ground::bare(3);
    ground.members[2].on(Verb::Burn).fault(Fault::LoseRequest);
    assert!(ground.store(1).set_up().await.is_err());
    // Two are marked: nobody can tell this from a third that was wiped.
    assert_eq!(ground.store(1).set_up().await.unwrap_err().kind(), ErrorKind::Refused);
    ground.store(1).set_up_again().await.unwrap();
    let before = ground.record(0, MARK).await;
    ground.store(2).set_up().await.unwrap();
    assert_eq!(ground.record(0, MARK).await, before);
    let first = Ground::bare(3);
    first.members[1].on(Verb::Burn).fault(Fault::LoseRequest);
    assert!(first.store(1).set_up().await.is_err());
    first.store(1).set_up().await.unwrap();
    first.client(2).acquire("job").await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_wiped_does_not_count_and_set_up_does_not_bring_it_back() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    a.acquire("job").await.unwrap().release().await.unwrap();
    wipe(&ground, 1).await;
    tokio::time::sleep(TTL).await;
    let lease = a.acquire("job").await.unwrap();
    tokio::time::sleep(TTL).await;
    assert_eq!(ground.held_at("job").await, [true, false, true], "the wiped one is not joined");
    ground.set_available(2, false);
    tokio::time::sleep(TTL).await;
    assert!(!lease.held().is_held(), "one member and a wiped one are no majority");
    let error = ground.client(2).try_acquire("job").await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misconfigured | ErrorKind::Unavailable), "{error}");
    ground.set_available(2, true);
    let error = ground.store(3).set_up().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("wiped"), "{error}");
    assert_eq!(ground.record(1, MARK).await, None);
}

#[tokio::test(start_paused = true)]
async fn two_members_that_were_wiped_grant_nothing() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let lease = a.acquire("job").await.unwrap();
    wipe(&ground, 0).await;
    wipe(&ground, 2).await;
    tokio::time::sleep(TTL * 2).await;
    assert!(!lease.held().is_held());
    let error = a.try_acquire("other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("no mark of this majority"), "{error}");
    assert_eq!(ground.client(2).try_acquire("job").await.unwrap_err().kind(), ErrorKind::Misconfigured);
}

#[tokio::test(start_paused = true)]
async fn a_store_with_the_mark_of_another_majority_does_not_count() {
    let (ground, other) = (Ground::new().await, Ground::others().await);
    // Somebody has copied a foreign mark over a member's own, as a restore into the wrong table would.
    let foreign = other.members[0].inner().read(&Name::new(MARK).unwrap()).await.unwrap().value.record.unwrap();
    let close = Close { for_ms: 1000, until_ms: None, data: foreign.data };
    let mark = Name::new(MARK).unwrap();
    let grant = leasehold::Grant::from_bits(1);
    let copy = Vacate { name: mark, token: 9, grant, burn: true, close: Some(close), now_ms: None };
    ground.members[0].inner().vacate(&copy).await.unwrap();
    let lease = ground.client(1).acquire("job").await.unwrap();
    tokio::time::sleep(TTL).await;
    assert_eq!(ground.held_at("job").await, [false, true, true]);
    assert!(lease.held().is_held());
    assert_eq!(ground.store(2).set_up().await.unwrap_err().kind(), ErrorKind::Misconfigured);
}

#[tokio::test(start_paused = true)]
async fn clients_with_another_list_of_members_are_told_so() {
    let ground = Ground::new().await;
    let lease = ground.client(1).acquire("job").await.unwrap();
    settle().await;
    // Two of the same stores, and another one; set up again for it by an administrator who forgot the first client.
    let clock = ground.clock.another(77);
    let third = Scripted::new(MemoryStore::like_a_table(clock.clone()), clock);
    let members = vec![ground.members[0].clone(), ground.members[1].clone(), third];
    let other = Ground { clock: ground.clock.clone(), members };
    other.store(2).set_up_again().await.unwrap();
    let error = other.client(3).try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("another list of members"), "{error}");
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_client_that_uses_a_member_alone_is_told_from_the_majoritys() {
    let ground = Ground::new().await;
    let alone = Leases::builder(ground.members[1].clone()).clock(ground.clock.clone()).build().unwrap();
    let _lease = alone.acquire("job").await.unwrap();
    let error = ground.client(1).try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("that store alone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_mark_is_no_lease() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    assert_eq!(a.try_acquire(MARK).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(a.inspect(MARK).await.unwrap_err().kind(), ErrorKind::Invalid);
    a.acquire("job").await.unwrap().release().await.unwrap();
    let listed = a.list("").all().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["job"]);
}

/// After the records were deleted by hand only the members' dates keep tokens rising.
#[tokio::test(start_paused = true)]
async fn tokens_rise_after_a_deletion_by_the_members_own_dates() {
    let ground = Ground::new().await;
    let store = ground.store(9);
    assert_eq!(store.token_floor(&leasehold::Clock::stamp(&ground.clock)), TokenFloor::Unknown);
    let first = ground.client(1).acquire("job").await.unwrap();
    let token = first.token();
    assert!(token.as_u64() > 1_700_000_000_000, "{token}");
    first.release().await.unwrap();
    ground.members.iter().for_each(|member| member.inner().delete("job"));
    tokio::time::sleep(TTL).await;
    assert!(ground.client(2).acquire("job").await.unwrap().token() > token);
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_record_cannot_be_read_is_left_alone() {
    let ground = Ground::new().await;
    ground.members[1].inner().put_unreadable("job", Unreadable::Format).unwrap();
    let lease = ground.client(1).acquire("job").await.unwrap();
    tokio::time::sleep(TTL).await;
    assert!(lease.held().is_held());
    ground.members[0].inner().put_unreadable("both", Unreadable::Format).unwrap();
    ground.members[1].inner().put_unreadable("both", Unreadable::Format).unwrap();
    assert_eq!(ground.client(2).try_acquire("both").await.unwrap_err().kind(), ErrorKind::Unreadable);
}

#[tokio::test(start_paused = true)]
async fn manual_renewal_needs_a_majority_that_leaves_nothing_behind() {
    let ground = Ground::new().await;
    let build = |store: MajorityStore| {
        Leases::builder(store).renewal(Renewal::Manual).ttl(TTL).clock(ground.clock.clone()).build()
    };
    let error = build(ground.store(1)).unwrap_err();
    assert!(error.to_string().contains("wait_for_all"), "{error}");
    let leases = build(ground.builder(2).wait_for_all(Duration::from_secs(1)).build().unwrap()).unwrap();
    ground.members[1].on(Verb::Claim).fault(Fault::AnswerLate(Duration::from_millis(500)));
    let begun = tokio::time::Instant::now();
    let Attempt::Acquired(lease) = leases.try_acquire("job").await.unwrap() else { panic!("held") };
    assert!(begun.elapsed() >= Duration::from_millis(500), "it has waited for the slowest");
    ground.members.iter().for_each(Scripted::forget_calls);
    tokio::time::sleep(TTL / 2).await;
    assert!(ground.members.iter().all(|member| member.total() == 0), "nothing runs between two calls");
    ground.members[2].on(Verb::Renew).fault(Fault::Hang);
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_a_member_list_of_its_own_is_invalid() {
    let ground = Ground::new().await;
    let claim = leasehold::Claim { set: Some(leasehold::MemberSet(1)), ..ground.claim(5, Expect::Vacant) };
    assert_eq!(ground.store(1).claim(&claim).await.unwrap_err().kind, StoreErrorKind::Invalid);
    assert_eq!(ground.record(0, "job").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_members_is_changed_with_tokens_above_the_old_ones_and_the_outcomes_kept() {
    let ground = Ground::new().await;
    let a = ground.client(1);
    let free = a.acquire("job").await.unwrap();
    let token = free.token();
    free.release().await.unwrap();
    a.acquire("done").await.unwrap().close(TTL, leasehold::Data::new(b"outcome")).await.unwrap();
    let dead = a.acquire("dead").await.unwrap();
    settle().await;
    a.shutdown(Duration::from_secs(1)).await.unwrap();
    drop(dead);
    // One store leaves the list and another one takes its place.
    let mut members = ground.members[..2].to_vec();
    members.extend_from_slice(&Ground::others_bare().members[..1]);
    members.sort_by_key(|member| member.describe().identity);
    let next = Ground { clock: ground.clock.clone(), members };
    let error = next.client(2).try_acquire("job").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "not before it was moved");
    assert_eq!(next.store(3).move_from(&ground.store(4)).await.unwrap(), 3);
    next.store(3).set_up_again().await.unwrap();
    let b = next.client(5);
    let lease = b.acquire("job").await.unwrap();
    assert!(lease.token() > token);
    let Attempt::Held(by) = b.try_acquire("done").await.unwrap() else { panic!("it is closed") };
    assert_eq!((by.is_closed(), by.data()), (true, Some(&b"outcome"[..])));
    assert!(b.try_acquire("dead").await.unwrap().acquired().is_some());
    // A client with the old list is told so.
    assert_eq!(ground.client(6).try_acquire("job").await.unwrap_err().kind(), ErrorKind::Misconfigured);
}

async fn wipe(ground: &Ground, member: usize) {
    for name in [MARK, "job", "other"] {
        ground.members[member].inner().delete(name);
    }
}

/// A store that describes itself otherwise.
#[derive(Debug)]
struct Odd(MemoryStore, fn(&mut Description));

#[async_trait::async_trait]
impl Store for Odd {
    fn describe(&self) -> Description {
        let mut about = self.0.describe();
        self.1(&mut about);
        about
    }
    async fn claim(&self, claim: &leasehold::Claim) -> leasehold::Answer<leasehold::Claimed> {
        self.0.claim(claim).await
    }
    async fn renew(&self, renewals: &[leasehold::Renew]) -> Vec<leasehold::Answer<leasehold::Renewed>> {
        self.0.renew(renewals).await
    }
    async fn vacate(&self, vacate: &leasehold::Vacate) -> leasehold::Answer<leasehold::Vacated> {
        self.0.vacate(vacate).await
    }
    async fn revoke(&self, revoke: &leasehold::Revoke) -> leasehold::Answer<leasehold::Revoked> {
        self.0.revoke(revoke).await
    }
    async fn ask(&self, ask: &leasehold::Ask) -> leasehold::Answer<leasehold::Asked> {
        self.0.ask(ask).await
    }
    async fn read(&self, name: &Name) -> leasehold::Answer<leasehold::View> {
        self.0.read(name).await
    }
    async fn list(&self, prefix: &str, page: Option<leasehold::Page>) -> leasehold::Answer<leasehold::ListPage> {
        self.0.list(prefix, page).await
    }
    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}
