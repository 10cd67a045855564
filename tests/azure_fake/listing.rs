//! List Blobs.

use crate::ground::{A, BLOB, Ground, refusal};
use crate::support::azure::Response;

#[test]
fn blobs_are_listed_in_the_order_of_their_names() {
    let ground = stocked();
    let page = list(&ground, "");
    assert_eq!(names(&page), ["a/1", "a/2", "a/3", "b", "b/1"]);
    assert_eq!(marker(&page), "");
}

#[test]
fn a_prefix_selects() {
    let ground = stocked();
    assert_eq!(names(&list(&ground, "&prefix=a/")), ["a/1", "a/2", "a/3"]);
    assert_eq!(names(&list(&ground, "&prefix=b%2F")), ["b/1"]);
    assert!(names(&list(&ground, "&prefix=c")).is_empty());
}

#[test]
fn a_marker_goes_on_where_a_page_ended() {
    let ground = stocked();
    let first = list(&ground, "&prefix=a/&maxresults=2");
    assert_eq!(names(&first), ["a/1", "a/2"]);
    // What comes in between is not lost, and what was listed does not come again.
    ground.fake.put_blob("a/0", None, &[]);
    ground.fake.put_blob("a/25", None, &[]);
    let second = list(&ground, &format!("&prefix=a/&maxresults=2&marker={}", marker(&first)));
    assert_eq!(names(&second), ["a/3"]);
    assert_eq!(marker(&second), "");
}

#[test]
fn the_last_page_has_no_marker_even_if_it_is_full() {
    let ground = stocked();
    let page = list(&ground, "&prefix=a/&maxresults=3");
    assert_eq!((names(&page).len(), marker(&page).as_str()), (3, ""));
}

#[test]
fn a_page_may_be_shorter_than_was_asked_for() {
    let ground = stocked();
    ground.fake.set(|knobs| knobs.longest_page = 1);
    let page = list(&ground, "&maxresults=3");
    assert_eq!(names(&page), ["a/1"]);
    assert_ne!(marker(&page), "");
}

#[test]
fn a_marker_of_nobody_is_refused() {
    let ground = stocked();
    let query = "restype=container&comp=list&marker=a/2";
    let refused = ground.fake.send(&ground.fake.request("GET", "", query));
    assert_eq!(refusal(&refused), (400, "InvalidQueryParameterValue"));
}

#[test]
fn a_page_of_no_results_is_refused() {
    let ground = stocked();
    let refused = ground.fake.send(&ground.fake.request("GET", "", "restype=container&comp=list&maxresults=0"));
    assert_eq!(refusal(&refused), (400, "OutOfRangeQueryParameterValue"));
}

#[test]
fn metadata_comes_only_if_it_is_asked_for() {
    let ground = stocked();
    assert!(!list(&ground, "").contains("<Metadata>"));
    assert!(list(&ground, "&include=metadata").contains("<Metadata><lh_token>1</lh_token></Metadata>"));
}

#[test]
fn the_state_of_the_lease_is_listed_and_the_etag_has_no_quotes_there() {
    let ground = stocked();
    ground.fake.acquire(BLOB, A, 15);
    let page = list(&ground, "&prefix=b");
    let bare = ground.etag().trim_matches('"').to_owned();
    assert!(page.contains(&format!("<Etag>{bare}</Etag>")), "{page}");
    let lease = "<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>fixed</LeaseDuration>";
    assert!(page.contains(lease), "{page}");
    ground.wait(15_000);
    assert!(list(&ground, "&prefix=b").contains("<LeaseStatus>unlocked</LeaseStatus><LeaseState>expired</LeaseState>"));
}

#[test]
fn names_are_escaped() {
    let ground = Ground::new();
    ground.fake.put_blob("c%3C%26%3E", None, &[]);
    assert!(list(&ground, "&prefix=c").contains("<Name>c&lt;&amp;&gt;</Name>"));
}

/// Five blobs, one of which is the ground's.
fn stocked() -> Ground {
    let ground = Ground::new();
    for name in ["b/1", "a/2", "a/1", "a/3"] {
        assert_eq!(ground.fake.put_blob(name, None, &[]).status, 201);
    }
    ground
}

fn list(ground: &Ground, query: &str) -> String {
    let answer: Response =
        ground.fake.send(&ground.fake.request("GET", "", &format!("restype=container&comp=list{query}")));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/xml")));
    String::from_utf8(answer.body).unwrap()
}

fn names(page: &str) -> Vec<String> {
    let names = page.split("<Name>").skip(1);
    names.map(|rest| rest.split("</Name>").next().unwrap().to_owned()).collect()
}

fn marker(page: &str) -> String {
    let marker = page.split("<NextMarker>").nth(1);
    marker.map_or_else(String::new, |rest| rest.split("</NextMarker>").next().unwrap().to_owned())
}
