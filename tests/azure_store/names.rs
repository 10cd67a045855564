//! Names on the wire: what is sent is what the service keeps, and different names are different blobs (fault G6).

use std::collections::BTreeSet;

use leasehold::Claim;
use leasehold::store::Store;

use crate::ground::{Ground, a, claim, name, value};

/// The path of every request for this lease, below the container.
async fn path_of(text: &str) -> String {
    let ground = Ground::new();
    ground.store.granted(&Claim { name: name(text), ..claim(5, a()) }).await;
    let paths: BTreeSet<_> = ground.fake.requests().into_iter().map(|seen| seen.request.path).collect();
    let [path] = &paths.into_iter().collect::<Vec<_>>()[..] else { panic!("several paths of one lease") };
    let blob = path.strip_prefix("/leases/").expect("below the container").to_owned();
    assert_eq!(ground.fake.names(), std::slice::from_ref(&blob), "nothing is decoded or changed on the way");
    let listed = value(ground.store.list("", None).await);
    assert_eq!(listed.leases[0].name, name(text), "and it is read back");
    blob
}

#[tokio::test(start_paused = true)]
async fn a_name_is_sent_in_letters_that_nothing_on_the_way_changes() {
    for (text, blob) in [
        ("billing/orders-eu_1", "billing/orders-eu_1"),
        ("Billing", "Billing"),
        ("a.", "a=2E"),
        ("..", "=2E=2E"),
        ("a/../b", "a/=2E=2E/b"),
        ("a//b", "a=2F=2Fb"),
        ("/a/", "=2Fa=2F"),
        ("a%2fb", "a=252fb"),
        ("a b", "a=20b"),
        ("a?b#c", "a=3Fb=23c"),
        ("a\\b", "a=5Cb"),
        ("é", "=C3=A9"),
        ("e\u{301}", "e=CC=81"),
        ("$root", "=24root"),
    ] {
        assert_eq!(path_of(text).await, blob, "{text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_differ_in_case_only_are_different_leases() {
    let ground = Ground::new();
    for text in ["job", "Job", "JOB"] {
        ground.store.granted(&Claim { name: name(text), ..claim(5, a()) }).await;
    }
    assert_eq!(ground.fake.names(), ["JOB", "Job", "job"]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_and_the_deepest_name_are_within_the_services_limits() {
    const MOST_CHARACTERS: usize = 1024;
    const MOST_SEGMENTS: usize = 254;
    let (longest, deepest) = ("é".repeat(128), format!("{}a", "a/".repeat(127)));
    for text in [longest, deepest] {
        let blob = path_of(&text).await;
        assert!(blob.len() <= MOST_CHARACTERS, "{} characters", blob.len());
        assert!(blob.split('/').count() <= MOST_SEGMENTS, "{} segments", blob.split('/').count());
    }
}
