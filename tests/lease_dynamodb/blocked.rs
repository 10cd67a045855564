//! Threads that are blocked by synchronous work for longer than the term.

use std::future::poll_fn;
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use leasehold::{Ended, Held, Leases, Lost, LostReason, Renewal, State};

use crate::ground::{Ground, MARGIN, TTL, loss, soon};

/// What the work sees after its first await since it has blocked its thread.
#[derive(Clone, Debug, Default)]
struct Sights(Arc<Mutex<Vec<(bool, State)>>>);

impl Sights {
    fn look(&self, held: &Held) {
        self.0.lock().unwrap().push((held.is_held(), held.state()));
    }

    fn seen(&self) -> Vec<(bool, State)> {
        self.0.lock().unwrap().clone()
    }
}

async fn block_and_go_on(held: Held, sights: Sights, leases: Leases) -> Result<&'static str, Lost> {
    thread::sleep(TTL * 2);
    let mut has_waited = false;
    // Wakes itself: it is polled again before any timer has a chance to fire.
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    // Before the lease itself is looked at, because that judges it.
    assert_eq!(leases.stats().lost["deadline"], 1, "it goes on as if it were held");
    sights.look(&held);
    Ok("done")
}

fn assert_lost(outcome: Result<&'static str, Lost>, sights: &Sights) {
    let lost = outcome.expect_err("the lease was lost under the work");
    assert_eq!(lost.reason(), &LostReason::Deadline);
    // After its await the work may clean up for a margin, and knows that it is lost.
    assert_eq!(sights.seen(), [(false, State::Ended(Ended::Lost(lost)))]);
}

#[tokio::test]
async fn work_that_blocks_the_only_thread_is_told_of_the_loss_before_its_next_await_goes_on() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    let (lease, sights) = (leases.acquire("job").await.unwrap(), Sights::default());
    let outcome = lease.run(|held| block_and_go_on(held, sights.clone(), leases.clone())).await;
    assert_lost(outcome, &sights);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_blocks_all_threads_is_told_of_the_loss_before_its_next_await_goes_on() {
    let ground = Ground::new().await;
    let leases = ground.brisk("a").await;
    // A barrier lets go of two threads, and there are no more: this function is on neither.
    let both = Arc::new(Barrier::new(2));
    let other = tokio::spawn({
        let both = both.clone();
        async move {
            both.wait();
            // Longer than the work, so that nobody runs timers when that goes on.
            thread::sleep(TTL * 3);
        }
    });
    let task = tokio::spawn(async move {
        let (lease, sights) = (leases.acquire("job").await.unwrap(), Sights::default());
        let work = |held: Held| {
            both.wait();
            block_and_go_on(held, sights.clone(), leases.clone())
        };
        (lease.run(work).await, sights)
    });
    let (outcome, sights) = soon("the work ends", task).await.unwrap();
    other.await.unwrap();
    assert_lost(outcome, &sights);
}

#[tokio::test]
async fn a_keeper_with_a_thread_of_its_own_renews_while_the_runtime_is_blocked() {
    let ground = Ground::new().await;
    // Long enough for a machine that does much else.
    let ttl = Duration::from_secs(3);
    let builder = ground.builder("a").await.ttl(ttl).margin(MARGIN).renewal(Renewal::Thread);
    let leases = builder.build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    let before = ground.version("job").await;
    let output = lease
        .run(|held| async move {
            thread::sleep(ttl * 2);
            assert!(held.is_held());
            tokio::task::yield_now().await;
            assert_eq!(held.state(), State::Held);
            Ok::<_, Lost>("done")
        })
        .await;
    assert_eq!(output, Ok("done"));
    // Without renewals the lease would have been over; its record kept the newest version.
    assert!(ground.version("job").await >= before + 2);
    assert!(leases.stats().lost.values().all(|lost| *lost == 0));
}

#[tokio::test]
async fn leases_of_a_thread_that_was_blocked_are_lost_and_the_name_can_be_had_again() {
    let ground = Ground::new().await;
    let leases: Leases = ground.brisk("a").await;
    let lease = leases.acquire("job").await.unwrap();
    let token = lease.token();
    thread::sleep(TTL * 2);
    assert!(!lease.held().is_held());
    assert_eq!(loss(soon("the loss", lease.held().lost()).await).reason(), &LostReason::Deadline);
    drop(lease);
    let again = soon("a new grant", leases.acquire("job")).await.unwrap();
    assert!(again.token() > token);
}
