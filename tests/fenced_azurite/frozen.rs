//! A process that is frozen between its last check and its write, until somebody else holds. The worker is this test
//! binary again.
#![allow(clippy::disallowed_methods, reason = "real processes and real terms")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold::azure_blob::AzureBlobStore;
use leasehold::fence::FenceError;
use leasehold::protocol::broken::Broken;
use leasehold::{Error, ErrorKind, Leases};

use crate::ground::{blob, store};
use crate::support::azurite::container;

const CONTAINER: &str = "LEASEHOLD_TEST_CONTAINER";
const UNGUARDED: &str = "LEASEHOLD_TEST_UNGUARDED";
const LEASE: &str = "orders/eu";
/// The shortest that the service gives.
const TERM: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn the_late_writes_of_a_frozen_process_are_refused_by_azurite() {
    let container = container("fenced-frozen");
    let store = store(&container).await;
    let mut worker = Worker::start(&container, false);
    let old: u64 = worker.says("holds").parse().unwrap();
    worker.signal("STOP");

    let lease = leases(&store).acquire(LEASE).await.expect("its term is over");
    assert!(lease.token().as_u64() > old);
    let mut raised = blob(&container).raise(lease.token()).await.expect("the newest");
    assert_eq!(raised.read().await.unwrap(), b"half of it");
    let proof = lease.held().proof();
    assert_eq!(store.read_content(&proof).await.unwrap(), b"half of it");

    worker.goes_on();
    assert_eq!(worker.says("own blob"), format!("stale {old} < {}", lease.token()));
    assert_eq!(worker.says("lease blob"), "Refused");
    assert_eq!(worker.says("is held"), "false");

    assert_eq!(raised.read().await.unwrap(), b"half of it");
    assert_eq!(store.read_content(&proof).await.unwrap(), b"half of it");
    raised.write("all of it").await.unwrap();
    store.write_content(&proof, "all of it").await.unwrap();
}

/// The control: without the comparison the same late write is stored, and what the new holder has read is not true.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_comparison_the_late_write_of_a_frozen_process_is_stored() {
    let container = container("fenced-unguarded");
    let store = store(&container).await;
    let mut worker = Worker::start(&container, true);
    worker.says("holds");
    worker.signal("STOP");
    let lease = leases(&store).acquire(LEASE).await.expect("its term is over");
    let mut raised = blob(&container).raise(lease.token()).await.expect("the newest");
    assert_eq!(raised.read().await.unwrap(), b"half of it");
    worker.goes_on();
    assert_eq!(worker.says("own blob"), "stored");
    let changed = raised.read().await.expect_err("it is not as it was");
    assert!(matches!(changed, FenceError::Overtaken { .. }), "{changed}");
}

fn leases(store: &AzureBlobStore) -> Leases {
    Leases::builder(store.clone()).ttl(TERM).build().expect("fits")
}

/// Not a test: what the worker process runs.
#[tokio::test(flavor = "multi_thread")]
async fn worker_process() {
    let Ok(container) = std::env::var(CONTAINER) else { return };
    let store = store(&container).await;
    let lease = leases(&store).acquire(LEASE).await.expect("free");
    let held = lease.held();
    let blob = blob(&container);
    let mut raised = blob.raise(lease.token()).await.expect("the first");
    raised.write("half of it").await.expect("stored");
    store.write_content(&held.proof(), "half of it").await.expect("stored");

    // The last check says yes; what follows it is late.
    assert!(held.is_held());
    say("holds", &lease.token());
    std::io::stdin().read_line(&mut String::new()).expect("the word to go on");
    if std::env::var_os(UNGUARDED).is_some() {
        let _broken = Broken::FenceAdmitsLower.switch_on();
        let late = answered(async || blob.raise(lease.token()).await?.write("late").await, of_the_connection).await;
        late.expect("nobody compares");
        return say("own blob", &"stored");
    }
    let late = answered(async || raised.write("late").await, of_the_connection).await;
    let late = late.expect_err("a late write").stale().expect("stale");
    say("own blob", &format!("stale {} < {}", late.token, late.highest));
    let proof = held.proof();
    let late = answered(async || store.write_content(&proof, "late").await, is_away).await.expect_err("a late write");
    say("lease blob", &format!("{:?}", late.kind()));
    say("is held", &held.is_held());
}

/// Its connections have not survived the pause, so it tries again, as clients do.
async fn answered<T, E>(mut work: impl AsyncFnMut() -> Result<T, E>, is_away: fn(&E) -> bool) -> Result<T, E> {
    loop {
        match work().await {
            Err(error) if is_away(&error) => {}
            answer => return answer,
        }
    }
}

fn is_away(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
}

fn of_the_connection(error: &FenceError<Error>) -> bool {
    matches!(error, FenceError::Store(error) | FenceError::InDoubt { error, .. } if is_away(error))
}

fn say(what: &str, value: &dyn std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@{what}: {value}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

struct Worker {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(container: &str, unguarded: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "frozen::worker_process", "--nocapture", "--test-threads=1"])
            .env(CONTAINER, container)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if unguarded {
            command.env(UNGUARDED, "1");
        }
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, output }
    }

    /// Waits until it says this, and for nothing else.
    fn says(&mut self, what: &str) -> String {
        loop {
            let line = self.output.next().expect("it goes on").unwrap();
            // The test harness talks too, on the same line at first.
            let Some((_, said)) = line.split_once('@') else { continue };
            let (said, value) = said.split_once(": ").expect("a word and a value");
            assert_eq!(said, what, "{value}");
            return value.to_owned();
        }
    }

    /// By the shell's own `kill`, because the standard library can only kill.
    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// The word is there before it wakes: it does nothing but write.
    fn goes_on(&mut self) {
        self.input.write_all(b"go on\n").unwrap();
        self.signal("CONT");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
