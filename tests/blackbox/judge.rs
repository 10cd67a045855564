//! What must hold in a run, and what it needs to count at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Ground;
use super::fake_clock::Clocks;
use super::forces::Forces;
use super::holds::holds;
use super::journal::{Entry, Said};
use super::plan::{COUNTER, LEADER, LEASES, Options, PERMITS, Plan, SEMAPHORE, What};
use super::rules::{self, inside_the_margin, no_progress, opened_early, overlaps, takeovers, tokens, too_many};
use super::stage::Evidence;

/// Of the eleven kinds of faults on the way, so many have to have happened. Which ones depends on who asks when.
const LEAST_KINDS: usize = 6;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub name: String,
    pub seed: u64,
    pub options: Options,
    pub replay: String,
    pub picture: PathBuf,
    /// When the plan began: the times of violations count from the journal's beginning, those of the picture from then.
    pub began: Duration,
    /// What must not be.
    pub violations: Vec<String>,
    /// Why it does not count.
    pub void: Vec<String>,
    pub grants: usize,
    /// Grants after a holder that had not let go.
    pub takeovers: usize,
    /// The shortest time from a dead or frozen holder's last belief to the next grant.
    pub narrowest: Option<Duration>,
    /// Writes and lost ones.
    pub unguarded: (i64, i64),
    pub fenced: (i64, i64),
    pub stale_refused: usize,
    pub terms: usize,
    /// Overlaps with holders that were forced out.
    pub excused: usize,
    pub acts: Acts,
    /// What the workers' clocks did, and where they are not seen to have been faked as planned.
    pub clocks: Clocks,
    /// By kind.
    pub faults: BTreeMap<&'static str, usize>,
}

/// How often the workers did more than acquire, renew and release.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acts {
    pub closed: usize,
    pub handed: usize,
    pub resumed: usize,
    pub revoked: usize,
    pub asked: usize,
    pub forced: usize,
    /// Grants by an election.
    pub elected: usize,
    /// Grants of the semaphore.
    pub permits: usize,
}

impl Acts {
    fn of(entries: &[Entry]) -> Self {
        let count = |is: fn(&Said) -> bool| entries.iter().filter(|entry| is(&entry.said)).count();
        Self {
            closed: count(|said| matches!(said, Said::Closed(_))),
            handed: count(|said| matches!(said, Said::Handed(_))),
            resumed: count(|said| matches!(said, Said::Resumed(_))),
            revoked: count(|said| matches!(said, Said::Revoked(_))),
            asked: count(|said| matches!(said, Said::Asked(_))),
            forced: count(|said| matches!(said, Said::Forced(_))),
            elected: count(|said| matches!(said, Said::Elected(_))),
            permits: 0,
        }
    }

    pub fn sum(acts: impl Iterator<Item = Self>) -> Self {
        acts.fold(Self::default(), |all, one| Self {
            closed: all.closed + one.closed,
            handed: all.handed + one.handed,
            resumed: all.resumed + one.resumed,
            revoked: all.revoked + one.revoked,
            asked: all.asked + one.asked,
            forced: all.forced + one.forced,
            elected: all.elected + one.elected,
            permits: all.permits + one.permits,
        })
    }
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.void.is_empty()
    }

    /// How many violations have this word.
    pub fn violates(&self, word: &str) -> usize {
        self.violations.iter().filter(|violation| violation.contains(word)).count()
    }

    fn of_process(&self, what: What) -> usize {
        self.faults.get(what.name()).copied().unwrap_or(0)
    }

    /// Faults on the way.
    pub fn on_the_way(&self) -> usize {
        let of_processes = [What::Kill, What::Freeze, What::Partition].map(|what| self.of_process(what));
        self.faults.values().sum::<usize>() - of_processes.iter().sum::<usize>()
    }
}

pub fn judge(ground: &Ground, plan: &Plan, evidence: &Evidence, picture: &Path) -> Verdict {
    let ttl = Duration::from_millis(plan.options.ttl_ms);
    let (all, entries) = (holds(&evidence.entries), &evidence.entries);
    let forces = Forces::of(entries, &all);
    let of = |leases: &[&str]| all.iter().filter(|hold| leases.contains(&hold.lease.as_str())).collect::<Vec<_>>();
    let (mut violations, mut gaps, mut excused) = (Vec::new(), Vec::new(), 0);
    for lease in LEASES.into_iter().chain(PERMITS) {
        let holds = of(&[lease]);
        violations.extend(tokens(&holds));
        let overlaps = overlaps(&holds, &forces, ttl);
        violations.extend(overlaps.bad);
        excused += overlaps.excused;
        violations.extend(opened_early(&holds));
        let takeovers = takeovers(&holds, &forces);
        violations.extend(inside_the_margin(&takeovers, &plan.options));
        if LEASES.contains(&lease) {
            gaps.extend(takeovers.into_iter().map(|takeover| takeover.gap));
            violations.extend(no_progress(evidence, lease, &[lease], plan));
        }
        if lease != COUNTER {
            violations.extend(rules::terms(lease, &evidence.counters.terms(lease)));
        }
    }
    // Whatever permits there are, also those that there should not be.
    let of_semaphore: Vec<_> = all.iter().filter(|hold| hold.lease.starts_with(SEMAPHORE)).collect();
    violations.extend(too_many(&of_semaphore, PERMITS.len()));
    violations.extend(no_progress(evidence, SEMAPHORE, &PERMITS, plan));
    violations.extend(rules::counter(evidence));
    violations.extend(evidence.panics.iter().map(|why| format!("a worker panicked: {why}")));
    let holds = of(&LEASES);

    let lost = |kind| {
        let (writes, value) = evidence.counters.writes_and_value(kind);
        (writes, writes - value)
    };
    let mut faults = BTreeMap::new();
    evidence.faults.iter().for_each(|fault| *faults.entry(fault.name).or_default() += 1);
    let terms: BTreeSet<_> = evidence.counters.terms(LEADER).into_iter().map(|(term, _)| term).collect();
    let mut verdict = Verdict {
        name: format!("{}-{}", ground.name, plan.kind),
        seed: plan.seed,
        options: plan.options.clone(),
        replay: replay(ground, plan),
        picture: picture.to_owned(),
        began: evidence.began,
        violations,
        void: Vec::new(),
        grants: holds.len(),
        takeovers: gaps.len(),
        narrowest: gaps.into_iter().min(),
        unguarded: lost("unguarded"),
        fenced: lost("fenced"),
        stale_refused: holds.iter().map(|hold| hold.stale).sum(),
        terms: terms.len(),
        excused,
        acts: Acts { permits: of_semaphore.len(), ..Acts::of(entries) },
        clocks: evidence.clocks.clone(),
        faults,
    };
    verdict.void = void(&verdict, ground);
    verdict
}

/// The line that runs the same plan again; what processes and sockets make of it is another time another.
fn replay(ground: &Ground, plan: &Plan) -> String {
    format!(
        ". localstack/features.sh; LEASEHOLD_BLACKBOX_SEEDS={} cargo test --locked --features \"$STORES\" --test {} {} -- \
         --include-ignored --nocapture",
        plan.seed, ground.target, plan.test
    )
}

/// What keeps a run from counting.
fn void(verdict: &Verdict, ground: &Ground) -> Vec<String> {
    let mut void = Vec::new();
    let mut needs = |enough: bool, what: String| void.extend((!enough).then_some(what));
    needs(verdict.unguarded.1 > 0, "the unguarded counter has lost nothing: there was no race".into());
    needs(verdict.fenced.0 > 0, "nothing was written under the fence".into());
    needs(verdict.grants >= ground.limits.least_grants, format!("only {} grants", verdict.grants));
    needs(verdict.takeovers > 0, "nobody took over from a holder that had not let go".into());
    needs(verdict.acts.permits > 0, "nobody had a permit of the semaphore".into());
    for what in [What::Kill, What::Freeze, What::Partition] {
        needs(verdict.of_process(what) > 0, format!("nobody was {}", what.name()));
    }
    let kinds = verdict.faults.len().saturating_sub(3);
    needs(kinds >= LEAST_KINDS, format!("only {kinds} kinds of faults on the way"));
    void.extend(verdict.clocks.unproven.iter().cloned());
    void
}
