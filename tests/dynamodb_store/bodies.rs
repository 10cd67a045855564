//! A store behind the proxy, and bodies for its verbs.

use aws_sdk_dynamodb::Client;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::store::Store;
use leasehold::{
    Ask, Claim, Claimed, Close, Expect, Grant, Name, Renew, Renewed, Revoke, StepDown, Vacate, Vacated, View,
};

use crate::support::emulator::{Emulator, create_table, retrying_client};
use crate::support::faults::{Fault, Injected, Match};
use crate::support::proxy::Proxy;

pub(crate) const TABLE: &str = "leases";
pub(crate) fn a() -> Grant {
    Grant::from_bits(1)
}

pub(crate) fn b() -> Grant {
    Grant::from_bits(2)
}

/// A store on a client as an application has it, with the SDK's own retries.
pub(crate) struct Fixture {
    _emulator: Emulator,
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
    pub(crate) store: DynamoDbStore,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let emulator = Emulator::start();
        create_table(&emulator.client(), TABLE, "pk").await;
        let proxy = Proxy::to(emulator.addr());
        let client = retrying_client(proxy.addr());
        let store = DynamoDbStore::open(client.clone(), TABLE).await.expect("the table is fit");
        proxy.reset_counts();
        Self { _emulator: emulator, proxy, client, store }
    }

    pub(crate) fn next_write(&self, fault: Fault) -> Injected {
        self.proxy.on(Match::op("UpdateItem")).nth(1).fault(fault)
    }

    pub(crate) async fn claimed(&self, token: u64, grant: Grant) {
        assert_eq!(self.store.claim(&claim(token, grant)).await.expect("answered").value, Claimed::Granted);
    }

    pub(crate) async fn renewed(&self, renew: Renew) -> Renewed {
        self.store.renew(&[renew]).await.remove(0).expect("answered").value
    }

    pub(crate) async fn vacated(&self, vacate: Vacate) -> Vacated {
        self.store.vacate(&vacate).await.expect("answered").value
    }

    pub(crate) async fn view(&self) -> View {
        self.store.read(&name("job")).await.expect("answered").value
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

pub(crate) fn claim(token: u64, grant: Grant) -> Claim {
    Claim {
        name: name("job"),
        token,
        grant,
        ttl_ms: 30_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}

pub(crate) fn renew(grant: Grant, version: u64) -> Renew {
    Renew {
        name: name("job"),
        token: 1,
        grant,
        version,
        ttl_ms: 30_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    }
}

pub(crate) fn release(token: u64, grant: Grant) -> Vacate {
    Vacate { name: name("job"), token, grant, burn: false, close: None, now_ms: None }
}

pub(crate) fn burn(token: u64, grant: Grant) -> Vacate {
    Vacate { burn: true, ..release(token, grant) }
}

pub(crate) fn closing(token: u64, grant: Grant) -> Vacate {
    let close = Close { for_ms: 60_000, until_ms: None, data: None };
    Vacate { close: Some(close), ..release(token, grant) }
}

pub(crate) fn revoke(token: u64, force: bool) -> Revoke {
    Revoke { name: name("job"), token, fresh: Grant::from_bits(99), force }
}

pub(crate) fn ask(token: u64) -> Ask {
    Ask { name: name("job"), step_down: StepDown { token, grace_ms: 5_000, by: None } }
}
