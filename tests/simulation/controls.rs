//! Positive controls: rules of the protocol, broken inside the real code, that the simulation must notice.

use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;

use super::seeds::Control::{self, Blind, Caught};
use super::seeds::{break_each, misuse_each};

const NO_BARE_LOOK: &str = "only a tick that keeps nobody out hangs on a look alone; schedules keep others out here";
const ANOTHER_STORE: &str = "a rule of the Azure Blob store, which has a simulation of its own";

/// Every broken rule is here: a new one does not compile until somebody has said what the simulation makes of it.
fn control(broken: Broken) -> Control {
    match broken {
        Broken::MajorityClosingOkOnAnswers
        | Broken::MajorityOutcomeByToken
        | Broken::MajorityClosingWithoutBurn
        | Broken::MajorityResumeWithoutGate
        | Broken::MajorityRejoinCounts
        | Broken::MajorityCleanUpWhileHeld
        | Broken::MajorityCountsOverCalls
        | Broken::MajorityRenewalOnMinority
        | Broken::MajorityVoteOnMinority
        | Broken::MajorityPayloadUntilAccepted
        | Broken::MajorityWatchedFromTheRequest
        | Broken::MajorityHintNotCompared
        | Broken::MajorityMarkNotChecked
        | Broken::MajorityListNotCompared
        | Broken::MajorityMoveReadsMinority
        | Broken::MajorityMoveNotAboveOld
        | Broken::MajorityMoveWritesMajority
        | Broken::MajorityMoveForgetsClosing
        | Broken::MajorityMoveForgetsWhatWasBegun
        | Broken::MajorityMoveKeepsAnyClosing
        | Broken::MajorityWishForAnyGrant
        | Broken::MajorityWishOfTheLastAnswer
        | Broken::MajorityIsTwo => Blind("rules of a majority: tests/majority_model"),
        Broken::TakerTrustsWallClock => Caught,
        Broken::HolderTrustsWallClock => Caught,
        Broken::WallClockEndsTerm => Blind("a lease that is lost too early harms nobody: tests/model"),
        Broken::TermWithoutRho => Caught,
        Broken::WatchWithoutRho => Caught,
        Broken::LookIsNotNamed | Broken::LookNeedsNoRecord => Blind(NO_BARE_LOOK),
        Broken::KappaZero => Caught,
        Broken::ExpiresAtFromEarlyEnd => Caught,
        Broken::TermCountedFromAnswer => Caught,
        Broken::TakerOneTickEarly => Blind("a tick is 1 ns here, and the runtime's timer knows milliseconds"),
        Broken::CountNotRestarted => Caught,
        Broken::ExpiresAtBeforeStamp => Blind("no time passes between two lines of code"),
        Broken::RenewalKeepsOldExpiresAt => Caught,
        Broken::RenewalShortensTtl => Caught,
        Broken::RenewalBodySentAgain => Caught,
        Broken::RenewalWithoutVersionOrder => Caught,
        Broken::RenewalUnconditional => Caught,
        Broken::TokenNotAbove => Caught,
        Broken::CleanupByName => Caught,
        Broken::NoDateCheck => Caught,
        Broken::TakeoverByCounterOnly => Caught,
        Broken::CleanupWithoutBurn => Caught,
        Broken::CleanupOfGranted => Caught,
        Broken::AskBumpsVersion => Caught,
        Broken::ResumeAsRenewal => Caught,
        Broken::LateEndTooEarly => Caught,
        Broken::RenewalAfterLoss => Caught,
        Broken::ClaimKeepsData => Caught,
        Broken::ClosedIdentityWithoutToken => Caught,
        Broken::BurnClearsClosed => Caught,
        Broken::ClosingNotMineIsSuccess => Caught,
        Broken::ClosingJudgedByToken => Caught,
        Broken::ClosingKeepsPayload => Caught,
        Broken::AzureAcquireWithoutIfMatch => Blind(ANOTHER_STORE),
        Broken::AzureWriteWithoutIfMatch => Blind(ANOTHER_STORE),
        Broken::AzureHandoverWithoutRenewal => Blind(ANOTHER_STORE),
        Broken::AzureBreakAtOnce => Blind(ANOTHER_STORE),
        Broken::AzureAnyLeaseId => Blind(ANOTHER_STORE),
        Broken::AzureCleanupWithoutBurn => Blind(ANOTHER_STORE),
        Broken::FenceAdmitsLower
        | Broken::FenceTakesTheSameTag
        | Broken::FenceWithoutWriteIds
        | Broken::FenceRaiseOfOwnTokenIsNoWrite => Blind("rules of the fence at an object: tests/fence_objects"),
    }
}

#[test]
fn every_broken_rule_is_noticed_or_said_to_be_out_of_sight() {
    break_each(Broken::ALL.into_iter().chain(Broken::ASSUMED), control);
}

#[test]
fn every_misuse_of_a_recipe_is_noticed() {
    let _whole = Guard::nothing_broken();
    misuse_each(&[]);
}
