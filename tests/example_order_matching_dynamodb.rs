//! The order matching example on a DynamoDB emulator in the test process.

mod example_order_matching;
mod support;

use example_order_matching::shows_that_only_the_fence_prevents_duplicates;
use support::emulator::Emulator;

#[test]
fn of_frozen_workers_that_share_a_table_only_a_fenced_one_matches_no_order_twice() {
    let emulator = Emulator::start();
    let endpoint = format!("http://{}", emulator.addr());
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ];
    shows_that_only_the_fence_prevents_duplicates("dynamodb", &variables, &["LEASES_TABLE"]);
}
