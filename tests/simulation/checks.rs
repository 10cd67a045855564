//! What must hold at every moment of true time. The numbers are those of docs/protocol.md.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use leasehold::protocol::record::Stored;
use leasehold::{Claim, Data, Event, Events, Grant, Held, Name, Record, Renew, Vacate};
use std::sync::Arc;

use super::machine::{Gate, Run};

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
    /// Claims whose clean-up is settled.
    settled: BTreeSet<Grant>,
    /// The newest payload of a grant that the store has accepted.
    payloads: BTreeMap<Grant, u64>,
    live: Vec<Live>,
    listening: BTreeMap<usize, Events>,
    /// The highest token that has acted on the resource which asks is_held() only.
    unfenced: BTreeMap<Name, u64>,
    fenced: BTreeMap<Name, u64>,
    pub counts: Counts,
}

/// What has happened in a run, so that one in which nothing happens is seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub requests: u64,
    pub grants: u64,
    pub takeovers: u64,
    pub resumed: u64,
    pub lost: u64,
    pub cancelled: u64,
    pub stale_refused: u64,
    pub burns: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.grants += other.grants;
        self.takeovers += other.takeovers;
        self.resumed += other.resumed;
        self.lost += other.lost;
        self.cancelled += other.cancelled;
        self.stale_refused += other.stale_refused;
        self.burns += other.burns;
    }
}

/// A payload of the simulation: a number that rises within a grant.
pub fn number_of(data: Option<&Data>) -> u64 {
    data.and_then(|data| data.as_bytes().try_into().ok()).map_or(0, u64::from_be_bytes)
}

impl Checks {
    pub fn fail(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| what.into());
    }

    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// The highest token of each name that an acquire has returned so far.
    pub fn returned(&self) -> BTreeMap<Name, u64> {
        self.returned.clone()
    }

    /// An acquire that began when `before` was the highest token has returned this lease.
    pub fn acquired(&mut self, live: Live, before: &BTreeMap<Name, u64>) {
        let (name, token) = (live.held.name().clone(), live.held.token().as_u64());
        let before = before.get(&name).copied().unwrap_or(0);
        self.counts.grants += 1;
        if token <= before {
            self.fail(format!("I2: {name}: token {token} was granted to one who began after {before} had returned"));
        }
        if self.live.iter().any(|other| *other.held.name() == name && other.held.token().as_u64() == token) {
            self.fail(format!("I1: {name}: token {token} was returned twice"));
        }
        let highest = self.returned.entry(name).or_default();
        *highest = (*highest).max(token);
        self.live.push(live);
    }

    /// A handed-over lease has become another one.
    pub fn resumed(&mut self) {
        self.counts.resumed += 1;
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
            self.counts.lost += 1;
            self.over(&name, token);
        }
    }

    pub fn claim_sent(&mut self, claim: &Claim) {
        self.count_request();
        self.must_not_be_silent(claim.grant, "claim", &claim.name);
    }

    pub fn renew_sent(&mut self, renew: &Renew) {
        self.count_request();
        self.must_not_be_silent(renew.grant, "renewal", &renew.name);
        if self.ended.contains(&renew.grant) {
            self.fail(format!("I6: {}: token {} is renewed after its end", renew.name, renew.token));
        }
    }

    pub fn vacate_sent(&mut self, vacate: &Vacate) {
        self.count_request();
        self.counts.burns += u64::from(vacate.burn);
        self.must_not_be_silent(vacate.grant, "release", &vacate.name);
    }

    fn count_request(&mut self) {
        self.counts.requests += 1;
        if self.counts.requests > STORM {
            self.fail(format!("a storm: more than {STORM} requests"));
        }
        self.hear();
    }

    fn must_not_be_silent(&mut self, grant: Grant, verb: &str, name: &Name) {
        if self.silent.contains(&grant) {
            self.fail(format!("I10: {name}: a {verb} is sent after the grant's end was answered Ok"));
        }
    }

    /// The client has been told that its clean-up is done.
    pub fn settled(&mut self, vacate: &Vacate) {
        if vacate.burn {
            self.settled.insert(vacate.grant);
        }
    }

    /// Any write at all.
    pub fn written(&mut self, name: &Name, before: &Stored, after: &Record) {
        let Stored::Record(before) = before else { return };
        if after.token < before.token {
            self.fail(format!("I5: {name}: the stored token went down from {} to {}", before.token, after.token));
        }
    }

    pub fn claimed(&mut self, claim: &Claim, before: &Stored, after: &Record) {
        let name = &claim.name;
        if let Some(grant) = self.granted.insert((name.clone(), claim.token), claim.grant)
            && grant != claim.grant
        {
            self.fail(format!("I1: {name}: token {} was granted twice", claim.token));
        }
        if self.settled.contains(&claim.grant) {
            self.fail(format!("I9: {name}: a claim was accepted after its clean-up was settled"));
        }
        self.must_not_write_silently(claim.grant, "claim", name);
        if after.data != claim.data {
            self.fail(format!("{name}: the payload of an older grant has survived a claim"));
        }
        self.payloads.insert(claim.grant, number_of(claim.data.as_ref()));
        let held = matches!(before, Stored::Record(record) if record.grant.is_some());
        self.counts.takeovers += u64::from(held);
    }

    pub fn renewed(&mut self, renew: &Renew, after: &Record) {
        self.must_not_write_silently(renew.grant, "renewal", &renew.name);
        let (now, newest) = (number_of(after.data.as_ref()), self.payloads.entry(renew.grant).or_default());
        let went_back = now < *newest;
        *newest = now.max(*newest);
        if went_back {
            self.fail(format!("{}: token {}: the payload went back", renew.name, renew.token));
        }
    }

    fn must_not_write_silently(&mut self, grant: Grant, verb: &str, name: &Name) {
        if self.released.contains(&grant) {
            self.fail(format!("I10: {name}: a late {verb} has changed the record after its release was answered Ok"));
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

    /// A worker has found its lease held and acts on a resource that does not ask for the token.
    pub fn acted_unfenced(&mut self, name: &Name, token: u64) {
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
        self.counts.stale_refused += u64::from(!admitted);
        if admitted != (token >= before) {
            self.fail(format!("I7: {name}: after {before} the resource was wrong about {token}"));
        }
    }

    /// A process that holds something now.
    pub fn a_holder(&self) -> Option<usize> {
        self.live.iter().rev().find(|live| live.held.is_held()).map(|live| live.process)
    }

    /// I3 and I4, now.
    pub fn sample(&mut self, truth: impl Fn(&Name) -> Stored) {
        let mut found: Option<String> = None;
        let mut holders: Vec<(&Name, u64, usize)> = Vec::new();
        for live in self
            .live
            .iter()
            .filter(|live| matches!(live.gate.state(), Run::Running | Run::Paused) && live.held.is_held())
        {
            let (name, token) = (live.held.name(), live.held.token().as_u64());
            if let Some((_, other, process)) = holders.iter().find(|(held, ..)| *held == name) {
                let (mine, theirs) = (live.process, process);
                found = Some(format!("I3: {name} is held with {token} by process {mine} and {other} by {theirs}"));
            }
            holders.push((name, token, live.process));
            let grant = self.granted.get(&(name.clone(), token));
            if grant.is_some_and(|grant| self.ended.contains(grant)) {
                found.get_or_insert(format!("I6: {name}: {token} is held again after its end"));
            }
            if let Some(what) = not_carried(&truth(name), token, grant) {
                found.get_or_insert(format!("I4: {name}: {token} is believed, but {what}"));
            }
        }
        if let Some(found) = found {
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
