//! The administrator's other act: bringing the records of one list of members to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::member::{Member, reserved};
use super::set_up::failed;
use super::{MajorityStore, Team};
use crate::protocol::majority::moving::{Brought, Refusal, brought, expectation, needed, written};
use crate::protocol::majority::roster::pinned;
use crate::store::Store;
use crate::types::{Claimed, Error, ErrorKind, Listed, Name, Operation, TokenFloor, Vacated, View};

/// The term of the claims that bring a record over, if the members give so short a one.
const TERM_MS: u64 = 1_000;

impl MajorityStore {
    /// Brings every record of another list of members to this one: each member of this list gets it with a token above
    /// all that any member of either list has, with its payload, and closed for as long again if it was closed.
    ///
    /// For changing the list of members, and for bringing back one that was wiped, while every client is stopped and has
    /// been for a term; `docs/multi-region.md` has the procedure. [`set_up_again`](Self::set_up_again) comes after it.
    /// Returns how many records there were. It may be called again after an error, until the new list is set up.
    ///
    /// It takes a majority of the old members that have their marks, and all of the new ones, and reads and writes each
    /// record there.
    ///
    /// An item that no member's list can read is left where it is, with a warning; a name that one of them shows is read
    /// on all, and is an error where it cannot be.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the new list is set up already; when a record is changed meanwhile, or a store that
    /// judges says that it is held: a client is not stopped. [`ErrorKind::Unreadable`] for a record that this version must not touch.
    /// [`ErrorKind::Unavailable`] when it depends on a member that has not answered whether a record was closed. Else as
    /// of the stores.
    ///
    /// # Cancel safety
    /// What was brought over stays; call it again.
    pub async fn move_from(&self, old: &MajorityStore) -> Result<usize, Error> {
        let there = old.team.what_members_have().await?;
        self.team.is_not_in_use(&old.team).await?;
        let here = self.team.what_all_have().await?;
        let found = there.len();
        // Every member has told its time by now.
        let floor = [self, old].into_iter().filter_map(MajorityStore::floor_now).max();
        for (name, old) in there {
            let new = here.get(&name).map_or(&[][..], Vec::as_slice);
            let brought = brought(&old, new, floor).map_err(|refusal| refused(&name, refusal))?;
            for member in written(self.team.size()) {
                self.team.bring(member, &name, &brought).await?;
            }
        }
        Ok(found)
    }

    fn floor_now(&self) -> Option<u64> {
        match self.token_floor(&self.team.clock.stamp()) {
            TokenFloor::At(floor) => Some(floor),
            TokenFloor::None | TokenFloor::Unknown => None,
        }
    }
}

impl Team {
    /// A move after the new list was set up would take the leases of its clients, and bring back what they have replaced.
    async fn is_not_in_use(self: &Arc<Self>, old: &Team) -> Result<(), Error> {
        let marks: Vec<_> = self.marks().await?.into_iter().map(|(_, mark)| mark).collect();
        let Some(roster) = pinned(&marks) else { return Ok(()) };
        if old.roster().as_ref() == Some(&roster) {
            return Ok(());
        }
        let why = format!(
            "the members of the new list are set up together already, so its clients may be at work: nothing was moved. \
             If they are not, and nothing on them is needed, delete the lease named {} from each of them",
            reserved()
        );
        Err(failed(ErrorKind::Refused, why))
    }

    /// What a majority has of each name. One that was wiped has forgotten what was granted, so it is none of them.
    async fn what_members_have(self: &Arc<Self>) -> Result<BTreeMap<Name, Vec<Option<View>>>, Error> {
        let limit = self.limit(None);
        let pinned = self.ensure_pinned(limit).await;
        pinned.map_err(|error| Error::of_store(Operation::Open, "majority", error))?;
        self.records(needed(self.size()), true).await
    }

    /// What every member has, marked or not: one that was wiped or is new too.
    async fn what_all_have(self: &Arc<Self>) -> Result<BTreeMap<Name, Vec<Option<View>>>, Error> {
        self.records(self.size(), false).await
    }

    /// What each member has of each name; absent where a member that was asked has none.
    async fn records(
        self: &Arc<Self>,
        needed: usize,
        marked: bool,
    ) -> Result<BTreeMap<Name, Vec<Option<View>>>, Error> {
        let limit = self.limit(None);
        let mut found: Vec<Option<Vec<Listed>>> = vec![None; self.size()];
        let (mut last, mut skipped) = (None, Vec::new());
        for (member, found) in found.iter_mut().enumerate() {
            let fit = if marked { self.ensure_fit(member, Some(0), limit).await } else { Ok(()) };
            let listed = match fit {
                Ok(()) => self.list_pages(member, "", limit).await,
                Err(error) => Err(error),
            };
            match listed {
                Ok(page) => {
                    skipped.extend((page.skipped > 0).then_some(member));
                    *found = Some(page.leases);
                }
                Err(error) => last = Some(self.unmarked(member, error)),
            }
        }
        if let Some(error) = last.filter(|_| found.iter().flatten().count() < needed) {
            return Err(error);
        }
        let mut names = self.by_name(found);
        for member in skipped {
            self.read_what_is_not_listed(member, &mut names).await?;
        }
        Ok(names)
    }

    /// Where a list has skipped items, one that it does not show may be there and not readable.
    async fn read_what_is_not_listed(
        self: &Arc<Self>,
        member: usize,
        names: &mut BTreeMap<Name, Vec<Option<View>>>,
    ) -> Result<(), Error> {
        let (limit, Member { store, about, .. }) = (self.limit(None), &self.members[member]);
        tracing::warn!(
            store = about.identity.as_str(),
            "items that are not leases, or not readable, are left where they are"
        );
        for (name, views) in names {
            if views[member].as_ref().is_some_and(|view| view.record.is_none()) {
                let read = self.ask_member(member, limit, store.read(name)).await;
                views[member] = Some(read.map_err(|error| self.unmarked(member, error))?.value);
            }
        }
        Ok(())
    }

    /// Takes the record of one member over and leaves it free, or closed, with that token.
    async fn bring(self: &Arc<Self>, member: usize, name: &Name, brought: &Brought) -> Result<(), Error> {
        let (limit, store) = (self.limit(None), &self.members[member].store);
        let identity = &self.members[member].about.identity;
        let failed_at = |error| self.unmarked(member, error);
        let view = self.ask_member(member, limit, store.read(name)).await.map_err(failed_at)?.value;
        let expect = expectation(view)
            .map_err(|reason| failed(ErrorKind::Unreadable, format!("{name} in {identity} is left alone: {reason}")))?;
        let shortest = u64::try_from(self.about.ttl.start().as_millis()).unwrap_or(TERM_MS);
        let claim = brought.claim(name.clone(), self.set, TERM_MS.max(shortest), expect);
        let vacate = brought.vacate(name.clone());
        let claimed = self.ask_member(member, limit, store.claim(&claim)).await.map_err(failed_at)?.value;
        let freed = match claimed {
            Claimed::Granted => self.ask_member(member, limit, store.vacate(&vacate)).await.map_err(failed_at)?.value,
            Claimed::Refused(view) => Vacated::Refused(view),
        };
        match freed {
            Vacated::Vacated => Ok(()),
            Vacated::Refused(_) => Err(failed(
                ErrorKind::Refused,
                format!(
                    "{name} in {identity} is held, or was changed meanwhile: stop every client, and wait for a term"
                ),
            )),
        }
    }
}

fn refused(name: &Name, refusal: Refusal) -> Error {
    let (kind, why) = match refusal {
        Refusal::NoToken => (ErrorKind::Unreadable, "there is no higher token"),
        Refusal::TooFew => (ErrorKind::Unreadable, "too few members of the old list have a record that can be read"),
        Refusal::Undecided => {
            let why =
                "whether it was closed depends on members of the old list that have not answered: bring them back";
            (ErrorKind::Unavailable, why)
        }
    };
    failed(kind, format!("{name}: {why}"))
}
