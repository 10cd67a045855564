//! The recipes on SQLite, where only watching tells: a paused clock for the processes, and a real file.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod recipes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::sqlite::SqliteStore;
use leasehold::testing::TestClock;
use recipes::World;

/// A file that is removed in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let file = Self(std::env::temp_dir().join(format!("leasehold-recipes-{}-{name}.db", std::process::id())));
        file.remove();
        file
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

fn world(name: &str) -> (World, PathBuf) {
    let file = File::new(name);
    let path = file.0.clone();
    let opened = path.clone();
    let world = World::new(Some(TestClock::new()), Duration::from_secs(30), move || {
        let path = opened.clone();
        async move {
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).await.unwrap());
            store
        }
    });
    (World { keeps: Arc::new(file), ..world }, path)
}

macro_rules! tests {
    ($($module:ident: $case:ident,)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $case() {
            recipes::$module::$case(world(stringify!($case)).0).await;
        })*
    };
}

recipes::for_each_case!(tests);

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token() {
    let (world, path) = world("deleted");
    let delete = || async move {
        let file = rusqlite::Connection::open(path).unwrap();
        assert_eq!(file.execute("DELETE FROM leasehold WHERE name = 'leader'", []).unwrap(), 1);
    };
    recipes::election::a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token(world, delete).await;
}
