//! `src/lease/builder.rs`: whether options fit, and what they come to.

use std::time::Duration;

use leasehold::{Description, ErrorKind, ExpiryJudge, Renewal};

use crate::told::{Said, Told, described, held, like_a_table, shows, that_judges};
use crate::{SECOND, TERM};

/// What is left of a fresh lease of 30 s.
async fn left(description: Description) -> Duration {
    let store = Told::new(description, [Said::Accepts]);
    store.client().acquire("job").await.unwrap().held().remaining()
}

fn in_whole_seconds(mut description: Description) -> Description {
    description.grain = SECOND;
    description
}

#[tokio::test(start_paused = true)]
async fn a_service_that_counts_whole_seconds_is_given_a_second_and_twice_the_rate_more() {
    assert_eq!(left(in_whole_seconds(that_judges())).await, TERM - SECOND - Duration::from_millis(300));
    assert_eq!(left(that_judges()).await, TERM, "a store that judges to the millisecond");
    assert_eq!(left(in_whole_seconds(like_a_table())).await, TERM, "clients that judge");
    assert_eq!(left(described(ExpiryJudge::Client, false)).await, TERM);
}

#[tokio::test(start_paused = true)]
async fn manual_renewal_is_refused_on_a_store_that_goes_on_after_a_call_and_no_other_mode() {
    let mut goes_on = like_a_table();
    goes_on.goes_on = true;
    let build = |description: &Description, renewal| {
        Told::new(description.clone(), [Said::Accepts]).builder().renewal(renewal).build()
    };
    let error = build(&goes_on, Renewal::Manual).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("told leaves its slowest requests behind in tasks"), "{error}");
    for renewal in [Renewal::Task, Renewal::Thread] {
        build(&goes_on, renewal).unwrap();
    }
    build(&like_a_table(), Renewal::Manual).unwrap();
}

/// The shortest, the average and the longest time between two looks of a waiter, over a while.
async fn between_looks(ttl: Duration, poll: Option<Duration>) -> (Duration, Duration, Duration) {
    let mut record = held(7);
    record.ttl_ms = Some(86_400_000);
    let store = Told::new(like_a_table(), [shows(record)]);
    let builder = store.builder().ttl(ttl);
    let leases = poll.into_iter().fold(builder, leasehold::LeasesBuilder::poll).build().unwrap();
    leases.acquire_within("job", ttl * 60).await.unwrap_err();
    let at = store.sent().at;
    let between: Vec<_> = at.windows(2).map(|two| Duration::from_nanos(two[1].steady_since(&two[0]))).collect();
    let average = between.iter().sum::<Duration>() / u32::try_from(between.len()).unwrap();
    (*between.iter().min().unwrap(), average, *between.iter().max().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_waiter_looks_again_after_half_a_poll_to_a_whole_one_and_within_a_third_of_the_term() {
    let a_little = Duration::from_millis(1);
    for (ttl, poll, most) in [
        (SECOND * 30, None, SECOND),
        (SECOND * 30, Some(SECOND * 4), SECOND * 4),
        (SECOND * 30, Some(SECOND * 60), SECOND * 10),
    ] {
        let (least_seen, average, most_seen) = between_looks(ttl, poll).await;
        let seen = format!("{poll:?}: {least_seen:?} to {most_seen:?}, {average:?} on average");
        assert!(least_seen >= most / 2 && most_seen <= most + a_little, "{seen}");
        assert!((most * 70 / 100..=most * 80 / 100).contains(&average), "spread evenly: {seen}");
    }
}
