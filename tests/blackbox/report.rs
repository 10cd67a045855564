//! Verdicts as text.

use std::collections::BTreeMap;
use std::fmt;

use super::judge::{Acts, Verdict};

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "--- {} seed {}: {:?}", self.name, self.seed, self.options)?;
        writeln!(
            f,
            "{} grants, {} of them takeovers (narrowest {}), {} terms; unguarded: {} writes, {} lost; \
             fenced: {} writes, {} lost, {} stale refused",
            self.grants,
            self.takeovers,
            self.narrowest.map_or("-".into(), |gap| format!("{} ms", gap.as_millis())),
            self.terms,
            self.unguarded.0,
            self.unguarded.1,
            self.fenced.0,
            self.fenced.1,
            self.stale_refused
        )?;
        writeln!(f, "{}; {} overlaps with who was forced out", acts(&self.acts), self.excused)?;
        writeln!(f, "faults that happened: {}", faults(&self.faults))?;
        self.clocks.seen.iter().try_for_each(|seen| writeln!(f, "clocks of {seen}"))?;
        writeln!(f, "picture: {}", self.picture.display())?;
        if !self.is_clean() {
            writeln!(f, "the plan began at {:.3}", self.began.as_secs_f64())?;
            // All of them can be thousands.
            self.violations.iter().take(12).try_for_each(|bad| writeln!(f, "VIOLATION {bad}"))?;
            writeln!(f, "{} violations in all{}", self.violations.len(), kinds(&self.violations))?;
            self.void.iter().try_for_each(|why| writeln!(f, "VOID {why}"))?;
            writeln!(f, "the same plan again: {}", self.replay)?;
        }
        Ok(())
    }
}

impl Verdict {
    /// What is wrong with it, in one line.
    pub fn summary(&self) -> String {
        let first = self.violations.first().or(self.void.first()).map_or("clean", String::as_str);
        let (bad, void) = (self.violations.len(), self.void.len());
        format!(
            "{} seed {}: {bad} violations, {void} reasons why it is void: {first}\n  {}",
            self.name, self.seed, self.replay
        )
    }
}

/// How many there are of each kind and lease.
fn kinds(violations: &[String]) -> String {
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    for violation in violations {
        let (kind, rest) = violation.split_once(": ").unwrap_or((violation, ""));
        *kinds.entry((kind, rest.split(' ').next())).or_default() += 1;
    }
    let line = |((kind, of), count): (&(&str, Option<&str>), &usize)| format!("; {kind}: {} {count}", of.unwrap_or(""));
    kinds.iter().map(line).collect()
}

fn acts(acts: &Acts) -> String {
    let Acts { closed, handed, resumed, revoked, asked, forced, elected, permits } = acts;
    format!(
        "{closed} closed, {handed} handed over, {resumed} resumed, {revoked} revoked, {asked} asked to finish, \
         {forced} forced, {elected} elected, {permits} permits"
    )
}

fn faults(faults: &BTreeMap<&'static str, usize>) -> String {
    faults.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// A line for each run, and what happened in all of them.
pub fn table(verdicts: &[Verdict]) -> String {
    let head = "| run | seed | term ms | grants | takeovers | narrowest ms | unguarded lost | fenced lost | stale refused | on the way | \
                killed | frozen | partitioned | violations |";
    let rule = format!("|{}", "---|".repeat(14));
    let rows = verdicts.iter().map(|verdict| {
        let fault = |name| verdict.faults.get(name).copied().unwrap_or(0);
        let narrowest = verdict.narrowest.map_or("-".into(), |gap| gap.as_millis().to_string());
        format!(
            "| {} | {} | {} | {} | {} | {narrowest} | {} of {} | {} of {} | {} | {} | {} | {} | {} | {} |",
            verdict.name,
            verdict.seed,
            verdict.options.ttl_ms,
            verdict.grants,
            verdict.takeovers,
            verdict.unguarded.1,
            verdict.unguarded.0,
            verdict.fenced.1,
            verdict.fenced.0,
            verdict.stale_refused,
            verdict.on_the_way(),
            fault("killed"),
            fault("frozen"),
            fault("partitioned"),
            verdict.violations.len()
        )
    });
    let mut all = BTreeMap::new();
    for (name, count) in verdicts.iter().flat_map(|verdict| &verdict.faults) {
        *all.entry(*name).or_default() += count;
    }
    let lines: Vec<_> = [head.to_owned(), rule].into_iter().chain(rows).collect();
    let acts = acts(&Acts::sum(verdicts.iter().map(|verdict| verdict.acts)));
    format!("{}\nin all: {acts}; {}", lines.join("\n"), faults(&all))
}
