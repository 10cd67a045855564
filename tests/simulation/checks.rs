//! What must hold at every moment of true time. The numbers are those of docs/protocol.md.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use leasehold::protocol::record::Stored;
use leasehold::{Claim, Data, Event, Events, Grant, Held, Name, Renew, Vacate};

use super::closings::Closings;
use super::machine::{Gate, Run};
use super::recipes::Promises;

/// A run sends some hundred requests.
const STORM: u64 = 20_000;

/// A lease that some process has.
#[derive(Debug)]
pub struct Live {
    pub id: u64,
    pub process: usize,
    pub held: Held,
    pub gate: Arc<Gate>,
}

/// Watches a run. Only the first violation is kept.
#[derive(Debug, Default)]
pub struct Checks {
    /// True time, as of the last event.
    pub now: Duration,
    violation: Option<String>,
    /// By name and token: whose grant it is.
    granted: BTreeMap<(Name, u64), Grant>,
    /// The highest token that an acquire has returned.
    returned: BTreeMap<Name, u64>,
    /// Grants whose owner was told that they are over: nothing of them is sent any more.
    silent: BTreeSet<Grant>,
    /// Those whose release was answered Ok: no late copy may change the record.
    released: BTreeSet<Grant>,
    /// Grants that must not be renewed any more.
    ended: BTreeSet<Grant>,
    /// Claims of which nothing can be applied any more, as far as their client has been told.
    settled: BTreeSet<Grant>,
    /// The newest payload of a grant that the store has accepted.
    payloads: BTreeMap<Grant, u64>,
    live: Vec<Live>,
    listening: BTreeMap<usize, Events>,
    /// The highest token that has acted on the resource which asks is_held() only.
    unfenced: BTreeMap<Name, u64>,
    fenced: BTreeMap<Name, u64>,
    /// Until when an operator's act excuses two believers of a name.
    pub two_may_believe: BTreeMap<Name, Duration>,
    /// Until when an operator's act excuses tokens of a name that do not rise.
    pub tokens_may_fall: BTreeMap<Name, Duration>,
    pub closings: Closings,
    pub promises: Promises,
    pub counts: Counts,
}

/// How often what has happened in a run, so that one in which nothing happens is seen.
#[derive(Clone, Default)]
pub struct Counts(BTreeMap<Cow<'static, str>, u64>);

impl Counts {
    pub fn one_more(&mut self, what: impl Into<Cow<'static, str>>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Counts) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A payload of the simulation: a number that rises within a grant.
pub fn number_of(data: Option<&Data>) -> u64 {
    data.and_then(|data| data.as_bytes().try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// What acquires return.
impl Checks {
    pub fn fail(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| what.into());
    }

    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// The highest token of each name that an acquire has returned so far.
    pub fn returned(&self) -> BTreeMap<Name, u64> {
        let mut returned = self.returned.clone();
        returned.retain(|name, _| !self.is_excused(&self.tokens_may_fall, name));
        returned
    }

    /// An acquire that began when `before` was the highest token has returned this lease.
    pub fn acquired(&mut self, live: Live, before: &BTreeMap<Name, u64>) {
        let (name, token) = (live.held.name().clone(), live.held.token().as_u64());
        let excused = self.is_excused(&self.tokens_may_fall, &name);
        let before = before.get(&name).copied().unwrap_or(0);
        self.counts.one_more("grants");
        if token <= before && !excused {
            self.fail(format!("I2: {name}: token {token} was granted to one who began after {before} had returned"));
        }
        let twice = |other: &Live| *other.held.name() == name && other.held.token().as_u64() == token;
        if self.live.iter().any(twice) && !excused {
            self.fail(format!("I1: {name}: token {token} was returned twice"));
        }
        let highest = self.returned.entry(name).or_default();
        *highest = (*highest).max(token);
        self.live.push(live);
    }

    fn is_excused(&self, excuses: &BTreeMap<Name, Duration>, name: &Name) -> bool {
        excuses.get(name).is_some_and(|until| self.now <= *until)
    }

    pub fn grant_of(&self, name: &Name, token: u64) -> Option<Grant> {
        self.granted.get(&(name.clone(), token)).copied()
    }

    /// The owner has ended it, and was told that nothing will be sent for it any more.
    pub fn silenced(&mut self, name: &Name, token: u64) {
        self.silent.extend(self.grant_of(name, token));
    }

    /// Its release has returned Ok.
    pub fn released(&mut self, name: &Name, token: u64) {
        self.silenced(name, token);
        self.released.extend(self.grant_of(name, token));
    }

    /// The owner has let go of it, or has lost it: it must not be renewed any more.
    pub fn over(&mut self, name: &Name, token: u64) {
        self.ended.extend(self.grant_of(name, token));
    }

    /// None of these must be renewed any more.
    pub fn end_all(&mut self, grants: impl IntoIterator<Item = Grant>) {
        self.ended.extend(grants);
    }

    /// The process does not use this lease any more.
    pub fn forget(&mut self, id: u64) {
        self.live.retain(|live| live.id != id);
    }

    /// The process is dead.
    pub fn died(&mut self, process: usize) {
        self.live.retain(|live| live.process != process);
        self.listening.remove(&process);
    }

    pub fn listen(&mut self, process: usize, events: Events) {
        self.listening.insert(process, events);
    }

    /// Takes in what clients have told of losses.
    fn hear(&mut self) {
        let mut over = Vec::new();
        for events in self.listening.values_mut() {
            while let Some(Some(event)) = events.next().now_or_never() {
                if let Event::Lost(lost) = event {
                    over.push((lost.name().clone(), lost.token().as_u64()));
                }
            }
        }
        for (name, token) in over {
            self.counts.one_more("lost");
            self.over(&name, token);
        }
    }
}

/// What is sent.
impl Checks {
    pub fn claim_sent(&mut self, process: usize, claim: &Claim) {
        self.request_sent();
        self.claims_for_recipe(process, claim);
        self.must_not_be_silent(claim.grant, "claim", &claim.name);
    }

    pub fn renew_sent(&mut self, renew: &Renew) {
        self.request_sent();
        self.renews_for_recipe(renew);
        self.must_not_be_silent(renew.grant, "renewal", &renew.name);
        if self.ended.contains(&renew.grant) {
            self.fail(format!("I6: {}: token {} is renewed after its end", renew.name, renew.token));
        }
    }

    pub fn vacate_sent(&mut self, vacate: &Vacate) {
        self.request_sent();
        if vacate.burn {
            self.counts.one_more("burns");
        }
        self.must_not_be_silent(vacate.grant, "release", &vacate.name);
        self.closing_sent(vacate);
        self.releases_for_recipe(vacate);
    }

    fn request_sent(&mut self) {
        self.counts.one_more("requests");
        if self.counts.of("requests") > STORM {
            self.fail(format!("a storm: more than {STORM} requests"));
        }
        self.hear();
    }

    pub fn must_not_be_silent(&mut self, grant: Grant, verb: &str, name: &Name) {
        if self.silent.contains(&grant) {
            self.fail(format!("I10: {name}: a {verb} is sent after the grant's end was answered Ok"));
        }
    }

    /// The client has been told that nothing of this claim can be applied any more.
    pub fn settled(&mut self, grant: Grant) {
        self.settled.insert(grant);
    }
}

/// What the store applies.
impl Checks {
    /// Any write at all.
    pub fn token_written(&mut self, name: &Name, before: u64, after: u64) {
        if after < before {
            self.fail(format!("I5: {name}: the stored token went down from {before} to {after}"));
        }
    }

    /// A write on behalf of this grant.
    pub fn writes(&mut self, name: &Name, grant: Grant, verb: &str) {
        if self.settled.contains(&grant) {
            self.fail(format!("I9: {name}: a {verb} was applied after the claim's end was settled"));
        }
        self.writes_at_the_end(name, grant, verb);
    }

    /// A write on behalf of this grant that can only end it.
    pub fn writes_at_the_end(&mut self, name: &Name, grant: Grant, verb: &str) {
        if self.released.contains(&grant) {
            self.fail(format!("I10: {name}: a late {verb} has changed the record after its release was answered Ok"));
        }
    }

    /// The record carries this grant with this token now.
    pub fn granted(&mut self, name: &Name, token: u64, grant: Grant) {
        let excused = self.is_excused(&self.tokens_may_fall, name);
        if let Some(before) = self.granted.insert((name.clone(), token), grant)
            && before != grant
            && !excused
        {
            self.fail(format!("I1: {name}: token {token} was granted twice"));
        }
    }

    /// The payload that the grant has put into the record. It belongs to the grant from its claim on.
    pub fn payload_written(&mut self, name: &Name, grant: Grant, data: Option<&Data>) {
        let now = number_of(data);
        let newest = self.payloads.entry(grant).or_insert(now);
        let went_back = now < *newest;
        *newest = now.max(*newest);
        if went_back {
            self.fail(format!("{name}: the payload of a grant went back"));
        }
    }

    /// `set_data` has returned Ok for this payload.
    pub fn stored_payload(&mut self, name: &Name, token: u64, number: u64) {
        let grant = self.grant_of(name, token);
        let accepted = grant.and_then(|grant| self.payloads.get(&grant).copied()).unwrap_or(0);
        if accepted < number {
            self.fail(format!("{name}: set_data was Ok for payload {number}, the store has accepted {accepted}"));
        }
    }
}

/// What holders do.
impl Checks {
    /// A worker has found its lease held and acts on a resource that does not ask for the token.
    pub fn acted_unfenced(&mut self, name: &Name, token: u64) {
        if self.is_excused(&self.two_may_believe, name) {
            return;
        }
        let highest = self.unfenced.entry(name.clone()).or_default();
        let before = *highest;
        *highest = before.max(token);
        if token < before {
            self.fail(format!("I3: {name}: {token} acted in belief after {before} had"));
        }
    }

    /// An effect on the resource that checks tokens.
    pub fn acted_fenced(&mut self, name: &Name, token: u64, admitted: bool) {
        let highest = self.fenced.entry(name.clone()).or_default();
        let before = *highest;
        *highest = before.max(token);
        if !admitted {
            self.counts.one_more("stale writes refused");
        }
        if admitted != (token >= before) {
            self.fail(format!("I7: {name}: after {before} the resource was wrong about {token}"));
        }
    }

    /// A process that holds something now.
    pub fn a_holder(&self) -> Option<usize> {
        self.live.iter().rev().find(|live| live.held.is_held()).map(|live| live.process)
    }

    /// Those who can be asked and say that they hold something.
    fn believers(&self) -> impl Iterator<Item = &Live> {
        let awake = |live: &&Live| matches!(live.gate.state(), Run::Running | Run::Paused);
        self.live.iter().filter(awake).filter(|live| live.held.is_held())
    }

    pub fn is_believed(&self, name: &Name, token: u64) -> bool {
        self.believers().any(|live| live.held.name() == name && live.held.token().as_u64() == token)
    }

    /// I3 and I4, now.
    pub fn sample(&mut self, truth: impl Fn(&Name) -> Stored) {
        let mut found: Option<String> = None;
        let mut holders: Vec<(&Name, u64, usize)> = Vec::new();
        for live in self.believers() {
            let (name, token) = (live.held.name(), live.held.token().as_u64());
            let grant = self.granted.get(&(name.clone(), token));
            if grant.is_some_and(|grant| self.ended.contains(grant)) {
                found.get_or_insert(format!("I6: {name}: {token} is held again after its end"));
            }
            if self.is_excused(&self.two_may_believe, name) {
                continue;
            }
            if let Some((_, other, process)) = holders.iter().find(|(held, ..)| *held == name) {
                let (mine, theirs) = (live.process, process);
                found = Some(format!("I3: {name} is held with {token} by process {mine} and {other} by {theirs}"));
            }
            holders.push((name, token, live.process));
            if let Some(what) = not_carried(&truth(name), token, grant) {
                found.get_or_insert(format!("I4: {name}: {token} is believed, but {what}"));
            }
        }
        let too_many = self.promises.too_many(holders.iter().map(|(name, ..)| *name));
        if let Some(found) = found.or(too_many) {
            self.fail(found);
        }
    }

    /// Lets go of everything that keeps clients alive.
    pub fn clear(&mut self) {
        self.live.clear();
        self.listening.clear();
    }
}

fn not_carried(stored: &Stored, token: u64, grant: Option<&Grant>) -> Option<String> {
    let Stored::Record(record) = stored else { return Some("there is no record".to_owned()) };
    let mine = record.token == token && (record.revoked || record.grant.as_ref() == grant);
    let held = if record.grant.is_some() { "held" } else { "free" };
    (!mine || record.grant.is_none()).then(|| format!("the record is {held} with {}", record.token))
}
