//! What must not be: each rule says what breaks it.

use std::time::Duration;

use super::forces::Forces;
use super::holds::Hold;
use super::journal::{Entry, Said};
use super::plan::{Options, Plan};
use super::stage::Evidence;

/// Unique, and above those of every grant that had returned before this one was asked for.
pub fn tokens(holds: &[&Hold]) -> Vec<String> {
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

/// Overlaps, but for those with a holder that was forced out less than a term before.
pub struct Overlaps {
    pub bad: Vec<String>,
    pub excused: usize,
}

/// What is compared lies inside of the true holds, so whatever overlaps here has overlapped.
pub fn overlaps(holds: &[&Hold], forces: &Forces, ttl: Duration) -> Overlaps {
    let mut found = Overlaps { bad: Vec::new(), excused: 0 };
    for (number, hold) in holds.iter().enumerate() {
        // A hold of which no look was confirmed is no belief.
        let Some(to) = hold.to else { continue };
        for before in holds[..number].iter().filter(|before| before.to.is_some_and(|before| before > hold.from)) {
            if forces.excuses(before, hold, ttl) {
                found.excused += 1;
            } else {
                found.bad.push(format!("overlap: {} (to {:.3})", pair(before, hold), to.as_secs_f64()));
            }
        }
    }
    found
}

/// At no moment are more inside than there are permits.
pub fn too_many(holds: &[&Hold], permits: usize) -> Vec<String> {
    let inside = |at: Duration| holds.iter().filter(move |hold| hold.from <= at && hold.to.is_some_and(|to| at < to));
    let crowds = holds.iter().map(|hold| inside(hold.from).collect::<Vec<_>>());
    let crowds = crowds.filter(|crowd| crowd.len() > permits);
    crowds
        .map(|crowd| {
            format!(
                "more than {permits} at once: {}",
                crowd.into_iter().map(|hold| one(hold)).collect::<Vec<_>>().join("; ")
            )
        })
        .collect()
}

/// Nobody holds what is closed, which nobody can force open either. Its time counts from a moment after the holder has let go; clocks differ by 1 % or less.
pub fn opened_early(holds: &[&Hold]) -> Vec<String> {
    let mut bad = Vec::new();
    for hold in holds {
        let (Some(let_go), Some(closed_for)) = (hold.let_go, hold.closed_for) else { continue };
        let opens = let_go + closed_for.mul_f64(0.99);
        let early = holds.iter().filter(|other| let_go < other.from && other.from < opens);
        bad.extend(early.map(|other| format!("opened early: {}", pair(hold, other))));
    }
    bad
}

pub struct Takeover<'a> {
    from: &'a Hold,
    by: &'a Hold,
    pub gap: Duration,
}

/// The grants after a holder that had not let go by then, and that nobody had forced out.
pub fn takeovers<'a>(holds: &[&'a Hold], forces: &Forces) -> Vec<Takeover<'a>> {
    let pairs = holds.windows(2).filter_map(|pair| {
        let (from, by) = (pair[0], pair[1]);
        let let_go = from.let_go.is_some_and(|let_go| let_go <= by.from);
        let gap = by.from.saturating_sub(from.to?);
        (!let_go && !forces.parted(from, by)).then_some(Takeover { from, by, gap })
    });
    pairs.collect()
}

/// A holder that has not let go stops believing a margin before another one may hold.
pub fn inside_the_margin(takeovers: &[Takeover<'_>], options: &Options) -> Vec<String> {
    let margin = Duration::from_millis(options.margin_ms);
    let narrow = takeovers.iter().filter(|takeover| takeover.gap < margin);
    narrow.map(|takeover| format!("inside the margin: {}", pair(takeover.from, takeover.by))).collect()
}

fn pair(before: &Hold, hold: &Hold) -> String {
    format!("{}; {}", one(before), one(hold))
}

fn one(hold: &Hold) -> String {
    let Hold { lease, worker, life, token, from, to, .. } = hold;
    let to = to.map_or("?".into(), |to| format!("{:.3}", to.as_secs_f64()));
    format!("{lease} {token} of worker {worker}.{life}, {:.3} to {to}", from.as_secs_f64())
}

/// When all faults are over, somebody holds one of these again: in the second half of what is left of the run.
pub fn no_progress(evidence: &Evidence, name: &str, leases: &[&str], plan: &Plan) -> Option<String> {
    let at_last = evidence.began + (plan.heal + plan.length) / 2;
    let holds = |entry: &&Entry| leases.contains(&entry.lease.as_str()) && matches!(entry.said, Said::Held(_));
    let last = evidence.entries.iter().rfind(holds).map(|entry| entry.at);
    (last < Some(at_last)).then(|| format!("no progress: {name} was last held at {last:?}"))
}

/// No write behind the fence is lost, and none is accepted after one with a higher token.
pub fn counter(evidence: &Evidence) -> Vec<String> {
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

/// In the log of a lease there is one leader for each term, and terms do not fall.
pub fn terms(lease: &str, log: &[(i64, String)]) -> Vec<String> {
    let mut bad = Vec::new();
    for pair in log.windows(2) {
        let ((term, leader), (next, other)) = (&pair[0], &pair[1]);
        if next < term {
            bad.push(format!("log of {lease}: term {next} after {term}"));
        } else if next == term && leader != other {
            bad.push(format!("log of {lease}: both {leader} and {other} lead term {term}"));
        }
    }
    bad
}
