//! Positive controls: rules of the protocol, broken inside the real code, that the simulation must notice.

use leasehold::protocol::broken::Broken;

use super::{number_in, search};

/// The seeds within which a broken rule has to be noticed.
const WITHIN: u64 = 2_000;
/// So many are found before the median is taken.
const SAMPLE: u64 = 5;

/// What the simulation says of a broken rule.
enum Control {
    /// It is noticed.
    Caught,
    /// It is not, for this reason.
    Blind(&'static str),
}

use Control::{Blind, Caught};

const NO_CLOSING: &str = "no public call closes a record yet";

/// Every broken rule is here: a new one does not compile until somebody has said what the simulation makes of it.
fn control(broken: Broken) -> Control {
    match broken {
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
        Broken::AzureAcquireWithoutIfMatch
        | Broken::AzureWriteWithoutIfMatch
        | Broken::AzureHandoverWithoutRenewal
        | Broken::AzureBreakAtOnce
        | Broken::AzureAnyLeaseId
        | Broken::AzureCleanupWithoutBurn => Blind("the Azure store's own: its own tests notice them"),
        Broken::FenceAdmitsLower
        | Broken::FenceTakesTheSameTag
        | Broken::FenceWithoutWriteIds
        | Broken::FenceRaiseOfOwnTokenIsNoWrite => Blind("rules of the fence at an object: tests/fence_objects.rs"),
        Broken::ClosedIdentityWithoutToken => Blind(NO_CLOSING),
        Broken::BurnClearsClosed => Blind(NO_CLOSING),
        Broken::ClosingNotMineIsSuccess => Blind(NO_CLOSING),
        Broken::ClosingJudgedByToken => Blind(NO_CLOSING),
        Broken::ClosingKeepsPayload => Blind(NO_CLOSING),
    }
}

#[test]
fn every_broken_rule_is_noticed_or_said_to_be_out_of_sight() {
    let within = number_in("LEASEHOLD_CONTROL_SEEDS").unwrap_or(WITHIN);
    let mut missed = Vec::new();
    let only = std::env::var("LEASEHOLD_CONTROL").ok();
    let wanted = |broken: &Broken| only.as_ref().is_none_or(|only| *only == format!("{broken:?}"));
    for broken in Broken::ALL.into_iter().filter(wanted) {
        match control(broken) {
            Blind(reason) => println!("{broken:?}: out of sight: {reason}"),
            Caught => {
                let (seeds, line) = notice(broken, within);
                println!("{broken:?}: {line}");
                missed.extend(seeds.is_empty().then_some(broken));
            }
        }
    }
    assert!(missed.is_empty(), "not noticed within {within} seeds: {missed:?}");
}

/// The seeds that notice it, and what is to be said of them.
fn notice(broken: Broken, within: u64) -> (Vec<u64>, String) {
    let _broken = broken.switch_on();
    let (found, _) = search(0..within, SAMPLE);
    let seeds: Vec<u64> = found.iter().map(|report| report.seed).collect();
    let Some(first) = found.first() else { return (seeds, format!("not noticed within {within} seeds")) };
    let mut gaps: Vec<u64> =
        seeds.iter().scan(0, |last, seed| Some(seed + 1 - std::mem::replace(last, seed + 1))).collect();
    gaps.sort_unstable();
    let (median, what) = (gaps[gaps.len() / 2], first.violation.as_deref().unwrap_or_default());
    (seeds, format!("one seed in {median}, first {}: {what}", first.seed))
}
