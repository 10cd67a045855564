//! An election among real processes on one SQLite file: a leader that is killed, and one that is stopped and goes on.
//!
//! The worker processes are this test binary again.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "real processes run in real time")]

mod support;

use std::path::PathBuf;
use std::time::Duration;

use leasehold::recipes::{Election, Sight};
use leasehold::sqlite::SqliteStore;
use leasehold::{Error, Leases};
use support::worker::{Worker, role, tell};

const FILE: &str = "LEASEHOLD_TEST_FILE";
/// Long enough for a busy machine to renew in time.
const TTL: Duration = Duration::from_secs(2);

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(what: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leasehold-election-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("leases.db")
    }

    fn candidate(&self) -> Worker {
        Worker::start("candidate", [(FILE, self.file())])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn leads(worker: &Worker) -> u64 {
    worker.says("leads").parse().unwrap()
}

async fn election(file: PathBuf) -> Election {
    let store = SqliteStore::open(file).await.unwrap();
    let leases = Leases::builder(store).ttl(TTL).margin(TTL / 10).build().unwrap();
    Election::new(&leases, "leader").publish(std::process::id().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_leaders_are_followed_by_others_with_higher_tokens_and_observers_see_them_in_order() {
    let folder = Folder::new("killed");
    let mut observer = election(folder.file()).await.observe();
    let watches = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 4 {
            if let Sight::Leader(leader) = observer.next().await.unwrap() {
                seen.push((leader.token.as_u64(), String::from_utf8(leader.data().to_vec()).unwrap()));
            }
        }
        seen
    });
    let mut led = Vec::new();
    let mut leader = folder.candidate();
    led.push(leads(&leader));
    for _ in 0..3 {
        let next = folder.candidate();
        next.says("campaigns");
        drop(leader); // SIGKILL
        led.push(leads(&next));
        leader = next;
    }
    assert!(led.is_sorted_by(|before, after| before < after), "{led:?}");
    let seen = tokio::time::timeout(TTL * 20, watches).await.expect("each leads for longer than a poll").unwrap();
    assert_eq!(seen.iter().map(|(token, _)| *token).collect::<Vec<_>>(), led);
    assert!(seen.windows(2).all(|two| two[0].1 != two[1].1), "each with its own address: {seen:?}");
}

#[test]
fn a_stopped_leader_is_replaced_and_when_it_goes_on_it_knows_and_campaigns_again() {
    let folder = Folder::new("stopped");
    let stopped = folder.candidate();
    let first = leads(&stopped);
    let next = folder.candidate();
    next.says("campaigns");
    stopped.freeze();
    let second = leads(&next);
    assert!(second > first);
    stopped.thaw();
    // Its work hears of it before it does anything more, and its lease says so.
    assert_eq!(stopped.says("deposed"), first.to_string());
    drop(next); // SIGKILL
    let third = leads(&stopped);
    assert!(third > second);
}

/// Not a test: what a worker process runs.
#[test]
fn worker_process() {
    if role().is_none() {
        return;
    }
    let file = PathBuf::from(std::env::var_os(FILE).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let election = election(file).await;
        tell("campaigns", "");
        let led = election.lead(async |held| {
            tell("leads", held.token());
            held.lost().await;
            assert!(!held.is_held());
            tell("deposed", held.token());
            Ok::<(), Error>(())
        });
        led.await.unwrap();
    });
}
