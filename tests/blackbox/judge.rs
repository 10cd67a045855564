//! What must hold in a run, and what it needs to count at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Ground;
use super::fake_clock::Clocks;
use super::holds::{Hold, holds};
use super::journal::{Entry, Said};
use super::plan::{LEASES, Options, Plan, What};
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
        }
    }

    pub fn sum(acts: impl Iterator<Item = Self>) -> Self {
        acts.fold(Self::default(), |all, one| Self {
            closed: all.closed + one.closed,
            handed: all.handed + one.handed,
            resumed: all.resumed + one.resumed,
            revoked: all.revoked + one.revoked,
            asked: all.asked + one.asked,
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
    let holds = holds(&evidence.entries);
    let mut violations = Vec::new();
    let mut gaps = Vec::new();
    for lease in LEASES {
        let of_lease: Vec<_> = holds.iter().filter(|hold| hold.lease == lease).collect();
        violations.extend(tokens(&of_lease));
        violations.extend(overlaps(&of_lease));
        violations.extend(opened_early(&of_lease));
        let takeovers = takeovers(&of_lease);
        violations.extend(inside_the_margin(&takeovers, &plan.options));
        gaps.extend(takeovers.into_iter().map(|takeover| takeover.gap));
        violations.extend(no_progress(&evidence.entries, lease, plan));
    }
    violations.extend(counter(evidence));
    violations.extend(election(evidence));

    let lost = |kind| {
        let (writes, value) = evidence.counters.writes_and_value(kind);
        (writes, writes - value)
    };
    let mut faults = BTreeMap::new();
    evidence.faults.iter().for_each(|fault| *faults.entry(fault.name).or_default() += 1);
    let terms: BTreeSet<_> = evidence.counters.election().into_iter().map(|(term, _)| term).collect();
    let mut verdict = Verdict {
        name: format!("{}-{}", ground.name, plan.kind),
        seed: plan.seed,
        options: plan.options.clone(),
        replay: replay(ground, plan),
        picture: picture.to_owned(),
        violations,
        void: Vec::new(),
        grants: holds.len(),
        takeovers: gaps.len(),
        narrowest: gaps.into_iter().min(),
        unguarded: lost("unguarded"),
        fenced: lost("fenced"),
        stale_refused: holds.iter().map(|hold| hold.stale).sum(),
        terms: terms.len(),
        acts: Acts::of(&evidence.entries),
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
    for what in [What::Kill, What::Freeze, What::Partition] {
        needs(verdict.of_process(what) > 0, format!("nobody was {}", what.name()));
    }
    let kinds = verdict.faults.len().saturating_sub(3);
    needs(kinds >= LEAST_KINDS, format!("only {kinds} kinds of faults on the way"));
    void.extend(verdict.clocks.unproven.iter().cloned());
    void
}

/// Unique, and above those of every grant that had returned before this one was asked for.
pub(super) fn tokens(holds: &[&Hold]) -> Vec<String> {
    let mut bad = Vec::new();
    for (number, hold) in holds.iter().enumerate() {
        for before in &holds[..number] {
            if before.token == hold.token {
                bad.push(format!("token twice: {}", pair(before, hold)));
            } else if before.from < hold.began && before.token > hold.token {
                bad.push(format!("token fell: {}", pair(before, hold)));
            }
        }
    }
    bad
}

/// What is compared lies inside of the true holds, so whatever overlaps here has overlapped.
pub(super) fn overlaps(holds: &[&Hold]) -> Vec<String> {
    let mut bad = Vec::new();
    for (number, hold) in holds.iter().enumerate() {
        // A hold of which no look was confirmed is no belief.
        let Some(to) = hold.to else { continue };
        let before = holds[..number].iter().filter(|before| before.to.is_some_and(|before| before > hold.from));
        bad.extend(before.map(|before| format!("overlap: {} (to {:.3})", pair(before, hold), to.as_secs_f64())));
    }
    bad
}

/// Nobody holds what is closed. Its time counts from a moment after the holder has let go; clocks differ by 1 % or less.
pub(super) fn opened_early(holds: &[&Hold]) -> Vec<String> {
    let mut bad = Vec::new();
    for hold in holds {
        let (Some(let_go), Some(closed_for)) = (hold.let_go, hold.closed_for) else { continue };
        let opens = let_go + closed_for.mul_f64(0.99);
        let early = holds.iter().filter(|other| let_go < other.from && other.from < opens);
        bad.extend(early.map(|other| format!("opened early: {}", pair(hold, other))));
    }
    bad
}

pub(super) struct Takeover<'a> {
    from: &'a Hold,
    by: &'a Hold,
    gap: Duration,
}

/// The grants after a holder that had not let go by then.
pub(super) fn takeovers<'a>(holds: &[&'a Hold]) -> Vec<Takeover<'a>> {
    let pairs = holds.windows(2).filter_map(|pair| {
        let (from, by) = (pair[0], pair[1]);
        let let_go = from.let_go.is_some_and(|let_go| let_go <= by.from);
        let gap = by.from.saturating_sub(from.to?);
        (!let_go).then_some(Takeover { from, by, gap })
    });
    pairs.collect()
}

/// A holder that has not let go stops believing a margin before another one may hold.
pub(super) fn inside_the_margin(takeovers: &[Takeover<'_>], options: &Options) -> Vec<String> {
    let margin = Duration::from_millis(options.margin_ms);
    let narrow = takeovers.iter().filter(|takeover| takeover.gap < margin);
    narrow.map(|takeover| format!("inside the margin: {}", pair(takeover.from, takeover.by))).collect()
}

fn pair(before: &Hold, hold: &Hold) -> String {
    let one = |hold: &Hold| {
        let Hold { lease, worker, life, token, from, to, .. } = hold;
        let to = to.map_or("?".into(), |to| format!("{:.3}", to.as_secs_f64()));
        format!("{lease} {token} of worker {worker}.{life}, {:.3} to {to}", from.as_secs_f64())
    };
    format!("{}; {}", one(before), one(hold))
}

/// When all faults are over, somebody holds again: in the second half of what is left of the run.
fn no_progress(entries: &[Entry], lease: &str, plan: &Plan) -> Option<String> {
    let at_last = (plan.heal + plan.length) / 2;
    let mut held = entries.iter().filter(|entry| entry.lease == lease && matches!(entry.said, Said::Held(_)));
    let last = held.next_back().map(|entry| entry.at);
    (last < Some(at_last)).then(|| format!("no progress: {lease} was last held at {last:?}"))
}

/// No write behind the fence is lost, and none is accepted after one with a higher token.
fn counter(evidence: &Evidence) -> Vec<String> {
    let mut bad = Vec::new();
    let (writes, value) = evidence.counters.writes_and_value("fenced");
    if writes != value {
        bad.push(format!("fenced counter: {writes} writes have left {value}"));
    }
    let log = evidence.counters.log();
    for pair in log.windows(2).filter(|pair| pair[1].0 < pair[0].0) {
        bad.push(format!("stale write accepted: token {} after {}", pair[1].0, pair[0].0));
    }
    bad
}

/// One leader for each term, and terms that do not fall.
fn election(evidence: &Evidence) -> Vec<String> {
    let log = evidence.counters.election();
    let mut bad = Vec::new();
    for pair in log.windows(2) {
        let ((term, leader), (next, other)) = (&pair[0], &pair[1]);
        if next < term {
            bad.push(format!("election log: term {next} after {term}"));
        } else if next == term && leader != other {
            bad.push(format!("election log: both {leader} and {other} lead term {term}"));
        }
    }
    bad
}
