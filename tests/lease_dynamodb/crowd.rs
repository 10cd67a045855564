//! Many leases of one client.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::StreamExt;
use leasehold::Lease;

use crate::ground::{Ground, RENEWAL, until};

const LEASES: usize = 1000;
/// Renewed every 5 s.
const TTL: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_leases_are_renewed_over_few_connections() {
    let ground = Ground::new().await;
    let leases = ground.builder("a").await.ttl(TTL).concurrency(16).build().unwrap();
    ground.proxy.reset_counts();
    let acquiring = (0..LEASES).map(|number| {
        let leases = leases.clone();
        async move { leases.acquire(format!("job/{number}")).await.unwrap() }
    });
    let held: Vec<Lease> = futures_util::stream::iter(acquiring).buffer_unordered(8).collect().await;

    // From the last acquire on: at least one renewal of each, so at least one whole period.
    ground.proxy.reset_counts();
    until("each is renewed", async || {
        let keys: HashSet<_> = ground.sent(RENEWAL).iter().map(|seen| seen.body["Key"].to_string()).collect();
        keys.len() == LEASES
    })
    .await;
    let mut by_connection = HashMap::new();
    for seen in ground.sent(RENEWAL) {
        *by_connection.entry(seen.connection).or_insert(0) += 1;
    }
    assert!(by_connection.len() < 20, "{by_connection:?}");
    assert!(ground.proxy.connections_opened() < 20, "{}", ground.proxy.connections_opened());
    assert_eq!(leases.stats().held, LEASES);
    assert!(leases.stats().lost.values().all(|lost| *lost == 0));
    drop(held);
}
