//! Three scripted tables, each with a clock of its own, and clients of their majority.

use std::time::Duration;

use leasehold::majority::{MajorityStore, MajorityStoreBuilder};
use leasehold::testing::TestClock;
use leasehold::{Claim, Clock, Expect, Grant, Leases, MemoryStore, Name, Record, Renew, Store, Vacate, View};

pub(crate) use crate::support::scripted::{Fault, Scripted, TTL, Verb};

/// The name under which a store is marked as a member.
pub(crate) const MARK: &str = "leasehold-majority-incarnation";

pub(crate) const ATTEMPT: Duration = Duration::from_secs(5);

pub(crate) struct Ground {
    pub(crate) clock: TestClock,
    /// In the majority's own order: that of their identities.
    pub(crate) members: Vec<Scripted>,
}

impl Ground {
    /// Three tables with a time, set up together.
    pub(crate) async fn new() -> Self {
        let ground = Self::bare(3);
        ground.store(50).set_up().await.unwrap();
        ground
    }

    /// Three others, set up together.
    pub(crate) async fn others() -> Self {
        let ground = Self::of(200..203);
        ground.store(51).set_up().await.unwrap();
        ground
    }

    pub(crate) fn others_bare() -> Self {
        Self::of(300..303)
    }

    /// The same, not set up.
    pub(crate) fn bare(members: u64) -> Self {
        Self::of(100..100 + members)
    }

    fn of(seeds: std::ops::Range<u64>) -> Self {
        let clock = TestClock::new();
        let table = |seed| Scripted::new(MemoryStore::like_a_table(clock.another(seed)), clock.clone());
        let mut members: Vec<_> = seeds.map(table).collect();
        members.sort_by_key(|member| member.describe().identity);
        Self { clock, members }
    }

    pub(crate) fn builder(&self, seed: u64) -> MajorityStoreBuilder {
        let builder = MajorityStore::builder().clock(self.clock.another(seed));
        self.members.iter().fold(builder, |builder, member| builder.member(member.clone()))
    }

    /// A process's way to the members.
    pub(crate) fn store(&self, seed: u64) -> MajorityStore {
        self.builder(seed).build().unwrap()
    }

    /// A process with a client.
    pub(crate) fn client(&self, seed: u64) -> Leases {
        let clock = self.clock.another(seed + 1000);
        Leases::builder(self.store(seed)).holder(format!("client {seed}")).ttl(TTL).clock(clock).build().unwrap()
    }

    pub(crate) fn set_available(&self, member: usize, available: bool) {
        self.members[member].inner().set_available(available);
    }

    /// What a member has, past all faults.
    pub(crate) async fn record(&self, member: usize, name: &str) -> Option<Record> {
        self.view(member, name).await.record
    }

    pub(crate) async fn view(&self, member: usize, name: &str) -> View {
        self.members[member].inner().read(&Name::new(name).unwrap()).await.unwrap().value
    }

    /// Which members carry a grant of this name.
    pub(crate) async fn held_at(&self, name: &str) -> Vec<bool> {
        let mut held = Vec::new();
        for member in 0..self.members.len() {
            held.push(self.record(member, name).await.is_some_and(|record| record.grant.is_some()));
        }
        held
    }

    pub(crate) fn heal(&self) {
        self.members.iter().for_each(Scripted::heal);
    }

    pub(crate) fn claim(&self, token: u64, expect: Expect) -> Claim {
        Claim {
            name: Name::new("job").unwrap(),
            token,
            grant: Grant::from_bits(self.clock.random()),
            ttl_ms: TTL.as_millis() as u64,
            expires_at_ms: None,
            holder: None,
            data: None,
            set: None,
            expect,
        }
    }
}

pub(crate) fn renewal(claim: &Claim, version: u64) -> Renew {
    Renew {
        name: claim.name.clone(),
        token: claim.token,
        grant: claim.grant,
        version,
        ttl_ms: claim.ttl_ms,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    }
}

pub(crate) fn release(claim: &Claim) -> Vacate {
    Vacate { name: claim.name.clone(), token: claim.token, grant: claim.grant, burn: false, close: None, now_ms: None }
}

/// Lets what goes on in tasks come to its end.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
