//! Which stores are members: the list's hash in every record, and the marks that a set-up has left in the stores.
//!
//! A mark names its own store's incarnation and those of all members, so that what a majority shows tells a member
//! from one that was wiped, rebuilt or belongs to others.

use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::types::{Data, MemberSet, Record, Stamp, View};

const HEAD: &str = "leasehold majority 1";

/// The mark in one store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// This store's incarnation.
    pub own: u128,
    /// The incarnations of all members, in their order.
    pub roster: Vec<u128>,
}

/// What a store is to a roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fitness {
    /// It counts.
    Fit,
    /// It has no mark: it was never set up, or was wiped since.
    Unmarked,
    /// It has another mark: it was set up for others, or again.
    Foreign,
}

/// What a look at a store's mark has shown, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checked {
    /// When the mark was asked for.
    pub since: Stamp,
    /// What the store was then.
    pub fitness: Fitness,
}

impl Checked {
    /// What is still known by it now, if one that counts may have been looked at so long ago, and one that does not
    /// `again` ago.
    pub fn known(&self, now: &Stamp, max_age: Option<u64>, again: u64) -> Option<Fitness> {
        let most = if self.fitness == Fitness::Fit { max_age.unwrap_or(u64::MAX) } else { again };
        (now.longest_since(&self.since) <= most).then_some(self.fitness)
    }
}

impl Mark {
    /// As it is stored.
    pub fn to_data(&self) -> Option<Data> {
        let mut text = format!("{HEAD}\n{:032x}", self.own);
        self.roster.iter().for_each(|id| text.push_str(&format!("\n{id:032x}")));
        Data::new(text.as_bytes())
    }

    /// The mark that a record carries, if it does.
    pub fn of(view: &View) -> Option<Self> {
        let text = std::str::from_utf8(view.record.as_ref()?.data.as_ref()?.as_bytes()).ok()?;
        let mut lines = text.lines();
        (lines.next() == Some(HEAD)).then_some(())?;
        let mut ids = lines.map(|line| u128::from_str_radix(line, 16).ok());
        let own = ids.next()??;
        Some(Self { own, roster: ids.collect::<Option<_>>()? })
    }
}

/// The roster that a majority of the stores shows, each in its place.
pub fn pinned(marks: &[Option<Mark>]) -> Option<Vec<u128>> {
    let in_place = |roster: &Vec<u128>| {
        let fit = |(member, mark): (usize, &Option<Mark>)| fitness(mark.as_ref(), roster, member) == Fitness::Fit;
        marks.iter().enumerate().filter(|one| fit(*one)).count()
    };
    let rosters = marks.iter().flatten().map(|mark| &mark.roster);
    rosters.filter(|roster| roster.len() == marks.len()).find(|roster| in_place(roster) >= quorum(marks.len())).cloned()
}

/// What a store with this mark is in that place.
pub fn fitness(mark: Option<&Mark>, roster: &[u128], member: usize) -> Fitness {
    match mark {
        _ if Broken::MajorityMarkNotChecked.on() => Fitness::Fit,
        None => Fitness::Unmarked,
        Some(mark) if mark.roster == roster && roster.get(member) == Some(&mark.own) => Fitness::Fit,
        Some(_) => Fitness::Foreign,
    }
}

/// The hash of a member list, by the members' identities in their order: FNV-1a.
pub fn member_set(identities: &[String]) -> MemberSet {
    let separated = identities.iter().flat_map(|identity| identity.bytes().chain([0xff]));
    MemberSet(
        separated.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
    )
}

/// Whether a record was written by clients with another list, or by some that use the store alone.
///
/// `whole`: whether a grant and its list are written at once. A service's own lease is taken before the record is
/// written, and a look in between shows a holder without a list.
pub fn is_of_others(record: &Record, set: MemberSet, whole: bool) -> bool {
    let others = record.set.map_or(whole && record.grant.is_some(), |theirs| theirs != set);
    others && !Broken::MajorityListNotCompared.on()
}

/// A member that shows such a record, of all that have answered. `whole`: by member.
pub fn stranger(seen: &[Option<Seen>], set: MemberSet, whole: impl Fn(usize) -> bool) -> Option<usize> {
    let record = |member: usize| seen[member].as_ref().and_then(|seen| seen.view.record.as_ref());
    (0..seen.len()).find(|member| record(*member).is_some_and(|record| is_of_others(record, set, whole(*member))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(own: u128) -> Option<Mark> {
        Some(Mark { own, roster: vec![1, 2, 3] })
    }

    #[test]
    fn a_mark_survives_its_text() {
        let mark = mark(2).unwrap();
        let view = View::of(Record { data: mark.to_data(), ..Record::new() });
        assert_eq!(Mark::of(&view), Some(mark));
        assert_eq!(Mark::of(&View::of(Record { data: Data::new(b"payload"), ..Record::new() })), None);
        assert_eq!(Mark::of(&View::absent()), None);
    }

    #[test]
    fn what_a_majority_shows_tells_who_was_wiped_or_is_a_stranger() {
        let roster = vec![1, 2, 3];
        assert_eq!(pinned(&[mark(1), mark(2), None]), Some(roster.clone()));
        assert_eq!(pinned(&[mark(1), None, None]), None);
        assert_eq!(pinned(&[mark(1), mark(1), mark(1)]), None, "one store under three names");
        assert_eq!(pinned(&[mark(2), mark(1), None]), None, "in each other's place");
        assert_eq!(fitness(None, &roster, 0), Fitness::Unmarked);
        assert_eq!(fitness(mark(2).as_ref(), &roster, 0), Fitness::Foreign);
        assert_eq!(fitness(mark(2).as_ref(), &roster, 1), Fitness::Fit);
    }

    #[test]
    fn a_holder_without_a_list_is_a_stranger_where_both_are_written_at_once() {
        use crate::types::Grant;
        let (mine, grant) = (MemberSet(1), Some(Grant::from_bits(1)));
        let with = |grant, set| Record { grant, set, ..Record::new() };
        assert!(is_of_others(&with(None, Some(MemberSet(2))), mine, false));
        assert!(is_of_others(&with(grant, None), mine, true));
        assert!(!is_of_others(&with(grant, None), mine, false));
        assert!(!is_of_others(&with(None, None), mine, true), "a burn writes no list");
        assert!(!is_of_others(&with(grant, Some(mine)), mine, true));
    }

    #[test]
    fn another_list_or_order_has_another_hash() {
        let of = |names: &[&str]| member_set(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_ne!(of(&["a", "b", "c"]), of(&["a", "b", "d"]));
        assert_ne!(of(&["a", "b", "c"]), of(&["ab", "", "c"]));
        assert_eq!(of(&["a", "b", "c"]), of(&["a", "b", "c"]));
    }
}
