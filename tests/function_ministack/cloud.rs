//! A function of its own for each test: its tables, its queue, and the example as its `bootstrap`, on MiniStack.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::dynamodb::DynamoDbStore;
use leasehold::{FencingToken, Leases, Status};
use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::{emulator, example, http, process};

/// The term of the functions' leases.
pub const TERM: Duration = Duration::from_secs(5);
const REGION: &str = "us-east-1";
const ACCOUNT: &str = "000000000000";
/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(90);

static LEASEHOLD: LazyLock<PathBuf> = LazyLock::new(|| package("lambda"));
static SDK_ONLY: LazyLock<PathBuf> = LazyLock::new(|| package("lambda_sdk_only"));

pub struct Function {
    endpoint: String,
    name: String,
    client: Client,
    ledger: String,
    /// Of the leases that the function takes.
    pub leases: Leases,
}

impl Function {
    /// The example, with a queue that shows a message again after `again`, and batches of up to `batch`.
    pub async fn with_once(again: Duration, batch: u8) -> Self {
        Self::deploy(&LEASEHOLD, again, batch).await
    }

    pub async fn without_once(again: Duration, batch: u8) -> Self {
        Self::deploy(&SDK_ONLY, again, batch).await
    }

    async fn deploy(package: &PathBuf, again: Duration, batch: u8) -> Self {
        let gateway = Gateway::named_by("LEASEHOLD_MINISTACK_ENDPOINT");
        let (table, client) = (gateway.table.clone(), gateway.client_in(REGION));
        let (name, ledger) = (table.replace("leases", "function"), table.replace("leases", "ledger"));
        leasehold::dynamodb::create_table(&client, &table).await.expect("MiniStack makes a table");
        emulator::create_table(&client, &ledger, "order").await;
        let store = DynamoDbStore::open(client.clone(), &table).await.expect("it is there");
        let leases = Leases::builder(store).prefix("charges/").holder("the test").build().expect("fits");
        let endpoint = gateway.endpoint();
        let function = Self { endpoint, name, client, ledger, leases };
        function.create(package, &table);
        function.connect(again, batch);
        function
    }

    fn create(&self, package: &PathBuf, table: &str) {
        let (bucket, name) = (&self.name, &self.name);
        let code = std::fs::read(package).expect("it was packed");
        self.send("PUT", bucket, "s3", &[], b"");
        self.send("PUT", &format!("{bucket}/code.zip"), "s3", &[], &code);
        let variables = json!({
            "LEASES_TABLE": table, "LEDGER_TABLE": self.ledger, "TERM_SECONDS": TERM.as_secs().to_string(),
            "AWS_ENDPOINT_URL": self.endpoint,
        });
        let function = json!({
            "FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": 60,
            "Role": format!("arn:aws:iam::{ACCOUNT}:role/function"),
            "Code": { "S3Bucket": bucket, "S3Key": "code.zip" }, "Environment": { "Variables": variables },
        });
        self.send("POST", "2015-03-31/functions", "lambda", &[], function.to_string().as_bytes());
        // It has a copy of its own.
        self.send("DELETE", &format!("{bucket}/code.zip"), "s3", &[], b"");
    }

    fn connect(&self, again: Duration, batch: u8) {
        let again = again.as_secs().to_string();
        self.sqs("CreateQueue", json!({ "QueueName": self.name, "Attributes": { "VisibilityTimeout": again } }));
        let mapping = json!({
            "FunctionName": self.name, "BatchSize": batch, "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "EventSourceArn": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{}", self.name),
        });
        self.send("POST", "2015-03-31/event-source-mappings", "lambda", &[], mapping.to_string().as_bytes());
    }

    /// Puts messages into the queue, together.
    pub fn queue(&self, orders: &[Value]) {
        let entries = orders.iter().enumerate();
        let entries = entries.map(|(id, order)| json!({ "Id": id.to_string(), "MessageBody": order.to_string() }));
        let entries = entries.collect::<Vec<_>>();
        let sent = self.sqs("SendMessageBatch", json!({ "QueueUrl": self.queue_url(), "Entries": entries }));
        assert_eq!(sent["Successful"].as_array().map(Vec::len), Some(orders.len()), "{sent}");
    }

    /// How many messages the queue has, with those that are with the function.
    pub fn queued(&self) -> u64 {
        let asked = json!({ "QueueUrl": self.queue_url(), "AttributeNames": ["All"] });
        let said = self.sqs("GetQueueAttributes", asked);
        let count = |name: &str| said["Attributes"][name].as_str()?.parse::<u64>().ok();
        let counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"].map(count);
        counts.into_iter().map(|count| count.unwrap_or_else(|| panic!("no count: {said}"))).sum()
    }

    pub async fn until_queue_is_empty(&self) {
        until("the queue is empty", async || self.queued() == 0).await;
    }

    /// Invokes the function as the queue would, with one message. Whether it comes again, and the log.
    pub fn invoke(&self, message: &str, order: &Value) -> (bool, String) {
        let event = json!({ "Records": [{ "messageId": message, "body": order.to_string() }] });
        let path = format!("2015-03-31/functions/{}/invocations", self.name);
        let answer = self.send("POST", &path, "lambda", &[("x-amz-log-type", "Tail")], event.to_string().as_bytes());
        let log = base64(answer.header("x-amz-log-result").unwrap_or_default());
        match answer.json()["batchItemFailures"].as_array().map(Vec::as_slice) {
            Some([]) => (false, log),
            Some([failure]) if failure["itemIdentifier"] == message => (true, log),
            _ => panic!("{}: {log}", answer.text()),
        }
    }

    /// How often the order was charged, and under which token the last time.
    pub async fn charges(&self, order: &str) -> (usize, Option<u64>) {
        let get = self.client.get_item().table_name(&self.ledger).key("order", AttributeValue::S(order.into()));
        let item = get.consistent_read(true).send().await.expect("MiniStack answers").item.unwrap_or_default();
        let charges = item.get("charges").and_then(|by| by.as_ss().ok()).map_or(0, Vec::len);
        (charges, item.get("fence").and_then(|token| token.as_n().ok()?.parse().ok()))
    }

    /// Waits until a process of the function is at this order. Its token.
    pub async fn until_at_work(&self, order: &str) -> FencingToken {
        until("it is at work", async || self.inspect(order).await.0 == Status::Held).await;
        self.inspect(order).await.1.expect("it is held")
    }

    async fn inspect(&self, order: &str) -> (Status, Option<FencingToken>) {
        let view = self.leases.inspect(order).await.expect("MiniStack answers");
        (view.status, view.token)
    }

    /// The one warm process of the function.
    pub fn process(&self) -> u32 {
        let processes = self.processes();
        let [process] = processes[..] else {
            panic!(
                "not one process but {processes:?}; if none: has `localstack/up` started this MiniStack, on this machine?"
            )
        };
        process
    }

    /// The warm processes of the function.
    pub fn processes(&self) -> Vec<u32> {
        process::with_variable(&format!("AWS_LAMBDA_FUNCTION_NAME={}", self.name))
    }

    fn sqs(&self, operation: &str, body: Value) -> Value {
        let target = format!("AmazonSQS.{operation}");
        let headers = [("x-amz-target", target.as_str()), ("content-type", "application/x-amz-json-1.0")];
        self.send("POST", "", "sqs", &headers, body.to_string().as_bytes()).json()
    }

    fn queue_url(&self) -> String {
        format!("{}/{ACCOUNT}/{}", self.endpoint, self.name)
    }

    /// MiniStack reads from the signature which service and region is meant, and does not check it.
    fn send(&self, method: &str, path: &str, service: &str, headers: &[(&str, &str)], body: &[u8]) -> http::Answer {
        let scope = format!("test/20260101/{REGION}/{service}/aws4_request");
        let signed = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none");
        let headers = [&[("authorization", signed.as_str())], headers].concat();
        let answer =
            http::send(method, &format!("{}/{path}", self.endpoint), &headers, body).expect("MiniStack answers");
        assert!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
        answer
    }
}

/// The function goes, and its processes with it.
impl Drop for Function {
    fn drop(&mut self) {
        for pid in self.processes() {
            process::thaw(pid);
        }
        if !std::thread::panicking() {
            self.send("DELETE", &format!("2015-03-31/functions/{}", self.name), "lambda", &[], b"");
        }
    }
}

/// Asks again and again until it is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "it never comes that {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The example as a package for Lambda: without symbols, for size, and zipped under the name that the runtime starts.
fn package(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-package"));
    std::fs::create_dir_all(&folder).expect("cargo's folder");
    run(Command::new("strip").arg("-o").arg(folder.join("bootstrap")).arg(example::built(name)));
    run(Command::new("python3").current_dir(&folder).args(["-m", "zipfile", "-c", "code.zip", "bootstrap"]));
    folder.join("code.zip")
}

fn run(command: &mut Command) {
    let ran = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(ran.success(), "{command:?}: {ran}");
}

fn base64(text: &str) -> String {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters = text.trim_end_matches('=').as_bytes();
    let bytes = letters.chunks(4).flat_map(|group| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | u32::from(group.get(at).map_or(0, |letter| digit(*letter))));
        bits.to_be_bytes().into_iter().skip(1).take(group.len() - 1)
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
