//! Faults of names, labels and payloads: kept exactly, or refused clearly.

mod support;

use std::collections::BTreeSet;

use leasehold::{Attempt, ErrorKind, Leases, Name};
use support::scripted::{client, table};

/// Odd, and differing only in such things: each is a lease of its own.
const ODD: [&str; 26] = [
    "a",
    "a.",
    "a..",
    ".",
    "..",
    "...",
    "/",
    "//",
    "a/b",
    "a//b",
    "/a/b",
    "a/b/",
    "a/../b",
    "a%2fb",
    "a%2Fb",
    "a b",
    "a  b",
    " a",
    "a ",
    "A",
    "é",
    "e\u{301}",
    "日本",
    "🔒",
    "a\u{2028}b",
    "a\\b",
];

// G6

#[tokio::test(start_paused = true)]
async fn names_that_differ_only_in_odd_things_are_distinct_leases() {
    let (store, clock) = table();
    let (a, b) = (client(&store, &clock, "a"), client(&store, &clock.another(2), "b"));
    let mut held = Vec::new();
    for name in ODD {
        held.push(a.try_acquire(name).await.unwrap().acquired().unwrap_or_else(|| panic!("{name:?} is another's")));
    }
    for (name, lease) in ODD.into_iter().zip(&held) {
        assert_eq!(lease.name().as_str(), name);
        assert_eq!(a.inspect(name).await.unwrap().token, Some(lease.token()));
        assert!(matches!(b.try_acquire(name).await.unwrap(), Attempt::Held(by) if by.token() == Some(lease.token())));
    }
    let listed: BTreeSet<_> = a.list("").all().await.unwrap().iter().map(|found| found.name.to_string()).collect();
    assert_eq!(listed, ODD.map(str::to_owned).into_iter().collect());
}

#[tokio::test(start_paused = true)]
async fn names_that_are_empty_too_long_or_have_control_characters_are_refused_and_nothing_is_sent() {
    // G6
    let (store, clock) = table();
    let leases = Leases::builder(store.clone()).prefix("jobs/").clock(clock).build().unwrap();
    let long = "x".repeat(2048);
    let just_too_long = "é".repeat(126);
    let bad = [
        ("", "must not be empty: give it 1 to 256 bytes"),
        (&long, "at most 256 bytes with its prefix, this one has 2053"),
        (&just_too_long, "at most 256 bytes with its prefix, this one has 257"),
        ("a\nb", "control"),
        ("a\0b", "control"),
        ("a\u{7f}", "control"),
        ("a\u{85}", "control"),
    ];
    for (name, why) in bad {
        let token = leasehold::FencingToken::new(1).unwrap();
        let errors = [
            leases.acquire(name).await.map(drop).unwrap_err(),
            leases.try_acquire(name).await.map(drop).unwrap_err(),
            leases.inspect(name).await.map(drop).unwrap_err(),
            leases.revoke(name, token).await.unwrap_err(),
            leases.force(name, token).await.unwrap_err(),
            leases.ask(name, token, std::time::Duration::ZERO).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
    assert_eq!(store.total(), 0);
    let longest = "x".repeat(251);
    assert_eq!(leases.acquire(&longest).await.unwrap().name().as_str().len(), Name::MAX_BYTES);
}

// G7

#[tokio::test(start_paused = true)]
async fn a_label_is_kept_exactly_or_refused() {
    for label in ["two\nlines", "tab\tand\r\nmore", "日本\u{0}🔒", " spaces ", &"x".repeat(128)] {
        let (store, clock) = table();
        let (a, b) = (client(&store, &clock, label), client(&store, &clock.another(2), "b"));
        let _lease = a.acquire("job").await.unwrap();
        let found = b.inspect("job").await.unwrap();
        assert_eq!(found.holder.unwrap().as_str(), label);
        assert!(matches!(b.try_acquire("job").await.unwrap(), Attempt::Held(by) if by.holder() == Some(label)));
    }
    for label in ["x".repeat(129), "x".repeat(5 * 1024), "é".repeat(65)] {
        let (store, clock) = table();
        let error = Leases::builder(store.clone()).holder(&label).clock(clock).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("a holder label has at most 128 bytes"), "{error}");
        assert_eq!(store.total(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_kept_exactly_or_refused() {
    // G7
    let (store, clock) = table();
    let leases = client(&store, &clock, "a");
    let every_byte: Vec<u8> = (0..=255).collect();
    for data in [Vec::new(), every_byte, b"two\r\nlines\0".to_vec(), vec![0xff; 4096]] {
        let lease = leases.request("job").data(data.clone()).acquire().await.unwrap();
        assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), data);
        lease.held().set_data(b"between").await.unwrap();
        lease.held().set_data(&data).await.unwrap();
        assert_eq!(leases.inspect("job").await.unwrap().data.unwrap().as_bytes(), data);
        lease.release().await.unwrap();
    }
    let lease = leases.acquire("job").await.unwrap();
    let sent = store.total();
    for size in [4097, 5 * 1024] {
        let data = vec![0; size];
        let claimed = leases.request("other").data(data.clone()).try_acquire().await.map(drop).unwrap_err();
        let set = lease.held().set_data(&data).await.unwrap_err();
        for error in [claimed, set] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let why = format!("a payload has at most 4096 bytes, this one has {size}");
            assert!(error.to_string().contains(&why), "{error}");
        }
    }
    assert_eq!(store.total(), sent);
    assert_eq!(leases.inspect("job").await.unwrap().data, None, "a refused payload leaves nothing");
}
