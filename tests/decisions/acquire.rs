//! Which request a call of acquire makes next, with which token, and what it owes.

use leasehold::protocol::acquire::{Acquire, At, Dice, Event, Goal, Next, Outcome, Proposal, Step};
use leasehold::protocol::cleanup::Debt;
use leasehold::protocol::hold::Hold;
use leasehold::protocol::observer::Observer;
use leasehold::protocol::retry::Retry;
use leasehold::protocol::rules::Rules;
use leasehold::protocol::store_time::StoreTime;
use leasehold::{Applied, Claimed, Expect, FencingToken, TokenFloor, Unreadable, Version, View};

use super::{RULES, TIMED, at, grant, record, sample, with_wall};

/// A call, and what it is told of the world.
struct Call {
    acquire: Acquire,
    rules: Rules,
    time: StoreTime,
    floor: TokenFloor,
    grants: u128,
}

impl Call {
    fn new(goal: Goal, known: u64) -> Self {
        Self::of(Acquire::new(goal, known))
    }

    fn of(acquire: Acquire) -> Self {
        Self { acquire, rules: RULES, time: StoreTime::default(), floor: TokenFloor::None, grants: 0 }
    }

    fn under(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    fn knowing_time(mut self, t: u64) -> Self {
        self.time.learn(sample(t), &at(t), &self.rules.clocks);
        self
    }

    fn with_floor(self, floor: TokenFloor) -> Self {
        Self { floor, ..self }
    }

    /// Jitter is full, digits are 7, and grants are 1, 2, 3 and so on.
    fn on(&mut self, t: u64, event: Event<'_>) -> Step {
        self.grants += 1;
        let dice = Dice { grant: grant(self.grants), digits: 7, jitter: 1000 };
        let now = At { now: at(t), time: &self.time, floor: self.floor, dice };
        self.acquire.on(event, now, &self.rules)
    }

    fn next(&mut self, t: u64, event: Event<'_>) -> Next {
        let step = self.on(t, event);
        assert_eq!(step.owed, None);
        step.next
    }

    /// Must claim, and the claim leaves at once.
    fn claims(&mut self, t: u64, event: Event<'_>) -> Proposal {
        let Next::Claim(proposal) = self.next(t, event) else { panic!("no claim") };
        self.acquire.sent(at(t));
        proposal
    }

    fn refused(&mut self, t: u64, view: View) -> Step {
        self.on(t, Event::Claimed(&Claimed::Refused(view), None))
    }

    fn granted(&mut self, t: u64) -> Step {
        self.on(t, Event::Claimed(&Claimed::Granted, None))
    }
}

fn failed(applied: Applied, retry: Retry) -> Event<'static> {
    Event::Failed { applied, retry }
}

fn lost() -> Event<'static> {
    failed(Applied::Unknown, Retry::Later)
}

/// Held by another.
fn held(token: u64) -> View {
    View::of(record(token, Some(900)))
}

fn free(token: u64) -> View {
    View::of(record(token, None))
}

fn resume() -> Goal {
    Goal::Resume { from: grant(500), token: 7 }
}

fn pause(ms: u64) -> Next {
    Next::Pause(ms)
}

fn hold_of(step: Step) -> Hold {
    assert_eq!(step.owed, None);
    let Next::Done(Outcome::Granted(hold)) = step.next else { panic!("not granted: {:?}", step.next) };
    *hold
}

fn burn(token: u64, bits: u128, since: u64) -> Option<Debt> {
    Some(Debt { token, grant: grant(bits), since: at(since), burn: true })
}

#[test]
fn it_claims_at_once_above_what_is_known_and_reads_first_where_nothing_is() {
    assert_eq!(Call::new(Goal::Try, 0).next(0, Event::Begin), Next::Read);
    let proposal = Call::new(Goal::Try, 5).claims(0, Event::Begin);
    assert_eq!((proposal.token, proposal.expect, proposal.expires_at_ms), (6, Expect::Vacant, None));

    let mut call = Call::new(Goal::Try, 0);
    call.next(0, Event::Begin);
    assert_eq!(call.claims(1, Event::Seen(&View::absent())).token, 1);
}

#[test]
fn it_reads_first_when_told_so_although_it_knows_enough() {
    let mut call = Call::of(Acquire::new(Goal::Try, 5).reading_first());
    assert_eq!(call.next(0, Event::Begin), Next::Read);
    assert_eq!(call.claims(1, Event::Seen(&free(5))).token, 6);
}

#[test]
fn with_store_time_it_reads_first_until_that_is_known_and_its_floor_is_the_stores_early_time() {
    assert_eq!(Call::new(Goal::Try, 5).under(TIMED).next(1000, Event::Begin), Next::Read);
    let proposal = Call::new(Goal::Try, 5).under(TIMED).knowing_time(1000).claims(1000, Event::Begin);
    // The early end is 990, the late end 1020.
    assert_eq!((proposal.token, proposal.expires_at_ms), (997, Some(2020)));
}

#[test]
fn a_time_that_the_store_does_not_answer_for_is_no_floor() {
    assert_eq!(Call::new(Goal::Try, 5).knowing_time(1000).claims(1000, Event::Begin).token, 6);
}

#[test]
fn a_floor_of_the_store_is_asked_for_first_and_kept() {
    assert_eq!(Call::new(Goal::Try, 5).with_floor(TokenFloor::Unknown).next(0, Event::Begin), Next::Read);
    assert_eq!(Call::new(Goal::Try, 0).with_floor(TokenFloor::At(700)).claims(0, Event::Begin).token, 707);
}

#[test]
fn a_resume_claims_the_handed_grant_above_its_token_and_above_what_a_read_shows() {
    let proposal = Call::new(resume(), 3).claims(0, Event::Begin);
    assert_eq!((proposal.token, proposal.expect), (8, Expect::Handed(grant(500))));
    assert_ne!(proposal.grant, grant(500));

    let mut call = Call::new(resume(), 0).with_floor(TokenFloor::Unknown);
    assert_eq!(call.next(0, Event::Begin), Next::Read);
    let proposal = call.claims(1, Event::Seen(&held(20)));
    assert_eq!((proposal.token, proposal.expect), (21, Expect::Handed(grant(500))));
}

#[test]
fn a_resume_that_is_refused_is_over() {
    let mut call = Call::new(resume(), 0);
    call.claims(0, Event::Begin);
    assert_eq!(call.refused(1, held(9)).next, Next::Done(Outcome::NotThere));
}

#[test]
fn a_try_that_loses_races_claims_four_times() {
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    for token in 10..13 {
        let next = call.refused(1, free(token)).next;
        assert!(matches!(next, Next::Claim(Proposal { token: above, .. }) if above == token + 1), "{next:?}");
        call.acquire.sent(at(1));
    }
    assert!(matches!(call.refused(1, free(20)).next, Next::Done(Outcome::Held(_))));
}

#[test]
fn a_try_of_what_is_held_is_over_and_says_how_long_it_has_watched() {
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    let Next::Done(Outcome::Held(progress)) = call.refused(40, held(9)).next else { panic!("goes on") };
    assert_eq!(progress.left(), Some(1010));
    assert_eq!(call.acquire.progress(&at(140)).left(), Some(910));
}

/// What a waiter does when it is refused what was free a moment ago, and reads it as free again.
fn loses_a_race(call: &mut Call, t: u64) -> Next {
    assert_eq!(call.next(t, Event::Woken), Next::Read);
    call.claims(t, Event::Seen(&free(t)));
    call.refused(t, free(t + 1)).next
}

#[test]
fn a_waiter_that_loses_races_claims_twice_then_once_a_read_and_later_and_later() {
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    let again = call.refused(1, free(6)).next;
    assert!(matches!(again, Next::Claim(_)), "it has just learnt the token: {again:?}");
    call.acquire.sent(at(1));
    assert_eq!(call.refused(2, free(8)).next, pause(10));
    let pauses: Vec<_> = (1..6).map(|n| loses_a_race(&mut call, n * 1000)).collect();
    // At most what a waiter pauses anyway.
    assert_eq!(pauses, [20, 40, 80, 100, 100].map(pause));
}

#[test]
fn a_waiter_that_sees_a_holder_begins_its_count_of_lost_races_anew() {
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    call.refused(1, free(6));
    call.acquire.sent(at(1));
    assert_eq!(call.refused(2, free(8)).next, pause(10));
    assert_eq!(loses_a_race(&mut call, 1000), pause(20));
    assert_eq!(call.next(1100, Event::Woken), Next::Read);
    assert_eq!(call.next(1100, Event::Seen(&held(2000))), pause(100));
    assert_eq!(call.next(1200, Event::Woken), Next::Read);
    call.claims(1200, Event::Seen(&free(2000)));
    let again = call.refused(1200, free(2001)).next;
    assert!(matches!(again, Next::Claim(_)), "{again:?}");
}

#[test]
fn a_waiter_reads_at_its_pace_and_for_the_last_time_when_the_count_ends() {
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    assert_eq!(call.refused(0, held(9)).next, pause(100));
    assert_eq!(call.next(100, Event::Woken), Next::Read);
    assert_eq!(call.next(990, Event::Seen(&held(9))), pause(20));
    assert_eq!(call.next(1009, Event::Seen(&held(9))), pause(1));
    let proposal = call.claims(1010, Event::Seen(&held(9)));
    assert_eq!((proposal.token, proposal.expect), (10, Expect::Expired(Version::of(&held(9).record.unwrap()))));
}

#[test]
fn a_call_goes_on_with_what_an_earlier_one_has_watched() {
    let mut first = Call::new(Goal::Try, 5);
    first.claims(0, Event::Begin);
    first.refused(0, held(9));
    let watched: Observer = first.acquire.watched().clone();
    let mut second = Call::of(Acquire::new(Goal::Try, 9).watching(watched).reading_first());
    second.next(1000, Event::Begin);
    second.claims(1010, Event::Seen(&held(9)));
}

#[test]
fn a_grant_counts_from_its_first_send_and_is_given_back_when_two_attempts_do_not_fit_any_more() {
    // The term is 900, two attempts are 320.
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    assert_eq!(hold_of(call.granted(580)).left(&at(580), &RULES), 320);

    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    let step = call.granted(581);
    assert_eq!(step.next, pause(10));
    assert_eq!(step.owed, Some(Debt { token: 6, grant: grant(1), since: at(0), burn: false }));
}

#[test]
fn a_try_whose_grants_all_come_too_late_says_so_and_a_waiter_goes_on() {
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    assert_eq!(call.granted(900).next, pause(10));
    call.claims(1000, Event::Woken);
    assert_eq!(call.granted(1900).next, pause(20));
    call.claims(2000, Event::Woken);
    assert_eq!(call.granted(2900).next, Next::Done(Outcome::TooLate));

    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    assert_eq!(call.granted(900).next, pause(10));
    for _ in 0..9 {
        assert_eq!(call.next(1000, Event::Woken), Next::Read);
        assert!(!matches!(call.next(1000, Event::Seen(&held(20))), Next::Done(_)));
    }
}

#[test]
fn a_grant_whose_date_contradicts_its_end_is_given_back() {
    let granted = |date: u64| {
        let mut call = Call::new(Goal::Try, 5).under(TIMED).knowing_time(1000);
        call.claims(1000, Event::Begin);
        call.on(1000, Event::Claimed(&Claimed::Granted, Some(leasehold::Sample { date, ..sample(1000) })))
    };
    hold_of(granted(1000));
    // The late end is 1020: a date less kappa above it says that all clocks have stopped.
    hold_of(granted(1030));
    assert!(granted(1040).owed.is_some());
    // The early end was 990.
    hold_of(granted(970));
    assert!(granted(960).owed.is_some());
}

#[test]
fn a_claim_without_an_answer_is_repeated_at_once_then_after_pauses_and_owed_a_burn_in_the_end() {
    let mut call = Call::new(Goal::Try, 5);
    let body = call.claims(0, Event::Begin);
    assert_eq!(call.next(20, lost()), Next::Claim(body.clone()));
    call.acquire.sent(at(20));
    assert_eq!(call.next(50, lost()), pause(20));
    assert_eq!(call.next(70, Event::Woken), Next::Claim(body));
    call.acquire.sent(at(70));
    let step = call.on(100, lost());
    assert_eq!((step.next, step.owed), (Next::Done(Outcome::Failed), burn(6, 1, 70)), "counted from the last copy");
}

#[test]
fn a_claim_that_leaves_late_counts_from_when_it_was_decided() {
    let mut call = Call::new(Goal::Try, 5);
    assert!(matches!(call.next(0, Event::Begin), Next::Claim(_)));
    call.acquire.sent(at(50));
    assert_eq!(hold_of(call.granted(60)).left(&at(60), &RULES), 840);
}

#[test]
fn a_repeated_claim_counts_from_the_first_copy() {
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    call.next(100, lost());
    call.acquire.sent(at(100));
    assert_eq!(hold_of(call.granted(150)).left(&at(150), &RULES), 750);
}

#[test]
fn a_claim_in_doubt_is_repeated_only_while_its_grant_could_be_of_use() {
    let after = |now: leasehold::Stamp| {
        let mut call = Call::new(Goal::Wait, 5);
        call.claims(0, Event::Begin);
        let dice = Dice { grant: grant(2), digits: 0, jitter: 1000 };
        let now = At { now, time: &StoreTime::default(), floor: TokenFloor::None, dice };
        call.acquire.on(lost(), now, &RULES)
    };
    // What is used and one attempt more, two attempts and the margin fit into 990.
    assert!(matches!(after(at(420)), Step { owed: None, next: Next::Claim(_) }));
    assert_eq!(after(at(421)), Step { owed: burn(6, 1, 0), next: pause(10) });
    assert_eq!(after(with_wall(0, 421)).owed, burn(6, 1, 0), "on the fastest clock");
}

#[test]
fn a_claim_that_was_certainly_not_applied_is_made_anew_and_owes_nothing() {
    let mut call = Call::new(Goal::Try, 5);
    let first = call.claims(0, Event::Begin);
    assert_eq!(call.next(20, failed(Applied::No, Retry::Later)), pause(10));
    let second = call.claims(30, Event::Woken);
    assert_eq!(second.token, first.token + 1);
    assert_ne!(second.grant, first.grant);
    // Once in doubt, always in doubt.
    call.next(40, lost());
    call.acquire.sent(at(40));
    assert_eq!(call.on(50, failed(Applied::No, Retry::Never)).owed, burn(7, 3, 40));
}

#[test]
fn a_failure_that_no_try_will_mend_ends_the_call() {
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    assert_eq!(call.next(1, failed(Applied::No, Retry::Never)), Next::Done(Outcome::Failed));
}

#[test]
fn a_waiter_outlasts_any_number_of_failures_and_an_answer_begins_their_count_anew() {
    let mut call = Call::new(Goal::Wait, 0);
    call.next(0, Event::Begin);
    let pauses: Vec<_> = (0..6).map(|_| call.next(1, failed(Applied::No, Retry::Later))).collect();
    assert_eq!(pauses, [10, 20, 40, 80, 160, 160].map(pause));
    assert_eq!(call.next(2, Event::Woken), Next::Read);
    call.next(3, Event::Seen(&held(9)));
    assert_eq!(call.next(4, failed(Applied::No, Retry::Later)), pause(10));

    // So does the refusal of a claim.
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    call.next(1, lost());
    call.acquire.sent(at(1));
    call.next(2, lost());
    call.refused(3, held(90));
    assert_eq!(call.next(4, failed(Applied::No, Retry::Later)), pause(10));
}

#[test]
fn a_try_that_another_write_gets_in_the_way_of_looks_first_and_pauses_for_the_shortest_time_each_time() {
    let mut call = Call::new(Goal::Try, 5);
    call.claims(0, Event::Begin);
    for n in 1..4 {
        assert_eq!(call.next(n, failed(Applied::No, Retry::Soon)), pause(10));
        assert_eq!(call.next(n, Event::Woken), Next::Read);
        call.claims(n, Event::Seen(&free(10 * n)));
    }
    assert_eq!(call.next(9, failed(Applied::No, Retry::Soon)), Next::Done(Outcome::Failed), "after four claims");
}

#[test]
fn a_read_that_meets_another_write_is_a_failure_as_any() {
    let mut call = Call::new(Goal::Try, 0);
    call.next(0, Event::Begin);
    assert_eq!(call.next(1, failed(Applied::No, Retry::Soon)), pause(10));
    assert_eq!(call.next(1, Event::Woken), Next::Read);
    assert_eq!(call.next(2, failed(Applied::No, Retry::Soon)), pause(20));
    assert_eq!(call.next(3, failed(Applied::No, Retry::Soon)), Next::Done(Outcome::Failed));
}

#[test]
fn a_refusal_of_a_claim_in_doubt_owes_a_burn_unless_the_stored_token_keeps_its_copies_out() {
    let refused = |view: View| {
        let mut call = Call::new(Goal::Wait, 5);
        call.claims(0, Event::Begin);
        call.next(10, lost());
        call.acquire.sent(at(10));
        call.refused(20, view).owed
    };
    assert_eq!(refused(held(5)), burn(6, 1, 10));
    assert_eq!(refused(held(6)), None);
    // Without doubt there is no copy under way.
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    assert_eq!(call.refused(20, held(5)).owed, None);
}

#[test]
fn who_gives_up_owes_a_burn_for_a_claim_that_is_on_its_way_and_nothing_for_one_that_has_not_left() {
    let mut call = Call::new(Goal::Wait, 5);
    assert!(matches!(call.next(0, Event::Begin), Next::Claim(_)));
    assert_eq!(call.on(1, Event::GiveUp).owed, None);

    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    let step = call.on(1, Event::GiveUp);
    assert_eq!(step.owed, burn(6, 1, 0));
    assert!(matches!(step.next, Next::Done(Outcome::GaveUp(_))));
    assert!(matches!(call.next(2, Event::Woken), Next::Done(Outcome::GaveUp(_))), "it is over");

    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    call.next(10, failed(Applied::No, Retry::Later));
    assert_eq!(call.on(11, Event::GiveUp).owed, None);
}

#[test]
fn it_does_not_touch_what_it_cannot_read() {
    let mut call = Call::new(Goal::Wait, 5);
    call.claims(0, Event::Begin);
    let view = View::unreadable(Unreadable::Session);
    assert_eq!(call.refused(1, view).next, Next::Done(Outcome::Unreadable));
}

#[test]
fn tokens_are_used_up_only_by_a_record_that_is_there() {
    let mut call = Call::new(Goal::Wait, FencingToken::MAX);
    assert_eq!(call.next(0, Event::Begin), Next::Read);
    assert_eq!(call.claims(1, Event::Seen(&View::absent())).token, 1);

    let mut call = Call::new(Goal::Wait, FencingToken::MAX);
    call.next(0, Event::Begin);
    let last = free(FencingToken::MAX);
    assert_eq!(call.next(1, Event::Seen(&last)), Next::Done(Outcome::TokensUsedUp));
}
