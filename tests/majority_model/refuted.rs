//! One rule broken at a time, in the real code, and the shortest way to the harm.

use std::collections::BTreeSet;

use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;
use stateright::{Checker, HasDiscoveries, Model as _};

use crate::Model;
use crate::explored::{
    asked, asked_too_late, closed, closed_and_burnt, five_race, members_read, payloads_read, print_trace, revocation,
    two_looks,
};
use crate::ghosts::Harm;
use crate::lists::{
    closed_and_replaced, kept_out_by_the_list, kept_out_by_the_marks, not_stopped, not_stopped_and_waited_twice,
    not_waited, two_replaced,
};
use crate::world::{Left, Setup};

/// More states than any refutation needs.
const ENOUGH: usize = 6_000_000;

/// A broken rule, the harm it does, and a world small enough to find that fast.
pub(crate) struct Refutation {
    /// `None`: the rules are whole, and the world does not keep what is asked of it.
    broken: Option<Broken>,
    does: Harm,
    pub(crate) setup: Setup,
}

#[test]
fn every_broken_rule_of_a_majority_is_refuted() {
    let refutations = refutations();
    let listed: Vec<Broken> = refutations.iter().filter_map(|refutation| refutation.broken).collect();
    assert!(listed.starts_with(&Broken::MAJORITY), "each broken rule has one refutation, in their order");
    refute_all(refutations);
}

#[test]
fn every_procedure_that_does_not_keep_to_the_guide_is_refuted() {
    let of = |does, setup| Refutation { broken: None, does, setup };
    refute_all(vec![
        of(Harm::TwoHolders, not_waited()),
        of(Harm::TwoHolders, not_stopped()),
        of(Harm::TwoHolders, not_stopped_and_waited_twice()),
    ]);
}

fn refute_all(refutations: Vec<Refutation>) {
    println!("\n| broken rule | harm | steps | states |\n|---|---|---|---|");
    let survivors: Vec<String> = refutations.into_iter().filter_map(Refutation::survives).collect();
    assert!(survivors.is_empty(), "not refuted: {survivors:?}");
}

impl Refutation {
    /// Looks for the shortest trace, breadth first on one thread. The rule, if there is none.
    fn survives(self) -> Option<String> {
        let _guard = self.broken.map_or_else(Guard::nothing_broken, Broken::switch_on);
        let title = self.broken.map_or(self.setup.title.to_owned(), |broken| format!("{broken:?}"));
        let found = HasDiscoveries::AnyOf(BTreeSet::from([self.does.name()]));
        let checker = Model::new(self.setup).checker().finish_when(found).target_state_count(ENOUGH).spawn_bfs().join();
        let path = checker.discovery(self.does.name());
        let steps =
            path.as_ref().map_or("none found".into(), |path| (path.clone().into_states().len() - 1).to_string());
        println!("| {title} | {:?} | {steps} | {} |", self.does, checker.unique_state_count());
        if std::env::var_os("LEASEHOLD_TRACES").is_some() {
            path.iter().for_each(|path| print_trace(&path.clone().into_actions()));
        }
        path.is_none().then_some(title)
    }
}

pub(crate) fn refutations() -> Vec<Refutation> {
    use Broken as B;
    use Harm as H;
    let of = |broken, does, setup| Refutation { broken: Some(broken), does, setup };
    vec![
        of(B::MajorityClosingOkOnAnswers, H::NotRecorded, closes()),
        of(B::MajorityOutcomeByToken, H::NoOutcome, outcome_of_equal_tokens()),
        of(B::MajorityClosingWithoutBurn, H::WritesAfterwards, closes().with(|s| s.attempts = [1, 0])),
        of(B::MajorityResumeWithoutGate, H::TwoHolders, hands_over()),
        of(B::MajorityRejoinCounts, H::TwoHolders, late_rival(2, 1)),
        of(B::MajorityCleanUpWhileHeld, H::TwoHolders, late_rival(1, 0)),
        of(B::MajorityCountsOverCalls, H::TwoHolders, late_rival(2, 1)),
        of(B::MajorityRenewalOnMinority, H::TwoHolders, late_rival(1, 0)),
        of(B::MajorityVoteOnMinority, H::Revived, revocation()),
        of(B::MajorityPayloadUntilAccepted, H::PayloadGone, payloads_read()),
        of(B::MajorityWatchedFromTheRequest, H::TwoHolders, members_read().with(|s| s.left.give_ups = 0)),
        of(B::MajorityHintNotCompared, H::TakesUnseen, two_looks()),
        of(B::MajorityMarkNotChecked, H::OldList, kept_out_by_the_marks()),
        of(B::MajorityListNotCompared, H::OldList, kept_out_by_the_list()),
        of(B::MajorityMoveReadsMinority, H::TokensFall, two_replaced().with(|s| s.left.stumbles = 2)),
        of(B::MajorityMoveNotAboveOld, H::TokenTwice, two_replaced()),
        of(B::MajorityMoveWritesMajority, H::OldList, kept_out_by_the_list().with(|s| s.ticks = 2)),
        of(B::MajorityMoveForgetsClosing, H::OpensEarly, closed_and_replaced()),
        of(B::MajorityMoveForgetsWhatWasBegun, H::OpensEarly, closed_and_replaced().with(|s| s.left.stumbles = 2)),
        of(B::MajorityMoveKeepsAnyClosing, H::NoOutcome, closed_and_replaced()),
        of(B::MajorityWishForAnyGrant, H::WishStrays, asked_too_late()),
        of(B::MajorityWishOfTheLastAnswer, H::WishUnheard, asked()),
        of(B::MajorityIsTwo, H::TokenTwice, five_race().with(|s| s.excepts_i4 = true)),
        // Rules of a single record, by what a majority makes of them.
        of(B::MajorityVoteOnMinority, H::WishUnrecorded, asked()),
        of(B::AskBumpsVersion, H::WishWrites, asked()),
        of(B::RenewalUnconditional, H::Revived, revocation()),
        of(B::RenewalWithoutVersionOrder, H::PayloadGone, payloads_read()),
        of(B::TakerOneTickEarly, H::OpensEarly, closed()),
        of(B::BurnClearsClosed, H::OpensEarly, closed_and_burnt()),
    ]
}

fn closes() -> Setup {
    Setup::new("closes").with(|s| {
        s.ticks = 2;
        s.closing = true;
    })
}

/// Two contenders propose the same token; one of them burns it where the other did not get it.
fn outcome_of_equal_tokens() -> Setup {
    closes().with(|s| {
        s.ticks = 0;
        s.attempts = [1, 2];
    })
}

/// A rival that comes when the term of the claim is over, and believes the ends that the members have.
fn late_rival(renewals: u8, give_ups: u8) -> Setup {
    Setup::new("a late rival").with(|s| {
        s.dated = true;
        s.ttl = 3;
        s.ticks = 4;
        s.rival_from = 4;
        s.renewals = renewals;
        // One step more than the longest way to its harm.
        s.depth = Some(17);
        s.left = Left { give_ups, ..Left::default() };
    })
}

fn hands_over() -> Setup {
    Setup::new("hands over").with(|s| {
        s.left = Left { hand_overs: 1, resumes: 1, ..Left::default() };
        s.ticks = 2;
    })
}
