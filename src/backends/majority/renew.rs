//! Renewals: the same body for all members, counted in one call; members that lack the grant are joined again.

use std::sync::Arc;
use std::time::Duration;

use super::Team;
use super::error::Failures;
use super::grants::Granted;
use super::look::Look;
use super::round::Round;
use crate::protocol::expiry::expires_at;
use crate::protocol::majority::renewal::{Renewal, Renewed as Counted};
use crate::protocol::majority::rules;
use crate::protocol::majority::shown;
use crate::types::{Answer, Applied, Claim, Renew, Renewed, Stamp, StepDown, StoreError, StoreErrorKind, Timed, View};

/// What one member said of one renewal.
enum Said {
    Accepted(Option<StepDown>),
    Refused(View, Stamp),
    Failed(StoreError),
}

/// One renewal being counted.
struct Counting {
    body: Renew,
    granted: Arc<Granted>,
    renewal: Renewal,
    /// What members that lack the grant have shown.
    refused: Vec<(usize, View, Stamp)>,
    failures: Failures,
}

impl Team {
    pub(super) async fn renew(self: &Arc<Self>, bodies: &[Renew]) -> Vec<Answer<Renewed>> {
        let Some(shortest) = bodies.iter().map(|body| body.ttl_ms).min() else { return Vec::new() };
        let limit = self.limit(Some(shortest));
        if let Err(error) = self.ensure_pinned(limit).await {
            let same = |_| StoreError::new(error.kind, Applied::No, error.message.clone());
            return bodies.iter().map(same).map(Err).collect();
        }
        let now = self.clock.stamp();
        let granted = |body: &Renew| self.known.grants.get(body.grant, now);
        let granted: Vec<_> =
            bodies.iter().map(|body| granted(body).unwrap_or_else(|| Granted::unknown(self.size()))).collect();
        let mut answers: Vec<Option<Answer<Renewed>>> = Vec::new();
        let mut live = Vec::new();
        for (body, granted) in bodies.iter().zip(granted) {
            // After the first burn it is never renewed again.
            let burnt = granted.with(|trail| trail.is_burnt());
            answers.push(if burnt { Some(self.refuse(body).await) } else { None });
            if !burnt {
                live.push(Counting::new(body.clone(), granted, self.size()));
            }
        }
        let mut counted = self.count(live, limit).await.into_iter();
        answers
            .into_iter()
            .map(|answer| answer.or_else(|| counted.next()).unwrap_or_else(|| Err(unanswered())))
            .collect()
    }

    /// Sends to all members, answers as soon as each renewal is decided, and lets the rest go on.
    async fn count(self: &Arc<Self>, mut live: Vec<Counting>, limit: Duration) -> Vec<Answer<Renewed>> {
        if live.is_empty() {
            return Vec::new();
        }
        let requests = (0..self.size()).map(|member| {
            let (team, bodies) = (Arc::clone(self), live.iter().map(|one| one.body.clone()).collect::<Vec<_>>());
            (member, async move { team.renew_member(member, bodies, limit).await })
        });
        let mut round = Round::begin(self.goes_on(), requests);
        while live.iter().any(Counting::is_open) {
            let Some((member, said)) = round.next().await else { break };
            live.iter_mut().zip(said).for_each(|(one, said)| one.hear(member, said));
        }
        let answers = live.iter_mut().map(|one| one.answer(self)).collect();
        let team = Arc::clone(self);
        let rest = async move { team.finish(live, round, limit).await };
        match tokio::runtime::Handle::try_current().ok().filter(|_| self.goes_on()) {
            Some(runtime) => drop(runtime.spawn(rest)),
            None => rest.await,
        }
        answers
    }

    /// Hears the rest, and joins again whoever lacks a grant. It does not count in this call.
    async fn finish(self: Arc<Self>, mut live: Vec<Counting>, mut round: Round<Vec<Said>>, limit: Duration) {
        loop {
            let rejoins = live.iter_mut().flat_map(|one| one.rejoins(&self));
            let rejoins: Vec<_> = rejoins.collect();
            let joined = rejoins.into_iter().map(|(member, claim, granted)| {
                let team = &self;
                async move { team.rejoin(member, claim, &granted, limit).await }
            });
            futures_util::future::join_all(joined).await;
            let Some((member, said)) = round.next().await else { return };
            live.iter_mut().zip(said).for_each(|(one, said)| one.hear(member, said));
        }
    }

    async fn rejoin(&self, member: usize, claim: Claim, granted: &Granted, limit: Duration) {
        // One that was wiped must not be joined as if it had always been there.
        let max_age = rules(self.clocks, claim.ttl_ms, false).ttl / 2;
        if self.ensure_fit(member, Some(max_age), limit).await.is_ok() {
            let watched = self.known.names.of(&claim.name);
            self.claim_member(member, claim, granted, &watched, limit).await;
        }
    }

    /// The bodies for one member, each with an end of its own.
    async fn renew_member(&self, member: usize, bodies: Vec<Renew>, limit: Duration) -> Vec<Said> {
        let failed = |error: &StoreError| StoreError::new(error.kind, error.applied, error.message.clone());
        if let Err(error) = self.ensure_fit(member, None, limit).await {
            return bodies.iter().map(|_| Said::Failed(failed(&error))).collect();
        }
        let (now, basis) = (self.clock.stamp(), self.members[member].time());
        let own = |body: Renew| {
            let end = expires_at(&now, &basis, &self.member_rules(member, body.ttl_ms));
            Renew { expires_at_ms: end.map(|end| self.clocks.millis_up(end)), set: Some(self.set), ..body }
        };
        let bodies: Vec<_> = bodies.into_iter().map(own).collect();
        let store = &self.members[member].store;
        let request = async { Ok(Timed::undated(store.renew(&bodies).await)) };
        let answers = match self.ask_member(member, limit, request).await {
            Ok(answers) => answers.value,
            Err(error) => return bodies.iter().map(|_| Said::Failed(failed(&error))).collect(),
        };
        let received = self.clock.stamp();
        let mut said = Vec::with_capacity(bodies.len());
        for (body, answer) in bodies.iter().zip(answers) {
            // Taken in one by one, so that each date is learnt.
            let heard = self.ask_member(member, limit, std::future::ready(answer)).await;
            said.push(match heard {
                Ok(heard) => {
                    let sample = heard.sample.map(|sample| crate::types::Sample { sent: now, ..sample });
                    let rules = self.member_rules(member, body.ttl_ms);
                    match heard.value {
                        Renewed::Renewed(_)
                            if !self.agrees(body.expires_at_ms, Some(&(now, basis)), sample, &received, &rules) =>
                        {
                            Said::Failed(unanswered())
                        }
                        Renewed::Renewed(asked) => Said::Accepted(asked),
                        Renewed::Refused(view) => Said::Refused(view, received),
                    }
                }
                Err(error) => Said::Failed(error),
            });
        }
        said
    }

    /// Shows what is there without a write.
    async fn refuse(self: &Arc<Self>, body: &Renew) -> Answer<Renewed> {
        let limit = self.limit(Some(body.ttl_ms));
        let Look { seen, .. } = self.look(&body.name, &self.known.names.of(&body.name), None, limit).await?;
        Ok(Timed::undated(Renewed::Refused(shown::merged(&seen))))
    }
}

impl Counting {
    fn new(body: Renew, granted: Arc<Granted>, members: usize) -> Self {
        let renewal = Renewal::new(body.token, body.grant, members);
        Self { body, granted, renewal, refused: Vec::new(), failures: Failures::default() }
    }

    fn hear(&mut self, member: usize, said: Said) {
        match said {
            Said::Accepted(asked) => {
                self.granted.with(|trail| self.renewal.accepted(member, trail));
                self.renewal.asked(asked);
            }
            Said::Refused(view, received) => {
                self.renewal.refused(member, &view);
                self.refused.push((member, view, received));
            }
            Said::Failed(error) => {
                self.renewal.unknown(member);
                self.failures.add(member, error);
            }
        }
    }

    fn result(&self) -> Counted {
        self.granted.with(|trail| self.renewal.result(trail))
    }

    fn is_open(&self) -> bool {
        self.result() == Counted::Open
    }

    fn answer(&mut self, team: &Team) -> Answer<Renewed> {
        match self.result() {
            Counted::Accepted => Ok(Timed::undated(Renewed::Renewed(self.renewal.wish().cloned()))),
            Counted::Lost(view) | Counted::Behind(view) => Ok(Timed::undated(Renewed::Refused(shown::as_shown(view)))),
            Counted::Failed | Counted::Open => Err(std::mem::take(&mut self.failures).too_few(team, Applied::Unknown)),
        }
    }

    /// The claims by which members that lack the grant are joined again, as far as their observers say that they may.
    fn rejoins(&mut self, team: &Team) -> Vec<(usize, Claim, Arc<Granted>)> {
        if self.refused.is_empty() {
            return Vec::new(); // A renewal that nobody refuses must not crowd out what is watched of other names.
        }
        let watched = team.known.names.of(&self.body.name);
        let refused = std::mem::take(&mut self.refused);
        let claims = refused.into_iter().filter_map(|(member, view, received)| {
            let seen = team.judge(member, view, &watched, &received);
            let expect = self.granted.with(|trail| self.renewal.rejoin(member, &seen, trail))?;
            let Renew { name, token, grant, ttl_ms, holder, data, .. } = self.body.clone();
            let set = Some(team.set);
            let claim = Claim { name, token, grant, ttl_ms, expires_at_ms: None, holder, data, set, expect };
            Some((member, claim, Arc::clone(&self.granted)))
        });
        claims.collect()
    }
}

fn unanswered() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, "the answer's date contradicts the local clocks")
}
