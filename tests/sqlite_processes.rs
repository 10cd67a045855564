//! Real processes on one SQLite file: races, kill -9 and takeovers, told apart from a counter without any guard.
//!
//! The worker processes are this test binary again.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "real processes race in real time")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use leasehold::protocol::observer::{Judgement, Observer};
use leasehold::protocol::rules::{Clocks, Ratio};
use leasehold::sqlite::SqliteStore;
use leasehold::store::Store;
use leasehold::{Applied, Claim, Claimed, Clock, Expect, Grant, Name, StoreError, SystemClock, Vacate, Vacated};
use rusqlite::Connection;

const ROLE: &str = "LEASEHOLD_TEST_ROLE";
const FOLDER: &str = "LEASEHOLD_TEST_FOLDER";
/// The workers go on until there is this file.
const STOP: &str = "stop";
const TTL_MS: u64 = 300;
const WORKERS: usize = 4;
const ROUNDS: i64 = 25;
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn killed_holders_are_replaced_and_no_update_under_the_fence_is_lost() {
    let folder = Folder::new("guarded");
    let mut crowd = Crowd::start(&folder.0, &["worker"; WORKERS]);
    // One is killed wherever it happens to be, the other while it certainly holds the lease.
    let anywhere = crowd.start_one(&folder.0, "worker");
    let holding = crowd.start_one(&folder.0, "holder");
    let mut told = Told::default();
    crowd.listen(&mut told, |told| told.by(anywhere) >= 10);
    crowd.kill(anywhere);
    crowd.listen(&mut told, |told| told.held.is_some());
    crowd.kill(holding);
    crowd.listen(&mut told, |told| told.takeovers.iter().any(|token| Some(*token) > told.held));
    std::fs::write(folder.0.join(STOP), "").unwrap();
    crowd.listen(&mut told, |told| told.done == WORKERS);

    let distinct: BTreeSet<_> = told.tokens.iter().map(|(_, token)| *token).collect();
    assert_eq!(distinct.len(), told.tokens.len(), "a token was granted twice: {:?}", told.tokens);
    let counter = Counter::open(&folder.0);
    // A victim may have been killed between its commit and its report.
    let unreported = counter.value() - told.counted;
    assert!((0..=1).contains(&unreported), "counted {}, reported {}", counter.value(), told.counted);
    assert_eq!(counter.value(), counter.log().len() as i64, "an update was lost");
    assert!(counter.log().is_sorted_by(|a, b| a < b), "tokens did not rise: {:?}", counter.log());
    println!(
        "{} grants, {} counted, {} takeovers, {} stale writes refused",
        told.tokens.len(),
        told.counted,
        told.takeovers.len(),
        told.stale
    );
}

/// The control: if this one loses nothing, the test above could not have seen a loss either.
#[test]
fn without_lease_and_fence_the_same_counter_loses_updates() {
    let folder = Folder::new("unguarded");
    let mut crowd = Crowd::start(&folder.0, &["unguarded"; WORKERS]);
    let mut told = Told::default();
    crowd.listen(&mut told, |told| told.done == WORKERS);
    assert_eq!(told.counted, WORKERS as i64 * ROUNDS);
    let value = Counter::open(&folder.0).value();
    println!("counted {}, left {value}", told.counted);
    assert!(value < told.counted, "nothing was lost: there was no race");
}

#[test]
fn many_processes_that_open_a_new_file_at_once_agree_on_one_store() {
    let folder = Folder::new("opening");
    let mut crowd = Crowd::start(&folder.0, &["opener"; 8]);
    let mut told = Told::default();
    crowd.listen(&mut told, |told| told.done == 8);
    assert_eq!(told.identities.len(), 1, "{:?}", told.identities);
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    match role.as_str() {
        "unguarded" => unguarded(&folder),
        role => runtime.block_on(work(&folder, role)),
    }
    tell("done", "");
}

fn unguarded(folder: &Path) {
    let counter = Counter::open(folder);
    for _ in 0..ROUNDS {
        let value = counter.value();
        std::thread::sleep(Duration::from_millis(1));
        counter.set(value + 1);
        tell("counted", "");
    }
}

async fn work(folder: &Path, role: &str) {
    let store = SqliteStore::open(folder.join("leases.db")).await.unwrap();
    if role == "opener" {
        return tell("identity", &store.describe().identity);
    }
    let counter = Counter::open(folder);
    let mut worker = Worker { store, known: 0, observer: Observer::default() };
    let mut counted = 0;
    while counted < ROUNDS || !folder.join(STOP).exists() {
        let (token, grant) = worker.acquire().await;
        tell("token", &token.to_string());
        if role == "holder" && counted == 3 {
            tell("holds", &token.to_string());
            std::thread::sleep(PATIENCE);
        }
        if counter.add_one_fenced(token as i64).await {
            counted += 1;
            tell("counted", "");
        } else {
            tell("stale", "");
        }
        worker.release(token, grant).await;
    }
}

/// The store's verbs in the simplest loop that is safe.
struct Worker {
    store: SqliteStore,
    known: u64,
    observer: Observer,
}

impl Worker {
    async fn acquire(&mut self) -> (u64, Grant) {
        let mut expect = Expect::Vacant;
        loop {
            let body = self.body(expect);
            let refused = loop {
                match self.store.claim(&body).await {
                    Ok(answer) => break answer.value,
                    Err(error) => pause_after(&error).await,
                }
            };
            let Claimed::Refused(mut view) = refused else {
                if let Expect::Expired(_) = body.expect {
                    tell("takeover", &body.token.to_string());
                }
                self.known = body.token;
                return (body.token, body.grant);
            };
            expect = loop {
                self.known = self.known.max(view.token());
                match self.observer.judge(&view, &SystemClock.stamp(), None, &clocks()) {
                    Judgement::Claimable(expect) => break expect,
                    Judgement::NotYet(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                    Judgement::Unreadable => panic!("the record is unreadable"),
                }
                view = self.store.read(&name()).await.unwrap().value;
            };
        }
    }

    async fn release(&self, token: u64, grant: Grant) {
        let body = Vacate { name: name(), token, grant, burn: false, close: None, now_ms: None };
        loop {
            match self.store.vacate(&body).await.map(|answer| answer.value) {
                Ok(Vacated::Vacated | Vacated::Refused(_)) => return,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    fn body(&self, expect: Expect) -> Claim {
        Claim {
            name: name(),
            token: self.known + 1,
            grant: Grant::from_bits(SystemClock.random()),
            ttl_ms: TTL_MS,
            expires_at_ms: None,
            holder: None,
            data: None,
            set: None,
            expect,
        }
    }
}

async fn pause_after(error: &StoreError) {
    assert_eq!(error.applied, Applied::No, "{error}");
    assert!(error.kind.is_transient(), "{error}");
    tokio::time::sleep(Duration::from_millis(5)).await;
}

fn name() -> Name {
    Name::new("counter").unwrap()
}

fn clocks() -> Clocks {
    Clocks {
        rho: Ratio { num: 1, den: 100 },
        kappa: 0,
        date_grain: 1,
        milli: 1_000_000,
        widest: 0,
        oldest: 0,
        floor_ms: (0, 0),
    }
}

/// The resource: a number, the highest token it has seen, and a log of the tokens that changed it.
struct Counter(Connection);

impl Counter {
    fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("counter.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        let tables = "PRAGMA synchronous = OFF;
            BEGIN IMMEDIATE;
            CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, value INTEGER, fence INTEGER);
            CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY AUTOINCREMENT, token INTEGER);
            INSERT OR IGNORE INTO counter VALUES (1, 0, 0);
            COMMIT";
        connection.execute_batch(tables).unwrap();
        Self(connection)
    }

    fn value(&self) -> i64 {
        self.0.query_row("SELECT value FROM counter", [], |row| row.get(0)).unwrap()
    }

    fn set(&self, value: i64) {
        self.0.execute("UPDATE counter SET value = ?1", [value]).unwrap();
    }

    fn log(&self) -> Vec<i64> {
        let mut select = self.0.prepare("SELECT token FROM log ORDER BY seq").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Reads and writes in two steps, like the unguarded one; the fence is raised before the read, so that a stale
    /// write after it is refused. Whether it was written.
    async fn add_one_fenced(&self, token: i64) -> bool {
        if self.0.execute("UPDATE counter SET fence = ?1 WHERE fence < ?1", [token]).unwrap() == 0 {
            return false;
        }
        let value = self.value();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let transaction = self.0.unchecked_transaction().unwrap();
        let sql = "UPDATE counter SET value = ?2 WHERE fence = ?1";
        let written = transaction.execute(sql, [token, value + 1]).unwrap() > 0;
        if written {
            transaction.execute("INSERT INTO log (token) VALUES (?1)", [token]).unwrap();
        }
        transaction.commit().unwrap();
        written
    }
}

/// A line to the parent, at once: a killed process flushes nothing.
fn tell(what: &str, value: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@{what} {value}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What the workers have said.
#[derive(Default)]
struct Told {
    tokens: Vec<(usize, u64)>,
    identities: BTreeSet<String>,
    counted: i64,
    takeovers: Vec<u64>,
    stale: usize,
    done: usize,
    held: Option<u64>,
}

impl Told {
    fn by(&self, worker: usize) -> usize {
        self.tokens.iter().filter(|(by, _)| *by == worker).count()
    }

    fn hear(&mut self, worker: usize, line: &str) {
        let (what, value) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "token" => self.tokens.push((worker, value.parse().unwrap())),
            "identity" => drop(self.identities.insert(value.to_owned())),
            "counted" => self.counted += 1,
            "takeover" => self.takeovers.push(value.parse().unwrap()),
            "stale" => self.stale += 1,
            "holds" => self.held = value.parse().ok(),
            "done" => self.done += 1,
            _ => panic!("worker {worker} says {line}"),
        }
    }
}

struct Crowd {
    workers: Vec<Child>,
    sender: Sender<(usize, String)>,
    lines: Receiver<(usize, String)>,
}

impl Crowd {
    fn start(folder: &Path, roles: &[&str]) -> Self {
        let (sender, lines) = channel();
        let mut crowd = Self { workers: Vec::new(), sender, lines };
        for role in roles {
            crowd.start_one(folder, role);
        }
        crowd
    }

    fn start_one(&mut self, folder: &Path, role: &str) -> usize {
        let number = self.workers.len();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker_process", "--nocapture", "--test-threads=1"])
            .envs([(ROLE, role.as_ref()), (FOLDER, folder.as_os_str())])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, sender) = (BufReader::new(child.stdout.take().unwrap()), self.sender.clone());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The test harness talks too, on the same line at first.
                if let Some((_, said)) = line.split_once('@') {
                    let _ = sender.send((number, said.to_owned()));
                }
            }
        });
        self.workers.push(child);
        number
    }

    fn kill(&mut self, worker: usize) {
        self.workers[worker].kill().unwrap();
        self.workers[worker].wait().unwrap();
    }

    fn listen(&mut self, told: &mut Told, enough: impl Fn(&Told) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !enough(told) {
            let left = until.saturating_duration_since(Instant::now());
            let (worker, line) = self.lines.recv_timeout(left).expect("the workers went on in time");
            told.hear(worker, &line);
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// A folder of this run's own.
struct Folder(PathBuf);

impl Folder {
    fn new(what: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leasehold-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
