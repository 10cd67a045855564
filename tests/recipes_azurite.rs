//! The recipes on Azurite, in real time: terms there are 15 s and more, so all cases wait at once.
#![allow(clippy::disallowed_methods, reason = "sockets have no paused clock")]

mod recipes;
mod support;

use std::sync::Arc;
use std::time::Duration;

use leasehold::Store;
use leasehold::azure_blob::{AzureBlobStore, Credential};
use recipes::World;
use support::azurite::{ACCOUNT, KEY, container};

/// The shortest that the service gives.
const TTL: Duration = Duration::from_secs(15);

/// A container of a case's own.
fn world(case: usize) -> World {
    let container = container(&format!("recipes-{case}"));
    let world = World::new(None, TTL, move || {
        let store = AzureBlobStore::builder(container.clone(), Credential::shared_key(ACCOUNT, KEY));
        async move {
            let store: Arc<dyn Store> = Arc::new(store.create_container().open().await.unwrap());
            store
        }
    });
    World { asks: false, ..world }
}

macro_rules! tests {
    ($($module:ident: $case:ident,)*) => {
        /// In one test, so that they run at once however few threads the tests have.
        #[tokio::test(flavor = "multi_thread")]
        async fn the_recipes_do_on_azurite_what_they_do_elsewhere() {
            let mut cases = Vec::new();
            $(
                let case = recipes::$module::$case(world(cases.len()));
                cases.push((stringify!($case), tokio::spawn(case)));
            )*
            let (all, mut failed) = (cases.len(), Vec::new());
            for (case, done) in cases {
                if let Err(error) = done.await {
                    failed.push(format!("{case}: {error}"));
                }
            }
            assert!(failed.is_empty(), "{} of {all} failed:\n{}", failed.len(), failed.join("\n"));
        }
    };
}

recipes::for_each_case!(tests);
