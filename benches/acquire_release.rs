//! An acquire and a release on the DynamoDB emulator, beside the same two requests sent with the bare SDK.
//!
//! `cargo bench --features __bench,__dynamodb-emulator --bench acquire_release`
//!
//! The two sides take turns within every iteration, so that a busy machine slows both; only the ratio means anything.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, Config};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use criterion::Criterion;
use leasehold::Leases;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use support::emulator::Emulator;
use support::proxy::Proxy;
use tokio::runtime::Runtime;
use uuid::Uuid;

const TABLE: &str = "leases";

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(30);
    for (name, latency) in [("no latency", Duration::ZERO), ("5 ms a request", Duration::from_millis(5))] {
        compare(&mut criterion, name, latency);
    }
    criterion.final_summary();
}

fn compare(criterion: &mut Criterion, name: &str, latency: Duration) {
    let runtime = Runtime::new().unwrap();
    let emulator = Emulator::start();
    // Both sides go through the proxy, so that both pay for it.
    let proxy = Proxy::to(emulator.addr());
    let client = proxy.client();
    let leases = runtime.block_on(async {
        create_table(&client, TABLE).await.unwrap();
        let store = DynamoDbStore::open(client.clone(), TABLE).await.unwrap();
        Leases::builder(store).holder("bench").build().unwrap()
    });
    proxy.set_latency(latency);
    let bare = Bare::new(client);
    let (ours, theirs) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let take_turns = |counted: fn(Duration, Duration) -> Duration, rounds: u64| {
        runtime.block_on(async {
            let mut sum = Duration::ZERO;
            for _ in 0..rounds {
                let begin = Instant::now();
                bare.acquire_and_release().await;
                let bare = begin.elapsed();
                let begin = Instant::now();
                leases.acquire("ours").await.unwrap().release().await.unwrap();
                let lease = begin.elapsed();
                theirs.borrow_mut().push(bare);
                ours.borrow_mut().push(lease);
                sum += counted(bare, lease);
            }
            sum
        })
    };
    let mut group = criterion.benchmark_group(format!("acquire and release, {name}"));
    group.bench_function("bare SDK", |bencher| bencher.iter_custom(|rounds| take_turns(|bare, _| bare, rounds)));
    group.bench_function("leasehold", |bencher| bencher.iter_custom(|rounds| take_turns(|_, lease| lease, rounds)));
    group.finish();
    let (theirs, ours) = (median(&theirs), median(&ours));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let more = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1e6 / 2.0;
    println!("medians, {name}: bare {theirs:?}, leasehold {ours:?}: ratio {ratio:.3}, {more:+.0} us a request\n");
}

/// The same two requests without a library around them.
struct Bare {
    client: Client,
    token: RefCell<u64>,
}

impl Bare {
    fn new(client: Client) -> Self {
        Self { client, token: RefCell::new(1_790_000_000_000) }
    }

    async fn acquire_and_release(&self) {
        let (token, grant) = (self.next_token(), Uuid::new_v4().to_string());
        self.claim(token, &grant).await;
        self.release(&grant).await;
    }

    fn next_token(&self) -> u64 {
        *self.token.borrow_mut() += 1;
        *self.token.borrow()
    }

    async fn claim(&self, token: u64, grant: &str) {
        let names = ["format", "token", "grant", "version", "ttl_ms", "holder", "expires_at_ms", "data", "set"];
        let more = ["closed_ms", "closed_until_ms", "closed_by", "revoked", "asked", "sweep_s", "session"];
        let mut request = self.client.update_item().table_name(TABLE).key("pk", text("bare"));
        for name in names.into_iter().chain(more) {
            request = request.expression_attribute_names(format!("#{name}"), format!("lh_{name}"));
        }
        request
            .expression_attribute_names("#pk", "pk")
            .update_expression(
                "SET #format=:one, #token=:token, #grant=:grant, #version=:one, #ttl_ms=:ttl, #holder=:holder, \
                 #expires_at_ms=:end REMOVE #closed_ms, #closed_until_ms, #closed_by, #revoked, #asked, #sweep_s, \
                 #data, #set",
            )
            .condition_expression(
                "attribute_not_exists(#pk) OR (#format = :one AND attribute_not_exists(#session) AND \
                 attribute_not_exists(#grant) AND attribute_not_exists(#closed_ms) AND \
                 attribute_not_exists(#closed_until_ms) AND #token BETWEEN :zero AND :below)",
            )
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":token", number(token))
            .expression_attribute_values(":below", number(token - 1))
            .expression_attribute_values(":grant", text(grant))
            .expression_attribute_values(":ttl", number(30_000))
            .expression_attribute_values(":holder", text("bench"))
            .expression_attribute_values(":end", number(1_790_000_000_000))
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .customize()
            .config_override(one_attempt())
            .send()
            .await
            .unwrap();
    }

    async fn release(&self, grant: &str) {
        let mut request = self.client.update_item().table_name(TABLE).key("pk", text("bare"));
        for name in ["format", "grant", "expires_at_ms", "asked", "session"] {
            request = request.expression_attribute_names(format!("#{name}"), format!("lh_{name}"));
        }
        request
            .update_expression("REMOVE #grant, #expires_at_ms, #asked")
            .condition_expression("#format = :one AND attribute_not_exists(#session) AND #grant = :grant")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":grant", text(grant))
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .customize()
            .config_override(one_attempt())
            .send()
            .await
            .unwrap();
    }
}

/// What leasehold asks of the caller's client for each call.
fn one_attempt() -> Builder {
    let timeouts = TimeoutConfig::builder().operation_timeout(Duration::from_secs(10)).build();
    Config::builder().retry_config(RetryConfig::disabled()).timeout_config(timeouts)
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn median(times: &RefCell<Vec<Duration>>) -> Duration {
    let mut times = times.borrow_mut();
    times.sort_unstable();
    times[times.len() / 2]
}
