//! What a majority of three costs beside one store: an acquire, a renewal and a release, each request 10 ms slower.
//!
//! `cargo bench --features __bench,testing --bench majority`
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use leasehold::majority::MajorityStore;
use leasehold::{
    Answer, Ask, Asked, Claim, Claimed, Description, Lease, Leases, ListPage, MemoryStore, Name, Page, Renew, Renewed,
    Revoke, Revoked, Store, SystemClock, Vacate, Vacated, View,
};

const ADDED: Duration = Duration::from_millis(10);
const ROUNDS: usize = 300;

/// A store each of whose requests takes so much longer.
#[derive(Debug)]
struct Slow(MemoryStore);

impl Slow {
    fn new() -> Self {
        Self(MemoryStore::like_a_table(SystemClock))
    }

    async fn pass(&self) -> &MemoryStore {
        tokio::time::sleep(ADDED).await;
        &self.0
    }
}

#[async_trait]
impl Store for Slow {
    fn describe(&self) -> Description {
        self.0.describe()
    }
    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.pass().await.claim(claim).await
    }
    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        self.pass().await.renew(renewals).await
    }
    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        self.pass().await.vacate(vacate).await
    }
    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.pass().await.revoke(revoke).await
    }
    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.pass().await.ask(ask).await
    }
    async fn read(&self, name: &Name) -> Answer<View> {
        self.pass().await.read(name).await
    }
    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.pass().await.list(prefix, page).await
    }
    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

/// The times of one side.
#[derive(Default)]
struct Times {
    acquire: Vec<Duration>,
    renew: Vec<Duration>,
    release: Vec<Duration>,
}

impl Times {
    async fn take(&mut self, leases: &Leases, name: &str) {
        let begun = Instant::now();
        let lease: Lease = leases.acquire(name).await.expect("nobody else");
        self.acquire.push(begun.elapsed());
        let begun = Instant::now();
        lease.renew().await.expect("it is held");
        self.renew.push(begun.elapsed());
        let begun = Instant::now();
        lease.release().await.expect("it is held");
        self.release.push(begun.elapsed());
    }
}

#[tokio::main]
async fn main() {
    let single = Leases::builder(Slow::new()).build().expect("the options fit");
    let majority = MajorityStore::new([Slow::new(), Slow::new(), Slow::new()]).expect("three stores");
    majority.set_up().await.expect("all answer");
    let majority = Leases::builder(majority).build().expect("the options fit");
    let (mut one, mut three) = (Times::default(), Times::default());
    // The first acquire of a client asks for the store's time, and that of a majority for the members' marks.
    one.take(&single, "warm").await;
    three.take(&majority, "warm").await;
    (one, three) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        let name = format!("job {}", round % 50);
        one.take(&single, &name).await;
        three.take(&majority, &name).await;
    }
    println!("{ADDED:?} added to each request, {ROUNDS} rounds, one store beside a majority of three:");
    report("acquire", &mut one.acquire, &mut three.acquire);
    report("renewal", &mut one.renew, &mut three.renew);
    report("release", &mut one.release, &mut three.release);
}

fn report(what: &str, one: &mut [Duration], three: &mut [Duration]) {
    one.sort_unstable();
    three.sort_unstable();
    let at = |times: &[Duration], part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    let ratio = at(three, 50).as_secs_f64() / at(one, 50).as_secs_f64();
    println!(
        "{what}: median {:?} beside {:?}, ratio {ratio:.2}; 90th percentile {:?} beside {:?}",
        at(three, 50),
        at(one, 50),
        at(three, 90),
        at(one, 90),
    );
}
