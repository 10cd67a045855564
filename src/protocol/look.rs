//! A claim that a look at the record has decided: a payload that was seen did not say no.
//!
//! Tokens alone do not tie the two together: where the store's time is their floor, a claim that was decided on later
//! than a rival's has a higher token, and finds the record free again once the rival has released it.

use super::broken::Broken;
use super::rules::Rules;
use crate::types::{Expect, Record, Version, View};

/// What a claim has to expect so that it takes nothing but the write whose payload was seen: of a free record, exactly
/// that write. For stores whose versions are writes.
///
/// Where no record was seen there is no write to name; see [`needs_a_record`].
pub fn only_what_was_seen(expect: Expect, seen: Option<&View>) -> Expect {
    let is_free = |record: &&Record| record.grant.is_none() && record.closed.is_none();
    let seen = seen.and_then(|view| view.record.as_ref()).filter(is_free);
    match (&expect, seen) {
        (Expect::Vacant, Some(record)) if !Broken::LookIsNotNamed.on() => Expect::Expired(Version::of(record)),
        _ => expect,
    }
}

/// Whether a free record has to be made first, by a burn of the claim's token, and read: nothing was seen that the claim
/// could name, and who has claimed and released since may have left a payload.
///
/// A burn leaves payloads as they are and touches no held record. Only where tokens have a floor: without one the claim's
/// token is 1, and whoever was granted has it already.
pub fn needs_a_record(expect: &Expect, seen: Option<&View>, rules: &Rules) -> bool {
    let nothing = seen.is_none_or(|view| view.record.is_none());
    rules.has_store_time && *expect == Expect::Vacant && nothing && !Broken::LookNeedsNoRecord.on()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Closed, Grant};

    #[test]
    fn only_a_free_record_that_was_seen_is_named() {
        let free = Record { token: 7, version: Some(2), ..Record::default() };
        let of = |record: &Record| only_what_was_seen(Expect::Vacant, Some(&View::of(record.clone())));
        assert_eq!(of(&free), Expect::Expired(Version::of(&free)));
        let closed = Some(Closed { for_ms: Some(100), until_ms: None, by: Some(7) });
        assert_eq!(of(&Record { closed, ..free.clone() }), Expect::Vacant);
        assert_eq!(of(&Record { grant: Some(Grant::from_bits(1)), ..free.clone() }), Expect::Vacant);
        assert_eq!(only_what_was_seen(Expect::Vacant, Some(&View::absent())), Expect::Vacant);
        let handed = Expect::Handed(Grant::from_bits(1));
        assert_eq!(only_what_was_seen(handed.clone(), Some(&View::of(free))), handed);
    }
}
