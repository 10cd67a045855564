//! How long after a release's answer the next one has the lease, on the DynamoDB emulator.
//!
//! `cargo bench --features __bench,__dynamodb-emulator --bench hand_over`
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use leasehold::Leases;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use support::emulator::Emulator;
use support::proxy::Proxy;

const TABLE: &str = "leases";
const LOCAL_ROUNDS: usize = 300;
const REMOTE_ROUNDS: usize = 40;

#[tokio::main]
async fn main() {
    let emulator = Emulator::start();
    let proxy = Proxy::to(emulator.addr());
    create_table(&proxy.client(), TABLE).await.unwrap();
    let one = client(&proxy).await;
    measure("between waiters of one client", &proxy, &one, &one, LOCAL_ROUNDS).await;
    let other = client(&proxy).await;
    measure("between two clients, default poll", &proxy, &one, &other, REMOTE_ROUNDS).await;
}

async fn client(proxy: &Proxy) -> Leases {
    let store = DynamoDbStore::open(proxy.client(), TABLE).await.unwrap();
    Leases::builder(store).build().unwrap()
}

async fn measure(what: &str, proxy: &Proxy, from: &Leases, to: &Leases, rounds: usize) {
    let (mut times, mut requests) = (Vec::new(), 0);
    for round in 0..rounds {
        let lease = from.acquire("job").await.unwrap();
        let waiter = {
            let to = to.clone();
            tokio::spawn(async move {
                let lease = to.acquire("job").await.unwrap();
                (lease, Instant::now())
            })
        };
        // Long enough for the waiter to be waiting, and not in step with its poll.
        tokio::time::sleep(Duration::from_millis(20 + 37 * (round as u64 % 27))).await;
        let before = proxy.total();
        lease.release().await.unwrap();
        let answered = Instant::now();
        let (lease, taken) = waiter.await.unwrap();
        requests += proxy.total() - before;
        times.push(taken.saturating_duration_since(answered));
        lease.release().await.unwrap();
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    println!(
        "{what}: median {:?}, 90th percentile {:?}, longest {:?}; {:.2} requests each, the release included ({rounds} rounds)",
        at(50),
        at(90),
        at(100),
        requests as f64 / rounds as f64,
    );
}
