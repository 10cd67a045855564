//! A claim: look at all members, propose one token where a majority looks claimable, and count.

use std::sync::Arc;
use std::time::Duration;

use super::Team;
use super::error::{Failures, invalid, not_reserved};
use super::grants::Granted;
use super::look::Look;
use super::member::is_watched;
use super::names::Watched;
use super::round::Round;
use crate::protocol::expiry::expires_at;
use crate::protocol::majority::ending::{Ending, Kind};
use crate::protocol::majority::plan::{Plan, Proposed, plan};
use crate::protocol::majority::tally::{Count, Reply, Tally};
use crate::protocol::majority::{Seen, in_time, quorum, rules, shown};
use crate::types::{
    Answer, Applied, Claim, Claimed, Expect, FencingToken, Record, Stamp, StoreError, StoreErrorKind, Timed, View,
};

/// After so many splits in a row the pauses do not grow any more.
const MANY_SPLITS: u32 = 4;

/// What one member answered to a claim, and what it showed or why it could not take it.
type Claiming = (Reply, Option<Result<View, StoreError>>);

/// A claim of which no majority was got.
struct Missed {
    /// Whether members were got, or others were in the way.
    split: bool,
    /// Whether it was for want of answers only, or they came too late.
    unanswered: bool,
    seen: Vec<Option<Seen>>,
    /// Of members that could not take it, whoever holds: they are full or forbid it, say.
    failures: Failures,
}

impl Team {
    pub(super) async fn claim(self: &Arc<Self>, claim: &Claim) -> Answer<Claimed> {
        check(claim)?;
        let begun = self.clock.stamp();
        let term = rules(self.clocks, claim.ttl_ms, false);
        let granted = self.known.grants.begin(claim.grant, self.size(), term.ttl, begun);
        let watched = self.known.names.of(&claim.name);
        let missed = {
            let _alone = watched.turn.lock().await;
            let limit = self.limit(Some(claim.ttl_ms));
            self.ensure_pinned(limit).await?;
            let look = self.look(&claim.name, &watched, Some(term.ttl / 2), limit).await?;
            self.same_list(&look.seen)?;
            let seen = match self.propose(claim, &granted, &watched, &look, &begun).await {
                None => {
                    watched.whole();
                    return Ok(Timed::undated(Claimed::Granted));
                }
                Some(missed) => missed,
            };
            self.give_back(claim, &granted, limit).await?;
            seen
        };
        if missed.unanswered {
            // Given back: nothing of it can arrive any more.
            let why = "no majority of the members has accepted the claim in time; it was given back";
            return Err(StoreError::new(StoreErrorKind::Unavailable, Applied::No, why));
        }
        if missed.failures.leave_no_majority(self.size()) {
            return Err(missed.failures.too_few(self, Applied::No));
        }
        if missed.split {
            self.pause_after(watched.split(), claim.ttl_ms).await;
        }
        Ok(Timed::undated(Claimed::Refused(refusal(missed.seen, claim, missed.split))))
    }

    /// Sends the claim where it may go. `None`: granted.
    async fn propose(
        self: &Arc<Self>,
        claim: &Claim,
        granted: &Arc<Granted>,
        watched: &Arc<Watched>,
        look: &Look,
        begun: &Stamp,
    ) -> Option<Missed> {
        let (seen, failures) = (look.seen.clone(), Failures::default());
        let mut missed = Missed { split: false, unanswered: false, seen, failures };
        if granted.with(|trail| trail.is_burnt()) {
            return Some(missed);
        }
        let Plan::Propose(proposed) = plan(&claim.expect, claim.token, claim.grant, &look.seen) else {
            return Some(missed);
        };
        let mut tally = Tally::new(self.size());
        let mut to = Vec::new();
        for (member, proposed) in proposed.into_iter().enumerate() {
            match proposed {
                Proposed::Claim(expect) => to.push((member, expect)),
                Proposed::Joined => tally.hear(member, self.joined(member, claim, granted, look)),
                Proposed::Nothing => {}
            }
        }
        // After a split all clients meet at the same first member, and who loses there leaves the others alone.
        let first = if watched.splits() > 0 && to.len() > 1 { to.drain(..1).collect() } else { Vec::new() };
        for to in [first, to] {
            self.send_claims(claim, granted, watched, to, &mut tally, &mut missed).await;
            if tally.count() == Count::Reached {
                break;
            }
            // A member that could not take it says nothing of others, and must not stand in the way.
            let shown = tally.number(Reply::Refused) > missed.failures.number();
            if shown && tally.number(Reply::Accepted) == 0 && watched.splits() > 0 {
                break; // Somebody else was first there.
            }
        }
        missed.split = tally.number(Reply::Accepted) + tally.number(Reply::Refused) > 0;
        missed.unanswered = tally.number(Reply::Accepted) + tally.number(Reply::Unknown) >= quorum(self.size());
        let elapsed = self.clock.stamp().longest_since(begun);
        if tally.count() != Count::Reached || !in_time(elapsed, &rules(self.clocks, claim.ttl_ms, false)) {
            return Some(missed);
        }
        granted.with(|trail| trail.grant());
        self.clean_up_after_grant(claim, granted).await;
        None
    }

    /// Sends to these and waits until a majority is reached or out of reach.
    async fn send_claims(
        self: &Arc<Self>,
        claim: &Claim,
        granted: &Arc<Granted>,
        watched: &Arc<Watched>,
        to: Vec<(usize, Expect)>,
        tally: &mut Tally,
        missed: &mut Missed,
    ) {
        if to.is_empty() {
            return;
        }
        let limit = self.limit(Some(claim.ttl_ms));
        to.iter().for_each(|(member, _)| tally.hear(*member, Reply::Waiting));
        let requests = to.into_iter().map(|(member, expect)| {
            let (team, granted, watched) = (Arc::clone(self), Arc::clone(granted), Arc::clone(watched));
            let claim = Claim { expect, set: Some(self.set), ..claim.clone() };
            (member, async move { team.claim_member(member, claim, &granted, &watched, limit).await })
        });
        let mut round = Round::begin(self.goes_on(), requests);
        while tally.number(Reply::Waiting) > 0 {
            if tally.count() == Count::Reached && self.goes_on() {
                return; // The slowest goes on in its task.
            }
            let Some((member, (reply, said))) = round.next().await else { break };
            tally.hear(member, reply);
            match said {
                Some(Ok(view)) => missed.seen[member] = Some(Seen::unwatched(view)),
                Some(Err(error)) => missed.failures.add(member, error),
                None => {}
            }
        }
        (0..self.size()).filter(|m| tally.reply(*m) == Reply::Waiting).collect::<Vec<_>>().into_iter().for_each(
            |member| {
                tally.hear(member, Reply::Unknown); // Its task has ended without an answer.
            },
        );
    }

    /// One claim to one member, a rejoin too. Its trail is kept whatever becomes of the caller.
    pub(super) async fn claim_member(
        &self,
        member: usize,
        claim: Claim,
        granted: &Granted,
        watched: &Watched,
        limit: Duration,
    ) -> Claiming {
        let rules = self.member_rules(member, claim.ttl_ms);
        let (now, basis) = (self.clock.stamp(), self.members[member].time());
        let expires_at_ms = expires_at(&now, &basis, &rules).map(|end| self.clocks.millis_up(end));
        if !granted.send(member, now, basis) {
            return (Reply::Refused, None);
        }
        let claim = Claim { expires_at_ms, ..claim };
        let heard = self.ask_member(member, limit, self.members[member].store.claim(&claim)).await;
        match heard {
            Ok(heard) => match heard.value {
                Claimed::Granted => {
                    granted.with(|trail| trail.claim_accepted(member));
                    self.watch_own(member, &claim, watched, &heard.received);
                    let agrees = self.agrees(expires_at_ms, Some(&(now, basis)), heard.sample, &heard.received, &rules);
                    (if agrees { Reply::Accepted } else { Reply::Unknown }, None)
                }
                Claimed::Refused(view) => {
                    granted.with(|trail| trail.claim_refused(member));
                    (Reply::Refused, Some(Ok(view)))
                }
            },
            Err(error) if error.applied == Applied::No => {
                granted.with(|trail| trail.claim_refused(member));
                (Reply::Refused, Some(Err(error)))
            }
            Err(_) => (Reply::Unknown, None),
        }
    }

    /// A member that an earlier copy of the same claim has joined.
    fn joined(&self, member: usize, claim: &Claim, granted: &Granted, look: &Look) -> Reply {
        let record = look.seen[member].as_ref().and_then(|seen| seen.view.record.as_ref());
        let expires_at_ms = record.and_then(|record| record.expires_at_ms);
        let Some((sample, received)) = look.dates[member] else { return Reply::Unknown };
        let sent = granted.first_sent(member);
        let rules = self.member_rules(member, claim.ttl_ms);
        match self.agrees(expires_at_ms, sent.as_ref(), sample, &received, &rules) {
            true => Reply::Accepted,
            false => Reply::Unknown,
        }
    }

    /// An accepted claim shows what is there as an answer to a read would: its watch begins.
    fn watch_own(&self, member: usize, claim: &Claim, watched: &Watched, received: &Stamp) {
        let record = Record {
            token: claim.token,
            grant: Some(claim.grant),
            version: Some(1),
            ttl_ms: Some(claim.ttl_ms),
            expires_at_ms: claim.expires_at_ms,
            ..Record::new()
        };
        let view = View::of(record);
        let by_write = matches!(&view.standing, crate::types::Standing::Held(version) if is_watched(version));
        if self.members[member].about.judge == crate::types::ExpiryJudge::Client && by_write {
            self.judge(member, view, watched, received);
        }
    }

    /// Burns the claim wherever it may have arrived. From here on nothing of the grant is sent any more.
    async fn give_back(
        self: &Arc<Self>,
        claim: &Claim,
        granted: &Arc<Granted>,
        limit: Duration,
    ) -> Result<(), StoreError> {
        let to = granted.with(|trail| trail.burn());
        if to.is_empty() {
            return Ok(());
        }
        let mut ending = Ending::new(Kind::CleanUp(claim.token), self.size(), &to);
        self.burn(&claim.name, claim.token, claim.grant, to, &mut ending, limit).await;
        match ending.is_settled() {
            true => Ok(()),
            // Whoever made the claim owes its clean-up from now on.
            false => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                Applied::Unknown,
                "no majority of the members accepted the claim, and not all of them could be asked to give it back",
            )),
        }
    }

    /// Nothing, but for a rule that is broken on purpose.
    async fn clean_up_after_grant(self: &Arc<Self>, claim: &Claim, granted: &Granted) {
        let to = granted.with(|trail| trail.clean_up_after_grant());
        if !to.is_empty() {
            let mut ending = Ending::new(Kind::CleanUp(claim.token), self.size(), &to);
            let limit = self.limit(Some(claim.ttl_ms));
            self.burn(&claim.name, claim.token, claim.grant, to, &mut ending, limit).await;
        }
    }

    /// Clients that have split the members among themselves must not come back together.
    async fn pause_after(&self, splits: u32, ttl_ms: u64) {
        let longest = (ttl_ms / 256).max(2) << splits.min(MANY_SPLITS);
        let pause = u64::try_from(self.clock.random() % u128::from(longest)).unwrap_or(0);
        self.clock.sleep(Duration::from_millis(pause)).await;
    }
}

/// What the caller is shown, with a token that its next one has to be above.
fn refusal(seen: Vec<Option<Seen>>, claim: &Claim, sent: bool) -> View {
    use crate::protocol::majority::plan::highest;
    use crate::types::Standing;
    let mut view = shown::merged(&seen);
    let highest = highest(&seen).max(if sent { claim.token } else { 0 });
    match &view.standing {
        // It is claimed next, above all.
        Standing::Vacant | Standing::Expired(_) if highest > view.token() => {
            view.record = Some(Record { token: highest, ..view.record.unwrap_or_default() });
        }
        _ => {}
    }
    view
}

/// What the members would refuse is not sent.
fn check(claim: &Claim) -> Result<(), StoreError> {
    not_reserved(&claim.name)?;
    if claim.set.is_some() {
        return Err(invalid("a majority writes its own member list, and is no member of another"));
    }
    match claim.token {
        1..=FencingToken::MAX => Ok(()),
        token => Err(invalid(format!("the token {token} is not in 1 to {}", FencingToken::MAX))),
    }
}
