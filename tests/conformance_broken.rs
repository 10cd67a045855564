//! Positive controls of the conformance suite on the memory store: each rule of `protocol::record` is broken in
//! turn, and the case that must catch it is named.

use leasehold::protocol::broken::Broken;
use leasehold::store::conformance::{Options, Report, Verdict, run};
use leasehold::{MemoryStore, SystemClock};

/// The rules that a record keeps. The others are the client's, and no store can break them.
const CAUGHT_BY: [(Broken, &str); 13] = [
    (Broken::RenewalKeepsOldExpiresAt, "a renewal without an end removes the stored one"),
    (Broken::RenewalShortensTtl, "a renewal never changes the term or the holder"),
    (Broken::RenewalWithoutVersionOrder, "an older renewal that comes late is refused and changes nothing"),
    (Broken::RenewalUnconditional, "a renewal with another grant is refused"),
    (Broken::TokenNotAbove, "a claim with an equal or lower token is refused"),
    (Broken::CleanupByName, "a burn of a record that another holds is refused"),
    (Broken::TakeoverByCounterOnly, "a takeover that expects another token grant or version is refused"),
    (Broken::CleanupWithoutBurn, "a late copy of a burnt claim is refused"),
    (Broken::AskBumpsVersion, "an ask does not make another write of it"),
    (Broken::ClosedIdentityWithoutToken, "a takeover of a closed record with another token is refused"),
    (Broken::BurnClearsClosed, "a burn of a closed record keeps it closed with its payload"),
    (Broken::ClosingKeepsPayload, "a closing release without a payload removes the stored one"),
    (Broken::ClaimKeepsData, "a claim of a free record removes what it does not bring"),
];

// One test, because a broken rule is broken in the whole process.
#[tokio::test]
async fn every_broken_rule_of_the_record_is_caught_by_its_case() {
    for (rule, case) in CAUGHT_BY {
        let report = broken(rule).await;
        let caught: Vec<_> = report.failures().map(|case| case.name.as_str()).collect();
        println!("{rule:?} is caught by {} cases: {}", caught.len(), caught.join("; "));
        assert!(matches!(report.verdict(case), Some(Verdict::Failed(_))), "{rule:?} passes {case:?}\n{report}");
    }
}

async fn broken(rule: Broken) -> Report {
    let guard = rule.switch_on();
    let report = run(MemoryStore::judged_by_clients(SystemClock), Options::default().without_waiting()).await;
    drop(guard);
    report
}
