//! `src/lease/keeper.rs`: when renewals are sent, how many at once, and in which batches.

use std::time::Duration;

use tokio::time::sleep;

use crate::SECOND;
use crate::told::{Said, Told, many, that_judges};

#[tokio::test(start_paused = true)]
async fn no_more_renewals_than_allowed_are_under_way_at_once_and_one_clean_up_besides() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().concurrency(2).build().unwrap();
    let mut held = many(&leases, 6).await;
    store.says([Said::Hangs]);
    while store.sent().under_way < 2 {
        sleep(SECOND / 100).await;
    }
    let renewed: Vec<_> = store.sent().renewals.into_iter().map(|renew| renew.name).collect();
    held.retain(|lease| renewed.contains(lease.name())); // The others are dropped, and owe a release each.
    let mut most = 0;
    for _ in 0..100 {
        sleep(SECOND / 100).await;
        most = most.max(store.sent().under_way);
    }
    assert_eq!((most, store.sent().vacates.len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn renewals_that_wait_for_their_turn_are_sent_in_batches_as_large_as_the_store_takes() {
    let mut description = that_judges();
    description.renew_batch = 2;
    let store = Told::new(description, [Said::Accepts]);
    let leases = store.builder().concurrency(1).build().unwrap();
    let _held = many(&leases, 6).await;
    store.says([Said::Hangs, Said::Accepts]);
    sleep(SECOND * 12).await;
    let batches = store.sent().batches;
    assert_eq!((batches[0], batches[1]), (1, 2), "the first was alone: {batches:?}");
    assert!(batches.iter().all(|size| *size <= 2), "{batches:?}");
}

#[tokio::test(start_paused = true)]
async fn only_leases_with_the_same_time_out_share_a_batch() {
    let mut description = that_judges();
    description.renew_batch = 100;
    let store = Told::new(description, [Said::Accepts]);
    let leases = store.builder().concurrency(1).build().unwrap();
    let mut held = many(&leases, 1).await;
    for number in 0..4 {
        let ttl = SECOND * if number % 2 == 0 { 30 } else { 24 };
        held.push(leases.request(format!("mixed{number}")).ttl(ttl).acquire().await.unwrap());
    }
    store.says([Said::Hangs, Said::Accepts]);
    sleep(SECOND * 14).await;
    let sent = store.sent();
    let mut renewals = sent.renewals.iter();
    for size in &sent.batches {
        let terms: Vec<_> = renewals.by_ref().take(*size).map(|renew| renew.ttl_ms).collect();
        assert!(terms.windows(2).all(|two| two[0] == two[1]), "{terms:?}");
    }
    assert!(sent.renewals.len() >= 5);
}

#[tokio::test(start_paused = true)]
async fn the_first_renewal_of_a_short_lease_is_in_time_whatever_the_keeper_is_doing() {
    let millis = Duration::from_millis;
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let _long = leases.acquire("long").await.unwrap();
    for phase in 0..10 {
        sleep(millis(100 * phase + 10)).await;
        let before = store.sent().renewals.len();
        let request = leases.request(format!("short{phase}")).ttl(millis(1500)).margin(millis(150));
        let lease = request.acquire().await.unwrap();
        let begun = tokio::time::Instant::now();
        while !store.sent().renewals[before..].iter().any(|renew| renew.name == *lease.name()) {
            sleep(millis(5)).await;
        }
        assert!((millis(250)..millis(520)).contains(&begun.elapsed()), "{phase}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_are_sent_a_third_of_the_term_apart_and_the_first_up_to_half_of_that_earlier() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let before = store.total();
    let _lease = leases.acquire("job").await.unwrap();
    sleep(SECOND * 60).await;
    let at = store.sent().at.split_off(before + 1);
    let apart: Vec<_> = at.windows(2).map(|two| Duration::from_nanos(two[1].steady_since(&two[0]))).collect();
    let a_little = Duration::from_millis(10);
    assert!((SECOND * 5..=SECOND * 10 + a_little).contains(&apart[0]), "{apart:?}");
    assert!(apart[1..].iter().all(|apart| (SECOND * 10..SECOND * 10 + a_little).contains(apart)), "{apart:?}");
}
