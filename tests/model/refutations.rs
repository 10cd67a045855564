//! One rule broken at a time, in the real code, and the shortest way to the harm.

use std::collections::BTreeSet;

use leasehold::protocol::acquire::Goal;
use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;
use leasehold::protocol::rules::Ratio;
use stateright::{Checker, HasDiscoveries, Model as _};

use crate::Model;
use crate::configurations::{explore, print_trace};
use crate::monitor::Invariant;
use crate::setup::{Left, Setup};

/// More states than any refutation needs.
const ENOUGH: usize = 6_000_000;

/// A broken rule, what it violates, and a world small enough to find that fast.
pub(crate) struct Refutation {
    /// `None`: every rule is whole, and the world does not keep what is assumed of it.
    pub(crate) broken: Option<Broken>,
    pub(crate) violates: Invariant,
    pub(crate) setup: Setup,
}

#[test]
fn every_broken_rule_is_refuted() {
    let refutations = refutations();
    let listed: Vec<Broken> = refutations.iter().filter_map(|refutation| refutation.broken).collect();
    assert_eq!(listed, Broken::ALL, "each broken rule has one refutation, in their order");
    refute_all(refutations);
}

pub(crate) fn refute_all(refutations: Vec<Refutation>) {
    println!("\n| broken | violates | steps | states |\n|---|---|---|---|");
    let survivors: Vec<String> = refutations.into_iter().filter_map(Refutation::survives).collect();
    assert!(survivors.is_empty(), "not refuted: {survivors:?}");
}

/// The monitors that no refutation above has seen fail.
#[test]
fn every_other_monitor_notices_a_broken_rule_too() {
    let of = |broken, violates, setup| Refutation { broken: Some(broken), violates, setup };
    let forgotten = one_waits(0, 0).with(|s| s.left.give_ups = 1);
    let monitors = vec![
        of(Broken::CleanupByName, Invariant::I2, forgotten.clone().with(many_in_one_tick)),
        of(Broken::CleanupByName, Invariant::I5, forgotten.clone()),
        of(Broken::TakerOneTickEarly, Invariant::I7, one_waits(0, 0).with(|s| s.left.writes = 2)),
        of(Broken::CleanupByName, Invariant::I8, forgotten),
        of(Broken::RenewalUnconditional, Invariant::I10, one_waits(1, 0).with(|s| s.release = true)),
    ];
    refute_all(monitors);
}

/// The bound that the guarantees name: without manual renewal a freeze that the dates do not show is excluded from I3.
#[test]
fn a_freeze_too_short_to_show_makes_two_holders_unless_renewal_is_manual() {
    let _guard = Guard::nothing_broken();
    assert!(!explore(short_freeze(false)).is_safe());
    assert!(explore(short_freeze(true)).is_safe());
}

/// Else a refutation would say nothing about the rule.
#[test]
fn the_same_worlds_are_safe_with_nothing_broken() {
    let _guard = Guard::nothing_broken();
    for Refutation { broken, setup, .. } in refutations() {
        explore(setup.with(|s| s.title = "a refutation's world, whole")).assert_safe(&format!("{broken:?}"));
    }
}

impl Refutation {
    /// Looks for the shortest trace, breadth first on one thread. What was broken, if there is none.
    fn survives(self) -> Option<String> {
        let _guard = self.broken.map_or_else(Guard::nothing_broken, Broken::switch_on);
        let what = self.broken.map_or_else(|| self.setup.title.to_owned(), |rule| format!("{rule:?}"));
        let found = HasDiscoveries::AnyOf(BTreeSet::from([self.violates.name()]));
        let checker = Model::new(self.setup)
            .seeking(self.violates)
            .checker()
            .finish_when(found)
            .target_state_count(ENOUGH)
            .spawn_bfs()
            .join();
        let path = checker.discovery(self.violates.name());
        let steps =
            path.as_ref().map_or("none found".into(), |path| (path.clone().into_states().len() - 1).to_string());
        let states = checker.unique_state_count();
        println!("| {what} | {:?} | {steps} | {states} |", self.violates);
        if std::env::var_os("LEASEHOLD_TRACES").is_some() {
            path.iter().for_each(|path| print_trace(&path.clone().into_actions()));
        }
        path.is_none().then_some(what)
    }
}

fn refutations() -> Vec<Refutation> {
    use Broken as B;
    use Invariant as I;
    let of = |broken, violates, setup| Refutation { broken: Some(broken), violates, setup };
    vec![
        of(B::KappaZero, I::I3, two_tries(2)),
        of(B::ExpiresAtFromEarlyEnd, I::I3, two_tries(1)),
        of(B::TermCountedFromAnswer, I::I3, one_waits(0, 0)),
        of(B::TakerOneTickEarly, I::I3, one_waits(0, 0)),
        of(B::CountNotRestarted, I::I3, one_waits(1, 0)),
        of(B::ExpiresAtBeforeStamp, I::I3, two_tries(1).with(|s| s.slow_send = true)),
        of(B::RenewalKeepsOldExpiresAt, I::I3, forgets_the_time()),
        of(B::RenewalShortensTtl, I::I3, one_waits(1, 1)),
        of(B::RenewalBodySentAgain, I::I3, one_waits(2, 1)),
        of(B::RenewalWithoutVersionOrder, I::I3, one_waits(2, 0).with(|s| s.left.copies = 1)),
        of(B::RenewalUnconditional, I::I4, one_waits(1, 0)),
        of(B::TokenNotAbove, I::I1, one_waits(0, 0).with(|s| s.release = true)),
        of(B::CleanupByName, I::I4, one_waits(0, 0).with(|s| s.left.give_ups = 1)),
        of(B::NoDateCheck, I::I3, freezes()),
        of(B::TakeoverByCounterOnly, I::I3, twice_released()),
        of(B::CleanupWithoutBurn, I::I9, one_waits(0, 0).with(|s| s.left.give_ups = 1)),
        of(B::CleanupOfGranted, I::I3, one_waits(0, 1)),
        of(B::AskBumpsVersion, I::I3, one_waits(1, 0).with(|s| s.left.asks = 1)),
        of(B::ResumeAsRenewal, I::I3, handed_over_twice()),
        of(B::ClosedIdentityWithoutToken, I::Closed, closes_twice()),
        of(B::BurnClearsClosed, I::Closed, burns_on_a_closed_record()),
        of(B::LateEndTooEarly, I::I3, slow_and_fast()),
        of(B::RenewalAfterLoss, I::I6, one_waits(1, 0)),
        of(B::ClosingNotMineIsSuccess, I::Outcome, closes_after_force()),
        of(B::ClosingJudgedByToken, I::Outcome, closes_after_force()),
        of(B::ClosingKeepsPayload, I::Payload, keeps_data().with(|s| s.closing = Some(1))),
        of(B::ClaimKeepsData, I::Payload, keeps_data().with(|s| s.release = true)),
    ]
}

/// One holder and one waiter without store time.
fn one_waits(renewals: u8, faults: u8) -> Setup {
    Setup::observed("one waits").with(|s| {
        s.renewals = renewals;
        s.left.faults = faults;
    })
}

/// Two fresh processes that look once, with store time.
fn two_tries(kappa: u64) -> Setup {
    Setup::dated("two tries", kappa).with(|s| {
        s.ticks = 7;
        s.goals = [Goal::Try; 2];
        s.prompt = true;
        s.renewals = 0;
        s.left = Left::default();
    })
}

/// A holder whose samples are soon too old.
fn forgets_the_time() -> Setup {
    two_tries(0).with(|s| {
        s.rules.ttl = 3;
        s.rules.clocks.oldest = 0;
        s.renewals = 2;
    })
}

/// A freeze so long that the dates show it: kappa twice on each side, and the resolution.
pub(crate) fn freezes() -> Setup {
    two_tries(1).with(|s| {
        s.freeze = 4;
        s.left.freezes = 1;
    })
}

/// A freeze between the first read and the store's act that the dates cannot show.
pub(crate) fn short_freeze(manual: bool) -> Setup {
    freezes().with(|s| {
        s.title = "a freeze too short to show, before the store acts, manual renewal";
        s.freeze = 3;
        s.rules.manual = manual;
        s.renewals = 1;
    })
}

fn twice_released() -> Setup {
    one_waits(0, 0).with(|s| {
        s.attempts = [2, 1];
        s.release = true;
    })
}

fn handed_over_twice() -> Setup {
    one_waits(0, 0).with(|s| {
        s.attempts = [1, 0];
        s.left.hand_overs = 1;
        s.left.resumes = 2;
    })
}

fn closes_twice() -> Setup {
    one_waits(0, 0).with(|s| {
        s.attempts = [2, 1];
        s.closing = Some(1);
    })
}

fn burns_on_a_closed_record() -> Setup {
    one_waits(0, 0).with(|s| {
        s.rules.ttl = 1;
        s.attempts = [1, 2];
        s.closing = Some(2);
        s.prompt = true;
        s.left.give_ups = 1;
    })
}

fn closes_after_force() -> Setup {
    one_waits(0, 0).with(|s| {
        s.closing = Some(1);
        s.left.forces = 1;
    })
}

fn many_in_one_tick(s: &mut Setup) {
    s.attempts = [1, 4];
    s.ticks = 0;
    s.release = true;
}

fn keeps_data() -> Setup {
    one_waits(1, 0).with(|s| s.set_data = true)
}

/// Clocks at both ends of what rho allows: one runs at half the rate of true time, one at one and a half.
pub(crate) fn slow_and_fast() -> Setup {
    two_tries(2).with(|s| {
        s.rules.clocks.rho = Ratio { num: 1, den: 2 };
        s.scale = 2;
        s.rates = [1, 3];
        s.rules.ttl = 8;
        s.ticks = 7;
        s.renewals = 1;
    })
}
