//! A service, a store on it, and bodies for its verbs.

use std::ops::Deref;
use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{
    Answer, Ask, Claim, Claimed, Close, Data, Expect, Grant, Name, Renew, Renewed, Revoke, StepDown, StoreError,
    Vacate, Vacated, View,
};

use crate::support::azure::{ACCOUNT, Auth, Fake, Op, Peek};

/// The shortest term that the service gives.
pub(crate) const TERM: Duration = Duration::from_secs(15);
/// The account's key. Every request of these tests is signed with it, and the service checks each signature.
const KEY: &str = "a2V5IG9mIGEgdGVzdA==";

pub(crate) fn a() -> Grant {
    Grant::from_bits(0xa)
}

pub(crate) fn b() -> Grant {
    Grant::from_bits(0xb)
}

pub(crate) fn c() -> Grant {
    Grant::from_bits(0xc)
}

/// A service and one store on it. No request of any test may be one that the service finds invalid.
pub(crate) struct Ground {
    pub(crate) fake: Fake,
    /// The service's.
    pub(crate) clock: TestClock,
    pub(crate) store: TestStore,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let clock = TestClock::seeded(99);
        let fake = Fake::new(clock.clone());
        fake.require(Auth::SharedKey { account: ACCOUNT.into(), key: KEY.into() });
        let store = TestStore::on(&fake);
        Self { fake, clock, store }
    }

    /// With a lease that was granted and released by somebody else: its token is 3.
    pub(crate) async fn with_a_free_lease() -> Self {
        let ground = Self::new();
        let other = ground.another();
        other.granted(&claim(3, c())).await;
        other.vacated(&release(3, c())).await;
        ground.forget();
        ground
    }

    /// A store of another process.
    pub(crate) fn another(&self) -> TestStore {
        TestStore::on(&self.fake)
    }

    /// What the service was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Op> {
        let asked = self.fake.requests().iter().map(|seen| seen.op).collect();
        self.forget();
        asked
    }

    pub(crate) fn forget(&self) {
        self.assert_valid();
        self.fake.forget_requests();
    }

    pub(crate) fn job(&self) -> Peek {
        self.fake.peek("job").expect("the blob is there")
    }

    /// What the metadata say.
    pub(crate) fn pair(&self, name: &str) -> Option<String> {
        self.job().metadata.get(name).cloned()
    }

    /// Whose the lease is, if it is anybody's.
    pub(crate) fn leased_by(&self) -> Option<Grant> {
        use crate::support::azure::State;
        match self.job().state {
            State::Leased(id) | State::Breaking(id) => Some(Grant::from_bits(id.as_u128())),
            _ => None,
        }
    }

    fn assert_valid(&self) {
        assert_eq!(self.fake.invalid().len(), 0, "answered 400: {:?}", self.fake.invalid().first());
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_valid();
        }
    }
}

/// A store whose answers are expected.
#[derive(Clone, Debug)]
pub(crate) struct TestStore(AzureBlobStore);

impl TestStore {
    pub(crate) fn on(fake: &Fake) -> Self {
        let builder = AzureBlobStore::builder(fake.container_url(), Credential::shared_key(ACCOUNT, KEY));
        Self(builder.http_client(fake.http_client()).unverified().expect("URL and key are good"))
    }

    pub(crate) async fn claimed(&self, claim: &Claim) -> Claimed {
        value(self.claim(claim).await)
    }

    pub(crate) async fn granted(&self, claim: &Claim) {
        assert_eq!(self.claimed(claim).await, Claimed::Granted);
    }

    /// What the refusal of a claim shows.
    pub(crate) async fn refused(&self, claim: &Claim) -> View {
        match self.claimed(claim).await {
            Claimed::Refused(view) => view,
            Claimed::Granted => panic!("granted"),
        }
    }

    pub(crate) async fn renewed(&self, renew: &Renew) -> Renewed {
        value(self.try_renew(renew).await)
    }

    pub(crate) async fn try_renew(&self, renew: &Renew) -> Answer<Renewed> {
        self.renew(std::slice::from_ref(renew)).await.remove(0)
    }

    pub(crate) async fn vacated(&self, vacate: &Vacate) -> Vacated {
        value(self.vacate(vacate).await)
    }

    pub(crate) async fn view(&self) -> View {
        value(self.read(&name("job")).await)
    }
}

impl Deref for TestStore {
    type Target = AzureBlobStore;

    fn deref(&self) -> &AzureBlobStore {
        &self.0
    }
}

pub(crate) fn value<T>(answer: Answer<T>) -> T {
    answer.expect("the service has answered").value
}

pub(crate) fn error<T: std::fmt::Debug>(answer: Answer<T>) -> StoreError {
    answer.expect_err("there is no good answer")
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

pub(crate) fn claim(token: u64, grant: Grant) -> Claim {
    Claim {
        name: name("job"),
        token,
        grant,
        ttl_ms: 15_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}

/// A claim of what was handed over.
pub(crate) fn resume(token: u64, grant: Grant, from: Grant) -> Claim {
    Claim { expect: Expect::Handed(from), ..claim(token, grant) }
}

pub(crate) fn renew(token: u64, grant: Grant) -> Renew {
    Renew {
        name: name("job"),
        token,
        grant,
        version: 2,
        ttl_ms: 15_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    }
}

pub(crate) fn renew_with(token: u64, grant: Grant, data: &str) -> Renew {
    Renew { data: payload(data), ..renew(token, grant) }
}

pub(crate) fn release(token: u64, grant: Grant) -> Vacate {
    Vacate { name: name("job"), token, grant, burn: false, close: None, now_ms: None }
}

pub(crate) fn burn(token: u64, grant: Grant) -> Vacate {
    Vacate { burn: true, ..release(token, grant) }
}

pub(crate) fn closing(token: u64, grant: Grant) -> Vacate {
    let close = Close { for_ms: 60_000, until_ms: None, data: payload("outcome") };
    Vacate { close: Some(close), ..release(token, grant) }
}

pub(crate) fn revoke(token: u64) -> Revoke {
    Revoke { name: name("job"), token, fresh: Grant::from_bits(99), force: false }
}

pub(crate) fn force(token: u64) -> Revoke {
    Revoke { force: true, ..revoke(token) }
}

pub(crate) fn ask(token: u64) -> Ask {
    Ask { name: name("job"), step_down: StepDown { token, grace_ms: 5_000, by: None } }
}

pub(crate) fn payload(text: &str) -> Option<Data> {
    Data::new(text.as_bytes())
}
