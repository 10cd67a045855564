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
use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, Config};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use criterion::Criterion;
use leasehold::Leases;
use leasehold::dynamodb::{DynamoDbStore, create_table};
use serde_json::Value;
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
    runtime.block_on(async { leases.acquire("ours").await.unwrap().release().await.unwrap() });
    let bare = Bare::new(client, &proxy);
    proxy.set_latency(latency);
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

/// The same two requests without a library around them: those that leasehold has sent, with grants and tokens of
/// their own.
struct Bare {
    client: Client,
    claim: Request,
    release: Request,
    token: RefCell<u64>,
}

/// An `UpdateItem` as it was seen at the wire.
struct Request {
    update: String,
    condition: String,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Bare {
    fn new(client: Client, proxy: &Proxy) -> Self {
        let seen = proxy.seen();
        let find = |text: &str| {
            let found = seen.iter().rev().map(|seen| &seen.body).find(|body| body.to_string().contains(text));
            Request::of(found.expect("it was sent"))
        };
        Self { client, claim: find("SET #format"), release: find(":mine"), token: RefCell::new(1_790_000_000_000) }
    }

    async fn acquire_and_release(&self) {
        let (token, grant) = (self.next_token(), Uuid::new_v4().to_string());
        let mut claim = self.claim.values.clone();
        claim.insert(":token".into(), number(token));
        claim.insert(":below".into(), number(token - 1));
        claim.insert(":grant".into(), text(&grant));
        self.send(&self.claim, claim).await;
        let mut release = self.release.values.clone();
        release.insert(":mine".into(), text(&grant));
        self.send(&self.release, release).await;
    }

    fn next_token(&self) -> u64 {
        *self.token.borrow_mut() += 1;
        *self.token.borrow()
    }

    async fn send(&self, request: &Request, values: HashMap<String, AttributeValue>) {
        self.client
            .update_item()
            .table_name(TABLE)
            .key("pk", text("bare"))
            .update_expression(&request.update)
            .condition_expression(&request.condition)
            .set_expression_attribute_names(Some(request.names.clone()))
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .customize()
            .config_override(one_attempt())
            .send()
            .await
            .unwrap();
    }
}

impl Request {
    fn of(body: &Value) -> Self {
        let text_of = |field: &str| body[field].as_str().expect("a text").to_owned();
        let map_of = |field: &str| body[field].as_object().expect("a map").iter();
        Self {
            update: text_of("UpdateExpression"),
            condition: text_of("ConditionExpression"),
            names: map_of("ExpressionAttributeNames")
                .map(|(placeholder, name)| (placeholder.clone(), name.as_str().expect("a text").to_owned()))
                .collect(),
            values: map_of("ExpressionAttributeValues")
                .map(|(placeholder, value)| (placeholder.clone(), value_of(value)))
                .collect(),
        }
    }
}

fn value_of(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().and_then(|value| value.iter().next()).expect("one kind");
    let text = value.as_str().expect("a text").to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text),
        "N" => AttributeValue::N(text),
        other => panic!("no {other} is sent here"),
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
