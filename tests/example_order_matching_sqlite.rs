//! The order matching example on SQLite.

mod example_order_matching;
mod support;

use example_order_matching::shows_that_only_the_fence_prevents_duplicates;

#[test]
fn of_frozen_workers_that_share_a_file_only_a_fenced_one_matches_no_order_twice() {
    shows_that_only_the_fence_prevents_duplicates("sqlite", &[], &[]);
}
