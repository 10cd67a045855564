//! Forced releases: for one term two holders may believe, and which two that is.

use std::time::Duration;

use super::holds::Hold;
use super::journal::{Entry, Said};

/// What operators have forced free, or may have.
#[derive(Default)]
pub struct Forces(Vec<Force>);

struct Force {
    /// The worker that was the operator.
    by: usize,
    lease: String,
    token: u64,
    /// Before it was asked for.
    begun: Duration,
    /// By then it was over with that grant, if that is known.
    freed: Option<Duration>,
}

impl Forces {
    pub fn of(entries: &[Entry], holds: &[Hold]) -> Self {
        let mut forces: Vec<Force> = Vec::new();
        for Entry { at, worker, lease, said, .. } in entries {
            let open = |forces: &[Force], token| {
                let same = |force: &Force| (force.by, &force.lease, force.token) == (*worker, lease, token);
                forces.iter().rposition(same).expect("it was begun")
            };
            match *said {
                Said::Forces(token) => {
                    forces.push(Force { by: *worker, lease: lease.clone(), token, begun: *at, freed: None })
                }
                Said::Forced(token) => {
                    let open = open(&forces, token);
                    forces[open].freed = Some(*at);
                }
                Said::Spared(token) => {
                    let open = open(&forces, token);
                    forces.remove(open);
                }
                _ => {}
            }
        }
        for force in &mut forces {
            // Whoever is granted it next comes after it was freed.
            let next = holds.iter().filter(|hold| hold.lease == force.lease && hold.token > force.token);
            force.freed = next.map(|hold| hold.from).chain(force.freed).min();
        }
        Self(forces)
    }

    /// Whether the one with the lower token was forced out before the other one was granted it.
    pub fn parted(&self, one: &Hold, other: &Hold) -> bool {
        self.between(one, other).next().is_some()
    }

    /// Whether, for that reason, both may have believed for as long as they did: for a term after it was freed.
    pub fn excuses(&self, one: &Hold, other: &Hold, ttl: Duration) -> bool {
        let out = if one.token < other.token { one } else { other };
        self.between(one, other).any(|force| out.to <= force.freed.map(|freed| freed + ttl))
    }

    fn between<'a>(&'a self, one: &'a Hold, other: &'a Hold) -> impl Iterator<Item = &'a Force> {
        let (out, next) = if one.token < other.token { (one, other) } else { (other, one) };
        let of_hold = |force: &&Force| force.lease == out.lease && force.token == out.token;
        self.0.iter().filter(move |force| of_hold(force) && force.begun < next.from)
    }
}
