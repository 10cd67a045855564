//! How a client looks at the members, and what it claims by what they show: the real code decides.

use leasehold::protocol::majority::plan::{Plan, Proposed, highest, plan};
use leasehold::protocol::majority::roster::stranger;
use leasehold::protocol::majority::shown::merged;
use leasehold::protocol::majority::tally::{Reply, Tally};
use leasehold::protocol::majority::trail::Trail;
use leasehold::protocol::majority::{Seen, quorum, watched_from};
use leasehold::protocol::observer::Observer;
use leasehold::{Expect, Grant, Standing, View};

use crate::steps::{CLOCKS, at};
use crate::world::{Body, Claiming, Decision, Looking, Mine, Read, Request, Shown, Stage, World};
use crate::{Model, Witness};

impl Model {
    /// Begins to read all members; reads them at one instant, where the configuration says so.
    pub(crate) fn look(&self, world: &mut World, c: usize, handed: Option<(Grant, u64)>) {
        let decided = match std::mem::take(&mut world.clients[c].stage) {
            Stage::Decided(decided) => Some(decided),
            _ => None,
        };
        let (begun, answered) = (world.now, world.ghosts.answered);
        let looking = Looking { begun, handed, decided, read: vec![None; self.size(c)], answered, written: false };
        world.clients[c].stage = Stage::Looking(looking);
        if !self.setup.reads_apart[c] {
            (0..self.size(c)).for_each(|member| self.read(world, c, member, false));
        }
    }

    /// A member answers a read; `late`: the answer comes as the last of its look.
    pub(crate) fn read(&self, world: &mut World, c: usize, member: usize, late: bool) {
        let view = world.stores[self.store(c, member)].view();
        let read = match self.is_fit(world, c, member) {
            false => Read::OfOthers,
            true if late => Read::OnItsWay(view),
            true => Read::Heard(self.heard(world, c, member, view)),
        };
        let Stage::Looking(looking) = &mut world.clients[c].stage else { return };
        looking.read[member] = Some(read);
        if looking.read.iter().all(Option::is_some) {
            self.looked(world, c);
        }
    }

    fn heard(&self, world: &mut World, c: usize, member: usize, view: View) -> Seen {
        let now = at(world.now);
        let client = &mut world.clients[c];
        let begun = match &client.stage {
            Stage::Looking(looking) => at(looking.begun),
            _ => now,
        };
        let from = watched_from(&begun, &now);
        let judgement = client.observers[member].judge(&view, &from, self.time(&now).as_ref(), &CLOCKS);
        Seen { view, judgement }
    }

    /// The look is over, with the members that have answered: claims, if a majority looks as it has to.
    pub(crate) fn looked(&self, world: &mut World, c: usize) {
        let Stage::Looking(looking) = world.clients[c].stage.clone() else { return };
        let seen = looking.read.iter().enumerate().map(|(member, read)| match read.clone()? {
            Read::Heard(seen) => Some(seen),
            Read::OnItsWay(view) => Some(self.heard(world, c, member, view)),
            Read::OfOthers => None,
        });
        let seen: Vec<_> = seen.collect();
        world.clients[c].stage = Stage::Idle;
        let too_few = seen.iter().flatten().count() < quorum(seen.len());
        if too_few || self.set(c).is_some_and(|set| stranger(&seen, set, |_| true).is_some()) {
            return;
        }
        let shown = merged(&seen);
        if let Some(closed) = shown.record.as_ref().and_then(|record| record.closed) {
            world.ghosts.shown(closed.by);
        }
        if let Some(grant) = shown.grant() {
            world.ghosts.saw(grant, payload(&shown), &looking.answered);
        }
        if self.setup.reader && c == 1 {
            world.clients[c].observers = vec![Observer::default(); self.size(c)];
            return;
        }
        let again = looking.decided.is_some();
        let Some(decision) = looking.decided.or_else(|| self.decide(world, c, looking.handed, &shown, &seen)) else {
            return;
        };
        if self.setup.looks_twice && c == 1 && !again && matches!(decision.expect, Expect::Expired(_)) {
            world.clients[c].stage = Stage::Decided(decision);
            return;
        }
        self.propose(world, c, decision, &seen, looking.written);
    }

    fn decide(
        &self,
        world: &World,
        c: usize,
        handed: Option<(Grant, u64)>,
        shown: &View,
        seen: &[Option<Seen>],
    ) -> Option<Decision> {
        let expect = match (handed, &shown.standing) {
            (Some((grant, _)), _) => Expect::Handed(grant),
            (None, Standing::Vacant) => Expect::Vacant,
            (None, Standing::Expired(version)) => Expect::Expired(version.clone()),
            _ => return None,
        };
        let known = highest(seen).max(world.clients[c].proposed).max(handed.map_or(0, |(_, token)| token));
        let token = known + 1 + self.setup.ahead[c];
        let from = Shown { highest: highest(seen), token: shown.token(), payload: payload(shown) };
        Some(Decision { expect, token, from })
    }

    fn propose(&self, world: &mut World, c: usize, decision: Decision, seen: &[Option<Seen>], written: bool) {
        let Decision { expect, token, from } = decision;
        let client = &mut world.clients[c];
        let grant = Grant::from_bits((c * 4 + usize::from(client.grants)) as u128);
        let Plan::Propose(proposed) = plan(&expect, token, grant, seen) else { return };
        (client.grants, client.proposed) = (client.grants + 1, token);
        let resumes = matches!(expect, Expect::Handed(_));
        client.attempts = client.attempts.saturating_sub(u8::from(!resumes));
        client.call += 1;
        let (mut trail, mut tally) = (Trail::new(self.size(c)), Tally::new(self.size(c)));
        let call = client.call;
        for (member, proposed) in proposed.into_iter().enumerate() {
            if let Proposed::Claim(expect) = proposed
                && trail.send_claim(member)
            {
                tally.hear(member, Reply::Waiting);
                let body = Body::Claim(self.claim(c, token, grant, expect, world.now));
                world.network.push(Request { client: c, member, call, heard: true, body });
            }
        }
        let (mine, begun, highest) = (Mine { grant, token, trail }, world.now, world.ghosts.highest());
        let takes = match expect {
            Expect::Vacant => Witness::Granted,
            Expect::Expired(_) => Witness::TakenOver,
            Expect::Handed(_) => Witness::Resumed,
        };
        world.clients[c].stage = Stage::Claiming(Claiming { mine, begun, highest, takes, from, written, tally });
        self.count_claim(world, c);
    }
}

/// The payload that a view shows; 0: none.
fn payload(view: &View) -> u8 {
    let data = view.record.as_ref().and_then(|record| record.data.as_ref());
    data.and_then(|data| data.as_bytes().first().copied()).unwrap_or(0)
}
