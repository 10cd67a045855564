//! Positive controls: rules of the protocol and of the store, broken inside the real code, that the simulation must
//! notice.

use leasehold::protocol::broken::Broken;
use leasehold::protocol::broken::switch::Guard;

use super::recipes::Wrong;
use super::seeds::Control::{self, Blind, Caught};
use super::seeds::{break_each, misuse_each};

const NO_EXPIRES_AT: &str = "the service judges: a record has no expires_at, and no deadline hangs on a date";
const NO_WATCHING: &str = "the service judges: nobody is taken for dead by watching";
const NO_VERSION: &str = "a renewal of the service has neither version nor term of its own";
const RARE: &str = "not met within 2,000 seeds here, where a record that shows a grant's token without its closing takes \
                    several lost requests in a row; the simulation of a table notices it";
const OF_THE_SERVICE: &str = "the service itself decides it";

/// Every broken rule is here: a new one does not compile until somebody has said what the simulation makes of it.
fn control(broken: Broken) -> Control {
    match broken {
        Broken::AzureAcquireWithoutIfMatch => Caught,
        Broken::AzureWriteWithoutIfMatch => Caught,
        Broken::AzureHandoverWithoutRenewal => Caught,
        Broken::AzureBreakAtOnce => Caught,
        Broken::AzureCleanupWithoutBurn => Caught,
        Broken::AzureAnyLeaseId => Blind("only Azurite answers with the id of another's lease; this service is strict"),
        Broken::TermCountedFromAnswer => Caught,
        Broken::CleanupOfGranted => Caught,
        Broken::CleanupWithoutBurn => Caught,
        Broken::ResumeAsRenewal => Caught,
        Broken::RenewalAfterLoss => Caught,
        Broken::TokenNotAbove => Caught,
        Broken::ClaimKeepsData => Caught,
        Broken::HolderTrustsWallClock => Caught,
        Broken::TakerTrustsWallClock => Caught,
        Broken::TermWithoutRho => Caught,
        Broken::WatchWithoutRho => Blind(NO_WATCHING),
        Broken::WallClockEndsTerm => Blind("a lease that is lost too early harms nobody: tests/model"),
        Broken::LookIsNotNamed | Broken::LookNeedsNoRecord => {
            Blind("a claim names the service's tag, and a record is there")
        }
        Broken::KappaZero => Blind(NO_EXPIRES_AT),
        Broken::ExpiresAtFromEarlyEnd => Blind(NO_EXPIRES_AT),
        Broken::ExpiresAtBeforeStamp => Blind(NO_EXPIRES_AT),
        Broken::LateEndTooEarly => Blind(NO_EXPIRES_AT),
        Broken::NoDateCheck => Blind(NO_EXPIRES_AT),
        Broken::RenewalKeepsOldExpiresAt => Blind(NO_EXPIRES_AT),
        Broken::TakerOneTickEarly => Blind(NO_WATCHING),
        Broken::CountNotRestarted => Blind(NO_WATCHING),
        Broken::TakeoverByCounterOnly => Blind(NO_WATCHING),
        Broken::RenewalShortensTtl => Blind(NO_VERSION),
        Broken::RenewalBodySentAgain => Blind(NO_VERSION),
        Broken::RenewalWithoutVersionOrder => Blind(NO_VERSION),
        Broken::RenewalUnconditional => Blind(OF_THE_SERVICE),
        Broken::CleanupByName => Blind(OF_THE_SERVICE),
        Broken::FenceAdmitsLower
        | Broken::FenceTakesTheSameTag
        | Broken::FenceWithoutWriteIds
        | Broken::FenceRaiseOfOwnTokenIsNoWrite => Blind("rules of the fence at an object: tests/fence_objects"),
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
        Broken::AskBumpsVersion => Blind("an ask breaks the lease here"),
        Broken::ClosedIdentityWithoutToken => Blind("the service's tag tells one closing from another"),
        Broken::BurnClearsClosed => Caught,
        Broken::ClosingNotMineIsSuccess => Caught,
        Broken::ClosingJudgedByToken => Blind(RARE),
        Broken::ClosingKeepsPayload => Caught,
    }
}

#[test]
fn every_broken_rule_is_noticed_or_said_to_be_out_of_sight() {
    break_each(Broken::AZURE.into_iter().chain(Broken::ALL).chain(Broken::ASSUMED), control);
}

#[test]
fn every_misuse_of_a_recipe_is_noticed() {
    let _whole = Guard::nothing_broken();
    // An ask is a revocation here: whoever does not listen loses its lease.
    misuse_each(&[Wrong::Deaf]);
}
