//! `src/lease/request.rs`: the options of one lease.

use std::time::Duration;

use leasehold::{ErrorKind, Operation, Renewal, Request};
use tokio::time::sleep;

use crate::told::{Said, Told, that_judges};
use crate::{SECOND, TERM};

/// What is left of a fresh lease, and what was written of its term.
async fn left(change: impl FnOnce(Request) -> Request) -> (Duration, u64) {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().margin(SECOND * 4).build().unwrap();
    let lease = change(leases.request("job")).acquire().await.unwrap();
    (lease.held().remaining(), store.sent().claims[0].ttl_ms)
}

#[tokio::test(start_paused = true)]
async fn each_option_of_a_request_stands_for_itself_and_the_others_are_the_clients() {
    assert_eq!(left(|request| request).await, (TERM - SECOND, 30_000));
    assert_eq!(left(|request| request.ttl(SECOND * 60)).await, (SECOND * 60 * 99 / 100 - SECOND * 4, 60_000));
    assert_eq!(left(|request| request.margin(SECOND * 2)).await, (TERM + SECOND, 30_000));
    assert_eq!(left(|request| request.renewal(Renewal::Manual)).await, (TERM - SECOND, 30_000));
    let all = |request: Request| request.ttl(SECOND * 60).margin(SECOND).renewal(Renewal::Manual);
    assert_eq!(left(all).await, (SECOND * 60 * 99 / 100 - SECOND, 60_000));
}

#[tokio::test(start_paused = true)]
async fn only_a_lease_with_manual_renewal_is_not_renewed() {
    for (renewal, ttl, renewed) in [
        (Renewal::Task, None, true),
        (Renewal::Task, Some(SECOND * 24), true),
        (Renewal::Manual, None, false),
        (Renewal::Manual, Some(SECOND * 24), false),
    ] {
        let store = Told::new(that_judges(), [Said::Accepts]);
        let leases = store.client();
        let request = leases.request("job").renewal(renewal);
        let lease = ttl.into_iter().fold(request, Request::ttl).acquire().await.unwrap();
        sleep(SECOND * 40).await;
        assert_eq!(
            (lease.held().is_held(), !store.sent().renewals.is_empty()),
            (renewed, renewed),
            "{renewal:?} {ttl:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_mode_than_the_clients_is_refused_unless_it_is_manual() {
    for (clients, own, fits) in [
        (Renewal::Task, Renewal::Task, true),
        (Renewal::Task, Renewal::Thread, false),
        (Renewal::Manual, Renewal::Task, false),
        (Renewal::Manual, Renewal::Manual, true),
        (Renewal::Task, Renewal::Manual, true),
    ] {
        let store = Told::new(that_judges(), [Said::Accepts]);
        let leases = store.builder().renewal(clients).build().unwrap();
        match leases.request("job").renewal(own).acquire().await {
            Ok(_) => assert!(fits, "{clients:?} {own:?}"),
            Err(error) => {
                assert!(!fits && store.total() == 0, "{clients:?} {own:?}: {error}");
                assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, Operation::Acquire));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_has_to_be_longer_than_the_margin() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.client();
    let error = leases.request("job").at_most(SECOND * 3).acquire().await.map(drop).unwrap_err();
    assert_eq!((error.kind(), store.total()), (ErrorKind::Invalid, 0));
    assert!(error.to_string().contains("at_most has to be longer than the margin of 3s"), "{error}");
    let a_little = Duration::from_millis(1);
    let lease = leases.request("job").at_most(SECOND * 3 + a_little).acquire().await.unwrap();
    assert_eq!(lease.held().remaining(), a_little);
}

#[test]
fn a_request_is_shown_without_its_payload() {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let request = store.client().request("job").ttl(SECOND * 9).data("secret").at_most(SECOND * 5);
    let shown = format!("{request:?}");
    for part in ["Request", "\"job\"", "ttl: Some(9s)", "6 bytes", "at_most: Some(5s)", "renewal: None"] {
        assert!(shown.contains(part), "{part:?} is not in: {shown}");
    }
    assert!(!shown.contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn manual_renewal_of_one_lease_is_refused_too_on_a_store_that_goes_on_after_a_call() {
    let mut description = that_judges();
    description.goes_on = true;
    let store = Told::new(description, [Said::Accepts]);
    let leases = store.client();
    let manual = || leases.request("job").renewal(Renewal::Manual);
    for request in [manual(), manual().ttl(SECOND * 24), manual().margin(SECOND)] {
        let error = request.acquire().await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.operation(), store.total()), (ErrorKind::Invalid, Operation::Acquire, 0));
        assert!(error.to_string().contains("with manual renewal nothing may go on after a call"), "{error}");
    }
    assert!(leases.request("job").ttl(SECOND * 24).acquire().await.is_ok());
}
