//! The administrator's act: the marks that make stores members of one majority.

use std::sync::Arc;

use super::member::reserved;
use super::round::Round;
use super::{MajorityStore, Team};
use crate::protocol::majority::roster::Mark;
use crate::types::{Close, Error, ErrorKind, Grant, MAX_TTL_MS, Operation, StoreError, Vacate, Vacated, View};

impl MajorityStore {
    /// Marks the members as the members of this majority, once for a list of stores.
    ///
    /// Each gets an incarnation of its own, and all of them are noted in each, under a reserved name. A member that
    /// loses its mark, because it was wiped or rebuilt, does not count any more; the library never writes a mark by
    /// itself. Call it from an administrator's tool, never from a service that starts. Called again for members that
    /// all have their marks it changes nothing; one that was interrupted is completed.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when a majority of the members have their marks and another has not: it was wiped, or it
    /// is new. The procedure in `docs/multi-region.md` brings it in, with [`move_from`](Self::move_from) and
    /// [`set_up_again`](Self::set_up_again). [`ErrorKind::Misconfigured`] when a store has the mark of another majority. Else as of the stores: all of
    /// them have to answer.
    ///
    /// # Cancel safety
    /// Not known to be written then; call again.
    pub async fn set_up(&self) -> Result<(), Error> {
        let found = self.team.marks().await?;
        let marks: Vec<&Mark> = found.iter().filter_map(|(_, mark)| mark.as_ref()).collect();
        let roster = match marks.first() {
            None => self.team.new_roster(),
            Some(first) => first.roster.clone(),
        };
        let size = self.team.size();
        let foreign = |member: usize| found[member].1.as_ref().is_some_and(|mark| !is_of(mark, &roster, member));
        if roster.len() != size || (0..size).any(foreign) {
            let why = "a store has the mark of another majority, or in another place: each store serves one list of \
                       members; to change a list see docs/multi-region.md";
            return Err(failed(ErrorKind::Misconfigured, why));
        }
        let missing: Vec<usize> = (0..size).filter(|member| found[*member].1.is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if marks.len() > size / 2 {
            let names: Vec<_> = missing.iter().map(|m| self.team.members[*m].about.identity.as_str()).collect();
            let why = format!(
                "{} has no mark and the other members have: it was wiped or is new; bring it in by the procedure in \
                 docs/multi-region.md",
                names.join(", ")
            );
            return Err(failed(ErrorKind::Refused, why));
        }
        self.team.mark(&missing, &roster, &found).await
    }

    /// Marks all members anew, whatever marks they have: the last step of changing a list, or of bringing a wiped
    /// member back, while every client is stopped.
    ///
    /// Clients that were built before refuse to work with the new marks until they are built again.
    ///
    /// # Errors
    /// As of the stores: all of them have to answer.
    ///
    /// # Cancel safety
    /// Not known to be written then; call again.
    pub async fn set_up_again(&self) -> Result<(), Error> {
        let found = self.team.marks().await?;
        let all: Vec<usize> = (0..self.team.size()).collect();
        self.team.mark(&all, &self.team.new_roster(), &found).await
    }
}

impl Team {
    /// The record of the mark in each member, and the mark.
    pub(super) async fn marks(self: &Arc<Self>) -> Result<Vec<(View, Option<Mark>)>, Error> {
        let limit = self.limit(None);
        let reads = (0..self.size()).map(|member| {
            let team = Arc::clone(self);
            (member, async move {
                let name = reserved();
                team.ask_member(member, limit, team.members[member].store.read(&name)).await.map(|heard| heard.value)
            })
        });
        let mut round = Round::begin(false, reads);
        let mut found = vec![None; self.size()];
        while let Some((member, read)) = round.next().await {
            let view = read.map_err(|error| self.unmarked(member, error))?;
            let mark = Mark::of(&view);
            found[member] = Some((view, mark));
        }
        found
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(|| failed(ErrorKind::Unavailable, "a member has not answered"))
    }

    /// A closing burn: one write, which is accepted only where there is nothing with a token that is not below.
    async fn mark(
        self: &Arc<Self>,
        to: &[usize],
        roster: &[u128],
        found: &[(View, Option<Mark>)],
    ) -> Result<(), Error> {
        let limit = self.limit(None);
        for member in to.iter().copied() {
            let data = Mark { own: roster[member], roster: roster.to_vec() }.to_data();
            let vacate = Vacate {
                name: reserved(),
                token: found[member].0.token() + 1,
                grant: Grant::from_bits(self.clock.random()),
                burn: true,
                close: Some(Close { for_ms: MAX_TTL_MS, until_ms: None, data }),
                now_ms: None,
            };
            let store = &self.members[member].store;
            let answer = self.ask_member(member, limit, store.vacate(&vacate)).await;
            match answer.map_err(|error| self.unmarked(member, error))?.value {
                Vacated::Vacated => {}
                Vacated::Refused(_) => {
                    let why = format!(
                        "{} was marked by somebody else meanwhile, or is the same store as another member: look again",
                        self.members[member].about.identity
                    );
                    return Err(failed(ErrorKind::Refused, why));
                }
            }
        }
        Ok(())
    }

    fn new_roster(&self) -> Vec<u128> {
        (0..self.size()).map(|_| self.clock.random()).collect()
    }

    pub(super) fn unmarked(&self, member: usize, error: StoreError) -> Error {
        let about = &self.members[member].about;
        let message = format!("the member {}: {}", about.identity, error.message);
        let error = StoreError { message, ..error };
        Error::of_store(Operation::Open, "majority", error)
    }
}

fn is_of(mark: &Mark, roster: &[u128], member: usize) -> bool {
    mark.roster == roster && roster.get(member) == Some(&mark.own)
}

pub(super) fn failed(kind: ErrorKind, why: impl Into<String>) -> Error {
    Error::new(kind, Operation::Open, why).on("majority")
}
