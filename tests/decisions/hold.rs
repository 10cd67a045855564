//! Until when a holder believes, what it sends when, and what it takes for a loss.

use leasehold::protocol::hold::{Body, Due, Hold, Loss, RenewalAnswer, State};
use leasehold::protocol::retry::Retry;
use leasehold::protocol::rules::Rules;
use leasehold::protocol::store_time::StoreTime;
use leasehold::{Record, Renewed, Sample, Stamp, Unreadable, View};

use super::{RULES, TIMED, at, grant, record, sample, with_wall};

const ACCEPTED: Renewed = Renewed::Renewed(None);

/// A grant with token 7 that counts from 0. Its term is 900.
struct Holder {
    hold: Hold,
    rules: Rules,
    time: StoreTime,
}

fn holder() -> Holder {
    Holder { hold: Hold::new(7, grant(1), at(0), None, None), rules: RULES, time: StoreTime::default() }
}

/// One whose claim, sent at 1000 on the store's clock and ours, carried the end of its term: 2020.
fn timed(rules: Rules) -> Holder {
    let mut time = StoreTime::default();
    time.learn(sample(1000), &at(1000), &rules.clocks);
    Holder { hold: Hold::new(7, grant(1), at(1000), Some(2020), Some(sample(1000))), rules, time }
}

impl Holder {
    fn is_held(&self, now: Stamp) -> bool {
        self.hold.is_held(&now, &self.time, &self.rules)
    }

    fn tick(&mut self, now: Stamp) -> Due {
        self.hold.tick(&now, &self.time, &self.rules)
    }

    fn left(&self, now: Stamp) -> u64 {
        self.hold.left(&now, &self.rules)
    }

    fn ends_in(&self, now: Stamp) -> u64 {
        self.hold.ends_in(&now, &self.rules)
    }

    fn sends(&mut self, t: u64) -> Body {
        self.hold.renewal(&at(t), &self.time, &self.rules)
    }

    fn answered(&mut self, now: Stamp, answer: RenewalAnswer<'_>) -> State {
        let version = self.hold.version();
        self.hold.answered(version, answer, &now, &self.time, &self.rules, 1000);
        self.hold.state()
    }

    fn accepted(&mut self, t: u64) -> State {
        self.answered(at(t), RenewalAnswer::Answered(&ACCEPTED, None))
    }

    fn refused(&mut self, t: u64, view: View) -> State {
        self.answered(at(t), RenewalAnswer::Answered(&Renewed::Refused(view), None))
    }

    fn failed(&mut self, t: u64, retry: Retry) -> State {
        self.answered(at(t), RenewalAnswer::Failed { retry })
    }
}

#[test]
fn it_believes_for_its_term_on_each_clock_and_not_a_tick_longer() {
    assert!(holder().is_held(at(899)));
    let still = at(100);
    for end in [Stamp { boot: 900, ..still }, Stamp { mono: 900, ..still }, Stamp { raw: 900, ..still }] {
        let mut holder = holder();
        assert!(!holder.is_held(end), "{end:?}");
        assert_eq!((holder.left(end), holder.ends_in(end)), (0, 1));
        assert_eq!(holder.tick(end), Due::Over);
        assert_eq!(holder.hold.state(), State::Lost(Loss::Deadline));
    }
    assert_eq!((holder().left(at(100)), holder().ends_in(at(100))), (800, 800));
}

#[test]
fn a_wall_clock_that_jumps_forward_costs_one_renewal_sent_at_once() {
    let jumped = with_wall(100, 900);
    let mut holder = holder();
    holder.hold.renew_first_after(300);
    assert_eq!(holder.tick(at(100)), Due::Wait(200));
    assert!(!holder.is_held(jumped));
    assert_eq!((holder.left(jumped), holder.ends_in(jumped)), (0, 800), "no reason to look again at once");
    assert_eq!(holder.tick(jumped), Due::Renew);
    assert_eq!(holder.hold.state(), State::Jeopardy);
    holder.hold.renewal(&jumped, &holder.time, &holder.rules);
    assert_eq!(holder.answered(jumped, RenewalAnswer::Answered(&ACCEPTED, None)), State::Held);
    assert!(holder.is_held(jumped));
    assert!(holder.is_held(with_wall(200, 0)), "a step backward is ignored");
}

#[test]
fn a_clock_that_says_over_to_the_end_is_the_reason_of_the_loss() {
    let mut holder = holder();
    holder.tick(with_wall(100, 900));
    assert_eq!(holder.tick(with_wall(899, 1700)), Due::Renew);
    holder.tick(with_wall(900, 1700));
    assert_eq!(holder.hold.state(), State::Lost(Loss::ClockSuspect));
}

#[test]
fn the_first_of_several_clocks_to_reach_the_deadline_has_not_jumped() {
    let tick = |steady: u64| {
        let mut holder = holder();
        holder.hold.renew_first_after(2000);
        let due = holder.tick(with_wall(steady, 900));
        holder.tick(at(900));
        (due, holder.hold.state())
    };
    // A margin before its end is near.
    assert_eq!(tick(809), (Due::Renew, State::Lost(Loss::ClockSuspect)));
    assert_eq!(tick(810), (Due::Wait(90), State::Lost(Loss::Deadline)));
}

#[test]
fn one_renewal_is_sent_for_a_jump_and_not_one_at_every_look() {
    let mut holder = holder();
    assert_eq!(holder.tick(with_wall(100, 1000)), Due::Renew);
    holder.sends(100);
    holder.answered(with_wall(100, 1000), RenewalAnswer::Failed { retry: Retry::Later });
    assert_eq!(holder.tick(with_wall(100, 1000)), Due::Wait(10));
}

#[test]
fn a_renewal_is_due_when_it_was_asked_for_and_then_every_so_often_from_its_send() {
    let mut holder = holder();
    assert_eq!(holder.tick(at(0)), Due::Renew, "at once, unless told otherwise");
    holder.hold.renew_first_after(250);
    assert_eq!(holder.tick(at(249)), Due::Wait(1));
    assert_eq!(holder.tick(at(250)), Due::Renew);
    holder.sends(250);
    assert_eq!(holder.accepted(260), State::Held);
    assert_eq!(holder.tick(at(260)), Due::Wait(290));
    assert_eq!(holder.hold.renewals(), 1);
    assert!(holder.is_held(at(1149)) && !holder.is_held(at(1150)), "from the send");
}

#[test]
fn it_looks_again_at_its_end_though_the_next_renewal_is_later() {
    let mut holder = holder();
    holder.hold.renew_first_after(5000);
    assert_eq!(holder.tick(at(100)), Due::Wait(800));
}

#[test]
fn a_renewal_without_an_answer_is_waited_for_an_attempt_and_a_pause_and_then_sent_anew() {
    let mut holder = holder();
    holder.sends(300);
    assert!(holder.hold.is_under_way());
    assert_eq!(holder.tick(at(310)), Due::Wait(160));
    assert!(!holder.hold.is_overdue(&at(469), &RULES));
    assert_eq!(holder.tick(at(469)), Due::Wait(1));
    assert!(holder.hold.is_overdue(&at(470), &RULES));
    assert_eq!(holder.tick(at(470)), Due::Renew);
    // Near its end it looks at that.
    holder.sends(800);
    assert_eq!(holder.tick(at(850)), Due::Wait(50));
}

#[test]
fn an_abandoned_renewal_is_followed_by_another_at_once_unless_it_was_an_older_one() {
    let mut holder = holder();
    holder.sends(100);
    let older = holder.hold.version();
    holder.sends(300);
    holder.hold.abandoned(older);
    assert!(holder.hold.is_under_way());
    holder.hold.abandoned(holder.hold.version());
    assert!(!holder.hold.is_under_way());
    assert_eq!(holder.tick(at(300)), Due::Renew);

    holder.sends(310);
    holder.accepted(310);
    holder.hold.abandoned(holder.hold.version());
    assert_eq!(holder.tick(at(310)), Due::Wait(300), "nothing was under way");
}

#[test]
fn failed_renewals_are_tried_again_later_and_later_and_leave_the_lease_held() {
    let mut holder = holder();
    let mut waits = Vec::new();
    for _ in 0..5 {
        holder.sends(100);
        assert_eq!(holder.failed(100, Retry::Later), State::Jeopardy);
        waits.push(holder.tick(at(100)));
    }
    assert_eq!(waits, [10, 20, 40, 80, 160].map(Due::Wait));
    assert!(holder.is_held(at(100)));
    holder.sends(200);
    assert_eq!(holder.accepted(200), State::Held);
    holder.sends(300);
    holder.failed(300, Retry::Later);
    assert_eq!(holder.tick(at(300)), Due::Wait(10), "counted anew");
}

#[test]
fn how_soon_a_renewal_is_tried_again_depends_on_the_failure() {
    let after_two = |retry| {
        let mut holder = holder();
        for _ in 0..2 {
            holder.sends(100);
            holder.failed(100, retry);
        }
        holder.tick(at(100))
    };
    assert_eq!(after_two(Retry::Soon), Due::Wait(10));
    assert_eq!(after_two(Retry::Later), Due::Wait(20));
    assert_eq!(after_two(Retry::MuchLater), Due::Wait(40));
    assert_eq!(after_two(Retry::Never), Due::Wait(20), "only the deadline ends it");
}

#[test]
fn an_answer_to_an_older_body_says_nothing() {
    let mut holder = holder();
    holder.sends(100);
    let older = holder.hold.version();
    holder.sends(300);
    let accepted = RenewalAnswer::Answered(&ACCEPTED, None);
    holder.hold.answered(older, accepted, &at(310), &holder.time, &RULES, 1000);
    assert!(holder.hold.is_under_way());
    assert!(!holder.is_held(at(900)), "its term still counts from the claim");
}

#[test]
fn an_answer_after_the_deadline_or_after_a_loss_revives_nothing() {
    let mut holder = holder();
    holder.sends(600);
    assert_eq!(holder.accepted(900), State::Lost(Loss::Deadline));

    let mut holder = self::holder();
    holder.sends(600);
    holder.hold.lose(Loss::KeeperGone);
    assert_eq!(holder.accepted(610), State::Lost(Loss::KeeperGone));
    assert_eq!((holder.hold.renewals(), holder.is_held(at(610))), (0, false));
    assert_eq!(holder.tick(at(610)), Due::Over);
}

#[test]
fn the_first_loss_is_the_reason_and_an_end_is_no_loss() {
    let mut holder = holder();
    assert_eq!(holder.hold.lose(Loss::Revoked), Due::Over);
    holder.hold.lose(Loss::Deadline);
    holder.hold.end();
    assert_eq!(holder.hold.state(), State::Lost(Loss::Revoked));

    let mut holder = self::holder();
    holder.hold.end();
    holder.hold.lose(Loss::Deadline);
    assert_eq!(holder.hold.state(), State::Ended);
    assert!(!holder.is_held(at(1)));
    assert_eq!(holder.tick(at(1)), Due::Over);
}

#[test]
fn a_refusal_shows_how_the_grant_was_lost() {
    let lost = |view: View| {
        let mut holder = holder();
        holder.sends(100);
        holder.refused(110, view)
    };
    let of = |record: Record| lost(View::of(record));
    assert_eq!(lost(View::absent()), State::Lost(Loss::Deleted));
    assert_eq!(of(record(8, Some(2))), State::Lost(Loss::Taken(8)));
    assert_eq!(of(record(8, None)), State::Lost(Loss::Taken(8)));
    assert_eq!(of(record(6, Some(2))), State::Lost(Loss::Deleted));
    assert_eq!(of(record(7, None)), State::Lost(Loss::Revoked));
    let mut revoked = record(7, Some(2));
    revoked.revoked = true;
    assert_eq!(of(revoked), State::Lost(Loss::Revoked));
    assert_eq!(of(record(7, Some(2))), State::Lost(Loss::Taken(7)), "a rival that has not written its token yet");
}

#[test]
fn what_cannot_be_read_and_an_older_body_that_came_late_are_no_loss() {
    let mut holder = holder();
    holder.sends(100);
    assert_eq!(holder.refused(100, View::unreadable(Unreadable::Format)), State::Jeopardy);
    assert_eq!((holder.tick(at(100)), holder.hold.version()), (Due::Wait(10), 2));

    holder.sends(200);
    let mut mine = record(7, Some(1));
    mine.version = Some(9);
    assert_eq!(holder.refused(200, View::of(mine)), State::Jeopardy);
    assert_eq!(holder.sends(300).version, 10, "above every version that is there");
}

#[test]
fn every_body_has_a_version_above_all_before() {
    let mut holder = holder();
    assert_eq!([100, 200, 300].map(|t| holder.sends(t).version), [2, 3, 4]);
    assert_eq!(holder.hold.version(), 4);
    assert_eq!(holder.sends(400), Body { version: 5, expires_at_ms: None, ttl_ms: 1000, with_data: false });
}

#[test]
fn the_longest_hold_ends_a_margin_before_and_its_release_is_due_at_its_end() {
    let mut holder = holder();
    holder.hold.at_most(at(0), 500);
    assert_eq!((holder.left(at(400)), holder.ends_in(at(400))), (10, 10));
    assert_eq!(holder.hold.longest_left(&at(400), &RULES), 10);
    assert!(holder.is_held(at(409)) && !holder.is_held(at(410)));
    assert_eq!(holder.hold.release_after(&at(409)), None);
    assert_eq!(holder.tick(at(410)), Due::Over);
    assert_eq!(holder.hold.state(), State::Lost(Loss::AtMost));
    assert_eq!(holder.hold.release_after(&at(410)), Some(90));
    assert_eq!(holder.hold.longest_ends_in(&at(410)), Some(90));

    let mut holder = self::holder();
    assert_eq!((holder.hold.longest_ends_in(&at(1)), holder.hold.longest_left(&at(1), &RULES)), (None, u64::MAX));
    holder.hold.at_most(at(0), 500);
    holder.hold.lose(Loss::Deadline);
    assert_eq!(holder.hold.release_after(&at(410)), None);
}

#[test]
fn a_release_that_is_refused_tells_of_a_loss_that_nobody_had_noticed() {
    let mut holder = holder();
    holder.hold.release_refused(&View::absent());
    assert_eq!(holder.hold.state(), State::Held, "it was not released");
    holder.hold.end();
    holder.hold.release_refused(&View::of(record(7, Some(1))));
    assert_eq!(holder.hold.state(), State::Ended, "its own grant");
    holder.hold.release_refused(&View::of(record(9, Some(2))));
    assert_eq!(holder.hold.state(), State::Lost(Loss::Taken(9)));
}

#[test]
fn a_payload_is_carried_until_a_body_with_it_was_accepted() {
    let mut holder = holder();
    assert!(!holder.sends(100).with_data);
    assert_eq!(holder.hold.set_data(), 1);
    assert!(holder.hold.has_new_data());
    holder.accepted(110);
    assert_eq!(holder.hold.data_accepted(), 0, "that body did without");
    assert!(holder.sends(200).with_data);
    holder.failed(210, Retry::Later);
    assert!(holder.sends(220).with_data);
    holder.accepted(230);
    assert_eq!((holder.hold.data_accepted(), holder.hold.has_new_data()), (1, false));
    assert!(!holder.sends(300).with_data);
    holder.rules.data_in_every_renewal = true;
    assert!(holder.sends(310).with_data);
}

#[test]
fn a_payload_that_the_store_will_never_take_is_left_out() {
    let mut holder = holder();
    holder.hold.set_data();
    holder.hold.refuse_data();
    assert_eq!(holder.hold.data_refused(), 0, "nothing was under way");
    holder.sends(100);
    holder.hold.refuse_data();
    assert_eq!((holder.hold.data_refused(), holder.hold.has_new_data()), (1, false));
}

#[test]
fn with_store_time_a_body_carries_the_end_of_its_term_and_counts_if_its_answers_date_fits() {
    let renewed = |date: u64| {
        let mut holder = timed(TIMED);
        // The late end at 1300 is 1020 and 300 stretched: 1324.
        assert_eq!(holder.sends(1300).expires_at_ms, Some(2324));
        let answer = RenewalAnswer::Answered(&ACCEPTED, Some(Sample { date, ..sample(1300) }));
        (holder.answered(at(1300), answer), holder.tick(at(1300)), holder.hold.renewals())
    };
    assert_eq!(renewed(1300), (State::Held, Due::Wait(300), 1));
    assert_eq!(renewed(1334), (State::Held, Due::Wait(300), 1));
    assert_eq!(renewed(1335), (State::Jeopardy, Due::Renew, 0), "written again, the first time at once");
    // The early end at 1300 is 990 and 297.
    assert_eq!(renewed(1267), (State::Held, Due::Wait(300), 1));
    assert_eq!(renewed(1266), (State::Jeopardy, Due::Renew, 0));
}

#[test]
fn a_second_date_that_does_not_fit_is_followed_by_a_pause_and_so_is_an_answer_without_one() {
    let mut holder = timed(TIMED);
    for wait in [Due::Renew, Due::Wait(20)] {
        holder.sends(1300);
        assert_eq!(holder.accepted(1300), State::Jeopardy);
        assert_eq!(holder.tick(at(1300)), wait);
    }
}

#[test]
fn a_store_whose_clock_is_certainly_past_the_end_makes_it_suspect() {
    let mut holder = timed(TIMED);
    holder.hold.renew_first_after(5000);
    assert!(holder.is_held(at(1100)));
    // The early end is the date less 10.
    holder.time.learn(Sample { date: 2030, ..sample(1100) }, &at(1100), &TIMED.clocks);
    assert!(holder.is_held(at(1100)), "it may still be 2020 there");
    holder.time.learn(Sample { date: 2031, ..sample(1100) }, &at(1100), &TIMED.clocks);
    assert!(!holder.is_held(at(1100)));
    assert_eq!(holder.tick(at(1100)), Due::Renew);
}

#[test]
fn with_manual_renewal_its_own_answers_date_bounds_it_too() {
    // Late end now = 1000 + 10 + 10 + elapsed / 0.99, and a margin before 2020 is 1930.
    let mut holder = timed(Rules { manual: true, ..TIMED });
    assert_eq!((holder.left(at(1900)), holder.ends_in(at(1900))), (0, 1));
    assert_eq!(holder.left(at(1800)), 100, "by its term");
    // The answer was late by 500 on a clock that nobody here has seen.
    let late = Sample { date: 1500, ..sample(1000) };
    holder.hold = Hold::new(7, grant(1), at(1000), Some(2020), Some(late));
    assert_eq!((holder.left(at(1000)), holder.ends_in(at(1000))), (410, 410));
    assert!(holder.is_held(at(1400)) && !holder.is_held(at(1406)));
    assert_eq!(holder.left(with_wall(1000, 1401)), 4, "on the fastest clock");
    assert_eq!(holder.ends_in(with_wall(1000, 1401)), 410);
    assert!(!holder.is_held(with_wall(1000, 1500)));
    holder.tick(at(1410));
    assert_eq!(holder.hold.state(), State::Lost(Loss::Deadline));
    // In the background the check of the date does that.
    let mut holder = timed(TIMED);
    holder.hold = Hold::new(7, grant(1), at(1000), Some(2020), Some(late));
    assert_eq!(holder.left(at(1000)), 900);
}
