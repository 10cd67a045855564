//! The order matching example on Azurite.

mod example_order_matching;
mod support;

use example_order_matching::shows_that_only_the_fence_prevents_duplicates;
use support::azurite::{ACCOUNT, KEY, container};

#[test]
fn of_frozen_workers_that_share_a_blob_only_a_fenced_one_matches_no_order_twice() {
    let container = container("order-matching");
    let variables = [
        ("AZURE_STORAGE_CONTAINER_URL", container.as_str()),
        ("AZURE_STORAGE_ACCOUNT", ACCOUNT),
        ("AZURE_STORAGE_KEY", KEY),
    ];
    let removed = ["AZURE_STORAGE_SAS_TOKEN"];
    shows_that_only_the_fence_prevents_duplicates("azure", &variables, &removed);
}
