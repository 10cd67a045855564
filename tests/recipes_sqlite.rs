//! The recipes on SQLite, where only watching tells: a paused clock for the processes, and a real file.
#![cfg(feature = "sqlite")]
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod recipes;
#[path = "support/sqlite_file.rs"]
mod sqlite_file;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::sqlite::SqliteStore;
use leasehold::testing::TestClock;
use recipes::World;
use sqlite_file::File;

fn world(name: &str) -> (World, PathBuf) {
    let file = File::new("recipes", name);
    let path = file.path().to_owned();
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
