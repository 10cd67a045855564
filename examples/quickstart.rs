//! Two workers, one lease, and a freeze: why a lock with a time to live needs fencing tokens.
//!
//! Run it: `cargo run --example quickstart`. It needs no feature and no service.
#![allow(clippy::disallowed_methods, reason = "the example shows real time passing")]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use leasehold::{Ended, Error, Fence, FencingToken, Leases, MemoryStore};

const TTL: Duration = Duration::from_secs(2);
const MARGIN: Duration = Duration::from_millis(300);
const FREEZE: Duration = Duration::from_secs(4);

/// What the lease guards. It checks the token together with every write, as your database would.
#[derive(Default)]
struct Ledger {
    fence: Fence,
    balance: Mutex<u64>,
}

impl Ledger {
    fn write(&self, token: FencingToken, amount: u64) -> Result<u64, leasehold::Stale> {
        let mut balance = self.balance.lock().unwrap();
        self.fence.admit(token)?; // atomic with the write: inside its lock
        *balance += amount;
        Ok(*balance)
    }
}

struct Scene {
    begin: Instant,
    store: MemoryStore,
    ledger: Ledger,
}

impl Scene {
    fn say(&self, who: &str, what: impl AsRef<str>) {
        println!("{:>5.1} s  {who:<5}  {}", self.begin.elapsed().as_secs_f64(), what.as_ref());
    }

    fn client(&self, who: &str) -> Result<Leases, Error> {
        let poll = Duration::from_millis(200);
        Leases::builder(self.store.clone()).holder(who).ttl(TTL).margin(MARGIN).poll(poll).build()
    }
}

fn main() {
    let scene = Arc::new(Scene { begin: Instant::now(), store: MemoryStore::new(), ledger: Ledger::default() });
    println!("Two workers want the lease \"ledger\". Its term is {TTL:?}; while it is held, it is renewed.\n");

    let first = spawn(&scene, "alice", alice);
    thread::sleep(Duration::from_millis(500));
    let second = spawn(&scene, "bob", bob);
    first.join().unwrap();
    second.join().unwrap();

    println!(
        "\nAlice had looked before she wrote. No check of hers could have stopped that write: the freeze came after it."
    );
    println!("The token did. Pass it with every write, and let the resource refuse a lower one.");
}

/// Acquires, writes, freezes for longer than its term, and goes on as if nothing had happened.
async fn alice(scene: Arc<Scene>) -> Result<(), Error> {
    let leases = scene.client("alice")?;
    let lease = leases.acquire("ledger").await?;
    let held = lease.held();
    scene.say("alice", format!("acquired the lease with token {}", held.token()));
    let balance = scene.ledger.write(held.token(), 100).expect("nobody else has written");
    scene.say("alice", format!("wrote 100: accepted, the balance is {balance}"));

    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.say("alice", "still holds it after a whole term, because it is renewed");
    scene.say("alice", format!("looks before her next write: is_held() = {}", held.is_held()));
    scene.say("alice", format!("FREEZES for {FREEZE:?} (a long collection, a stopped machine, a swapped-out page)"));
    thread::sleep(FREEZE); // blocks the runtime too: nothing renews

    scene.say("alice", "wakes up and does not know it. The write that she had looked for goes out:");
    match scene.ledger.write(held.token(), 1_000_000) {
        Ok(balance) => scene.say("alice", format!("accepted?! The balance is {balance}")),
        Err(stale) => scene.say("alice", format!("REFUSED: {stale}")),
    }
    scene.say("alice", format!("looks again, without any request: is_held() = {}", held.is_held()));
    if let Ended::Lost(lost) = held.lost().await {
        scene.say("alice", lost.to_string());
    }
    Ok(())
}

/// Waits for the lease, takes it over when its holder is dead for all anybody can tell, and raises the fence first.
async fn bob(scene: Arc<Scene>) -> Result<(), Error> {
    let leases = scene.client("bob")?;
    if let leasehold::Attempt::Held(by) = leases.try_acquire("ledger").await? {
        scene.say("bob", format!("tries once: {by}. Waits"));
    }
    leases
        .acquire("ledger")
        .await?
        .run(|held| async move {
            scene.say("bob", format!("took over with the higher token {} (tokens rise, with gaps)", held.token()));
            scene.ledger.fence.raise(held.token()).expect("this token is the highest");
            scene.say("bob", "raised the fence first, and only then reads");
            let balance = scene.ledger.write(held.token(), 1).expect("this token is the highest");
            scene.say("bob", format!("wrote 1: accepted, the balance is {balance}"));
            tokio::time::sleep(Duration::from_secs(3)).await;
            let balance = *scene.ledger.balance.lock().unwrap();
            scene.say("bob", format!("ends and releases; the balance is still {balance}"));
            Ok(())
        })
        .await
}

/// A worker is a thread with a runtime of its own, so that it can freeze alone.
fn spawn<F, Fut>(scene: &Arc<Scene>, who: &'static str, work: F) -> thread::JoinHandle<()>
where
    F: FnOnce(Arc<Scene>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), Error>>,
{
    let scene = Arc::clone(scene);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        if let Err(error) = runtime.block_on(work(Arc::clone(&scene))) {
            scene.say(who, format!("failed: {error}"));
        }
    })
}
