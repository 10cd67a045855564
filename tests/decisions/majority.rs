//! What the answers of a majority's members come to.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::majority::renewal::{Renewal, Renewed};
use leasehold::protocol::majority::roster::member_set;
use leasehold::protocol::majority::shown::{as_shown, is_vacant, kept, merged};
use leasehold::protocol::majority::trail::Trail;
use leasehold::protocol::majority::{Seen, in_time, rules};
use leasehold::protocol::observer::Judgement;
use leasehold::{Closed, Data, Expect, MemberSet, Record, Standing, StepDown, Unreadable, Version, View};

use super::{RULES, grant, record};

fn held(token: u64) -> View {
    View::of(record(token, Some(1)))
}

fn free(token: u64) -> View {
    View::of(record(token, None))
}

#[test]
fn a_members_term_is_written_by_the_rules_of_a_lease_of_which_only_the_term_is_known() {
    let rules = rules(RULES.clocks, 1000, true);
    assert_eq!((rules.ttl, rules.margin, rules.attempt, rules.renew_every, rules.poll), (1000, 0, 166, 333, 333));
    assert!(rules.use_store_time && rules.trusts_store_time && rules.has_store_time);
    assert!(rules.data_in_every_renewal && !rules.manual && !rules.native);
}

#[test]
fn a_grant_is_in_time_while_two_attempts_fit_into_what_is_left() {
    let rules = rules(RULES.clocks, 1000, true);
    // 990 less twice 166.
    assert!(in_time(658, &rules) && !in_time(659, &rules));
}

/// Three members, of whom these were asked.
fn ending(kind: Kind, asked: &[usize]) -> Ending {
    Ending::new(kind, 3, asked)
}

#[test]
fn it_waits_for_those_that_were_asked_until_they_answer() {
    let mut ending = ending(Kind::Release, &[0, 1]);
    assert_eq!([0, 1, 2].map(|member| ending.waits_for(member)), [true, true, false]);
    ending.accepted(0);
    ending.unknown(1);
    assert_eq!([0, 1, 2].map(|member| ending.waits_for(member)), [false; 3]);
    assert_eq!(ending.number_accepted(), 1);
}

#[test]
fn a_release_that_a_majority_refuses_is_refused_before_the_last_answer() {
    let mut ending = ending(Kind::Release, &[0, 1, 2]);
    ending.refused(0, held(9));
    assert_eq!(ending.result(), Ended::Open);
    ending.refused(1, held(9));
    assert!(matches!(ending.result(), Ended::Refused(view) if view.token() == 9));
    ending.accepted(2);
    assert!(matches!(ending.result(), Ended::Refused(_)), "one acceptance is no majority");
}

#[test]
fn a_release_that_nobody_accepts_is_not_done_though_most_members_were_not_asked() {
    let mut ending = ending(Kind::Release, &[0]);
    assert_eq!(ending.result(), Ended::Open);
    ending.refused(0, held(9));
    assert!(matches!(ending.result(), Ended::Refused(_)));
    ending.accepted(0);
    assert_eq!(ending.result(), Ended::Accepted);
    assert_eq!(self::ending(Kind::Release, &[]).result(), Ended::Accepted, "nothing had to be released");
}

#[test]
fn a_clean_up_waits_for_all_and_is_settled_when_none_is_open_to_its_claim() {
    let mut ending = ending(Kind::CleanUp(5), &[0, 1, 2]);
    ending.accepted(0);
    ending.accepted(1);
    assert_eq!((ending.result(), ending.is_settled()), (Ended::Open, false));
    ending.unknown(2);
    assert_eq!((ending.result(), ending.is_settled()), (Ended::Unknown, false));
    ending.refused(2, held(6));
    assert_eq!((ending.result(), ending.is_settled()), (Ended::Accepted, true));

    let mut ending = self::ending(Kind::CleanUp(5), &[0, 1, 2]);
    ending.accepted(0);
    ending.unknown(1);
    assert!(!ending.is_settled(), "one waits, one is unknown");
    assert!(!self::ending(Kind::Release, &[]).is_settled());
}

#[test]
fn a_clean_up_that_most_refuse_is_refused_where_they_show_why() {
    let of = |replies: [Option<View>; 3]| {
        let mut ending = ending(Kind::CleanUp(5), &[0, 1, 2]);
        for (member, reply) in replies.into_iter().enumerate() {
            match reply {
                Some(view) => ending.refused(member, view),
                None => ending.accepted(member),
            }
        }
        ending.result()
    };
    assert!(matches!(of([Some(held(6)), Some(held(6)), None]), Ended::Refused(view) if view.token() == 6));
    assert!(matches!(of([Some(held(6)), Some(held(6)), Some(held(6))]), Ended::Refused(_)));
    assert_eq!(of([Some(held(6)), None, None]), Ended::Accepted);
    assert!(matches!(of([Some(free(4)), None, None]), Ended::Refused(_)), "a late copy could be accepted there");
    assert!(matches!(of([Some(held(5)), Some(free(5)), Some(held(5))]), Ended::Refused(_)));
}

#[test]
fn a_clean_up_is_accepted_where_all_others_show_what_nobody_may_touch() {
    let mut ending = ending(Kind::CleanUp(5), &[0, 1, 2]);
    ending.accepted(0);
    for member in [1, 2] {
        ending.refused(member, View::unreadable(Unreadable::Format));
    }
    assert_eq!((ending.result(), ending.is_settled()), (Ended::Accepted, true));
}

#[test]
fn a_closing_that_a_minority_has_recorded_is_neither_done_nor_refused() {
    let mut three = ending(Kind::Close(5), &[0, 1, 2]);
    assert_eq!((three.result(), three.number_accepted()), (Ended::Open, 0));
    three.accepted(0);
    assert_eq!(three.result(), Ended::Open);
    three.accepted(1);
    assert_eq!((three.result(), three.number_accepted()), (Ended::Accepted, 2));

    let mut recorded = record(5, None);
    recorded.closed = Some(Closed { for_ms: Some(1), until_ms: None, by: Some(5) });
    let mut five = Ending::new(Kind::Close(5), 5, &[0, 1, 2, 3, 4]);
    five.accepted(0);
    five.refused(1, View::of(recorded));
    (2..5).for_each(|member| five.refused(member, held(9)));
    assert_eq!(five.result(), Ended::Unknown);
}

#[test]
fn a_vote_that_a_majority_refuses_is_refused_before_the_last_answer() {
    let mut ending = ending(Kind::Vote, &[0, 1, 2]);
    ending.refused(0, held(9));
    ending.refused(1, held(9));
    assert!(matches!(ending.result(), Ended::Refused(view) if view.token() == 9));
}

fn renewal(members: usize) -> Renewal {
    Renewal::new(7, grant(1), members)
}

fn of_another() -> View {
    View::of(record(8, Some(2)))
}

/// Its own grant, with a version of a renewal that came late.
fn ahead(version: u64) -> View {
    let mut ahead = record(7, Some(1));
    ahead.version = Some(version);
    View::of(ahead)
}

#[test]
fn a_renewal_waits_for_whoever_can_still_decide_it() {
    let trail = Trail::new(3);
    let open = |setup: fn(&mut Renewal)| {
        let mut renewal = renewal(3);
        setup(&mut renewal);
        renewal.result(&trail)
    };
    assert_eq!(open(|_| {}), Renewed::Open);
    assert_eq!(open(|renewal| renewal.unknown(0)), Renewed::Open, "two can still accept it");
    let one_left = |renewal: &mut Renewal| (0..2).for_each(|member| renewal.unknown(member));
    assert_eq!(open(one_left), Renewed::Failed);
    let one_lacks = |renewal: &mut Renewal| {
        renewal.unknown(0);
        renewal.refused(1, &of_another());
    };
    assert_eq!(open(one_lacks), Renewed::Open, "the last can still show that it is lost");

    let mut renewal = renewal(3);
    renewal.unknown(0);
    renewal.accepted(1, &mut Trail::new(3));
    assert_eq!(renewal.result(&trail), Renewed::Open);
    assert_eq!([0, 1, 2].map(|member| renewal.waits_for(member)), [false, false, true]);
    renewal.unknown(2);
    assert_eq!(renewal.result(&trail), Renewed::Failed);
}

#[test]
fn members_that_cannot_be_read_do_not_show_that_a_grant_is_lost() {
    let result = |view: &View| {
        let mut renewal = renewal(3);
        (0..2).for_each(|member| renewal.refused(member, view));
        renewal.unknown(2);
        renewal.result(&Trail::new(3))
    };
    assert_eq!(result(&View::unreadable(Unreadable::Format)), Renewed::Failed);
    assert!(matches!(result(&of_another()), Renewed::Lost(view) if view.token() == 8));
}

#[test]
fn a_renewal_that_is_behind_learns_the_newest_version() {
    let mut renewal = renewal(3);
    renewal.refused(0, &ahead(5));
    renewal.refused(1, &ahead(6));
    renewal.unknown(2);
    assert_eq!(renewal.result(&Trail::new(3)), Renewed::Behind(ahead(6)));
}

fn seen(record: Record) -> Option<Seen> {
    Some(Seen::unwatched(View::of(record)))
}

/// One whose term is over.
fn dead(record: Record) -> Option<Seen> {
    let expect = Expect::Expired(Version::of(&record));
    Some(Seen { judgement: Judgement::Claimable(expect), ..seen(record)? })
}

fn with_data(mut record: Record, text: &str) -> Record {
    record.data = Data::new(text.as_bytes());
    record
}

#[test]
fn what_no_majority_shows_names_nobody_unless_it_can_be_claimed() {
    let split = |watched: fn(Record) -> Option<Seen>| {
        merged(&[watched(record(5, Some(1))), watched(record(6, Some(2))), watched(record(7, Some(3)))])
    };
    let view = split(seen);
    assert!(matches!(view.standing, Standing::Held(_)));
    assert_eq!((view.token(), view.grant()), (7, None));
    let view = split(dead);
    assert!(matches!(view.standing, Standing::Expired(_)));
    assert_eq!((view.token(), view.grant()), (7, Some(grant(3))));
    let one_is_not = merged(&[dead(record(5, Some(1))), dead(record(6, Some(2))), seen(record(7, Some(3)))]);
    assert!(matches!(one_is_not.standing, Standing::Expired(_)), "two of three are a majority");
}

/// With what is a member's own, and not the majority's.
fn of_a_member(mut record: Record) -> Record {
    (record.expires_at_ms, record.set) = (Some(99), Some(MemberSet(5)));
    if let Some(closed) = &mut record.closed {
        closed.until_ms = Some(77);
    }
    record
}

fn closed(token: u64) -> Record {
    let mut closed = with_data(record(token, None), "outcome");
    closed.closed = Some(Closed { for_ms: Some(9), until_ms: None, by: Some(token) });
    closed
}

#[test]
fn what_a_member_shows_is_shown_without_what_is_its_own() {
    let held = record(7, Some(1));
    assert_eq!(as_shown(View::of(of_a_member(held.clone()))).record, Some(held.clone()));
    let view = merged(&[seen(of_a_member(held.clone())), seen(of_a_member(held.clone())), None]);
    assert_eq!(view.record, Some(held));
    let view = merged(&[seen(of_a_member(closed(7))), seen(of_a_member(closed(7))), None]);
    assert_eq!(view.record, Some(closed(7)));
}

#[test]
fn a_closing_is_shown_with_the_highest_token_of_all() {
    let view = merged(&[seen(closed(7)), seen(closed(7)), seen(record(9, Some(1)))]);
    let mut shown = closed(7);
    shown.token = 9;
    assert_eq!(view.record, Some(shown));
}

#[test]
fn what_is_free_is_shown_as_free_whatever_a_minority_has() {
    let free = || seen(record(3, None));
    let mut asked = record(8, Some(1));
    asked.asked = Some(StepDown { token: 8, grace_ms: 1, by: None });
    for other in [asked, closed(8)] {
        let mut shown = other.clone();
        (shown.grant, shown.asked, shown.closed) = (None, None, None);
        let view = merged(&[free(), free(), seen(other)]);
        assert_eq!((view.standing, view.record), (Standing::Vacant, Some(shown)));
    }
}

#[test]
fn a_minoritys_outcome_is_not_shown_where_the_name_can_be_claimed_nor_where_it_cannot() {
    let view = merged(&[dead(closed(7)), dead(record(6, Some(2))), None]);
    assert_eq!(view.record, Some(record(7, None)));
    let held = with_data(record(7, Some(1)), "checkpoint");
    let view = merged(&[dead(held.clone()), dead(record(6, Some(2))), None]);
    assert_eq!(view.record, Some(held.clone()));
    let mut nobodys = record(7, None);
    nobodys.ttl_ms = Some(1000);
    assert_eq!(merged(&[seen(held), seen(record(6, Some(2))), None]).record, Some(nobodys));
}

#[test]
fn what_is_kept_of_a_name_is_what_a_majority_shows_or_the_newest_without_a_minoritys_outcome() {
    let outcome = closed(7);
    let kept_of = |record: Record| kept(&[seen(record), seen(self::record(6, Some(2))), None]).unwrap();
    assert_eq!(kept_of(outcome.clone()), record(7, None));
    let held = with_data(record(7, Some(3)), "checkpoint");
    assert_eq!(kept_of(held.clone()), held);
    assert_eq!(kept(&[seen(outcome.clone()), seen(outcome.clone()), None]), Some(outcome));
}

#[test]
fn a_majority_of_vacant_members_is_vacant() {
    let (free, held) = (|| seen(record(3, None)), || seen(record(4, Some(1))));
    assert!(is_vacant(&[free(), free(), held()]));
    assert!(!is_vacant(&[free(), held(), held()]));
    assert!(!is_vacant(&[free(), None, None]));
    assert!(!is_vacant(&[dead(record(4, Some(1))), dead(record(4, Some(1))), None]));
}

#[test]
fn of_equal_records_that_is_shown_which_most_members_have() {
    let asked = |by| with_data(record(7, Some(1)), by);
    let view = merged(&[seen(asked("one")), seen(asked("two")), seen(asked("one"))]);
    assert_eq!(view.record.unwrap().data, Data::new(b"one"));
    let view = merged(&[seen(asked("two")), seen(asked("one")), seen(asked("one"))]);
    assert_eq!(view.record.unwrap().data, Data::new(b"one"));
    let view = merged(&[seen(asked("one")), seen(asked("one")), seen(asked("two"))]);
    assert_eq!(view.record.unwrap().data, Data::new(b"one"));
    // Not what has a lower token, or an older version.
    let mut newer = asked("newer");
    newer.version = Some(2);
    let view = merged(&[seen(asked("older")), seen(asked("older")), seen(newer)]);
    assert_eq!(view.record.unwrap().data, Data::new(b"newer"));
}

#[test]
fn the_hash_of_a_member_list_stays_what_it_is() {
    // Records of older versions carry it.
    let of = |names: &[&str]| member_set(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(of(&[]), MemberSet(0xcbf2_9ce4_8422_2325));
    assert_eq!(of(&["a"]), MemberSet(0x089b_c907_b544_c769));
}
