//! What becomes of claims and closings on Azure Blob of which only a part can be done.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{
    Claim, Claimed, Data, Ended, ErrorKind, Expect, Grant, Leases, Name, Renew, Renewed, Vacate, Vacated, Written,
};

use crate::support::azure::{ACCOUNT, Fake, Fault, Op, State};

const TERM: Duration = Duration::from_secs(15);

fn on(fake: &Fake) -> AzureBlobStore {
    let builder = AzureBlobStore::builder(fake.container_url(), Credential::shared_key(ACCOUNT, "a2V5"));
    builder.http_client(fake.http_client()).unverified().unwrap()
}

fn claim(token: u64, grant: u128, expect: Expect) -> Claim {
    Claim {
        name: Name::new("job").unwrap(),
        token,
        grant: Grant::from_bits(grant),
        ttl_ms: 15_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect,
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_lease_is_being_given_back_is_not_granted_by_its_next_copy() {
    let fake = Fake::new(TestClock::seeded(1));
    let store = on(&fake);
    // The record cannot be written, and the release that follows is on its way for 5 seconds.
    fake.on(Op::SetMetadata).fault(Fault::Answer(412, "LeaseIdMismatchWithBlobOperation"));
    fake.on(Op::Release).fault(Fault::ApplyLate(Duration::from_secs(5)));
    let claim = claim(7, 0xa, Expect::Vacant);
    store.claim(&claim).await.unwrap_err();
    let again = store.claim(&claim).await.unwrap().value;
    assert!(matches!(again, Claimed::Refused(_)), "granted, and a release of it is on its way: {again:?}");
    // What is owed then settles it.
    let Claim { name, token, grant, .. } = claim;
    let burn = Vacate { name, token, grant, burn: true, close: None, now_ms: None };
    assert!(matches!(store.vacate(&burn).await.unwrap().value, Vacated::Vacated));
    assert_eq!(fake.peek("job").unwrap().state, State::Available);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_comes_late_does_not_end_a_hand_over() {
    let fake = Fake::new(TestClock::seeded(2));
    let (first, second) = (on(&fake), on(&fake));
    first.claim(&claim(7, 0xa, Expect::Vacant)).await.unwrap();
    // The holder's payload is written when the next one has looked and not yet changed the lease's id.
    fake.on(Op::Change).before(|fake| {
        fake.edit_metadata("job", |pairs| _ = pairs.insert("lh_data".into(), "_bGF0ZQ".into()));
    });
    let handed = claim(8, 0xb, Expect::Handed(Grant::from_bits(0xa)));
    assert!(matches!(second.claim(&handed).await.unwrap().value, Claimed::Granted));
    let renewal = Renew {
        name: handed.name.clone(),
        token: 8,
        grant: handed.grant,
        version: 2,
        ttl_ms: 15_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    };
    assert!(matches!(second.renew(&[renewal]).await.remove(0).unwrap().value, Renewed::Renewed(None)));
    assert_eq!(second.read(&handed.name).await.unwrap().value.token(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_does_not_fit_beside_others_pairs_releases_and_says_that_nothing_was_recorded() {
    let clock = TestClock::seeded(3);
    let fake = Fake::new(clock.clone());
    let leases = Leases::builder(on(&fake)).clock(clock).ttl(TERM).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    fake.edit_metadata("job", |pairs| _ = pairs.insert("theirs".into(), "x".repeat(6000)));
    let outcome = Data::new(&[7; 4000]).unwrap();
    let error = lease.close(Duration::from_secs(60), Some(outcome)).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (ErrorKind::Invalid, Written::No), "{error}");
    assert_eq!(fake.peek("job").unwrap().state, State::Available);
    leases.acquire("job").await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_looked_between_closing_and_release_gets_in_when_the_time_is_over() {
    let clock = TestClock::seeded(4);
    let fake = Fake::new(clock.clone());
    let build = || Leases::builder(on(&fake)).clock(clock.clone()).ttl(TERM).build().unwrap();
    let (holder, waiter) = (build(), build());
    let lease = holder.acquire("job").await.unwrap();
    // The closing is written, and the release after it comes two polls later.
    fake.on(Op::Release).fault(Fault::Delay(Duration::from_secs(2)));
    let waiting = tokio::spawn(async move { waiter.acquire_within("job", Duration::from_secs(120)).await });
    let closed = lease.close(Duration::from_secs(20), None).await.unwrap();
    assert_eq!(closed, Ended::Released);
    let lease = waiting.await.unwrap().expect("the closing is over");
    lease.release().await.unwrap();
}
