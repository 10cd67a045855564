//! Names that are easily taken for one another.

use std::collections::BTreeSet;

use leasehold::store::Store;
use leasehold::{Claim, Claimed, Expect, Grant, Name};
use proptest::prelude::*;

/// Names of one test case, and where one of them is cut to be a prefix.
pub fn confusing_names() -> impl Strategy<Value = (Vec<String>, usize)> {
    let part = prop_oneof![
        3 => "[aA./%_*é-]",
        1 => Just("e\u{301}".to_owned()),
        1 => Just("%2f".to_owned()),
        1 => Just("..".to_owned()),
        1 => Just(" ".to_owned()),
        1 => "[^\\p{Cc}]",
    ];
    let name = proptest::collection::vec(part, 1..5).prop_map(|parts| parts.concat());
    let names = proptest::collection::btree_set(name, 2..10).prop_map(|names| names.into_iter().collect());
    (names, 0..8usize)
}

/// Every name is a lease of its own, that is listed under its own name and by each of its prefixes.
///
/// `case` is put before them, so that a store serves for many cases.
pub async fn are_distinct_leases(store: &dyn Store, case: usize, names: &[String], cut: usize) {
    let full: Vec<_> = names.iter().map(|name| Name::new(format!("{case}:{name}")).unwrap()).collect();
    for (token, name) in (1..).zip(&full) {
        let claimed = store.claim(&claim(name, token)).await.unwrap().value;
        assert_eq!(claimed, Claimed::Granted, "{name} is the name of another lease");
    }
    for (token, name) in (1..).zip(&full) {
        assert_eq!(store.read(name).await.unwrap().value.token(), token, "{name}");
    }
    let first = full[0].as_str();
    let cut = format!("{case}:").len().max(first.char_indices().map(|(at, _)| at).take(cut + 1).last().unwrap());
    for prefix in [&format!("{case}:"), &first[..cut]] {
        let expected: BTreeSet<_> = full.iter().filter(|name| name.as_str().starts_with(prefix)).cloned().collect();
        assert_eq!(listed(store, prefix).await, expected, "prefix {prefix:?}");
    }
}

async fn listed(store: &dyn Store, prefix: &str) -> BTreeSet<Name> {
    let (mut names, mut next) = (BTreeSet::new(), None);
    loop {
        let page = store.list(prefix, next).await.unwrap().value;
        assert_eq!(page.skipped, 0);
        names.extend(page.leases.into_iter().map(|lease| lease.name));
        next = page.next;
        if next.is_none() {
            return names;
        }
    }
}

fn claim(name: &Name, token: u64) -> Claim {
    Claim {
        name: name.clone(),
        token,
        grant: Grant::from_bits(token.into()),
        ttl_ms: 30_000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}
