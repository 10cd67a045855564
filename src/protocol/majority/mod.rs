//! The decisions of a majority of stores: what is sent to which member, and what the members' answers mean together.
//!
//! `docs/multi-region.md` says why it is right. `plan` judges what the members show before anything is sent, `tally`
//! counts the answers of one call, `trail` knows where a grant has left claims, `renewal` and `ending` say what came of
//! a renewal, a release, a revocation or an ask, `shown` makes one view of many, `roster` tells a member from a
//! stranger, and `moving` says what is brought to another list of members. No I/O, no clock: the model of
//! `tests/majority_model` runs these same lines.

pub mod ending;
pub mod moving;
pub mod plan;
pub mod renewal;
pub mod roster;
pub mod shown;
pub mod tally;
pub mod trail;

use super::broken::Broken;
use super::observer::{Judgement, Progress};
use super::rules::{Clocks, Rules};
use crate::types::{Stamp, Standing, View};

/// How many members make a majority of so many.
pub fn quorum(members: usize) -> usize {
    if Broken::MajorityIsTwo.on() { 2 } else { members / 2 + 1 }
}

/// What one member showed, and what may be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// What it showed.
    pub view: View,
    /// What its observer says.
    pub judgement: Judgement,
}

impl Seen {
    /// What a refusal showed, without an observer: only the store's own word counts.
    pub fn unwatched(view: View) -> Self {
        let judgement = match &view.standing {
            Standing::Vacant => Judgement::Claimable(crate::types::Expect::Vacant),
            Standing::Expired(version) => Judgement::Claimable(crate::types::Expect::Expired(version.clone())),
            Standing::Held(_) => Judgement::NotYet(Progress::default()),
            Standing::Unreadable(_) => Judgement::Unreadable,
        };
        Self { view, judgement }
    }
}

/// The moment from which a member's answer to a look is watched: its receipt, however early the others have answered.
/// What it shows may have been written after the look began.
pub fn watched_from(begun: &Stamp, received: &Stamp) -> Stamp {
    if Broken::MajorityWatchedFromTheRequest.on() { *begun } else { *received }
}

/// The rules by which a member's term is written and its answer's date is judged. A majority knows of a lease no more
/// than its term.
pub fn rules(clocks: Clocks, ttl_ms: u64, use_store_time: bool) -> Rules {
    let ttl = clocks.units(ttl_ms);
    Rules {
        clocks,
        ttl,
        margin: 0,
        attempt: ttl / 6,
        renew_every: ttl / 3,
        poll: ttl / 3,
        use_store_time,
        trusts_store_time: use_store_time,
        has_store_time: use_store_time,
        manual: false,
        native: false,
        data_in_every_renewal: true,
        tries: 1,
    }
}

/// Whether a grant leaves enough of its term, counted from the start of its call: two more attempts.
pub fn in_time(elapsed: u64, rules: &Rules) -> bool {
    rules.usable().saturating_sub(elapsed) >= rules.attempt.saturating_mul(2)
}
