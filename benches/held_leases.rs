//! What ten thousand held leases cost: bytes in the client, and CPU while they are renewed.
//!
//! `cargo bench --features __bench --bench held_leases`. It takes about a minute.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::alloc::System;
use std::time::Duration;

use leasehold::{Leases, MemoryStore};
use nix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LEASES: usize = 10_000;
const TTL: Duration = Duration::from_secs(30);
const WATCHED: Duration = Duration::from_secs(30);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let store = MemoryStore::new();
    let record = records_alone(&store).await;
    let leases = Leases::builder(store).ttl(TTL).build().unwrap();
    let warm = leases.acquire("warm-up").await.unwrap();

    let mut held = Vec::with_capacity(LEASES);
    let region = Region::new(ALLOCATOR);
    for number in 0..LEASES {
        held.push(leases.acquire(name(number)).await.unwrap());
    }
    let taken = net(&region) / LEASES;

    let (cpu, renewals) = (cpu_time(), leases.stats().requests["renew"]);
    let region = Region::new(ALLOCATOR);
    tokio::time::sleep(WATCHED).await;
    let cpu = cpu_time().saturating_sub(cpu);
    let renewals = leases.stats().requests["renew"] - renewals;
    let grown = net(&region) / LEASES;
    assert_eq!(leases.stats().held, LEASES + 1, "a lease was lost while it was measured");

    println!("leases held:                        {LEASES}, term {TTL:?}, names of 32 bytes, no payload");
    println!("bytes allocated a lease:            {taken} in the client, beside {record} for the record in the store");
    println!("bytes grown a lease while renewing: {grown}");
    println!("renewals in {WATCHED:?}:                {renewals}");
    println!(
        "CPU:                                {:.2} % of one core",
        100.0 * cpu.as_secs_f64() / WATCHED.as_secs_f64()
    );
    println!(
        "CPU a renewal:                      {:.1} us, the store's part included",
        cpu.as_secs_f64() * 1e6 / renewals as f64
    );
    drop((warm, held));
}

/// What the records alone allocate: acquires and releases leave them behind, and the leases are then acquired again
/// over them.
async fn records_alone(store: &MemoryStore) -> usize {
    let leases = Leases::builder(store.clone()).build().unwrap();
    let lease = leases.acquire("warm-up").await.unwrap();
    lease.release().await.unwrap();
    let region = Region::new(ALLOCATOR);
    for number in 0..LEASES {
        let lease = leases.acquire(name(number)).await.unwrap();
        lease.release().await.unwrap();
    }
    drop(leases);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    net(&region) / LEASES
}

fn name(number: usize) -> String {
    format!("a-name-of-thirty-two-bytes-{number:05}")
}

fn net(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}
