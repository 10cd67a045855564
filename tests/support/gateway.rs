//! A DynamoDB outside of the test process: LocalStack, MiniStack.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Builder, Credentials, Region};
use leasehold::{Clock, SystemClock};

use super::emulator;

/// A gateway that `localstack/up` has started, and a table name that no other run has.
pub struct Gateway {
    addr: std::net::SocketAddr,
    pub table: String,
}

impl Gateway {
    /// The one that this environment variable names. It has to be there: a test that cannot run fails.
    pub fn named_by(variable: &str) -> Self {
        let endpoint = std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set: run `localstack/up`, then `source localstack/.env`"));
        let addr = endpoint.strip_prefix("http://").and_then(|addr| addr.parse().ok());
        Self {
            addr: addr.unwrap_or_else(|| panic!("{variable} is not http://ADDRESS:PORT but {endpoint}")),
            table: format!("leases-{:016x}", SystemClock.random() as u64),
        }
    }

    pub fn addr(&self) -> std::net::SocketAddr {
        self.addr
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn client(&self) -> Client {
        emulator::retrying_client(self.addr)
    }

    pub fn client_in(&self, region: &'static str) -> Client {
        self.client_with(|config| config.region(Region::new(region)))
    }

    /// Both gateways take twelve digits as an access key for the number of an account.
    pub fn client_of_account(&self, account: &str) -> Client {
        self.client_with(|config| config.credentials_provider(Credentials::new(account, "test", None, None, "static")))
    }

    fn client_with(&self, change: impl FnOnce(Builder) -> Builder) -> Client {
        Client::from_conf(change(emulator::config(self.addr)).build())
    }
}
