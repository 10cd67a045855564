//! A store by whoever judges there, clients that each have a machine and a way to the store, and a handler that counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::testing::TestClock;
use leasehold::{FencingToken, Leases, LeasesBuilder, MemoryStore, Name, Record, Renewal, Store, Takeover};
use tokio::time::{Instant, sleep};

use crate::support::scripted::{Fault, Scripted, TTL, Verb};

pub const SECOND: Duration = Duration::from_secs(1);
/// For so long a rival must have watched a write of a term of 30 s.
pub const WATCH: Duration = Duration::from_millis(30_300);

/// Who judges that a term, or a closing, is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The store.
    Store,
    /// The clients, by the store's time or by watching.
    StoreTime,
    /// The clients, by watching alone: the store has a time, and they do not use it.
    ObservedOnly,
    /// The clients, by watching alone: the store has no time.
    NoStoreTime,
}

pub const JUDGES: [Judge; 4] = [Judge::Store, Judge::StoreTime, Judge::ObservedOnly, Judge::NoStoreTime];

pub struct Ground {
    pub judge: Judge,
    pub store: MemoryStore,
    pub clock: TestClock,
}

/// A client on a machine of its own, with its own way to the store.
pub struct Machine {
    pub way: Scripted,
    pub leases: Leases,
    pub clock: TestClock,
}

/// What the handler of this test returns or fails with.
#[derive(Debug, PartialEq, Eq)]
pub struct Broke(pub &'static str);

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Broke {}

pub type Ran = Result<Outcome, OnceError<Broke>>;

/// The effect that must not happen twice.
#[derive(Clone, Debug, Default)]
pub struct Effects(Arc<AtomicUsize>);

impl Effects {
    pub fn happen(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Ground {
    pub fn new(judge: Judge) -> Self {
        let clock = TestClock::new();
        let store = match judge {
            Judge::Store => MemoryStore::with_clock(clock.another(99)),
            Judge::StoreTime | Judge::ObservedOnly => MemoryStore::like_a_table(clock.another(99)),
            Judge::NoStoreTime => MemoryStore::judged_by_clients(clock.another(99)),
        };
        Self { judge, store, clock }
    }

    pub fn machine(&self, seed: u64) -> Machine {
        self.machine_with(seed, |builder| builder)
    }

    /// A function: nothing renews.
    pub fn function(&self, seed: u64) -> Machine {
        self.machine_with(seed, |builder| builder.renewal(Renewal::Manual))
    }

    pub fn machine_with(&self, seed: u64, options: impl FnOnce(LeasesBuilder) -> LeasesBuilder) -> Machine {
        let clock = self.clock.another(seed);
        let way = Scripted::new(self.store.clone(), clock.clone());
        let takeover = match self.judge {
            Judge::ObservedOnly => Takeover::ObservedOnly,
            _ => Takeover::StoreTime,
        };
        let builder = Leases::builder(way.clone()).holder(format!("machine-{seed}")).ttl(TTL).takeover(takeover);
        let leases = options(builder).clock(clock.clone()).build().unwrap();
        Machine { way, leases, clock }
    }

    pub async fn record(&self, name: &str) -> Record {
        let name = Name::new(name).unwrap();
        self.store.read(&name).await.unwrap().value.record.expect("there is a record")
    }

    /// Whether a process that has not seen the record before can tell that its time is over.
    pub fn tells_the_fresh(&self) -> bool {
        matches!(self.judge, Judge::Store | Judge::StoreTime)
    }
}

impl Machine {
    pub fn once(&self) -> Once {
        Once::new(&self.leases)
    }

    /// Runs the handler, which takes a second and returns its token.
    pub async fn handle(&self, effects: &Effects) -> Ran {
        handle(&self.once(), effects).await
    }

    /// The same until nobody else is at it, once a second. And how long that took.
    pub async fn handle_in_the_end(&self, effects: &Effects) -> (Ran, Duration) {
        let begun = Instant::now();
        loop {
            match self.handle(effects).await {
                Ok(Outcome::InProgress(_)) => sleep(SECOND).await,
                ran => return (ran, begun.elapsed()),
            }
            assert!(begun.elapsed() < 10 * TTL, "in progress for ever");
        }
    }

    /// From now on nothing reaches the store, and nobody is told so: as if the process were killed.
    pub fn die(&self) {
        for verb in [Verb::Claim, Verb::Renew, Verb::Release, Verb::Burn, Verb::Read] {
            self.way.on(verb).always().fault(Fault::Hang);
        }
    }

    /// Knows the store's time, so that it need not look first.
    pub async fn knows_the_time(self) -> Self {
        self.leases.inspect("some other").await.unwrap();
        self.way.forget_calls();
        self
    }
}

pub async fn handle(once: &Once, effects: &Effects) -> Ran {
    let effects = effects.clone();
    let work = |held: leasehold::Held| async move {
        sleep(SECOND).await;
        effects.happen();
        Ok::<_, Failed<Broke>>(receipt(held.token()))
    };
    once.run("message", work).await
}

pub fn receipt(token: FencingToken) -> Vec<u8> {
    format!("by {token}").into_bytes()
}
