//! What seeds have found, as tests of its own.

use std::sync::Arc;
use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::protocol::broken::switch::Guard;
use leasehold::testing::TestClock;
use leasehold::{
    Attempt, Claim, Claimed, Data, Expect, Grant, Lease, Leases, Name, Renew, Renewal, Renewed, Store, Vacate, Vacated,
};

use super::support::azure::{Fake, Fault, Op, State};

const NAME: &str = "a";

/// A service, and a client of it that renews only when it is told to.
struct Bench {
    service: Fake,
    clock: TestClock,
    /// Another test of this process breaks rules on purpose.
    _whole: Guard,
}

impl Bench {
    fn new() -> Self {
        let clock = TestClock::new();
        Self { service: Fake::new(clock.clone()), clock, _whole: Guard::nothing_broken() }
    }

    fn store(&self) -> AzureBlobStore {
        let builder = AzureBlobStore::builder(self.service.container_url(), Credential::sas("sv=1&sig=any"));
        builder.http_client(self.service.http_client()).unverified().unwrap()
    }

    fn client(&self, ttl: u64, seed: u64) -> Leases {
        let builder = Leases::builder(Arc::new(self.store())).ttl(Duration::from_secs(ttl)).margin(Duration::ZERO);
        builder.renewal(Renewal::Manual).clock(self.clock.another(seed)).build().unwrap()
    }

    fn is_leased(&self) -> bool {
        matches!(self.service.peek(NAME).unwrap().state, State::Leased(_))
    }
}

async fn acquired(leases: &Leases) -> Lease {
    match leases.try_acquire(NAME).await.unwrap() {
        Attempt::Acquired(lease) => lease,
        Attempt::Held(by) => panic!("held: {by}"),
    }
}

fn claim(token: u64, grant: u128, expect: Expect) -> Claim {
    let (name, grant) = (Name::new(NAME).unwrap(), Grant::from_bits(grant));
    let (expires_at_ms, holder, data, set) = (None, None, None, None);
    Claim { name, token, grant, ttl_ms: 15_000, expires_at_ms, holder, data, set, expect }
}

/// Whether the store has taken a renewal of token 1 with this payload.
async fn renewed(store: &AzureBlobStore, grant: u128, version: u64, data: &[u8]) -> bool {
    let (name, grant, data) = (Name::new(NAME).unwrap(), Grant::from_bits(grant), Data::new(data));
    let (expires_at_ms, holder, set) = (None, None, None);
    let body = Renew { name, token: 1, grant, version, ttl_ms: 15_000, expires_at_ms, holder, data, set };
    let answer = store.renew(&[body]).await.pop().unwrap();
    answer.is_ok_and(|answer| answer.value == Renewed::Renewed(None))
}

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Found by seed 83: a renewal is for as long as the first holder had asked, and the second believed for its own term.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_handed_over_has_the_term_of_whoever_takes_it_up() {
    for (first, second) in [(15, 60), (60, 15)] {
        let bench = Bench::new();
        let handover = acquired(&bench.client(first, 2)).await.into_handover().await.unwrap();
        let lease = bench.client(second, 3).resume(handover).await.unwrap();
        // The service's second and twice the rate are taken off.
        wait(second - 3).await;
        assert!(lease.held().is_held() && bench.is_leased());
        wait(4).await;
        assert!(!lease.held().is_held() && !bench.is_leased());
    }
}

/// Found by the number of requests of some seeds. "A client may need to wait up to one minute before a new lease can be
/// acquired": the service says that the lease has expired, and refuses whoever asks for it.
#[tokio::test(start_paused = true)]
async fn a_waiter_does_not_storm_a_service_that_is_busy_after_an_expiry() {
    const BUSY: u64 = 60;
    let bench = Bench::new();
    bench.service.set(|knobs| knobs.leeway.busy_after_expiry = Duration::from_secs(BUSY));
    std::mem::forget(acquired(&bench.client(15, 2)).await);
    let waiter = bench.client(15, 3);
    bench.service.forget_requests();
    waiter.acquire(NAME).await.unwrap().release().await.unwrap();
    let asked = bench.service.count(Op::Acquire) as u64;
    // It looks once a second, and asks when it is told that it may.
    assert!((BUSY / 2..BUSY * 2).contains(&asked), "{asked}");
}

/// Nothing but the lease's id guards a change of it. So the clean-up of a hand-over that was not answered must not be
/// content with a tag that has moved, by a payload of the old holder that was late.
#[tokio::test(start_paused = true)]
async fn a_hand_over_whose_clean_up_is_settled_takes_nothing_up_any_more() {
    const OLD: u128 = 7;
    const NEW: u128 = 8;
    let (bench, name) = (Bench::new(), Name::new(NAME).unwrap());
    let (old, new) = (bench.store(), bench.store());
    let granted = old.claim(&claim(1, OLD, Expect::Vacant)).await.unwrap().value;
    assert_eq!(granted, Claimed::Granted);
    bench.service.on(Op::Change).fault(Fault::ApplyLate(Duration::from_secs(3)));
    new.claim(&claim(2, NEW, Expect::Handed(Grant::from_bits(OLD)))).await.unwrap_err();
    let (grant, data) = (Grant::from_bits(OLD), Data::new(b"late"));
    let (expires_at_ms, holder, set) = (None, None, None);
    let late =
        Renew { name: name.clone(), token: 1, grant, version: 2, ttl_ms: 15_000, expires_at_ms, holder, data, set };
    let renewed = old.renew(&[late]).await.pop().unwrap().unwrap().value;
    assert_eq!(renewed, Renewed::Renewed(None));
    let burn = Vacate { name, token: 2, grant: Grant::from_bits(NEW), burn: true, close: None, now_ms: None };
    while new.vacate(&burn).await.unwrap().value != Vacated::Vacated {
        wait(1).await;
    }
    wait(10).await;
    assert_eq!(bench.service.peek(NAME).unwrap().state, State::Available);
}

/// Whoever sends a payload can stop half-way to be polled, and go on when a newer one is stored.
#[tokio::test(start_paused = true)]
async fn an_older_payload_that_goes_on_late_does_not_replace_a_newer_one() {
    const GRANT: u128 = 7;
    let bench = Bench::new();
    let store = bench.store();
    let granted = store.claim(&claim(1, GRANT, Expect::Vacant)).await.unwrap().value;
    assert_eq!(granted, Claimed::Granted);
    let gate = bench.service.on(Op::Renew).pause_after();
    let older = store.clone();
    let older = tokio::spawn(async move { renewed(&older, GRANT, 2, b"older").await });
    gate.reached().await;
    assert!(renewed(&store, GRANT, 3, b"newer").await);
    gate.open();
    assert!(!older.await.unwrap());
    let view = store.read(&Name::new(NAME).unwrap()).await.unwrap().value;
    assert_eq!(view.record.unwrap().data, Data::new(b"newer"));
}
