//! Positive controls of the conformance suite: stores with one flaw each, and the case that must catch it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::store::Store;
use leasehold::store::conformance::{Options, Report, Verdict, run};
use leasehold::{
    Answer, Ask, Asked, Claim, Claimed, Description, ExpiryJudge, ListPage, Listed, Name, Page, Renew, Renewed, Revoke,
    Revoked, Standing, StoreError, StoreErrorKind, Timed, Vacate, Vacated, View,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    RenewIgnoresVersions,
    RenewKeepsTheEnd,
    RefusedRenewalWritesItsPayload,
    BatchIsAnsweredBackwards,
    EqualTokenIsAccepted,
    BurnClearsClosed,
    BurnIgnoresWhoHolds,
    BurnMayLowerTheToken,
    ReleaseRemovesTheRecord,
    ClaimKeepsThePayload,
    RepeatedClaimIsRefused,
    RepeatedClaimWritesAgain,
    AskMovesTheVersion,
    RevokeKeepsTheGrant,
    TokensAreFloats,
    EmptyPayloadIsNone,
    NamesLoseTheirCase,
    NamesAreTrimmed,
    ReadsShowAnotherName,
    RefusalsShowNothing,
    PrefixIgnoresCase,
    PrefixIsAPattern,
    ListingForgetsTheLastPage,
    WritesAreNotAtomic,
    DatesAreInvented,
    ShortTermsAreOverAtOnce,
    ClientsJudgeAndItDoesToo,
    EveryCallFails,
    EveryCallPanics,
}

/// Which case must catch it; the first that does is enough, others may as well.
const CAUGHT_BY: [(Flaw, &str); 27] = [
    (Flaw::RenewIgnoresVersions, "an older renewal that comes late is refused and changes nothing"),
    (Flaw::RenewKeepsTheEnd, "a renewal without an end removes the stored one"),
    (Flaw::RefusedRenewalWritesItsPayload, "an older renewal that comes late is refused and changes nothing"),
    (Flaw::BatchIsAnsweredBackwards, "a batch of renewals is answered one by one in order"),
    (Flaw::EqualTokenIsAccepted, "a claim with an equal or lower token is refused"),
    (Flaw::BurnClearsClosed, "a burn of a closed record keeps it closed with its payload"),
    (Flaw::BurnIgnoresWhoHolds, "a burn of a record that another holds is refused"),
    (Flaw::BurnMayLowerTheToken, "a burn of a free record with an equal or higher token is refused"),
    (Flaw::ReleaseRemovesTheRecord, "a release frees the record and keeps token version and payload"),
    (Flaw::ClaimKeepsThePayload, "a claim of a free record removes what it does not bring"),
    (Flaw::RepeatedClaimIsRefused, "a repeated claim is granted and changes nothing while the record carries it"),
    (Flaw::RepeatedClaimWritesAgain, "a repeated claim is granted and changes nothing while the record carries it"),
    (Flaw::AskMovesTheVersion, "an ask does not make another write of it"),
    (Flaw::RevokeKeepsTheGrant, "a revoked holder cannot renew"),
    (Flaw::TokensAreFloats, "the largest token is kept exactly and never passed"),
    (Flaw::EmptyPayloadIsNone, "a payload is kept exactly"),
    (Flaw::NamesLoseTheirCase, "names that differ in any byte are different leases"),
    (Flaw::NamesAreTrimmed, "names that differ in any byte are different leases"),
    (Flaw::ReadsShowAnotherName, "names that differ in any byte are different leases"),
    (Flaw::RefusalsShowNothing, "a vacant claim of a held record is refused and shows the holder"),
    (Flaw::PrefixIgnoresCase, "a listing finds exactly the names that start with the prefix"),
    (Flaw::PrefixIsAPattern, "wildcards in a prefix mean themselves"),
    (Flaw::ListingForgetsTheLastPage, "a large listing comes in pages and shows each name once"),
    (Flaw::WritesAreNotAtomic, "of many claims with one token exactly one is granted"),
    (Flaw::DatesAreInvented, "answers carry the stores time if it has one"),
    (Flaw::EveryCallFails, "a first claim is granted and a read shows it"),
    (Flaw::EveryCallPanics, "a first claim is granted and a read shows it"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_store_behind_the_flaws_conforms() {
    run(Flawed::new(Flaw::None), Options::default()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_flaw_is_caught_by_its_case() {
    let runs = CAUGHT_BY.map(|(flaw, case)| async move {
        let report = run(Flawed::new(flaw), Options::default().without_waiting()).await;
        assert!(!report.passed());
        let caught: Vec<_> = report.failures().map(|case| case.name.as_str()).collect();
        println!("{flaw:?} is caught by {} cases, first {:?}", caught.len(), caught.first());
        assert!(failed(&report, case), "{flaw:?} is not caught by {case:?}\n{report}");
    });
    join_all(runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_holders_lose_updates_on_a_store_whose_writes_are_not_atomic() {
    let report = run(Flawed::new(Flaw::WritesAreNotAtomic), Options::default().only("behind a fence")).await;
    assert!(failed(&report, "racing and dying holders lose no update behind a fence"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_judges_too_early_or_unasked_is_caught() {
    for flaw in [Flaw::ShortTermsAreOverAtOnce, Flaw::ClientsJudgeAndItDoesToo] {
        let report = run(Flawed::new(flaw), Options::default().only("a term that is over is told")).await;
        assert!(failed(&report, "a term that is over is told by who judges and by nobody else"), "{flaw:?}\n{report}");
    }
}

#[tokio::test]
async fn a_case_that_did_not_run_has_not_passed() {
    for options in [Options::default().without_waiting(), Options::default().only("a second release")] {
        let report = run(Flawed::new(Flaw::None), options).await;
        assert_eq!(report.failures().count(), 0);
        assert!(!report.passed());
        assert!(report.cases().iter().any(|case| matches!(case.verdict, Verdict::LeftOut(_))));
    }
    let report = run(Flawed::new(Flaw::EveryCallFails), Options::default()).await;
    assert!(
        report.cases().iter().all(|case| matches!(case.verdict, Verdict::Failed(_) | Verdict::Void(_))),
        "{report}"
    );
}

#[tokio::test]
async fn an_excused_case_is_reported_with_its_reason_and_an_unknown_one_fails() {
    let case = "a second release is refused";
    let options = Options::default().excuse(case, "because").excuse("no such case", "typo").without_waiting();
    let report = run(Flawed::new(Flaw::None), options).await;
    assert_eq!(report.verdict(case), Some(&Verdict::NotApplicable("because".into())));
    assert!(failed(&report, "no such case"));
}

fn failed(report: &Report, case: &str) -> bool {
    matches!(report.verdict(case), Some(Verdict::Failed(_)))
}

/// A small correct store, but for its flaw. Its listing has pages of 25.
#[derive(Clone, Debug)]
struct Flawed {
    flaw: Flaw,
    records: Arc<Mutex<BTreeMap<Name, Stored>>>,
}

impl Flawed {
    fn new(flaw: Flaw) -> Self {
        Self { flaw, records: Arc::default() }
    }

    fn key(&self, name: &Name) -> Name {
        let key = match self.flaw {
            Flaw::NamesLoseTheirCase => name.as_str().to_lowercase(),
            Flaw::NamesAreTrimmed => name.as_str().trim().to_owned(),
            _ => name.as_str().to_owned(),
        };
        Name::new(key).unwrap()
    }

    fn stored(&self, name: &Name) -> Stored {
        self.records.lock().unwrap().get(&self.key(name)).cloned().unwrap_or(Stored::Absent)
    }

    fn view(&self, stored: &Stored) -> View {
        if self.flaw == Flaw::RefusalsShowNothing { View::absent() } else { stored.view() }
    }

    /// Decides on what is there and writes what the verb leaves, in one step.
    async fn apply(
        &self,
        name: &Name,
        verb: impl Fn(&Stored) -> Outcome + Send,
    ) -> Result<(Stored, Outcome), StoreError> {
        self.before()?;
        let decided = if self.flaw == Flaw::WritesAreNotAtomic {
            let before = self.stored(name);
            tokio::task::yield_now().await;
            Some(before)
        } else {
            None
        };
        let mut records = self.records.lock().unwrap();
        let key = self.key(name);
        let before = decided.unwrap_or_else(|| records.get(&key).cloned().unwrap_or(Stored::Absent));
        let mut outcome = verb(&before);
        if let Outcome::Write(record) = &mut outcome {
            if self.flaw == Flaw::TokensAreFloats {
                record.token = record.token as f32 as u64;
            }
            if self.flaw == Flaw::EmptyPayloadIsNone {
                record.data = record.data.take().filter(|data| !data.as_bytes().is_empty());
            }
            records.insert(key, Stored::Record(record.clone()));
        }
        Ok((before, outcome))
    }

    fn before(&self) -> Result<(), StoreError> {
        match self.flaw {
            Flaw::EveryCallFails => {
                Err(StoreError::new(StoreErrorKind::Denied, leasehold::Applied::No, "nobody may do anything"))
            }
            Flaw::EveryCallPanics => panic!("this store panics on purpose"),
            _ => Ok(()),
        }
    }

    fn answer<T>(&self, value: T) -> Answer<T> {
        Ok(Timed::dated(value, (self.flaw == Flaw::DatesAreInvented).then_some(1_900_000_000_000)))
    }

    fn claimed(&self, stored: &Stored, claim: &Claim) -> Outcome {
        let Stored::Record(before) = stored else { return record::claim(stored, claim) };
        let below = |token| Claim { token, ..claim.clone() };
        match (self.flaw, record::claim(stored, claim)) {
            (Flaw::EqualTokenIsAccepted, Outcome::Refuse) if before.token == claim.token => {
                match record::claim(stored, &below(claim.token + 1)) {
                    Outcome::Write(mut record) => {
                        record.token = claim.token;
                        Outcome::Write(record)
                    }
                    other => other,
                }
            }
            (Flaw::ClaimKeepsThePayload, Outcome::Write(mut record)) => {
                record.data = record.data.or_else(|| before.data.clone());
                Outcome::Write(record)
            }
            (Flaw::RepeatedClaimIsRefused, Outcome::Already) => Outcome::Refuse,
            (Flaw::RepeatedClaimWritesAgain, Outcome::Already) => {
                record::claim(&Stored::Absent, &Claim { expect: leasehold::Expect::Vacant, ..claim.clone() })
            }
            (_, outcome) => outcome,
        }
    }

    fn renewed(&self, stored: &Stored, renew: &Renew) -> Outcome {
        let Stored::Record(before) = stored else { return record::renew(stored, renew) };
        let mine = before.grant == Some(renew.grant);
        match (self.flaw, record::renew(stored, renew)) {
            (Flaw::RenewIgnoresVersions, Outcome::Refuse) if mine => {
                let mut record = before.clone();
                record.version = Some(renew.version);
                Outcome::Write(record)
            }
            (Flaw::RenewKeepsTheEnd, Outcome::Write(mut record)) => {
                record.expires_at_ms = record.expires_at_ms.or(before.expires_at_ms);
                Outcome::Write(record)
            }
            (_, outcome) => outcome,
        }
    }

    fn vacated(&self, stored: &Stored, vacate: &Vacate) -> Outcome {
        let Stored::Record(before) = stored else { return record::vacate(stored, vacate) };
        let forced = |token: u64| {
            let mut record = before.clone();
            (record.token, record.grant, record.expires_at_ms, record.asked) = (token, None, None, None);
            Outcome::Write(record)
        };
        match (self.flaw, record::vacate(stored, vacate)) {
            (Flaw::BurnClearsClosed, Outcome::Write(mut record)) if vacate.burn && vacate.close.is_none() => {
                record.closed = None;
                Outcome::Write(record)
            }
            (Flaw::BurnIgnoresWhoHolds, Outcome::Refuse) if vacate.burn && before.token < vacate.token => {
                forced(vacate.token)
            }
            (Flaw::BurnMayLowerTheToken, Outcome::Refuse) if vacate.burn && before.grant.is_none() => {
                forced(vacate.token)
            }
            (_, outcome) => outcome,
        }
    }

    fn revoked(&self, stored: &Stored, revoke: &Revoke) -> Outcome {
        match (self.flaw, stored, record::revoke(stored, revoke)) {
            (Flaw::RevokeKeepsTheGrant, Stored::Record(before), Outcome::Write(mut record)) if !revoke.force => {
                record.grant = before.grant;
                Outcome::Write(record)
            }
            (_, _, outcome) => outcome,
        }
    }

    fn asked(&self, stored: &Stored, ask: &Ask) -> Outcome {
        match (self.flaw, record::ask(stored, ask)) {
            (Flaw::AskMovesTheVersion, Outcome::Write(mut record)) => {
                record.version = record.version.map(|version| version + 1);
                Outcome::Write(record)
            }
            (_, outcome) => outcome,
        }
    }

    /// Terms below a minute are the ones that the suite waits for.
    fn judged(&self, mut view: View) -> View {
        let short = view.record.as_ref().and_then(|record| record.ttl_ms).is_some_and(|ms| ms < 60_000);
        if let (true, true, Standing::Held(version)) = (self.judges(), short, &view.standing) {
            view.standing = Standing::Expired(version.clone());
        }
        view
    }

    fn judges(&self) -> bool {
        matches!(self.flaw, Flaw::ShortTermsAreOverAtOnce | Flaw::ClientsJudgeAndItDoesToo)
    }

    fn found(&self, name: &Name, prefix: &str) -> bool {
        match self.flaw {
            Flaw::PrefixIgnoresCase => name.as_str().to_lowercase().starts_with(&prefix.to_lowercase()),
            // As LIKE does: "_" stands for any one character.
            Flaw::PrefixIsAPattern => {
                let mut letters = name.as_str().chars();
                prefix.chars().all(|wanted| letters.next().is_some_and(|letter| wanted == '_' || wanted == letter))
            }
            _ => name.as_str().starts_with(prefix),
        }
    }
}

#[async_trait]
impl Store for Flawed {
    fn describe(&self) -> Description {
        let mut about = Description::new("flawed", format!("{:?}", self.flaw));
        about.renew_batch = 10;
        if self.flaw == Flaw::ShortTermsAreOverAtOnce {
            about.judge = ExpiryJudge::Store;
        }
        about
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        let (before, outcome) = self.apply(&claim.name, |stored| self.claimed(stored, claim)).await?;
        self.answer(match outcome {
            Outcome::Refuse => Claimed::Refused(self.view(&before)),
            _ => Claimed::Granted,
        })
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        let mut answers = Vec::new();
        for renew in renewals {
            let applied = self.apply(&renew.name, |stored| self.renewed(stored, renew)).await;
            if self.flaw == Flaw::RefusedRenewalWritesItsPayload
                && let Some(Stored::Record(record)) = self.records.lock().unwrap().get_mut(&renew.name)
                && record.grant == Some(renew.grant)
            {
                record.data = renew.data.clone().or_else(|| record.data.clone());
            }
            answers.push(applied.and_then(|(before, outcome)| {
                self.answer(match outcome {
                    Outcome::Write(record) => Renewed::Renewed(record.asked),
                    _ => Renewed::Refused(self.view(&before)),
                })
            }));
        }
        if self.flaw == Flaw::BatchIsAnsweredBackwards {
            answers.reverse();
        }
        answers
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        let (before, outcome) = self.apply(&vacate.name, |stored| self.vacated(stored, vacate)).await?;
        if self.flaw == Flaw::ReleaseRemovesTheRecord && !vacate.burn && outcome != Outcome::Refuse {
            self.records.lock().unwrap().remove(&vacate.name);
        }
        self.answer(match outcome {
            Outcome::Refuse => Vacated::Refused(self.view(&before)),
            _ => Vacated::Vacated,
        })
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        let (before, outcome) = self.apply(&revoke.name, |stored| self.revoked(stored, revoke)).await?;
        self.answer(match outcome {
            Outcome::Refuse => record::revoke_refused(&before, revoke),
            _ => Revoked::Revoked,
        })
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        let (before, outcome) = self.apply(&ask.name, |stored| self.asked(stored, ask)).await?;
        self.answer(match outcome {
            Outcome::Refuse => Asked::Refused(self.view(&before)),
            _ => Asked::Asked,
        })
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        self.before()?;
        if self.flaw == Flaw::ReadsShowAnotherName {
            // The neighbour in the order of names, if there is one.
            let records = self.records.lock().unwrap();
            let neighbour = records.range(..name.clone()).next_back().map(|(_, stored)| stored.view());
            return self.answer(neighbour.unwrap_or_else(|| records.get(name).map_or_else(View::absent, Stored::view)));
        }
        self.answer(self.judged(self.stored(name).view()))
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.before()?;
        let records = self.records.lock().unwrap();
        let after = page.map_or(String::new(), |page| page.0);
        let mut found =
            records.iter().filter(|(name, _)| self.found(name, prefix) && name.as_str() > after.as_str()).peekable();
        let mut leases = Vec::new();
        while let Some((name, stored)) = found.next_if(|_| leases.len() < 25) {
            leases.push(Listed { name: name.clone(), view: stored.view() });
        }
        let more = found.peek().is_some() && self.flaw != Flaw::ListingForgetsTheLastPage;
        let next = leases.last().filter(|_| more).map(|last| Page(last.name.as_str().to_owned()));
        self.answer(ListPage { leases, skipped: 0, next })
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.clone()))
    }
}
