//! What the clients do: the real code decides.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::majority::plan::{Plan, Proposed, highest, plan};
use leasehold::protocol::majority::renewal::{Renewal, Renewed};
use leasehold::protocol::majority::shown::merged;
use leasehold::protocol::majority::tally::{Count, Reply, Tally};
use leasehold::protocol::majority::trail::Trail;
use leasehold::protocol::majority::{Seen, quorum};
use leasehold::protocol::rules::{Clocks, Ratio};
use leasehold::protocol::store_time::StoreTime;
use leasehold::{Claim, Close, Expect, Grant, Renew, Sample, Stamp, Standing, Vacate};

use crate::ghosts::Harm;
use crate::members::Answer;
use crate::world::{Body, Claiming, Client, Closing, Holding, MEMBERS, Mine, Request, Stage, World};
use crate::{Model, Witness};

/// Clocks that run alike; what is watched is watched for exactly its term.
const CLOCKS: Clocks = Clocks {
    rho: Ratio { num: 0, den: 1 },
    kappa: 0,
    date_grain: 1,
    milli: 1,
    widest: 100,
    oldest: 100,
    floor_ms: (0, 0),
};

impl Model {
    /// Whether a client believes that it holds.
    pub(crate) fn believes(&self, world: &World, c: usize) -> bool {
        match &world.clients[c].stage {
            Stage::Holding(holding) => !holding.lost && world.now - holding.since < self.setup.ttl,
            _ => false,
        }
    }

    pub(crate) fn judge(&self, world: &mut World) {
        let believe = [self.believes(world, 0), self.believes(world, 1)];
        world.ghosts.flag(Harm::TwoHolders, believe[0] && believe[1]);
        for c in (0..2).filter(|c| believe[*c]) {
            let Stage::Holding(holding) = &world.clients[c].stage else { continue };
            let grant = Some(holding.mine.grant);
            let carried = world.members.iter().filter(|stored| stored.view().grant() == grant).count();
            world.ghosts.flag(Harm::NotCarried, carried < quorum(MEMBERS));
        }
    }

    /// Reads all members at one instant and claims, if a majority looks as it has to.
    pub(crate) fn look(&self, world: &mut World, c: usize, handed: Option<(Grant, u64)>) {
        let now = at(world.now);
        let client = &mut world.clients[c];
        let seen: Vec<_> = (0..MEMBERS)
            .map(|member| {
                let view = world.members[member].view();
                let judgement = client.observers[member].judge(&view, &now, self.time(&now).as_ref(), &CLOCKS);
                Some(Seen { view, judgement })
            })
            .collect();
        let shown = merged(&seen);
        if let Some(closed) = shown.record.as_ref().and_then(|record| record.closed) {
            world.ghosts.shown(closed.by);
        }
        let expect = match (handed, shown.standing) {
            (Some((grant, _)), _) => Expect::Handed(grant),
            (None, Standing::Vacant) => Expect::Vacant,
            (None, Standing::Expired(version)) => Expect::Expired(version),
            _ => return,
        };
        let grant = Grant::from_bits((c * 4 + usize::from(client.grants)) as u128);
        let known = highest(&seen).max(client.proposed).max(handed.map_or(0, |(_, token)| token));
        let token = known + 1;
        let Plan::Propose(proposed) = plan(&expect, token, grant, &seen) else { return };
        (client.grants, client.proposed) = (client.grants + 1, token);
        client.attempts = client.attempts.saturating_sub(u8::from(handed.is_none()));
        client.call += 1;
        let (mut trail, mut tally) = (Trail::new(MEMBERS), Tally::new(MEMBERS));
        let call = client.call;
        for (member, proposed) in proposed.into_iter().enumerate() {
            if let Proposed::Claim(expect) = proposed
                && trail.send_claim(member)
            {
                tally.hear(member, Reply::Waiting);
                let body = Body::Claim(self.claim(token, grant, expect, world.now));
                world.network.push(Request { client: c, member, call, heard: true, body });
            }
        }
        let (mine, begun, highest) = (Mine { grant, token, trail }, world.now, world.ghosts.highest());
        let takes = match expect {
            Expect::Vacant => Witness::Granted,
            Expect::Expired(_) => Witness::TakenOver,
            Expect::Handed(_) => Witness::Resumed,
        };
        world.clients[c].stage = Stage::Claiming(Claiming { mine, begun, highest, takes, tally });
        self.count_claim(world, c);
    }

    pub(crate) fn count_claim(&self, world: &mut World, c: usize) {
        let Stage::Claiming(claiming) = &world.clients[c].stage else { return };
        let in_time = world.now - claiming.begun < self.setup.ttl;
        match claiming.tally.count() {
            Count::Open => {}
            Count::Reached if in_time => self.granted(world, c),
            _ => self.give_back(world, c),
        }
    }

    fn granted(&self, world: &mut World, c: usize) {
        let Stage::Claiming(claiming) = &world.clients[c].stage else { return };
        let Claiming { mut mine, begun, highest, takes, .. } = claiming.clone();
        self.see(takes);
        mine.trail.grant();
        world.ghosts.granted(mine.grant, mine.token, highest);
        let renewals = self.setup.renewals;
        let clean_up = mine.trail.clean_up_after_grant();
        let burn = self.vacate(&mine, true, None);
        world.clients[c].stage = Stage::Holding(Holding {
            mine,
            since: begun,
            version: 1,
            renewals,
            renewal: None,
            joined: false,
            lost: false,
        });
        // Nobody waits for it.
        let call = u8::MAX;
        let burns =
            clean_up.into_iter().map(|member| Request { client: c, member, call, heard: false, body: burn.clone() });
        world.network.extend(burns);
    }

    /// A burn wherever the claim may have arrived.
    fn give_back(&self, world: &mut World, c: usize) {
        let Stage::Claiming(claiming) = &mut world.clients[c].stage else { return };
        self.see(Witness::GivenBack);
        let mut mine = claiming.mine.clone();
        let to = mine.trail.burn();
        let kind = Kind::CleanUp(mine.token);
        let body = self.vacate(&mine, true, None);
        self.send_end(world, c, mine, kind, to, body, false);
    }

    pub(crate) fn end(&self, world: &mut World, c: usize, closing: bool) {
        let Stage::Holding(holding) = &mut world.clients[c].stage else { return };
        let mut mine = holding.mine.clone();
        if closing {
            let (to, burn) = mine.trail.close();
            let body = self.vacate(&mine, burn, Some(Close { for_ms: 1, until_ms: None, data: None }));
            let kind = Kind::Close(mine.token);
            self.send_end(world, c, mine, kind, to, body, true);
        } else {
            let to = mine.trail.burn();
            let body = self.vacate(&mine, true, None);
            self.send_end(world, c, mine, Kind::Release, to, body, false);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is sent, for what, to whom")]
    fn send_end(&self, world: &mut World, c: usize, mine: Mine, kind: Kind, to: Vec<usize>, body: Body, closing: bool) {
        let client = &mut world.clients[c];
        client.call += 1;
        let call = client.call;
        let ending = Ending::new(kind, MEMBERS, &to);
        client.stage = Stage::Ending(Closing { mine, ending, closing });
        let requests =
            to.into_iter().map(|member| Request { client: c, member, call, heard: true, body: body.clone() });
        world.network.extend(requests);
        self.count_end(world, c);
    }

    pub(crate) fn count_end(&self, world: &mut World, c: usize) {
        let Stage::Ending(Closing { mine, ending, closing }) = &world.clients[c].stage else { return };
        let (grant, closing) = (mine.grant, *closing);
        match ending.result() {
            Ended::Open => return,
            Ended::Accepted if closing => {
                self.see(Witness::Closed);
                world.ghosts.reported(grant);
            }
            _ => {}
        }
        world.clients[c].stage = Stage::Idle;
    }

    pub(crate) fn renew(&self, world: &mut World, c: usize) {
        let (name, ttl_ms, now) = (self.name.clone(), self.setup.ttl, world.now);
        let client = &mut world.clients[c];
        let Stage::Holding(holding) = &mut client.stage else { return };
        if holding.renewal.is_some() {
            world.left.give_ups -= 1;
        }
        holding.renewals -= 1;
        holding.version += 1;
        client.call += 1;
        let (call, Mine { grant, token, .. }) = (client.call, holding.mine.clone());
        holding.renewal = Some((Renewal::new(token, grant, MEMBERS), now));
        let version = holding.version;
        let renew = Renew {
            name,
            token,
            grant,
            version,
            ttl_ms,
            expires_at_ms: self.end_of(now),
            holder: None,
            data: None,
            set: None,
        };
        let body = Body::Renew(renew);
        let requests = (0..MEMBERS).map(|member| Request { client: c, member, call, heard: true, body: body.clone() });
        world.network.extend(requests);
    }

    pub(crate) fn hear_renewal(&self, world: &mut World, c: usize, member: usize, answer: Answer) {
        let now = at(world.now);
        let Client { stage: Stage::Holding(holding), observers, call, .. } = &mut world.clients[c] else { return };
        let Some((renewal, _)) = &mut holding.renewal else { return };
        match answer {
            Answer::Accepted => renewal.accepted(member, &mut holding.mine.trail),
            Answer::Refused(view) => {
                renewal.refused(member, &view);
                let judgement = observers[member].judge(&view, &now, self.time(&now).as_ref(), &CLOCKS);
                let rejoin = renewal.rejoin(member, &Seen { view, judgement }, &holding.mine.trail);
                if let Some(expect) = rejoin.filter(|_| holding.mine.trail.send_claim(member)) {
                    let body = Body::Rejoin(self.claim(holding.mine.token, holding.mine.grant, expect, world.now));
                    world.network.push(Request { client: c, member, call: *call, heard: true, body });
                }
            }
        }
        self.count_renewal(world, c);
    }

    pub(crate) fn count_renewal(&self, world: &mut World, c: usize) {
        let believes = self.believes(world, c);
        let Stage::Holding(holding) = &mut world.clients[c].stage else { return };
        let Some((renewal, since)) = &holding.renewal else { return };
        match renewal.result(&holding.mine.trail) {
            Renewed::Accepted if believes => {
                self.see(if holding.joined { Witness::RenewedByOneThatWasJoinedAgain } else { Witness::Renewed });
                holding.since = *since;
                holding.renewal = None;
            }
            Renewed::Lost(_) => {
                holding.lost = true;
                holding.renewal = None;
            }
            Renewed::Open => {}
            // A rejoin under way is heard of still.
            _ => {}
        }
    }

    pub(crate) fn hand_over(&self, world: &mut World, c: usize) {
        let Stage::Holding(holding) = &world.clients[c].stage else { return };
        world.handed = Some((holding.mine.grant, holding.mine.token));
        world.left.hand_overs -= 1;
        world.clients[c].stage = Stage::Idle;
    }

    pub(crate) fn give_up(&self, world: &mut World, c: usize) {
        world.left.give_ups -= 1;
        match &mut world.clients[c].stage {
            Stage::Idle => {}
            Stage::Claiming(claiming) => {
                for member in (0..MEMBERS).filter(|m| claiming.tally.reply(*m) == Reply::Waiting).collect::<Vec<_>>() {
                    claiming.tally.hear(member, Reply::Unknown);
                }
                self.count_claim(world, c);
            }
            Stage::Holding(holding) => holding.renewal = None,
            Stage::Ending(closing) => {
                for member in (0..MEMBERS).filter(|m| closing.ending.waits_for(*m)).collect::<Vec<_>>() {
                    closing.ending.unknown(member);
                }
                self.count_end(world, c);
            }
        }
    }

    /// What is known of the members' clocks, where that is believed.
    fn time(&self, now: &Stamp) -> Option<StoreTime> {
        let mut time = StoreTime::default();
        time.learn(Sample { date: now.real, sent: *now, received: *now }, now, &CLOCKS);
        self.setup.dated.then_some(time)
    }

    fn end_of(&self, now: u64) -> Option<u64> {
        self.setup.dated.then_some(now + self.setup.ttl)
    }

    fn claim(&self, token: u64, grant: Grant, expect: Expect, now: u64) -> Claim {
        let (name, ttl_ms, expires_at_ms) = (self.name.clone(), self.setup.ttl, self.end_of(now));
        Claim { name, token, grant, ttl_ms, expires_at_ms, holder: None, data: None, set: None, expect }
    }

    fn vacate(&self, mine: &Mine, burn: bool, close: Option<Close>) -> Body {
        let (name, token, grant) = (self.name.clone(), mine.token, mine.grant);
        Body::Vacate(Vacate { name, token, grant, burn, close, now_ms: None })
    }
}

fn at(now: u64) -> Stamp {
    Stamp { boot: now, mono: now, raw: now, real: now }
}
