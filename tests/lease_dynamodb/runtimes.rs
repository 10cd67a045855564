//! One client in several runtimes, and the keeper's own connections.

use leasehold::{Ended, Leases, LostReason, Renewal, Status};
use tokio::runtime::{Builder, Runtime};

use crate::ground::{Ground, TTL, loss, soon, until};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn the_keepers_thread_uses_connections_that_nobody_else_does() {
    let ground = Ground::new().await;
    // Opening it has left a connection in the pool of the user's client.
    let store = ground.store().await;
    let opened = ground.proxy.connections_opened();
    assert_eq!(opened, 1);
    let leases =
        Leases::builder(store).ttl(TTL).renewal(Renewal::Thread).margin(crate::ground::MARGIN).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    until("it is renewed", async || ground.version("job").await > 1).await;
    assert_eq!(leases.inspect("job").await.unwrap().token, Some(lease.token()));
    lease.release().await.unwrap();
    let seen = ground.proxy.seen();
    let (open, ours): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| seen.operation == "DescribeTable");
    assert!(open.iter().all(|seen| seen.connection == 1));
    assert!(ours.len() >= 5 && ours.iter().all(|seen| seen.connection > 1), "{ours:?}");
}

#[test]
fn a_client_with_a_keeper_thread_outlives_the_runtime_that_it_was_first_used_in() {
    let first = runtime();
    let (ground, leases, lease) = first.block_on(async {
        let ground = Ground::new().await;
        let builder = ground.builder("a").await.ttl(TTL * 2).margin(crate::ground::MARGIN);
        let leases = builder.renewal(Renewal::Thread).build().unwrap();
        let lease = leases.acquire("job").await.unwrap();
        assert_eq!(leases.inspect("job").await.unwrap().token, Some(lease.token()));
        (ground, leases, lease)
    });
    drop(first);
    runtime().block_on(async {
        let version = ground.version("job").await;
        until("it is renewed", async || ground.version("job").await > version).await;
        assert!(lease.held().is_held());
        assert_eq!(leases.inspect("job").await.unwrap().token, Some(lease.token()));
        let other = soon("an acquire", leases.acquire("other")).await.unwrap();
        assert_eq!(other.release().await.unwrap(), Ended::Released);
        assert_eq!(lease.release().await.unwrap(), Ended::Released);
        assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    });
}

#[test]
fn a_client_in_a_static_works_in_a_second_runtime_and_says_what_became_of_the_first_ones_leases() {
    let first = runtime();
    let (ground, leases, lease) = first.block_on(async {
        let ground = Ground::new().await;
        let leases = ground.quiet("a").await;
        let lease = leases.acquire("job").await.unwrap();
        (ground, leases, lease)
    });
    drop(first);
    runtime().block_on(async {
        assert_eq!(loss(lease.held().lost().await).reason(), &LostReason::KeeperGone);
        // The pooled connection ended with its runtime: it is not used again.
        let other = soon("an acquire", leases.acquire("other")).await.unwrap();
        assert!(other.held().is_held());
        assert_eq!(ground.sent(crate::ground::CLAIM).len(), 2, "one a lease");
        lease.release().await.unwrap();
        let again = soon("an acquire", leases.acquire("job")).await.unwrap();
        assert!(again.held().is_held());
    });
}
