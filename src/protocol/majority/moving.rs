//! What becomes of a record when the list of members changes: decided by what the old and the new members show, while
//! every client is stopped.

use std::ops::Range;

use super::shown::{as_shown, is_in_progress, kept};
use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::protocol::tokens;
use crate::types::{
    Claim, Close, Closed, Expect, Grant, MAX_TTL_MS, MemberSet, Name, Record, Standing, Unreadable, Vacate, View,
};

/// Drawn once, by chance: no client draws it.
const MOVING: u128 = 0x6b0d_93c2_51f8_4ea7_9c3e_20d7_b846_1af5;

/// What each member of the new list is brought.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Brought {
    /// Above all that any member of either list has.
    pub token: u64,
    /// What the old members have of the name.
    pub record: Record,
}

/// Why nothing can be brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no higher token.
    NoToken,
    /// Too few of the old members can be read.
    TooFew,
    /// Whether it was closed depends on members that have not answered.
    Undecided,
}

/// How many members of the old list have to show what they have.
pub fn needed(old: usize) -> usize {
    if Broken::MajorityMoveReadsMinority.on() { 1 } else { quorum(old) }
}

/// Which members of the new list are written: all of them, in their order.
pub fn written(new: usize) -> Range<usize> {
    if Broken::MajorityMoveWritesMajority.on() { 0..quorum(new) } else { 0..new }
}

/// What to bring, by what the members of both lists show of the name. `None` for a member that has not answered or does
/// not count. `floor`: of the token, as for a grant, so that no claim of before comes late with a higher one.
pub fn brought(old: &[Option<View>], new: &[Option<View>], floor: Option<u64>) -> Result<Brought, Refusal> {
    // What cannot be read tells nothing of the name.
    let readable = |view: &Option<View>| view.clone().filter(|view| !matches!(view.standing, Standing::Unreadable(_)));
    let old: Vec<_> = old.iter().map(readable).collect();
    if old.iter().flatten().count() < needed(old.len()) {
        return Err(Refusal::TooFew);
    }
    let highest = |views: &[Option<View>]| views.iter().flatten().map(View::token).max().unwrap_or(0);
    let of_old = if Broken::MajorityMoveNotAboveOld.on() { 0 } else { highest(&old) };
    let token = tokens::propose(of_old.max(highest(new)), floor, 0).ok_or(Refusal::NoToken)?;
    let seen: Vec<_> = resumed(&old).into_iter().map(|view| view.map(Seen::unwatched)).collect();
    let record = undecided(&seen)?.or_else(|| kept(&seen)).unwrap_or_default();
    Ok(Brought { token, record })
}

/// Under which expectation a member is claimed for it, by what it shows.
pub fn expectation(view: View) -> Result<Expect, Unreadable> {
    match as_shown(view).standing {
        Standing::Vacant => Ok(Expect::Vacant),
        // Every client is stopped: what nobody renews is dead after a term.
        Standing::Held(version) | Standing::Expired(version) => Ok(Expect::Expired(version)),
        Standing::Unreadable(reason) => Err(reason),
    }
}

impl Brought {
    /// The first of two writes to a member.
    pub fn claim(&self, name: Name, set: MemberSet, ttl_ms: u64, expect: Expect) -> Claim {
        Claim {
            name,
            token: self.token,
            grant: self.grant(),
            ttl_ms,
            expires_at_ms: None,
            holder: self.record.holder.clone(),
            data: self.record.data.clone(),
            set: Some(set),
            expect,
        }
    }

    /// The second: it leaves the record free, or closed for as long again.
    pub fn vacate(&self, name: Name) -> Vacate {
        let close = self.for_ms().map(|for_ms| Close { for_ms, until_ms: None, data: self.record.data.clone() });
        Vacate { name, token: self.token, grant: self.grant(), burn: true, close, now_ms: None }
    }

    fn for_ms(&self) -> Option<u64> {
        for_ms(&self.record)
    }

    fn grant(&self) -> Grant {
        moving(self.token, self.for_ms())
    }
}

/// The grant under which a record is brought over. It says with which token, and for how long it is to be closed, so
/// that a move that was interrupted between its two writes is known by the first.
fn moving(token: u64, for_ms: Option<u64>) -> Grant {
    let closes = for_ms.map_or(0, |for_ms| u128::from(for_ms) + 1);
    Grant::from_bits(MOVING ^ (closes << 64 | u128::from(token)))
}

/// For how long a record is to be closed that a move has only begun to bring; `None`: it is none of those.
fn begun(record: &Record) -> Option<Option<u64>> {
    let bits = record.grant?.bits() ^ MOVING;
    let closes = u64::try_from(bits >> 64).ok().filter(|closes| *closes <= MAX_TTL_MS + 1)?;
    (bits as u64 == record.token).then_some(closes.checked_sub(1))
}

/// What the members would have if the move that was interrupted had not been, as far as their closings go: what it had
/// begun is done, and a copy is closed by what it is a copy of.
fn resumed(views: &[Option<View>]) -> Vec<Option<View>> {
    let done: Vec<_> = views.iter().map(|view| view.clone().map(finished)).collect();
    let closings: Vec<Record> =
        done.iter().flatten().filter_map(|view| view.record.clone()).filter(is_closed).collect();
    let alike = |one: &Record, other: &Record| other.data == one.data && for_ms(other) == for_ms(one);
    let as_first = |view: View| match view.record.as_ref().filter(|record| is_closed(record)) {
        None => view,
        Some(record) => {
            let first = closings.iter().find(|first| alike(record, first)).unwrap_or(record);
            View::of(Record { closed: first.closed, ..record.clone() })
        }
    };
    done.into_iter().map(|view| view.map(as_first)).collect()
}

/// What the second write would have left.
fn finished(view: View) -> View {
    let Some(record) = view.record.as_ref() else { return view };
    match begun(record) {
        None => view,
        Some(_) if Broken::MajorityMoveForgetsWhatWasBegun.on() => View::of(Record { grant: None, ..record.clone() }),
        Some(for_ms) => {
            let by = Some(record.token);
            let closed = for_ms.map(|for_ms| Closed { for_ms: Some(for_ms), until_ms: None, by });
            View::of(Record { grant: None, closed, ..record.clone() })
        }
    }
}

/// A closing that a majority may have recorded, if those that have not answered have: then it counts, if nothing was
/// granted since. Of two it is the later one.
fn undecided(seen: &[Option<Seen>]) -> Result<Option<Record>, Refusal> {
    if Broken::MajorityMoveForgetsClosing.on() || !is_in_progress(seen) {
        return Ok(None);
    }
    let records = || seen.iter().flatten().filter_map(|seen| seen.view.record.as_ref());
    let missing = seen.iter().filter(|seen| seen.is_none()).count();
    let absent = if Broken::MajorityMoveKeepsAnyClosing.on() { seen.len() } else { missing };
    let by = |record: &Record| record.closed.filter(|_| is_closed(record)).and_then(|closed| closed.by);
    let possible = |token: &u64| records().filter(|record| by(record) == Some(*token)).count() + absent;
    let last = records().filter_map(by).filter(|token| possible(token) >= quorum(seen.len())).max();
    let Some(last) = last else { return Ok(None) };
    match records().all(|record| by(record) == Some(last) || record.token <= last) {
        true => Ok(records().find(|record| by(record) == Some(last)).cloned()),
        false => Err(Refusal::Undecided),
    }
}

fn is_closed(record: &Record) -> bool {
    record.grant.is_none() && record.closed.is_some()
}

fn for_ms(record: &Record) -> Option<u64> {
    record.closed.and_then(|closed| closed.for_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FencingToken;

    fn closed(token: u64, by: u64) -> Option<View> {
        let closed = Some(Closed { for_ms: Some(9), until_ms: None, by: Some(by) });
        Some(View::of(Record { token, closed, ..Record::new() }))
    }

    fn held(token: u64, grant: Grant) -> Option<View> {
        Some(View::of(Record { token, grant: Some(grant), version: Some(1), ttl_ms: Some(9), ..Record::new() }))
    }

    fn free(token: u64) -> Option<View> {
        Some(View::of(Record { token, ..Record::new() }))
    }

    fn closes(old: &[Option<View>]) -> Result<bool, Refusal> {
        brought(old, &[], None).map(|brought| brought.record.closed.is_some())
    }

    const HOLDER: Grant = Grant::from_bits(1);

    #[test]
    fn the_token_is_above_all_that_any_member_of_either_list_has() {
        let of = |old: &[Option<View>], new: &[Option<View>]| brought(old, new, None).map(|brought| brought.token);
        assert_eq!(of(&[free(5), None, free(7)], &[free(2)]), Ok(8));
        assert_eq!(of(&[free(5), free(5), None], &[Some(View::absent()), free(9)]), Ok(10));
        assert_eq!(of(&[free(FencingToken::MAX), free(5), None], &[]), Err(Refusal::NoToken));
    }

    #[test]
    fn fewer_than_a_majority_of_the_old_members_are_not_enough() {
        let unreadable = Some(View::unreadable(Unreadable::Format));
        assert_eq!(brought(&[free(5), None, None], &[], None), Err(Refusal::TooFew));
        assert_eq!(brought(&[free(5), unreadable.clone(), None], &[], None), Err(Refusal::TooFew));
        assert!(brought(&[free(5), unreadable, free(5)], &[], None).is_ok());
    }

    #[test]
    fn a_closing_that_those_who_have_not_answered_may_have_made_an_outcome_is_kept() {
        assert_eq!(closes(&[closed(5, 5), held(5, HOLDER), held(5, HOLDER)]), Ok(false), "a minority's");
        assert_eq!(closes(&[closed(5, 5), None, held(5, HOLDER)]), Ok(true));
        assert_eq!(closes(&[closed(5, 5), None, Some(View::absent())]), Ok(true));
        assert_eq!(closes(&[closed(7, 5), None, free(5)]), Ok(true), "burnt since");
        assert_eq!(closes(&[closed(5, 5), None, free(7)]), Err(Refusal::Undecided), "or there was another grant");
        assert_eq!(closes(&[None, held(5, HOLDER), held(5, HOLDER)]), Ok(false));
    }

    #[test]
    fn what_an_interrupted_move_has_begun_is_known_by_its_grant() {
        let begun = |token, for_ms| held(token, moving(token, for_ms));
        assert_eq!(closes(&[None, begun(6, Some(9)), held(5, HOLDER)]), Ok(true));
        assert_eq!(closes(&[closed(5, 5), begun(6, Some(9)), held(5, HOLDER)]), Ok(true));
        assert_eq!(closes(&[closed(6, 6), closed(5, 5), held(5, HOLDER)]), Ok(true), "a copy and what it is a copy of");
        let mut longer = closed(6, 6);
        let record = longer.as_mut().and_then(|view| view.record.as_mut()).unwrap();
        record.closed.as_mut().unwrap().for_ms = Some(10);
        assert_eq!(closes(&[longer, closed(5, 5), held(5, HOLDER)]), Ok(false), "for another time, so no copy");
        assert_eq!(closes(&[closed(5, 5), begun(6, None), held(5, HOLDER)]), Ok(false));
        assert_eq!(super::begun(&held(6, HOLDER).unwrap().record.unwrap()), None);
        assert_eq!(super::begun(&held(7, moving(6, None)).unwrap().record.unwrap()), None, "of another token");
    }
}
