//! Looking at all members: what they show of a name, and of all names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Team;
use super::error::{Failures, RESERVED, misconfigured, not_reserved};
use super::member::Heard;
use super::names::Watched;
use super::round::Round;
use crate::protocol::majority::roster::stranger;
use crate::protocol::majority::{Seen, quorum, shown, watched_from};
use crate::time;
use crate::types::{Answer, Applied, ListPage, Listed, Name, Page, Sample, Stamp, StoreError, Timed, View};

/// How much longer than a majority has taken the others are waited for, at least.
const SHORTEST_GRACE: Duration = Duration::from_millis(5);

/// What the members show of one name; `None` for one that has not answered or does not count.
pub(super) struct Look {
    pub(super) seen: Vec<Option<Seen>>,
    /// The date of each answer, and when it came.
    pub(super) dates: Vec<Option<(Option<Sample>, Stamp)>>,
}

impl Team {
    pub(super) async fn read(self: &Arc<Self>, name: &Name) -> Answer<View> {
        not_reserved(name)?;
        let limit = self.limit(None);
        self.ensure_pinned(limit).await?;
        let look = self.look(name, &self.known.names.of(name), None, limit).await?;
        self.same_list(&look.seen)?;
        Ok(Timed::undated(shown::merged(&look.seen)))
    }

    /// Reads all members and judges each by its own observer. Waits for a majority, and a little for the others.
    ///
    /// `max_age`: how old at most the proof may be that a member counts.
    pub(super) async fn look(
        self: &Arc<Self>,
        name: &Name,
        watched: &Watched,
        max_age: Option<u64>,
        limit: Duration,
    ) -> Result<Look, StoreError> {
        let begun = self.clock.stamp();
        let reads = (0..self.size()).map(|member| {
            let (team, name) = (Arc::clone(self), name.clone());
            (member, async move { team.look_at(member, &name, max_age, limit).await })
        });
        let mut round = Round::begin(self.goes_on(), reads);
        let mut look = Look { seen: vec![None; self.size()], dates: vec![None; self.size()] };
        let (mut answered, mut failures) = (0, Failures::default());
        loop {
            let heard = match answered < quorum(self.size()) {
                true => round.next().await,
                false => time::within(&*self.clock, self.grace(&begun, limit), round.next()).await.flatten(),
            };
            match heard {
                Some((member, Ok(heard))) => {
                    answered += 1;
                    look.dates[member] = Some((heard.sample, heard.received));
                    let from = watched_from(&begun, &heard.received);
                    look.seen[member] = Some(self.judge(member, heard.value, watched, &from));
                }
                Some((member, Err(error))) => failures.add(member, error),
                None => break,
            }
        }
        if answered < quorum(self.size()) {
            return Err(failures.too_few(self, Applied::No));
        }
        Ok(look)
    }

    /// Its observer's word on what a member showed.
    pub(super) fn judge(&self, member: usize, view: View, watched: &Watched, received: &Stamp) -> Seen {
        let time = self.members[member].trusted_time();
        let judgement = watched.observers()[member].judge(&view, received, time.as_ref(), &self.clocks);
        Seen { view, judgement }
    }

    /// How much longer to wait for those who are slower than the majority: as long again, where nothing is lost by it.
    pub(super) fn grace(&self, begun: &Stamp, limit: Duration) -> Duration {
        if !self.goes_on() {
            return limit;
        }
        let taken = Duration::from_nanos(self.clock.stamp().steady_since(begun));
        taken.max(SHORTEST_GRACE).min(limit / 4)
    }

    /// A record of clients with another list of members is nobody's to judge.
    pub(super) fn same_list(&self, seen: &[Option<Seen>]) -> Result<(), StoreError> {
        match stranger(seen, self.set, |member| self.members[member].writes_at_once()) {
            None => Ok(()),
            Some(member) => Err(misconfigured(format!(
                "the record in {} was written by clients with another list of members, or by some that use that store \
                 alone: give all clients the same list, and see docs/multi-region.md to change it",
                self.members[member].about.identity
            ))),
        }
    }

    async fn look_at(
        &self,
        member: usize,
        name: &Name,
        max_age: Option<u64>,
        limit: Duration,
    ) -> Result<Heard<View>, StoreError> {
        let store = &self.members[member].store;
        let read = self.ask_member(member, limit, store.read(name));
        let (fit, heard) = futures_util::future::join(self.ensure_fit(member, max_age, limit), read).await;
        fit.and(heard)
    }

    /// All pages of all members: no member alone has all names, and a record may lie in another page at each.
    pub(super) async fn list(self: &Arc<Self>, prefix: &str) -> Answer<ListPage> {
        let limit = self.limit(None);
        self.ensure_pinned(limit).await?;
        let begun = self.clock.stamp();
        let lists = (0..self.size()).map(|member| {
            let (team, prefix) = (Arc::clone(self), prefix.to_owned());
            (member, async move { team.list_of(member, &prefix, limit).await })
        });
        let mut round = Round::begin(self.goes_on(), lists);
        let mut found: Vec<Option<Vec<Listed>>> = vec![None; self.size()];
        let (mut answered, mut skipped, mut failures) = (0, 0, Failures::default());
        loop {
            let heard = match answered < quorum(self.size()) {
                true => round.next().await,
                false => time::within(&*self.clock, self.grace(&begun, limit), round.next()).await.flatten(),
            };
            match heard {
                Some((member, Ok(page))) => {
                    answered += 1;
                    skipped = skipped.max(page.skipped);
                    found[member] = Some(page.leases);
                }
                Some((member, Err(error))) => failures.add(member, error),
                None => break,
            }
        }
        if answered < quorum(self.size()) {
            return Err(failures.too_few(self, Applied::No));
        }
        Ok(Timed::undated(ListPage { leases: self.merge(found), skipped, next: None }))
    }

    async fn list_of(&self, member: usize, prefix: &str, limit: Duration) -> Result<ListPage, StoreError> {
        self.ensure_fit(member, None, limit).await?;
        self.list_pages(member, prefix, limit).await
    }

    /// All pages of one member.
    pub(super) async fn list_pages(
        &self,
        member: usize,
        prefix: &str,
        limit: Duration,
    ) -> Result<ListPage, StoreError> {
        let store = &self.members[member].store;
        let mut all = ListPage { leases: Vec::new(), skipped: 0, next: None };
        let mut page: Option<Page> = None;
        loop {
            let found = self.ask_member(member, limit, store.list(prefix, page.clone())).await?.value;
            all.leases.extend(found.leases);
            all.skipped += found.skipped;
            match found.next {
                next @ Some(_) if next != page => page = next,
                _ => return Ok(all),
            }
        }
    }

    /// What each member has of each name: absent where one that has answered has none.
    pub(super) fn by_name(&self, found: Vec<Option<Vec<Listed>>>) -> BTreeMap<Name, Vec<Option<View>>> {
        let answered: Vec<bool> = found.iter().map(Option::is_some).collect();
        let nothing = || answered.iter().map(|answered| answered.then(View::absent)).collect::<Vec<_>>();
        let mut names: BTreeMap<Name, Vec<Option<View>>> = BTreeMap::new();
        for (member, listed) in found.into_iter().enumerate() {
            for Listed { name, view } in listed.into_iter().flatten().filter(|one| one.name.as_str() != RESERVED) {
                names.entry(name).or_insert_with(nothing)[member] = Some(view);
            }
        }
        names
    }

    fn merge(&self, found: Vec<Option<Vec<Listed>>>) -> Vec<Listed> {
        let names = self.by_name(found);
        let now = self.clock.stamp();
        let listed = names.into_iter().map(|(name, views)| {
            // A look that leaves nothing behind.
            let watched = self.known.names.copy_of(&name);
            let judge = |(member, view): (usize, Option<View>)| Some(self.judge(member, view?, &watched, &now));
            let seen: Vec<_> = views.into_iter().enumerate().map(judge).collect();
            Listed { view: shown::merged(&seen), name }
        });
        listed.filter(|listed| listed.view.record.is_some()).collect()
    }
}
