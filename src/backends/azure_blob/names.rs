//! Blob names of leases: reversible, and nothing in them that a URL, a proxy or the service would change.

use std::fmt::Write;

use crate::types::Name;

/// The blob of a lease. Every byte outside of `[A-Za-z0-9_-]` becomes `=XX`, but for single slashes inside, which
/// tools show as folders. (`..`, `//`, a trailing dot or slash and `%2f` are changed on the way to the service.)
pub(super) fn blob_of(name: &Name) -> String {
    let bytes = name.as_str().as_bytes();
    let mut blob = String::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        let inner = index > 0 && bytes[index - 1] != b'/' && bytes.get(index + 1).is_some_and(|next| *next != b'/');
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => blob.push(char::from(*byte)),
            b'/' if inner => blob.push('/'),
            _ => _ = write!(blob, "={byte:02X}"),
        }
    }
    blob
}

/// The lease of a blob; `None` for a blob that no lease has.
pub(super) fn lease_of(blob: &str) -> Option<Name> {
    let mut bytes = Vec::with_capacity(blob.len());
    let mut rest = blob.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'=' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    let name = Name::new(String::from_utf8(bytes).ok()?).ok()?;
    // Another spelling of the same name is another blob, and no lease.
    (blob_of(&name) == blob).then_some(name)
}

/// What the blobs of all leases with this prefix start with. Whether a slash at its end is an inner one depends on
/// what follows, so it is left out, and the caller looks at the names themselves.
pub(super) fn blobs_start_with(prefix: &str) -> String {
    match Name::new(prefix.trim_end_matches('/')) {
        Ok(name) => blob_of(&name),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(name: &str) -> String {
        blob_of(&Name::new(name).unwrap())
    }

    #[test]
    fn inner_slashes_stay_and_all_else_is_spelt_out() {
        assert_eq!(blob("billing/orders-eu_1"), "billing/orders-eu_1");
        assert_eq!(blob("a//b"), "a=2F=2Fb");
        assert_eq!(blob("/a/"), "=2Fa=2F");
        assert_eq!(blob(".."), "=2E=2E");
        assert_eq!(blob("a%2fb"), "a=252fb");
        assert_eq!(blob("é="), "=C3=A9=3D");
    }

    #[test]
    fn the_longest_name_fits_into_a_blob_name() {
        const MOST_CHARACTERS: usize = 1024;
        assert!(blob(&"é".repeat(128)).len() <= MOST_CHARACTERS);
    }

    #[test]
    fn blobs_that_no_lease_has_are_told_apart() {
        for other in ["", "a b", "a.txt", "a=2", "a=zz", "a=2fb", "a//b", "a/", "=41", "=FF", "=0A", "a=+1"] {
            assert_eq!(lease_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_prefix_is_kept_and_its_last_slash_is_looked_at_later() {
        assert_eq!(blobs_start_with("jobs/"), "jobs");
        assert_eq!(blobs_start_with("jobs/é"), "jobs/=C3=A9");
        assert_eq!(blobs_start_with(""), "");
        assert_eq!(blobs_start_with("/"), "");
    }

    #[cfg(feature = "__proptest")]
    mod any_name {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn survives_its_blob_and_keeps_its_prefixes(text in "[^\\p{Cc}]{1,40}", cut in 0usize..40) {
                let name = Name::new(&text).unwrap();
                let blob = blob_of(&name);
                prop_assert!(blob.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-=/".contains(&b)));
                prop_assert_eq!(lease_of(&blob), Some(name));
                let cut = text.char_indices().map(|(at, _)| at).take(cut + 1).last().unwrap_or(0);
                prop_assert!(blob.starts_with(&blobs_start_with(&text[..cut])));
            }

            #[test]
            fn hostile_blob_names_are_no_lease_or_spelt_by_one(blob in ".{0,60}") {
                if let Some(name) = lease_of(&blob) {
                    prop_assert_eq!(blob_of(&name), blob);
                }
            }
        }
    }
}
