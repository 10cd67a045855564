//! The administrator's other act: bringing the records of one list of members to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::set_up::failed;
use super::{MajorityStore, Team};
use crate::protocol::majority::shown::{self, as_shown};
use crate::protocol::majority::{Seen, quorum};
use crate::types::{
    Claim, Claimed, Close, Error, ErrorKind, Expect, FencingToken, Grant, Listed, Name, Operation, Record, Standing,
    Vacate, Vacated, View,
};

/// The term of the claims that bring a record over, if the members give so short a one.
const TERM_MS: u64 = 1_000;
/// Drawn once, by chance: no client draws it.
const MOVING: u128 = 0x6b0d_93c2_51f8_4ea7_9c3e_20d7_b846_1af5;

impl MajorityStore {
    /// Brings every record of another list of members to this one: each member of this list gets it with a token above
    /// all that any member of either list has, with its payload, and closed for as long again if it was closed.
    ///
    /// For changing the list of members, and for bringing back one that was wiped, while every client is stopped and has
    /// been for a term; `docs/multi-region.md` has the procedure. [`set_up_again`](Self::set_up_again) comes after it.
    /// Returns how many records there were. It may be called again after an error.
    ///
    /// It takes a majority of the old members that have their marks, and all of the new ones, and reads and writes each
    /// record there.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when a record is still held somewhere, or is changed meanwhile: a client is not stopped.
    /// [`ErrorKind::Unreadable`] for a record that this version must not touch. Else as of the stores.
    ///
    /// # Cancel safety
    /// What was brought over stays; call it again.
    pub async fn move_from(&self, old: &MajorityStore) -> Result<usize, Error> {
        let there = old.team.what_members_have().await?;
        let here = self.team.what_all_have().await?;
        let mut names: BTreeMap<Name, (Vec<Option<Seen>>, u64)> = BTreeMap::new();
        for (name, views) in there {
            let highest = views.iter().flatten().map(View::token).max().unwrap_or(0);
            let seen = resumed(views).into_iter().map(|view| view.map(Seen::unwatched)).collect();
            names.insert(name, (seen, highest));
        }
        let found = names.len();
        for (name, (seen, highest)) in names {
            let own = here.get(&name).into_iter().flatten().flatten().map(View::token).max().unwrap_or(0);
            let token = highest.max(own) + 1;
            if token > FencingToken::MAX {
                return Err(failed(ErrorKind::Unreadable, format!("{name}: there is no higher token")));
            }
            let shown = shown::kept(&seen).unwrap_or_default();
            for member in 0..self.team.size() {
                self.team.bring(member, &name, &shown, token).await?;
            }
        }
        Ok(found)
    }
}

/// The grant under which a record is brought over with this token, so that a move that was interrupted is known by it.
fn moving(token: u64) -> Grant {
    Grant::from_bits(MOVING ^ u128::from(token))
}

/// What the members had before a move that was interrupted, as far as their closings go: its copies have other tokens
/// than what they are copies of, and one that it had only begun is not closed yet.
fn resumed(views: Vec<Option<View>>) -> Vec<Option<View>> {
    let is_closed = |record: &&Record| record.grant.is_none() && record.closed.is_some();
    let closings: Vec<Record> =
        views.iter().flatten().filter_map(|view| view.record.as_ref()).filter(is_closed).cloned().collect();
    let as_first = |view: View| {
        let Some(record) = &view.record else { return view };
        let begun = record.grant == Some(moving(record.token));
        let for_ms = |record: &Record| record.closed.and_then(|closed| closed.for_ms);
        let alike = |other: &&Record| {
            other.data == record.data && (begun || is_closed(&record) && for_ms(other) == for_ms(record))
        };
        match closings.iter().find(alike) {
            None if begun => View::of(Record { grant: None, ..record.clone() }),
            None => view,
            Some(first) => View::of(Record { grant: None, closed: first.closed, ..record.clone() }),
        }
    };
    views.into_iter().map(|view| view.map(as_first)).collect()
}

impl Team {
    /// What a majority has of each name. One that was wiped has forgotten what was granted, so it is none of them.
    async fn what_members_have(self: &Arc<Self>) -> Result<BTreeMap<Name, Vec<Option<View>>>, Error> {
        let limit = self.limit(None);
        let pinned = self.ensure_pinned(limit).await;
        pinned.map_err(|error| Error::of_store(Operation::Open, "majority", error))?;
        self.records(quorum(self.size()), true).await
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
        let mut last = None;
        for (member, found) in found.iter_mut().enumerate() {
            let fit = if marked { self.ensure_fit(member, Some(0), limit).await } else { Ok(()) };
            let listed = match fit {
                Ok(()) => self.list_pages(member, "", limit).await,
                Err(error) => Err(error),
            };
            match listed {
                Ok(page) if page.skipped > 0 => tracing::warn!(
                    store = self.members[member].about.identity.as_str(),
                    skipped = page.skipped,
                    "items that are not leases, or not readable, were left where they are"
                ),
                Ok(page) => *found = Some(page.leases),
                Err(error) => last = Some(self.unmarked(member, error)),
            }
        }
        match (found.iter().flatten().count() >= needed, last) {
            (false, Some(error)) => Err(error),
            _ => Ok(self.by_name(found)),
        }
    }

    /// Takes the record of one member over and leaves it free, or closed, with that token.
    async fn bring(self: &Arc<Self>, member: usize, name: &Name, shown: &Record, token: u64) -> Result<(), Error> {
        let (limit, store) = (self.limit(None), &self.members[member].store);
        let identity = &self.members[member].about.identity;
        let failed_at = |error| self.unmarked(member, error);
        let view = self.ask_member(member, limit, store.read(name)).await.map_err(failed_at)?.value;
        let expect = match as_shown(view).standing {
            Standing::Vacant => Expect::Vacant,
            // Every client is stopped: what nobody renews is dead after a term.
            Standing::Held(version) | Standing::Expired(version) => Expect::Expired(version),
            Standing::Unreadable(reason) => {
                return Err(failed(ErrorKind::Unreadable, format!("{name} in {identity} is left alone: {reason}")));
            }
        };
        let shortest = u64::try_from(self.about.ttl.start().as_millis()).unwrap_or(TERM_MS);
        let grant = moving(token);
        let claim = Claim {
            name: name.clone(),
            token,
            grant,
            ttl_ms: TERM_MS.max(shortest),
            expires_at_ms: None,
            holder: shown.holder.clone(),
            data: shown.data.clone(),
            set: Some(self.set),
            expect,
        };
        let claimed = self.ask_member(member, limit, store.claim(&claim)).await.map_err(failed_at)?.value;
        let for_ms = shown.closed.and_then(|closed| closed.for_ms);
        let close = for_ms.map(|for_ms| Close { for_ms, until_ms: None, data: shown.data.clone() });
        let vacate = Vacate { name: name.clone(), token, grant, burn: true, close, now_ms: None };
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
