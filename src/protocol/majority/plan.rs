//! What may be sent for a claim, by what the members show.

use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::protocol::observer::Judgement;
use crate::types::{Expect, Grant, Version};

/// What to do for a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Send it, to each member under this expectation of its own; `None`: nothing is sent there.
    Propose(Vec<Proposed>),
    /// Send nothing: no majority looks as the claim expects, so that it would only raise tokens on members which
    /// the holder then could not rejoin; or the token is not above all that were seen.
    Refuse,
}

/// What is sent to one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proposed {
    /// The claim, under this expectation.
    Claim(Expect),
    /// Nothing: an earlier copy of the same claim was accepted there.
    Joined,
    /// Nothing.
    Nothing,
}

/// Judges a claim before anything is sent. `seen` has `None` for a member that has not answered or does not count.
pub fn plan(expect: &Expect, token: u64, grant: Grant, seen: &[Option<Seen>]) -> Plan {
    let ready = (0..seen.len()).filter(|member| is_ready(expect, token, grant, seen, *member)).count();
    let gated = !(matches!(expect, Expect::Handed(_)) && Broken::MajorityResumeWithoutGate.on());
    if (gated && ready < quorum(seen.len())) || !is_above_all(token, grant, seen) {
        return Plan::Refuse;
    }
    Plan::Propose(seen.iter().map(|seen| proposed(expect, token, grant, seen.as_ref())).collect())
}

/// The highest token that any member shows.
pub fn highest(seen: &[Option<Seen>]) -> u64 {
    seen.iter().flatten().map(|seen| seen.view.token()).max().unwrap_or(0)
}

/// Which writes the members show, in their order: what a claim of a majority names.
pub fn version(seen: &[Option<Seen>]) -> Version {
    Version::of_members(&seen.iter().map(|seen| member_version(seen.as_ref()?)).collect::<Vec<_>>())
}

fn member_version(seen: &Seen) -> Option<Version> {
    use crate::types::Standing;
    match &seen.view.standing {
        Standing::Held(version) | Standing::Expired(version) => Some(version.clone()),
        Standing::Vacant => seen.view.record.as_ref().map(Version::of),
        Standing::Unreadable(_) => None,
    }
}

/// Whether a member looks as the claim expects of a majority.
fn is_ready(expect: &Expect, token: u64, grant: Grant, seen: &[Option<Seen>], member: usize) -> bool {
    let Some(one) = &seen[member] else { return false };
    if is_joined(one, token, grant) {
        return true;
    }
    match expect {
        Expect::Vacant => one.judgement == Judgement::Claimable(Expect::Vacant),
        // The version is a hint of what the caller has seen: the member must show that still, and is judged again.
        Expect::Expired(hint) => {
            let hinted = hint.as_members().and_then(|members| members.get(member));
            let same = hinted == Some(&member_version(one)) || Broken::MajorityHintNotCompared.on();
            matches!(one.judgement, Judgement::Claimable(_)) && same
        }
        Expect::Handed(handed) => one.view.grant() == Some(*handed),
    }
}

fn proposed(expect: &Expect, token: u64, grant: Grant, seen: Option<&Seen>) -> Proposed {
    let Some(seen) = seen else { return Proposed::Nothing };
    if is_joined(seen, token, grant) {
        return Proposed::Joined;
    }
    match (expect, &seen.judgement) {
        (Expect::Handed(handed), _) if seen.view.grant() == Some(*handed) => Proposed::Claim(Expect::Handed(*handed)),
        (Expect::Handed(_), _) if Broken::MajorityResumeWithoutGate.on() => {
            member_version(seen).map_or(Proposed::Claim(Expect::Vacant), |own| Proposed::Claim(Expect::Expired(own)))
        }
        (_, Judgement::Claimable(own)) => Proposed::Claim(own.clone()),
        _ => Proposed::Nothing,
    }
}

fn is_joined(seen: &Seen, token: u64, grant: Grant) -> bool {
    seen.view.grant() == Some(grant) && seen.view.token() == token
}

fn is_above_all(token: u64, grant: Grant, seen: &[Option<Seen>]) -> bool {
    seen.iter().flatten().all(|seen| seen.view.token() < token || is_joined(seen, token, grant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::observer::Progress;
    use crate::types::{Record, View};

    const MINE: Grant = Grant::from_bits(9);
    const OTHER: Grant = Grant::from_bits(1);

    fn free(token: u64) -> Option<Seen> {
        Some(Seen::unwatched(View::of(Record { token, ..Record::new() })))
    }

    fn held(token: u64, grant: Grant) -> Option<Seen> {
        let record = Record { token, grant: Some(grant), version: Some(1), ttl_ms: Some(10), ..Record::new() };
        Some(Seen::unwatched(View::of(record)))
    }

    fn dead(token: u64, grant: Grant) -> Option<Seen> {
        let seen = held(token, grant)?;
        let version = Version::of(seen.view.record.as_ref()?);
        Some(Seen { judgement: Judgement::Claimable(Expect::Expired(version)), ..seen })
    }

    fn claims(plan: Plan) -> Option<Vec<bool>> {
        match plan {
            Plan::Propose(to) => Some(to.iter().map(|to| matches!(to, Proposed::Claim(_))).collect()),
            Plan::Refuse => None,
        }
    }

    #[test]
    fn nothing_is_sent_unless_a_majority_looks_claimable() {
        assert_eq!(claims(plan(&Expect::Vacant, 9, MINE, &[free(1), held(2, OTHER), held(2, OTHER)])), None);
        assert_eq!(claims(plan(&Expect::Vacant, 9, MINE, &[free(1), None, held(2, OTHER)])), None);
        let split = [free(1), free(3), held(2, OTHER)];
        assert_eq!(claims(plan(&Expect::Vacant, 9, MINE, &split)), Some(vec![true, true, false]));
    }

    #[test]
    fn a_token_that_is_not_above_all_that_were_seen_is_not_sent() {
        let split = [free(1), free(1), held(9, OTHER)];
        assert_eq!(claims(plan(&Expect::Vacant, 9, MINE, &split)), None);
        assert_eq!(highest(&split), 9);
    }

    #[test]
    fn each_member_is_claimed_under_its_own_expectation() {
        let seen = [dead(4, OTHER), free(1), dead(4, OTHER)];
        let Plan::Propose(to) = plan(&Expect::Expired(version(&seen)), 9, MINE, &seen) else { panic!("refused") };
        assert!(matches!(to[0], Proposed::Claim(Expect::Expired(_))));
        assert_eq!(to[1], Proposed::Claim(Expect::Vacant));
    }

    #[test]
    fn a_takeover_of_what_has_changed_since_is_refused() {
        let before = [dead(4, OTHER), dead(4, OTHER), dead(4, OTHER)];
        let now = [free(4), free(4), dead(4, OTHER)];
        assert_eq!(plan(&Expect::Expired(version(&before)), 9, MINE, &now), Plan::Refuse);
    }

    #[test]
    fn a_hand_over_is_resumed_only_where_a_majority_shows_its_grant() {
        let expect = Expect::Handed(OTHER);
        assert_eq!(plan(&expect, 9, MINE, &[held(4, OTHER), free(4), free(4)]), Plan::Refuse);
        let shown = [held(4, OTHER), free(1), held(4, OTHER)];
        let Plan::Propose(to) = plan(&expect, 9, MINE, &shown) else { panic!("refused") };
        assert_eq!(to[0], Proposed::Claim(Expect::Handed(OTHER)));
        assert_eq!(to[1], Proposed::Claim(Expect::Vacant));
    }

    #[test]
    fn what_an_earlier_copy_has_joined_is_not_asked_again() {
        let seen = [held(9, MINE), free(1), free(1)];
        let Plan::Propose(to) = plan(&Expect::Vacant, 9, MINE, &seen) else { panic!("refused") };
        assert_eq!(to[0], Proposed::Joined);
        let watching = Judgement::NotYet(Progress::default());
        assert_eq!(seen[0].as_ref().map(|seen| &seen.judgement), Some(&watching));
    }
}
