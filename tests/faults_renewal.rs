//! Faults of renewing: failures, hangs, blocked threads, drops in odd places, leaks.
#![allow(clippy::disallowed_methods, reason = "tests sleep, mostly on a paused clock")]

mod support;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::{Duration, Instant};

use leasehold::testing::TestClock;
use leasehold::{
    Clock, Ended, Event, Events, Lease, Leases, Lost, LostReason, MemoryStore, Renewal, Sleep, Stamp, State, Status,
    StoreErrorKind, SystemClock,
};
use support::scripted::{Fault, Scripted, TTL, Verb, client, table};
use tokio::runtime::{self, Handle, Runtime};
use tokio::time::sleep;

/// 30 s less 1 % less the margin of 3 s.
const TERM: Duration = Duration::from_millis(26_700);
const TICK: Duration = Duration::from_millis(10);
/// Of the tests on real clocks: long enough for a machine that is busy.
const SHORT: Duration = Duration::from_millis(900);

/// A store and a client on the machine's clocks, with a short term.
fn real(renewal: Renewal) -> (Scripted, Leases) {
    let store = Scripted::new(MemoryStore::new(), SystemClock);
    (store.clone(), real_client(&store, renewal))
}

fn real_client(store: &Scripted, renewal: Renewal) -> Leases {
    let margin = Duration::from_millis(30);
    Leases::builder(store.clone()).ttl(SHORT).margin(margin).renewal(renewal).build().unwrap()
}

/// The moments of the calls, in milliseconds after `since`.
fn moments(store: &Scripted, verb: Verb, name: &str, since: &Stamp) -> Vec<u64> {
    let calls = store.calls().into_iter().filter(|call| call.verb == verb && call.name == name);
    calls.map(|call| (call.at.mono - since.mono) / 1_000_000).collect()
}

fn gaps(moments: &[u64]) -> Vec<u64> {
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// What has happened so far.
async fn drain(events: &mut Events) -> Vec<Event> {
    let mut all = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(1), events.next()).await {
        all.push(event);
    }
    all
}

async fn lost(lease: &Lease) -> Lost {
    match lease.held().lost().await {
        Ended::Lost(lost) => lost,
        ended => panic!("not lost: {ended:?}"),
    }
}

async fn until_called(store: &Scripted, verb: Verb, times: usize) {
    while store.count(verb) < times {
        sleep(TICK).await;
    }
}

// D1

#[tokio::test(start_paused = true)]
async fn one_failed_renewal_of_three_is_jeopardy_then_held_again_and_no_loss() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let mut events = leases.events();
    let failed = store.on(Verb::Renew).after(1).fault(Fault::Fail(StoreErrorKind::Unavailable));
    let begun = clock.stamp();
    let lease = leases.acquire("job").await.unwrap();
    let mut watch = lease.held().watch();
    assert_eq!(watch.changed().await, Some(State::Jeopardy));
    assert!(lease.held().is_held(), "the deadline is ahead");
    assert_eq!(watch.changed().await, Some(State::Held));
    sleep(TTL * 2).await;
    assert_eq!(failed.times(), 1);
    assert!(lease.held().is_held());
    let told = drain(&mut events).await;
    assert!(
        matches!(&told[..], [Event::Acquired { .. }, Event::Jeopardy { cause: Some(cause), .. }, Event::Recovered { .. }] if cause.contains("Unavailable")),
        "{told:?}"
    );
    let gaps = gaps(&moments(&store, Verb::Renew, "job", &begun));
    assert!((9_999..=10_010).contains(&gaps[0]), "every 10 s: {gaps:?}");
    assert!((156..=314).contains(&gaps[1]), "again after half to a whole of a sixteenth of 5 s: {gaps:?}");
    assert!(gaps[2..].iter().all(|gap| (9_999..=10_010).contains(gap)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_not_blamed_on_a_failure_that_was_overcome() {
    // D1
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let failed = store.on(Verb::Renew).fault(Fault::Fail(StoreErrorKind::Unavailable));
    let lease = leases.acquire("job").await.unwrap();
    sleep(TTL).await;
    leases.revoke("job", lease.token()).await.unwrap();
    let lost = lost(&lease).await;
    assert_eq!(failed.times(), 1);
    assert_eq!((lost.reason(), lost.cause()), (&LostReason::Revoked, None));
}

// D2

#[tokio::test(start_paused = true)]
async fn renewals_that_are_denied_are_tried_until_the_deadline_and_are_the_cause_of_the_loss() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let denied = store.on(Verb::Renew).always().fault(Fault::Fail(StoreErrorKind::Denied));
    let lease = leases.acquire("job").await.unwrap();
    let (held, started) = (lease.held(), tokio::time::Instant::now());
    sleep(TERM - TICK).await;
    assert!(held.is_held());
    assert_eq!(held.state(), State::Jeopardy);
    let tries = denied.times();
    assert!(tries >= 4, "it keeps trying: {tries}");
    let lost = lost(&lease).await;
    assert_eq!(started.elapsed().as_millis(), TERM.as_millis());
    assert_eq!(lost.reason(), &LostReason::Deadline);
    assert!(lost.cause().unwrap().contains("Denied"), "{lost}");
    assert!(!held.is_held());
    assert_eq!(leases.stats().lost["deadline"], 1);
    let sent = store.count(Verb::Renew);
    sleep(TTL).await;
    assert_eq!(store.count(Verb::Renew), sent, "a lost lease sends no renewal");
}

// D3

#[tokio::test(start_paused = true)]
async fn a_hung_renewal_neither_delays_its_loss_nor_the_renewals_of_others() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let hung = store.on(Verb::Renew).of("stuck").always().fault(Fault::Hang);
    let begun = clock.stamp();
    let stuck = leases.acquire("stuck").await.unwrap();
    let others = [leases.acquire("x").await.unwrap(), leases.acquire("y").await.unwrap()];
    let started = tokio::time::Instant::now();
    until_called(&store, Verb::Renew, 3).await;
    assert!(stuck.held().is_held(), "answered although its request hangs");
    assert_eq!(lost(&stuck).await.reason(), &LostReason::Deadline);
    assert_eq!(started.elapsed().as_millis(), TERM.as_millis());
    assert!(hung.times() >= 3, "{hung:?}");
    sleep(TTL).await;
    for (name, lease) in ["x", "y"].into_iter().zip(&others) {
        assert_eq!(lease.held().state(), State::Held);
        let gaps = gaps(&moments(&store, Verb::Renew, name, &begun));
        assert!(gaps.len() >= 3 && gaps.iter().all(|gap| (9_999..=10_010).contains(gap)), "{name}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_room_for_one_request_a_hung_renewal_delays_others_by_one_attempt_at_the_most() {
    // D3
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).ttl(TTL).concurrency(1).clock(clock.clone()).build().unwrap();
    let hung = store.on(Verb::Renew).of("stuck").always().fault(Fault::Hang);
    let begun = clock.stamp();
    let stuck = leases.acquire("stuck").await.unwrap();
    let others = [leases.acquire("x").await.unwrap(), leases.acquire("y").await.unwrap()];
    lost(&stuck).await;
    sleep(TTL).await;
    assert!(hung.times() >= 2);
    for (name, lease) in ["x", "y"].into_iter().zip(&others) {
        assert_eq!(lease.held().state(), State::Held);
        let gaps = gaps(&moments(&store, Verb::Renew, name, &begun));
        assert!(gaps.iter().all(|gap| (9_999..=15_010).contains(gap)), "{name}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_the_owner_begins_and_gives_up_do_not_cost_the_lease() {
    // D3: the owner's own call is the hung one, again and again; the store is well.
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let slow = store.on(Verb::Renew).always().fault(Fault::ArriveLate(Duration::from_millis(200)));
    for _ in 0..40 {
        sleep(Duration::from_secs(2)).await;
        let _ = tokio::time::timeout(Duration::from_millis(100), lease.renew()).await;
        assert!(lease.held().is_held());
    }
    assert!(slow.times() >= 40);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_falls_due_while_the_owner_renews_is_not_forgotten() {
    // D3: the keeper finds the owner's renewal under way, and the owner gives it up.
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    until_called(&store, Verb::Renew, 1).await;
    let hung = store.on(Verb::Renew).fault(Fault::Hang);
    sleep(Duration::from_millis(9_900)).await;
    let given_up = tokio::time::timeout(Duration::from_millis(500), lease.renew()).await;
    assert!(given_up.is_err() && hung.times() == 1);
    sleep(Duration::from_secs(1)).await;
    assert!(store.count(Verb::Renew) >= 3, "renewed at once after the owner gave up");
    sleep(TTL * 2).await;
    assert!(lease.held().is_held());
}

// D4

async fn nothing_follows_a_release_while_a_renewal_is(fault: Fault) {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let happened = store.on(Verb::Renew).always().fault(fault);
    until_called(&store, Verb::Renew, 1).await;
    let started = tokio::time::Instant::now();
    assert_eq!(lease.release().await.unwrap(), Ended::Released);
    assert_eq!(started.elapsed(), Duration::ZERO, "it waits for no renewal");
    let sent = store.total();
    sleep(TTL * 2).await;
    assert_eq!((store.total(), happened.times()), (sent, 1), "{fault:?}");
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free, "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn after_a_release_no_request_follows_and_the_record_stays_free_whatever_a_renewal_does() {
    let late = Duration::from_secs(3);
    for fault in
        [Fault::Hang, Fault::AnswerLate(late), Fault::ArriveLate(late), Fault::ApplyLate(late), Fault::Twice(late)]
    {
        nothing_follows_a_release_while_a_renewal_is(fault).await;
    }
}

#[tokio::test]
async fn on_the_keepers_own_thread_a_release_stops_the_renewal_that_is_under_way() {
    // D4
    let (store, leases) = real(Renewal::Thread);
    let lease = leases.acquire("job").await.unwrap();
    let slow = store.on(Verb::Renew).always().fault(Fault::ArriveLate(Duration::from_millis(100)));
    until_called(&store, Verb::Renew, 1).await;
    lease.release().await.unwrap();
    let sent = store.total();
    sleep(Duration::from_millis(300)).await;
    assert_eq!((store.total(), slow.times()), (sent, 1), "{:?}", store.calls());
}

#[tokio::test(start_paused = true)]
async fn the_release_of_a_lost_lease_does_not_wait_for_a_renewal_that_hangs() {
    // D4, D3
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let hung = store.on(Verb::Renew).always().fault(Fault::Hang);
    let lease = leases.acquire("job").await.unwrap();
    lost(&lease).await;
    let started = tokio::time::Instant::now();
    assert!(matches!(lease.release().await.unwrap(), Ended::Lost(_)));
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(hung.times() >= 3);
    assert_eq!(store.count(Verb::Release), 1);
}

// D5

/// Work that blocks its thread for more than two terms, and what it sees after its next await.
async fn block(leases: &Leases) -> (Result<(), Lost>, bool) {
    let went_on_as_held = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&went_on_as_held);
    let lease = leases.acquire("job").await.unwrap();
    let ended = lease.run(|held| async move {
        std::thread::sleep(SHORT * 2 + SHORT / 2);
        tokio::task::yield_now().await;
        *seen.lock().unwrap() = Some(held.is_held() && held.state() == State::Held);
        Ok::<_, Lost>(())
    });
    let ended = ended.await;
    let held = went_on_as_held.lock().unwrap().expect("the work ran to its end");
    (ended, held)
}

#[tokio::test]
async fn work_that_blocks_the_runtime_for_two_terms_finds_its_lease_lost_at_its_next_await() {
    let (_store, leases) = real(Renewal::Task);
    let (ended, as_held) = block(&leases).await;
    assert!(!as_held);
    assert_eq!(ended.unwrap_err().reason(), &LostReason::Deadline);
}

#[tokio::test]
async fn the_keepers_own_thread_holds_a_lease_while_the_runtime_is_blocked() {
    // D5
    let (store, leases) = real(Renewal::Thread);
    let (ended, as_held) = block(&leases).await;
    assert!(as_held);
    assert_eq!(ended, Ok(()));
    assert!(store.count(Verb::Renew) >= 4);
}

// D6

#[tokio::test(start_paused = true)]
async fn a_deleted_record_is_lost_at_the_next_renewal_not_made_anew_and_followed_by_a_higher_token() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    until_called(&store, Verb::Renew, 1).await;
    store.inner().delete("job");
    let started = tokio::time::Instant::now();
    assert_eq!(lost(&lease).await.reason(), &LostReason::Deleted);
    assert!((9_980..=10_010).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    let old = lease.token();
    assert!(matches!(lease.release().await.unwrap(), Ended::Lost(_)));
    let found = leases.inspect("job").await.unwrap();
    assert_eq!((found.status, found.token), (Status::Free, None));
    assert_eq!(store.count(Verb::Release), 0, "there is nothing to release");
    assert!(leases.acquire("job").await.unwrap().token() > old);
}

// D7

#[tokio::test(start_paused = true)]
async fn a_lease_dropped_on_a_thread_without_a_runtime_stops_renewing_and_is_released() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    std::thread::spawn(move || drop(lease)).join().expect("no panic");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    sleep(TTL).await;
    assert_eq!((store.count(Verb::Renew), store.count(Verb::Release)), (0, 1));
}

/// Says whether the drop of its lease has panicked, and how long it took.
struct Dropped(Option<Lease>, mpsc::Sender<(bool, Duration)>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let (lease, begun) = (self.0.take(), Instant::now());
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(lease))).is_err();
        let _ = self.1.send((panicked, begun.elapsed()));
    }
}

/// A runtime ends while a task of it holds a lease; gives its store and client.
fn shut_down_while_held(runtime: Runtime, renewal: Renewal) -> (Scripted, Leases) {
    let (store, leases) = real(renewal);
    let (told, hears) = mpsc::channel();
    let client = leases.clone();
    let (acquired, is_acquired) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let _lease = Dropped(Some(client.acquire("job").await.unwrap()), told);
        acquired.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    runtime.block_on(is_acquired).unwrap();
    drop(runtime);
    let (panicked, took) = hears.recv_timeout(Duration::from_secs(10)).expect("it was dropped");
    assert!(!panicked);
    assert!(took < Duration::from_millis(500), "it blocked for {took:?}");
    (store, leases)
}

fn runtimes() -> [Runtime; 2] {
    let one = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    [one, many]
}

#[test]
fn a_lease_dropped_by_the_shutdown_of_its_runtime_stops_renewing_and_its_release_is_owed() {
    for first in runtimes() {
        let (store, leases) = shut_down_while_held(first, Renewal::Task);
        let sent = store.count(Verb::Renew);
        std::thread::sleep(SHORT / 2);
        assert_eq!(store.count(Verb::Renew), sent);
        let [second, _] = runtimes();
        second.block_on(leases.flush());
        assert_eq!(second.block_on(leases.inspect("job")).unwrap().status, Status::Free);
        assert_eq!(store.count(Verb::Release), 1);
    }
}

#[test]
fn the_keepers_own_thread_releases_what_the_shutdown_of_a_runtime_drops() {
    // D7
    for first in runtimes() {
        let (store, _leases) = shut_down_while_held(first, Renewal::Thread);
        let begun = Instant::now();
        while store.count(Verb::Release) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(TICK);
        }
        let sent = store.total();
        std::thread::sleep(SHORT / 2);
        assert_eq!(store.total(), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_dropped_by_a_panic_stops_renewing_and_is_released() {
    // D7
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    let task = tokio::spawn(async move {
        let _lease = lease;
        panic!("the work has panicked");
    });
    assert!(task.await.unwrap_err().is_panic());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(leases.inspect("job").await.unwrap().status, Status::Free);
    sleep(TTL).await;
    assert_eq!((store.count(Verb::Renew), store.count(Verb::Release)), (0, 1));
}

// D8

/// When the longest hold of 60 s is over, in milliseconds after the acquire: the loss, and a rival's grant.
async fn leaked(leak: impl FnOnce(Lease), store: &Scripted, clock: &TestClock) -> (u128, u128) {
    let (a, b) = (client(store, clock, "a"), client(store, &clock.another(2), "b"));
    let started = tokio::time::Instant::now();
    let lease = a.request("job").at_most(Duration::from_secs(60)).acquire().await.unwrap();
    let ended = lease.held().lost();
    leak(lease);
    assert!(matches!(ended.await, Ended::Lost(lost) if lost.reason() == &LostReason::AtMost));
    let lost = started.elapsed().as_millis();
    let sent = store.count(Verb::Renew);
    drop(b.acquire("job").await.unwrap());
    assert_eq!(store.count(Verb::Renew), sent, "nothing is renewed after the loss");
    (lost, started.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_lease_ends_with_its_longest_hold() {
    let (store, clock) = table();
    let (lost, next) = leaked(std::mem::forget, &store, &clock).await;
    assert_eq!(lost, 57_000, "a margin of 3 s before");
    // The keeper releases at 60 s and a sixteenth of 5 s; a waiter polls every second.
    assert!((60_000..=61_400).contains(&next), "{next}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_worker_that_does_not_go_on_ends_with_its_longest_hold() {
    // D8
    let (store, clock) = table();
    let stuck = |lease| {
        drop(tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop::<Lease>(lease)
        }))
    };
    let (lost, next) = leaked(stuck, &store, &clock).await;
    assert_eq!(lost, 57_000);
    assert!((60_000..=61_400).contains(&next), "{next}");
    assert_eq!(store.count(Verb::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_its_owner_releases_after_its_longest_hold_is_released_once() {
    // D8
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.request("job").at_most(Duration::from_secs(60)).acquire().await.unwrap();
    lost(&lease).await;
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(lease.release().await.unwrap(), Ended::Lost(_)));
    sleep(TTL).await;
    assert_eq!(store.count(Verb::Release), 1);
}

// The keeper's own end

#[tokio::test(start_paused = true)]
async fn the_keepers_task_ends_with_the_client_and_its_leases() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    drop(leases);
    sleep(TTL).await;
    assert!(lease.held().is_held(), "the lease keeps it");
    let held = lease.held();
    drop(lease);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(store.count(Verb::Release), 1, "what is owed is settled first");
    drop(held);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

/// Clocks that say when the keeper's thread ends, and that show whether the client is still there.
#[derive(Debug)]
struct Spy(Arc<Mutex<Option<mpsc::Sender<()>>>>);

thread_local! {
    static AT_END: RefCell<Option<mpsc::Sender<()>>> = const { RefCell::new(None) };
}

impl Clock for Spy {
    fn stamp(&self) -> Stamp {
        if std::thread::current().name() == Some("leasehold-keeper")
            && let Some(told) = self.0.lock().unwrap().take()
        {
            AT_END.set(Some(told));
        }
        SystemClock.stamp()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        SystemClock.sleep(duration)
    }

    fn random(&self) -> u128 {
        SystemClock.random()
    }
}

#[tokio::test]
async fn the_keepers_thread_ends_with_the_client_and_its_leases() {
    let (told, ended) = mpsc::channel();
    let spy = Spy(Arc::new(Mutex::new(Some(told))));
    let leases = Leases::builder(MemoryStore::new()).renewal(Renewal::Thread).clock(spy).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    drop(leases);
    assert_eq!(ended.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
    drop(lease);
    let ended = ended.recv_timeout(Duration::from_secs(10));
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "its thread has ended");
}

#[test]
fn nothing_is_kept_when_the_runtime_ends_before_it_has_seen_the_lease() {
    let shared = Arc::new(Mutex::new(None));
    let seen: Weak<_> = Arc::downgrade(&shared);
    let leases = Leases::builder(MemoryStore::new()).clock(Spy(shared)).build().unwrap();
    let [runtime, _] = runtimes();
    let lease = runtime.block_on(leases.acquire("job")).unwrap();
    drop(runtime);
    assert!(
        matches!(lease.held().state(), State::Ended(Ended::Lost(lost)) if lost.reason() == &LostReason::KeeperGone)
    );
    drop((lease, leases));
    assert!(seen.upgrade().is_none(), "the client is gone");
}

#[test]
fn nothing_is_kept_when_the_runtime_ends_before_it_has_sent_what_is_owed() {
    let shared = Arc::new(Mutex::new(None));
    let seen: Weak<_> = Arc::downgrade(&shared);
    let leases = Leases::builder(MemoryStore::new()).clock(Spy(shared)).build().unwrap();
    let [runtime, _] = runtimes();
    drop(runtime.block_on(leases.acquire("job")).unwrap());
    assert_eq!(leases.stats().owed, 1);
    drop((runtime, leases));
    assert!(seen.upgrade().is_none(), "the client is gone");
}
