//! What the answers of a majority's members come to.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::majority::{in_time, rules};
use leasehold::{Closed, Unreadable, View};

use super::{RULES, record};

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
