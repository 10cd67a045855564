//! The example as the Functions host runs it: a process, and calls in the host's form.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::{FencingToken, Leases, Status};
use serde_json::{Value, json};

use crate::support::azurite::{ACCOUNT, KEY, SAS};
use crate::support::{example, http, process};

/// The shortest that the service gives.
pub const TERM: Duration = Duration::from_secs(15);
/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(90);

static WITH_ONCE: LazyLock<PathBuf> = LazyLock::new(|| example::built("azure_function"));
static UNGUARDED: LazyLock<PathBuf> = LazyLock::new(|| example::built("azure_function_unguarded"));

/// A process of the function app.
pub struct App {
    process: Child,
    port: u16,
}

impl App {
    pub fn with_once(container: &Container) -> Self {
        Self::start(&WITH_ONCE, container)
    }

    pub fn unguarded(container: &Container) -> Self {
        Self::start(&UNGUARDED, container)
    }

    fn start(program: &PathBuf, container: &Container) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let process = Command::new(program)
            .env("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string())
            .env("AzureFunctionsJobHost__functionTimeout", "00:01:30")
            .env("TERM_SECONDS", TERM.as_secs().to_string())
            .env("LEASES_CONTAINER_URL", &container.url)
            .env("AZURE_STORAGE_ACCOUNT", ACCOUNT)
            .env("AZURE_STORAGE_KEY", KEY)
            .stdout(Stdio::null())
            .spawn()
            .expect("it was built");
        let app = Self { process, port };
        until("the app listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        app
    }

    /// What the host sends for a message of the queue: its text is a string.
    pub fn call(&self, order: &Value) -> io::Result<Called> {
        let call = json!({
            "Data": { "order": order.to_string() },
            "Metadata": {
                "DequeueCount": 1,
                "Id": "800ae4b3-0000-4c08-badd-f08e5a34b865",
                "sys": { "MethodName": "charge", "UtcNow": "2026-11-30T00:00:00Z" },
            },
        });
        let url = format!("http://127.0.0.1:{}/charge", self.port);
        let answer = http::send("POST", &url, &[("content-type", "application/json")], call.to_string().as_bytes())?;
        let said = answer.json();
        assert_eq!((&said["Outputs"], &said["ReturnValue"]), (&json!({}), &Value::Null));
        Ok(Called { done: answer.status == 200, log: said["Logs"][0].as_str().expect("a line").to_owned() })
    }

    pub fn freeze(&self) {
        process::freeze(self.process.id());
    }

    pub fn thaw(&self) {
        process::thaw(self.process.id());
    }

    pub fn kill(&self) {
        process::end(self.process.id());
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the host makes of an answer: the message is deleted, or comes again.
#[derive(Debug)]
pub struct Called {
    pub done: bool,
    pub log: String,
}

/// A container of the test's own, with the leases and the charges.
pub struct Container {
    url: String,
    leases: Leases,
    runtime: tokio::runtime::Runtime,
}

impl Container {
    pub fn new(name: &str) -> Self {
        let url = crate::support::azurite::container(name);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let builder = AzureBlobStore::builder(&url, Credential::shared_key(ACCOUNT, KEY)).create_container();
        let store = runtime.block_on(builder.open()).expect("Azurite answers");
        let leases = Leases::builder(store).prefix("charges/").build().expect("fits");
        Self { url, leases, runtime }
    }

    /// The tokens that the order was charged under, one for each charge.
    pub fn charges(&self, order: &str) -> Vec<u64> {
        let url = format!("{}/ledger-{order}?{SAS}", self.url);
        let answer = http::send("GET", &url, &[("x-ms-version", "2021-12-02")], b"").expect("Azurite answers");
        match answer.status {
            404 => Vec::new(),
            200 => answer.text().lines().map(|line| line.parse().expect("a token")).collect(),
            status => panic!("{status}: {}", answer.text()),
        }
    }

    /// Waits until a process is at this order. Its token.
    pub fn until_at_work(&self, order: &str) -> FencingToken {
        let view = || self.runtime.block_on(self.leases.inspect(order)).expect("Azurite answers");
        until("it is at work", || view().status == Status::Held);
        view().token.expect("it is held")
    }
}

/// Asks again and again until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never comes that {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
