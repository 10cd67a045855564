//! What the recipes promise beyond what each of their leases does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::recipes::Tick;
use leasehold::{Ask, Claim, Data, Expect, Grant, Name, Renew, Vacate};

use super::super::checks::{Checks, number_of};
use super::super::plan::Plan;
use super::Recipe;

/// What is kept of a run's recipe.
#[derive(Debug, Default)]
pub struct Promises {
    names: BTreeSet<Name>,
    permits: Option<usize>,
    /// Whether no tick may run twice, and the least time between two runs.
    once_a_tick: bool,
    at_least: Duration,
    /// Whether a held record always says by whom.
    says_who_holds: bool,
    /// Whether a claim of a free record names the write that was looked at.
    names_free_records: bool,
    /// Tokens of claims that name no write.
    blind: BTreeSet<u64>,
    /// What each process has claimed, and has not given up.
    claimed: BTreeMap<usize, Vec<Grant>>,
    /// What has left its client to be published under a token.
    said: BTreeSet<(u64, u64)>,
    asked: BTreeSet<u64>,
    /// Work that has begun under a lease, and has not ended.
    working: BTreeSet<(Name, u64)>,
    /// Which ticks have begun, and the token of the last that has begun each.
    ticks: BTreeMap<u64, u64>,
    last_turn: Option<(Duration, u64)>,
    /// Whether a tick has run after all faults had ended.
    pub goes_on: bool,
}

impl Promises {
    pub fn of(plan: &Plan) -> Self {
        let names = plan.recipe.map_or(Vec::new(), Recipe::names).into_iter().collect();
        let (names_free_records, says_who_holds) = (plan.names_free_records(), plan.says_who_holds());
        let mut promises = Self { names, names_free_records, says_who_holds, ..Self::default() };
        match plan.recipe {
            Some(Recipe::Semaphore(permits)) => promises.permits = Some(permits as usize),
            Some(Recipe::Schedule { agreed, .. }) => {
                (promises.once_a_tick, promises.at_least) = (agreed, plan.at_least());
            }
            _ => {}
        }
        promises
    }

    pub fn begins(&mut self, name: &Name, token: u64) {
        self.working.insert((name.clone(), token));
    }

    pub fn ends(&mut self, name: &Name, token: u64) {
        self.working.remove(&(name.clone(), token));
    }

    /// What is wrong with the number of permits that are believed in.
    pub fn too_many<'a>(&self, held: impl Iterator<Item = &'a Name>) -> Option<String> {
        let permits = self.permits?;
        let believed = held.filter(|name| name.as_str().starts_with(super::semaphore::NAME)).count();
        (believed > permits).then(|| format!("{believed} permits are held, of {permits}"))
    }
}

/// What is sent.
impl Checks {
    pub fn claims_for_recipe(&mut self, process: usize, claim: &Claim) {
        if self.promises.names.contains(&claim.name) {
            self.promises.claimed.entry(process).or_default().push(claim.grant);
            self.promises.said.insert((claim.token, number_of(claim.data.as_ref())));
            if claim.expect == Expect::Vacant {
                self.promises.blind.insert(claim.token);
            }
        }
    }

    pub fn renews_for_recipe(&mut self, renew: &Renew) {
        if self.promises.names.contains(&renew.name) && renew.data.is_some() {
            self.promises.said.insert((renew.token, number_of(renew.data.as_ref())));
        }
    }

    pub fn asks_for_recipe(&mut self, ask: &Ask) {
        if self.promises.names.contains(&ask.name) {
            self.promises.asked.insert(ask.step_down.token);
        }
    }

    pub fn releases_for_recipe(&mut self, vacate: &Vacate) {
        let of = (vacate.name.clone(), vacate.token);
        if !vacate.burn && self.promises.working.contains(&of) {
            self.fail(format!("{}: {} is given back while the work under it runs", of.0, of.1));
        }
    }

    /// Nothing came of what this process has tried.
    pub fn gave_up(&mut self, process: usize) {
        let given_up = self.promises.claimed.remove(&process).unwrap_or_default();
        self.end_all(given_up);
    }
}

/// What those who use a recipe see.
impl Checks {
    /// A watcher sees this leader, after one with `last`.
    pub fn leader_seen(&mut self, name: &Name, last: u64, token: u64, data: &[u8]) {
        let number = number_of(Data::new(data).as_ref());
        self.counts.one_more("leaders seen");
        if token < last {
            self.fail(format!("{name}: a watcher sees {token} after {last}"));
        }
        match self.grant_of(name, token) {
            // The record is held, and what it says is of a claim that was given up before.
            None if !self.promises.says_who_holds => return self.counts.one_more("leaders not told yet"),
            None => self.fail(format!("{name}: a watcher sees {token}, which was never granted")),
            Some(_) => {}
        }
        if data.is_empty() || !self.promises.said.contains(&(token, number)) {
            self.fail(format!("{name}: a watcher sees {token} with {data:?}, which it has never published"));
        }
    }

    /// Its work was told to step down.
    pub fn stepped_down(&mut self, name: &Name, token: u64) {
        self.counts.one_more("stepped down");
        if !self.promises.asked.contains(&token) {
            self.fail(format!("{name}: {token} steps down, and nobody has asked it"));
        }
    }

    /// Whether the claim of `token` may have been slower than the whole run of `before` in its tick: it names no write,
    /// because the store compares none, and that run has not closed the record.
    fn is_unseen(&self, name: &Name, before: u64, token: u64) -> bool {
        let promises = &self.promises;
        !promises.names_free_records && promises.blind.contains(&token) && !self.has_closed(name, before)
    }

    /// A turn was returned. The record has room for one run at a time, so they come in the order of their beginnings.
    pub fn turn_begins(&mut self, name: &Name, tick: Tick, token: u64) {
        self.counts.one_more("turns");
        let (now, promises) = (self.now, &mut self.promises);
        let missed = tick.id.saturating_sub(tick.missed)..tick.id;
        let (once, missed_one) = (promises.once_a_tick, promises.ticks.range(missed).next().map(|(tick, _)| *tick));
        let before = promises.ticks.insert(tick.id, token);
        let last = promises.last_turn.replace((now, token));
        match before.filter(|_| once) {
            Some(before) if self.is_unseen(name, before, token) => self.counts.one_more("ticks begun again unseen"),
            Some(before) => self.fail(format!("{name}: tick {} of {before} is begun again", tick.id)),
            None => {}
        }
        if let Some(missed) = missed_one.filter(|_| once) {
            self.fail(format!("{name}: tick {missed} has been begun, and tick {} counts it as missed", tick.id));
        }
        // By clocks within rho of true time, both of whoever has closed it and of whoever opens it.
        let least = self.promises.at_least * 98 / 100;
        if let Some((begun, last)) = last
            && self.has_closed(name, last)
            && now < begun + least
        {
            let after = now - begun;
            self.fail(format!("{name}: the run of {token} begins {after:?} after that of {last}, not {least:?}"));
        }
    }
}
