//! No secret is shown: not in logs, not in errors, not in any `Debug`.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::{ErrorKind, Grant, Leases, Name, Store, StoreErrorKind};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use support::secrets::{PAYLOAD, Planted, tour};

async fn grant_of(store: &Scripted, name: &str) -> Grant {
    let read = store.inner().read(&Name::new(name).expect("good")).await.expect("answered");
    read.value.grant().expect("it is held")
}

#[tokio::test(start_paused = true)]
async fn neither_grants_nor_payloads_are_shown() {
    let mut planted = Planted::new();
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let rival = client(&store, &clock.another(2), "b");
    planted.debug("MemoryStore", store.inner());
    planted.debug("LeasesBuilder", &Leases::builder(store.inner().clone()));
    tour(&mut planted, &leases, &rival, async |name| grant_of(&store, name).await).await;

    store.on(Verb::Claim).times(3).fault(Fault::FailAfterApplying(StoreErrorKind::Unavailable));
    let unknown = leases.request("unknown").data(PAYLOAD).try_acquire().await.expect_err("no answer");
    assert_eq!(unknown.kind(), ErrorKind::Unavailable);
    planted.plant_grant(grant_of(&store, "unknown").await);
    planted.error("an unknown claim", &unknown);
    planted.debug("Leases", &leases);
    leases.flush().await;

    let lease = leases.acquire("lost").await.expect("free");
    planted.plant_grant(grant_of(&store, "lost").await);
    store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Denied));
    tokio::time::sleep(TTL * 2).await;
    planted.error("a loss", &lease.renew().await.expect_err("lost"));
    drop(lease);
    leases.shutdown(Duration::from_secs(1)).await.expect("all answered");
    planted.error("a closed client", &leases.acquire("job").await.expect_err("closed"));

    assert!(planted.grants() >= 6);
    let logs = planted.logs();
    for expected in ["acquired", "a request failed", "a renewal has failed", "a lease was lost"] {
        assert!(logs.contains(expected), "not logged: {expected}\n{logs}");
    }
}

#[tokio::test]
async fn what_stores_are_given_and_give_shows_no_grant_either() {
    let mut planted = Planted::new();
    let grant = Grant::from_bits(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    planted.plant_grant(grant);
    let name = Name::new("job").expect("good");
    let claim = leasehold::Claim {
        name: name.clone(),
        token: 1,
        grant,
        ttl_ms: 60_000,
        expires_at_ms: None,
        holder: None,
        data: leasehold::Data::new(PAYLOAD.as_bytes()),
        set: None,
        expect: leasehold::Expect::Handed(grant),
    };
    planted.debug("Claim", &claim);
    let store = leasehold::MemoryStore::new();
    store.claim(&leasehold::Claim { expect: leasehold::Expect::Vacant, ..claim.clone() }).await.expect("answered");
    let refused = store.claim(&claim).await.expect("answered");
    planted.debug("Claimed", &refused);
    planted.debug("View", &store.read(&name).await.expect("answered"));
    planted.debug("ListPage", &store.list("", None).await.expect("answered"));
    planted.debug("Debug of a store", &store);
    let vacate = leasehold::Vacate { name: name.clone(), token: 1, grant, burn: false, close: None, now_ms: None };
    planted.debug("Vacate", &vacate);
    planted.debug("Revoke", &leasehold::Revoke { name, token: 1, fresh: grant, force: false });
}
