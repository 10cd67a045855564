//! A table behind a proxy, and clients of it as applications make them.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::{Claim, Claimed, Ended, Expect, Grant, Label, Leases, LeasesBuilder, Lost, Name, Store};

use crate::support::emulator::{Emulator, create_table, retrying_client};
use crate::support::faults::{Fault, Injected, Match};
use crate::support::proxy::{Proxy, Seen};

pub const TABLE: &str = "leases";
/// The term of a lease that has to end within a test: margin 150 ms, an attempt 250 ms, a renewal every 500 ms.
pub const TTL: Duration = Duration::from_millis(1500);
pub const MARGIN: Duration = Duration::from_millis(150);
/// What takes longer than this does not happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub type Item = HashMap<String, AttributeValue>;

/// What tells the verbs apart in an `UpdateItem`.
pub const CLAIM: &str = "\":ttl_ms\"";
pub const RENEWAL: &str = "SET #version";
pub const RELEASE: &str = "\"REMOVE #grant";
pub const BURN: &str = ":token REMOVE #grant";

/// An emulator with a table, and a proxy before it.
pub struct Ground {
    pub emulator: Emulator,
    pub proxy: Proxy,
}

impl Ground {
    pub async fn new() -> Self {
        let emulator = Emulator::start();
        create_table(&emulator.client(), TABLE, "pk").await;
        let proxy = Proxy::to(emulator.addr());
        Self { emulator, proxy }
    }

    /// The table through the proxy, on a client with the SDK's default retries.
    pub async fn store(&self) -> DynamoDbStore {
        DynamoDbStore::open(retrying_client(self.proxy.addr()), TABLE).await.expect("the table is fit")
    }

    /// The table past the proxy: to act as somebody else.
    pub async fn rival(&self) -> DynamoDbStore {
        DynamoDbStore::open(self.emulator.client(), TABLE).await.expect("the table is fit")
    }

    pub async fn builder(&self, holder: &str) -> LeasesBuilder {
        Leases::builder(self.store().await).holder(holder)
    }

    /// A client with so long a term that nothing is renewed by itself, and that knows the store's time.
    pub async fn quiet(&self, holder: &str) -> Leases {
        let leases = self.builder(holder).await.ttl(Duration::from_secs(60)).build().expect("fits");
        leases.inspect("some other").await.expect("answered");
        self.proxy.reset_counts();
        leases
    }

    /// A client with the term of this file, that knows the store's time.
    pub async fn brisk(&self, holder: &str) -> Leases {
        let leases = self.builder(holder).await.ttl(TTL).margin(MARGIN).build().expect("fits");
        leases.inspect("some other").await.expect("answered");
        self.proxy.reset_counts();
        leases
    }

    /// A client on a connection of its own, past the proxy.
    pub async fn bystander(&self, holder: &str) -> Leases {
        Leases::builder(self.rival().await).holder(holder).build().expect("fits")
    }

    /// A fault for the first write of this verb from now on.
    pub fn next(&self, verb: &str, fault: Fault) -> Injected {
        self.nth(1, verb, fault)
    }

    /// A fault for the n-th write of this verb from now on.
    pub fn nth(&self, n: usize, verb: &str, fault: Fault) -> Injected {
        self.proxy.on(Match::op("UpdateItem").containing(verb)).nth(n).fault(fault)
    }

    /// A fault for every write of this verb from now on.
    pub fn every(&self, verb: &str, fault: Fault) -> Injected {
        self.proxy.on(Match::op("UpdateItem").containing(verb)).fault(fault)
    }

    /// The item of a lease, read past the proxy.
    pub async fn item(&self, name: &str) -> Option<Item> {
        let get = self.emulator.client().get_item().table_name(TABLE).key("pk", AttributeValue::S(name.into()));
        get.consistent_read(true).send().await.expect("the read succeeds").item
    }

    /// What went over the wire, in order.
    pub fn operations(&self) -> Vec<String> {
        self.proxy.seen().into_iter().map(|seen| seen.operation).collect()
    }

    /// The writes of this verb that went over the wire.
    pub fn sent(&self, verb: &str) -> Vec<Seen> {
        let is_one = |seen: &Seen| seen.operation == "UpdateItem" && seen.body.to_string().contains(verb);
        self.proxy.seen().into_iter().filter(is_one).collect()
    }

    /// The version of a held record.
    pub async fn version(&self, name: &str) -> u64 {
        number(&self.item(name).await.expect("there is one"), "lh_version")
    }

    /// A record as a rival leaves it that has died: its term ended a minute ago by the store's clock.
    pub async fn dead_rival(&self, name: &str, token: u64) {
        let minute_ago = self.store_time_ms().await - 60_000;
        let claim = Claim { expires_at_ms: Some(minute_ago), ..claim(name, token, Grant::from_bits(77)) };
        assert_eq!(self.rival().await.claim(&claim).await.expect("answered").value, Claimed::Granted);
    }

    async fn store_time_ms(&self) -> u64 {
        let read = self.rival().await.read(&Name::new("some other").expect("good")).await.expect("answered");
        read.date_ms.expect("the emulator says its time")
    }
}

/// A claim of a free name by somebody whose term nobody can judge by the store's time.
pub fn claim(name: &str, token: u64, grant: Grant) -> Claim {
    Claim {
        name: Name::new(name).expect("a good name"),
        token,
        grant,
        ttl_ms: 60_000,
        expires_at_ms: None,
        holder: Some(Label::new("rival").expect("a good label")),
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}

pub fn number(item: &Item, attribute: &str) -> u64 {
    item[attribute].as_n().expect("a number").parse().expect("whole")
}

pub fn text<'a>(item: &'a Item, attribute: &str) -> &'a str {
    item[attribute].as_s().expect("a string")
}

/// The answer of what must come, however slow the machine.
pub async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Looks again and again.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

pub fn loss(ended: Ended) -> Lost {
    match ended {
        Ended::Lost(lost) => lost,
        ended => panic!("not lost: {ended:?}"),
    }
}
