//! One view of what the members show.
//!
//! It is advisory: the members are read one by one, and each is judged again before a claim.

use super::plan::{highest, version};
use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::protocol::observer::Judgement;
use crate::types::{Closed, Expect, Grant, Record, Standing, View};

/// What a majority shows. `None` for a member that has not answered or does not count.
///
/// A record is held by a grant, or closed by one, only if a majority shows the same; free, only if a majority is
/// vacant; else it is in progress, and who may hold it is not told: what a minority has may be a claim that was never
/// granted. The ends of the members' terms and their member list are their own and not shown.
pub fn merged(seen: &[Option<Seen>]) -> View {
    if let Some(reason) = unreadable(seen) {
        return reason;
    }
    let claimable = is_claimable(seen);
    let (record, free) = match common(seen) {
        Common::Held(grant) => (best(seen, |record| record.grant == Some(grant)).cloned(), false),
        Common::Closed(by) => {
            (best(seen, |record| closed_by(record) == Some(by)).cloned().map(|r| raised(r, seen)), false)
        }
        Common::Free => (best(seen, |_| true).map(|record| raised(freed(record), seen)), true),
        Common::Nothing if claimable => (best(seen, |_| true).map(in_progress), false),
        Common::Nothing => (best(seen, |_| true).map(nobodys), false),
    };
    let standing = match (free, claimable) {
        (true, _) => Standing::Vacant,
        (false, true) => Standing::Expired(version(seen)),
        (false, false) => Standing::Held(version(seen)),
    };
    View { standing, record: record.map(without_the_members_own) }
}

/// Whether no majority shows the same.
pub fn is_in_progress(seen: &[Option<Seen>]) -> bool {
    common(seen) == Common::Nothing
}

/// What is kept of a name whose clients have all stopped, though no majority shows the same.
pub fn kept(seen: &[Option<Seen>]) -> Option<Record> {
    match common(seen) {
        Common::Nothing => best(seen, |_| true).map(in_progress),
        _ => merged(seen).record,
    }
}

/// What most members have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Common {
    Held(Grant),
    Closed(Option<u64>),
    Free,
    Nothing,
}

fn common(seen: &[Option<Seen>]) -> Common {
    let needed = quorum(seen.len());
    let shown = || seen.iter().flatten().filter_map(|seen| seen.view.record.as_ref());
    let many = |is: &dyn Fn(&Record) -> bool| shown().filter(|record| is(record)).count() >= needed;
    let held = shown().filter_map(|record| record.grant).find(|grant| many(&|record| record.grant == Some(*grant)));
    let closed = shown().filter_map(closed_by).find(|by| many(&|record| closed_by(record) == Some(*by)));
    let by_token = || {
        let of = |by: &Option<u64>| many(&|record| record.grant.is_none() && Some(record.token) == *by);
        shown().filter_map(closed_by).find(of)
    };
    let vacant = seen.iter().flatten().filter(|seen| seen.view.standing == Standing::Vacant).count();
    match (held, closed) {
        (Some(grant), _) => Common::Held(grant),
        (None, Some(by)) => Common::Closed(by),
        _ if Broken::MajorityOutcomeByToken.on() && by_token().is_some() => Common::Closed(by_token().flatten()),
        _ if vacant >= needed => Common::Free,
        _ => Common::Nothing,
    }
}

/// By which grant a free record was closed, if it was.
fn closed_by(record: &Record) -> Option<Option<u64>> {
    record.closed.filter(|_| record.grant.is_none()).map(|closed| closed.by)
}

fn is_claimable(seen: &[Option<Seen>]) -> bool {
    let claimable = seen.iter().flatten().filter(|seen| matches!(seen.judgement, Judgement::Claimable(_)));
    claimable.count() >= quorum(seen.len())
}

/// Whether a majority is vacant, so that a claim need not name what it takes over.
pub fn is_vacant(seen: &[Option<Seen>]) -> bool {
    let vacant = seen.iter().flatten().filter(|seen| seen.judgement == Judgement::Claimable(Expect::Vacant));
    vacant.count() >= quorum(seen.len())
}

fn unreadable(seen: &[Option<Seen>]) -> Option<View> {
    let not = |seen: &&Seen| matches!(seen.view.standing, Standing::Unreadable(_));
    let mut all = seen.iter().flatten().filter(not);
    (all.clone().count() >= quorum(seen.len())).then(|| all.next().map(|seen| seen.view.clone())).flatten()
}

/// The record with the highest token, and of these the newest version; where members differ in what changes neither,
/// what most of them show.
fn best(seen: &[Option<Seen>], is: impl Fn(&Record) -> bool) -> Option<&Record> {
    let records: Vec<&Record> = seen.iter().flatten().filter_map(|seen| seen.view.record.as_ref()).collect();
    let rank = |record: &Record| (record.token, record.version);
    let highest = records.iter().filter(|record| is(record)).map(|record| rank(record)).max()?;
    let tied = || records.iter().copied().filter(|record| is(record) && rank(record) == highest);
    let alike = |one: &Record| {
        let own = without_the_members_own(one.clone());
        tied().filter(|other| without_the_members_own((*other).clone()) == own).count()
    };
    tied().max_by_key(|record| alike(record))
}

/// With the highest token that any member shows: the next proposal has to be above all.
fn raised(record: Record, seen: &[Option<Seen>]) -> Record {
    Record { token: highest(seen), ..record }
}

/// A free record as a majority has it, though this member's shows more.
fn freed(record: &Record) -> Record {
    Record { grant: None, closed: None, asked: None, ..record.clone() }
}

/// A minority's closing is no outcome.
fn in_progress(record: &Record) -> Record {
    match record.closed {
        Some(_) => Record { closed: None, data: None, ..record.clone() },
        None => record.clone(),
    }
}

/// Nothing but the token, and the term.
fn nobodys(record: &Record) -> Record {
    Record { token: record.token, ttl_ms: record.ttl_ms, ..Record::new() }
}

/// One member's view as the majority shows it.
pub fn as_shown(view: View) -> View {
    View { record: view.record.map(without_the_members_own), ..view }
}

fn without_the_members_own(record: Record) -> Record {
    let closed = record.closed.map(|closed| Closed { until_ms: None, ..closed });
    Record { expires_at_ms: None, set: None, closed, ..record }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Data;

    fn held(token: u64, grant: u128, version: u64, data: &[u8]) -> Option<Seen> {
        let (grant, data) = (Some(Grant::from_bits(grant)), Data::new(data));
        let record = Record { token, grant, version: Some(version), ttl_ms: Some(9), data, ..Record::new() };
        Some(Seen::unwatched(View::of(record)))
    }

    fn closed(token: u64, by: u64) -> Option<Seen> {
        let closed = Some(Closed { for_ms: Some(9), until_ms: Some(7), by: Some(by) });
        let record = Record { token, closed, data: Data::new(b"outcome"), ..Record::new() };
        Some(Seen::unwatched(View::of(record)))
    }

    fn free(token: u64) -> Option<Seen> {
        Some(Seen::unwatched(View::of(Record { token, ..Record::new() })))
    }

    #[test]
    fn a_record_is_closed_only_if_a_majority_shows_the_same_closing() {
        let view = merged(&[closed(5, 5), closed(5, 5), held(5, 1, 1, b"")]);
        let record = view.record.unwrap();
        assert_eq!(record.closed, Some(Closed { for_ms: Some(9), until_ms: None, by: Some(5) }));
        for split in [[closed(5, 5), held(5, 1, 1, b""), None], [closed(7, 5), closed(7, 7), free(3)]] {
            let record = merged(&split).record.unwrap();
            assert_eq!((record.closed, record.data.filter(|data| data.as_bytes() == b"outcome")), (None, None));
        }
    }

    #[test]
    fn the_payload_shown_is_that_of_the_newest_version_of_the_majoritys_grant() {
        let view = merged(&[held(5, 1, 3, b"old"), held(5, 1, 4, b"new"), held(9, 2, 1, b"rival")]);
        let record = view.record.unwrap();
        assert_eq!((record.token, record.data), (5, Data::new(b"new")));
        assert!(matches!(view.standing, Standing::Held(_)));
    }

    #[test]
    fn a_free_record_shows_the_highest_token_of_all() {
        let view = merged(&[free(3), free(5), held(8, 1, 1, b"")]);
        assert_eq!((view.standing.clone(), view.token(), view.grant()), (Standing::Vacant, 8, None));
        assert_eq!(
            merged(&[Some(Seen::unwatched(View::absent())), None, Some(Seen::unwatched(View::absent()))]),
            View::absent()
        );
    }
}
