//! Releases, clean-ups and closings; and the acts of others against a grant.

use std::sync::Arc;
use std::time::Duration;

use super::Team;
use super::error::{Failures, not_reserved};
use super::round::Round;
use crate::protocol::majority::ending::{Ended, Ending, Kind};
use crate::time;
use crate::types::{
    Answer, Applied, Ask, Asked, Close, Grant, Name, Revoke, Revoked, StoreError, Timed, Vacate, Vacated, View,
};

/// What one member answered.
enum Said {
    Accepted,
    Already,
    Refused(View),
    Failed(StoreError),
}

/// What came of a round.
struct Came {
    already: usize,
    failures: Failures,
}

impl Team {
    pub(super) async fn vacate(self: &Arc<Self>, vacate: &Vacate) -> Answer<Vacated> {
        not_reserved(&vacate.name)?;
        let limit = self.limit(None);
        let (kind, to, burn) = self.way_of(vacate);
        self.ensure_pinned(limit).await?;
        let mut ending = Ending::new(kind, self.size(), &to);
        let vacate = Vacate { burn, ..vacate.clone() };
        let failures = self.vacate_members(&vacate, to, &mut ending, limit).await;
        match ending.result() {
            Ended::Accepted => Ok(Timed::undated(Vacated::Vacated)),
            Ended::Refused(view) => Ok(Timed::undated(Vacated::Refused(view))),
            Ended::Unknown | Ended::Open => Err(failures.too_few(self, Applied::Unknown)),
        }
    }

    /// Where it goes, as what. From here on nothing of the grant is claimed, rejoined or renewed any more.
    fn way_of(&self, vacate: &Vacate) -> (Kind, Vec<usize>, bool) {
        let kind = match (&vacate.close, vacate.burn) {
            (Some(_), _) => Kind::Close(vacate.token),
            (None, true) => Kind::CleanUp(vacate.token),
            (None, false) => Kind::Release,
        };
        match self.known.grants.get(vacate.grant, self.clock.stamp()) {
            // A grant of this process is burnt, so that no late copy of its claim is accepted.
            Some(granted) if vacate.close.is_some() => {
                let (to, burn) = granted.with(|trail| trail.close());
                (kind, to, burn)
            }
            Some(granted) => (kind, granted.with(|trail| trail.burn()), true),
            // Of another nothing is known: what was asked for, everywhere.
            None => (kind, (0..self.size()).collect(), vacate.burn),
        }
    }

    /// Burns a claim at these members.
    pub(super) async fn burn(
        self: &Arc<Self>,
        name: &Name,
        token: u64,
        grant: Grant,
        to: Vec<usize>,
        ending: &mut Ending,
        limit: Duration,
    ) {
        let vacate = Vacate { name: name.clone(), token, grant, burn: true, close: None, now_ms: None };
        self.vacate_members(&vacate, to, ending, limit).await;
    }

    async fn vacate_members(
        self: &Arc<Self>,
        vacate: &Vacate,
        to: Vec<usize>,
        ending: &mut Ending,
        limit: Duration,
    ) -> Failures {
        let requests = to.into_iter().map(|member| {
            let (team, vacate) = (Arc::clone(self), vacate.clone());
            (member, async move { team.vacate_member(member, vacate, limit).await })
        });
        let round = Round::begin(self.goes_on(), requests);
        self.hear_all(round, ending, limit).await.failures
    }

    async fn vacate_member(&self, member: usize, vacate: Vacate, limit: Duration) -> Said {
        // An outcome is recorded by members only; a clean-up does no harm elsewhere.
        if vacate.close.is_some()
            && let Err(error) = self.ensure_fit(member, None, limit).await
        {
            return Said::Failed(error);
        }
        let late_ms = self.late_ms(member);
        let until = |close: Close| Close { until_ms: late_ms.map(|now| now.saturating_add(close.for_ms)), ..close };
        let vacate = Vacate { now_ms: late_ms, close: vacate.close.map(until), ..vacate };
        match self.ask_member(member, limit, self.members[member].store.vacate(&vacate)).await.map(|heard| heard.value)
        {
            Ok(Vacated::Vacated) => Said::Accepted,
            Ok(Vacated::Refused(view)) => Said::Refused(view),
            Err(error) => Said::Failed(error),
        }
    }

    /// Waits until it is decided, and a little for the others.
    async fn hear_all(&self, mut round: Round<Said>, ending: &mut Ending, limit: Duration) -> Came {
        let begun = self.clock.stamp();
        let mut came = Came { already: 0, failures: Failures::default() };
        loop {
            let heard = match ending.result() {
                Ended::Open => round.next().await,
                _ => time::within(&*self.clock, self.grace(&begun, limit), round.next()).await.flatten(),
            };
            match heard {
                Some((member, Said::Accepted)) => ending.accepted(member),
                Some((member, Said::Already)) => {
                    came.already += 1;
                    ending.accepted(member);
                }
                Some((member, Said::Refused(view))) => ending.refused(member, view),
                Some((member, Said::Failed(error))) => {
                    ending.unknown(member);
                    came.failures.add(member, error);
                }
                None => return came,
            }
        }
    }

    pub(super) async fn revoke(self: &Arc<Self>, revoke: &Revoke) -> Answer<Revoked> {
        not_reserved(&revoke.name)?;
        let limit = self.limit(None);
        self.ensure_pinned(limit).await?;
        let requests = (0..self.size()).map(|member| {
            let (team, revoke) = (Arc::clone(self), revoke.clone());
            (member, async move { team.revoke_member(member, revoke, limit).await })
        });
        let mut ending = self.of_all(Kind::Vote);
        let came = self.hear_all(Round::begin(self.goes_on(), requests), &mut ending, limit).await;
        match ending.result() {
            Ended::Accepted if came.already == ending.number_accepted() => Ok(Timed::undated(Revoked::AlreadyRevoked)),
            Ended::Accepted => Ok(Timed::undated(Revoked::Revoked)),
            Ended::Refused(view) => Ok(Timed::undated(Revoked::Refused(view))),
            Ended::Unknown | Ended::Open => Err(came.failures.too_few(self, Applied::Unknown)),
        }
    }

    async fn revoke_member(&self, member: usize, revoke: Revoke, limit: Duration) -> Said {
        if let Err(error) = self.ensure_fit(member, None, limit).await {
            return Said::Failed(error);
        }
        match self.ask_member(member, limit, self.members[member].store.revoke(&revoke)).await.map(|heard| heard.value)
        {
            Ok(Revoked::Revoked) => Said::Accepted,
            Ok(Revoked::AlreadyRevoked) => Said::Already,
            Ok(Revoked::Refused(view)) => Said::Refused(view),
            Err(error) => Said::Failed(error),
        }
    }

    pub(super) async fn ask(self: &Arc<Self>, ask: &Ask) -> Answer<Asked> {
        not_reserved(&ask.name)?;
        let limit = self.limit(None);
        self.ensure_pinned(limit).await?;
        let requests = (0..self.size()).map(|member| {
            let (team, ask) = (Arc::clone(self), ask.clone());
            (member, async move { team.ask_one(member, ask, limit).await })
        });
        let mut ending = self.of_all(Kind::Vote);
        let came = self.hear_all(Round::begin(self.goes_on(), requests), &mut ending, limit).await;
        match ending.result() {
            Ended::Accepted => Ok(Timed::undated(Asked::Asked)),
            Ended::Refused(view) => Ok(Timed::undated(Asked::Refused(view))),
            Ended::Unknown | Ended::Open => Err(came.failures.too_few(self, Applied::Unknown)),
        }
    }

    async fn ask_one(&self, member: usize, ask: Ask, limit: Duration) -> Said {
        if let Err(error) = self.ensure_fit(member, None, limit).await {
            return Said::Failed(error);
        }
        match self.ask_member(member, limit, self.members[member].store.ask(&ask)).await.map(|heard| heard.value) {
            Ok(Asked::Asked) => Said::Accepted,
            Ok(Asked::Refused(view)) => Said::Refused(view),
            Err(error) => Said::Failed(error),
        }
    }

    fn of_all(&self, kind: Kind) -> Ending {
        Ending::new(kind, self.size(), &(0..self.size()).collect::<Vec<_>>())
    }
}
