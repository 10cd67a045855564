//! `src/lease/debts.rs`: what is owed, who sends it, and how many at once.

use std::time::Duration;

use leasehold::{Applied, ErrorKind, Leases, Renewal, StoreErrorKind};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use crate::SECOND;
use crate::support::scripted::{Fault, TTL, Verb, client, table};
use crate::told::{Said, Told, leased, many, that_judges};

const AWAY: Said = Said::Fails(StoreErrorKind::Unavailable, Applied::No);

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_the_next_call_sends_what_is_owed_first() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    drop(lease);
    sleep(SECOND).await;
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (0, 1));
    let before = store.total();
    let _next = leases.acquire("other").await.unwrap();
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (1, 0));
    assert_eq!(store.total(), before + 3, "the release, a read and a claim");
}

#[tokio::test(start_paused = true)]
async fn with_manual_renewal_what_is_owed_costs_no_more_than_the_time_of_the_call() {
    let (store, leases, lease) = leased(Renewal::Manual, [Said::Hangs]).await;
    drop(lease);
    let begun = Instant::now();
    let error = leases.acquire_within("other", SECOND * 2).await.map(drop).unwrap_err();
    assert_eq!((error.kind(), leases.stats().owed), (ErrorKind::TimedOut, 1));
    assert!((SECOND * 2..SECOND * 2 + SECOND / 100).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(store.sent().vacates.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_owed_is_counted_whether_it_is_fresh_tried_or_in_hand() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Manual).build().unwrap();
    let mut held = many(&leases, 5).await.into_iter();
    assert_eq!(leases.stats().owed, 0);
    drop((held.next(), held.next()));
    assert_eq!(leases.stats().owed, 2, "both fresh");
    store.says([AWAY]);
    assert!(timeout(SECOND / 100, leases.flush()).await.is_err());
    assert_eq!(leases.stats().owed, 2, "both tried");
    drop(held.next());
    store.says([Said::Hangs]);
    let flushing = leases.clone();
    let flushing = tokio::spawn(async move { flushing.flush().await });
    yield_now().await;
    assert_eq!(leases.stats().owed, 3, "two tried and one in hand");
    drop((held.next(), held.next()));
    assert_eq!(leases.stats().owed, 5, "two tried, one in hand and two fresh");
    flushing.abort();
    let _ = flushing.await;
    assert_eq!(leases.stats().owed, 5);
    store.says([Said::Accepts]);
    leases.flush().await;
    assert_eq!((leases.stats().owed, store.sent().under_way), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_in_hand_of_a_call_that_is_given_up_stays_owed() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Manual).build().unwrap();
    drop(many(&leases, 3).await);
    store.says([Said::Hangs]);
    assert!(timeout(SECOND, leases.flush()).await.is_err());
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (3, 3));
    store.says([Said::Accepts]);
    let begun = Instant::now();
    leases.flush().await;
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (6, 0));
    assert_eq!(begun.elapsed(), Duration::ZERO, "it is due at once");
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_what_the_keeper_has_in_hand() {
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let lease = leases.acquire("job").await.unwrap();
    store.on(Verb::Release).fault(Fault::AnswerLate(SECOND * 2));
    drop(lease);
    yield_now().await;
    assert_eq!((store.count(Verb::Release), leases.stats().owed), (1, 1));
    let begun = Instant::now();
    leases.flush().await;
    assert!((SECOND * 2..SECOND * 2 + SECOND / 100).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!((store.count(Verb::Release), leases.stats().owed), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_at_once_where_nothing_is_owed() {
    let (_store, leases, _lease) = leased(Renewal::Manual, [Said::Accepts]).await;
    let begun = Instant::now();
    leases.flush().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_that_is_not_answered_is_tried_again_later_and_later_until_its_term_is_over() {
    let (store, leases, lease) = leased(Renewal::Task, [AWAY]).await;
    let before = store.total();
    drop(lease);
    leases.flush().await;
    let at = store.sent().at.split_off(before);
    let pauses: Vec<_> = at.windows(2).map(|two| Duration::from_nanos(two[1].steady_since(&two[0]))).collect();
    assert!((SECOND / 8..SECOND / 2).contains(&pauses[0]), "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause > SECOND / 8 && *pause < SECOND * 6), "{pauses:?}");
    assert!((7..20).contains(&at.len()), "{pauses:?}");
    let over = pauses.iter().sum::<Duration>();
    assert!(over >= TTL && over < TTL + SECOND * 6, "{over:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_clean_ups_than_allowed_are_under_way_at_once() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(Renewal::Manual).concurrency(2).build().unwrap();
    let held = many(&leases, 5).await;
    store.says([Said::Hangs]);
    drop(held);
    assert!(timeout(SECOND, leases.flush()).await.is_err());
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (2, 5));
}

#[tokio::test(start_paused = true)]
async fn the_keeper_has_no_more_clean_ups_in_hand_than_allowed() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().concurrency(2).build().unwrap();
    let held = many(&leases, 5).await;
    store.says([Said::Hangs]);
    drop(held);
    sleep(SECOND).await;
    assert_eq!((store.sent().under_way, leases.stats().owed), (2, 5));
}

#[test]
fn what_is_owed_keeps_no_client_whose_keeper_has_gone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let store = runtime.block_on(async {
        let (store, leases, lease) = leased(Renewal::Task, [Said::Hangs]).await;
        drop(lease);
        sleep(SECOND).await;
        assert_eq!((store.sent().under_way, leases.stats().owed), (1, 1));
        store
    });
    assert!(!store.is_alone(), "its keeper still sends");
    drop(runtime);
    assert!(store.is_alone());
}

#[tokio::test(start_paused = true)]
async fn the_keeper_tries_a_clean_up_again_when_it_is_due() {
    let (store, leases, lease) = leased(Renewal::Task, [AWAY, Said::Accepts]).await;
    drop(lease);
    sleep(Duration::from_millis(350)).await;
    assert_eq!((store.sent().vacates.len(), leases.stats().owed), (2, 0), "a sixteenth of an attempt later");
}

#[tokio::test(start_paused = true)]
async fn while_renewals_take_all_the_room_clean_ups_are_let_through_one_after_the_other() {
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).ttl(TTL).clock(clock.clone()).concurrency(1).build().unwrap();
    let mut held = many(&leases, 4).await;
    let hung = store.on(Verb::Renew).always().fault(Fault::Hang);
    while hung.times() == 0 {
        sleep(SECOND / 100).await;
    }
    let renewed = store.calls().into_iter().find(|call| call.verb == Verb::Renew).unwrap().name;
    held.sort_by_key(|lease| lease.name().as_str() == renewed);
    for number in 1..=3 {
        drop(held.remove(0));
        sleep(SECOND / 100).await;
        assert_eq!((store.count(Verb::Release), leases.stats().owed), (number, 0));
    }
    assert_eq!(hung.times(), 1, "all that time the first renewal was under way");
}
