//! What the clients do: the real code decides.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::majority::tally::{Count, Reply};
use leasehold::protocol::payload::Payload;
use leasehold::protocol::rules::{Clocks, Ratio};
use leasehold::protocol::store_time::StoreTime;
use leasehold::{Claim, Close, Expect, Grant, Sample, Stamp, Vacate, View};

use crate::ghosts::Harm;
use crate::renewals::is_revoked;
use crate::world::{Body, Claiming, Closing, Holding, Mine, Request, Shown, Stage, World};
use crate::{Model, Witness};

/// Clocks that run alike; what is watched is watched for exactly its term.
pub(crate) const CLOCKS: Clocks = Clocks {
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
        world.ghosts.open(world.now);
        let believe = [self.believes(world, 0), self.believes(world, 1)];
        world.ghosts.flag(Harm::TwoHolders, believe[0] && believe[1]);
        for c in (0..2).filter(|c| believe[*c]) {
            let Stage::Holding(holding) = &world.clients[c].stage else { continue };
            let grant = Some(holding.mine.grant);
            let carries = |view: &View| view.grant() == grant || view.token() == holding.mine.token && is_revoked(view);
            let list = self.setup.lists[c];
            let carried = list.iter().filter(|store| carries(&world.stores[**store].view())).count();
            world.ghosts.flag(Harm::NotCarried, carried <= list.len() / 2 && !self.setup.excepts_i4);
        }
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
        let Claiming { mut mine, begun, highest, takes, from, written, .. } = claiming.clone();
        self.see(takes);
        mine.trail.grant();
        world.ghosts.granted(mine.grant, mine.token, highest, world.now);
        self.judge_list(world, c);
        self.see_what_is_taken(world, takes, from, written, mine.token);
        let renewals = self.setup.renewals;
        let clean_up = mine.trail.clean_up_after_grant();
        let burn = self.vacate(&mine, true, None);
        world.clients[c].stage = Stage::Holding(Holding {
            mine,
            since: begun,
            version: 1,
            renewals,
            payloads: self.setup.payloads,
            payload: Payload::default(),
            call: None,
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
        self.send_end(world, c, mine, kind, to, body, None);
    }

    /// What the new holder has seen of the grant that it takes over.
    fn see_what_is_taken(&self, world: &mut World, takes: Witness, from: Shown, written: bool, token: u64) {
        if written {
            self.see(Witness::GrantedAfterAWriteBetweenReads);
        }
        if takes != Witness::TakenOver {
            return;
        }
        world.ghosts.takes_over(from, token);
        if from.payload > 0 {
            self.see(Witness::PayloadTakenOver);
        }
        if world.ghosts.is_revoked(from.token) {
            self.see(Witness::TakenOverAfterARevocation);
        }
        if world.ghosts.was_recorded(from.token) {
            self.see(Witness::Opened);
        }
    }

    pub(crate) fn end(&self, world: &mut World, c: usize, closing: bool) {
        let Stage::Holding(holding) = &mut world.clients[c].stage else { return };
        let mut mine = holding.mine.clone();
        if closing {
            let (to, burn) = mine.trail.close();
            let body = self.vacate(
                &mine,
                burn,
                Some(Close { for_ms: self.setup.closed_for.unwrap_or(1), until_ms: None, data: None }),
            );
            let kind = Kind::Close(mine.token);
            let opens = self.setup.closed_for.map_or(0, |closed_for| world.now + closed_for);
            self.send_end(world, c, mine, kind, to, body, Some(opens));
        } else {
            let to = mine.trail.burn();
            let body = self.vacate(&mine, true, None);
            self.send_end(world, c, mine, Kind::Release, to, body, None);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is sent, for what, to whom")]
    fn send_end(
        &self,
        world: &mut World,
        c: usize,
        mine: Mine,
        kind: Kind,
        to: Vec<usize>,
        body: Body,
        opens: Option<u64>,
    ) {
        let client = &mut world.clients[c];
        client.call += 1;
        let call = client.call;
        let ending = Ending::new(kind, self.size(c), &to);
        client.stage = Stage::Ending(Closing { mine, ending, opens });
        let requests =
            to.into_iter().map(|member| Request { client: c, member, call, heard: true, body: body.clone() });
        world.network.extend(requests);
        self.count_end(world, c);
    }

    pub(crate) fn count_end(&self, world: &mut World, c: usize) {
        let Stage::Ending(Closing { mine, ending, opens }) = &world.clients[c].stage else { return };
        let (grant, opens) = (mine.grant, *opens);
        match (ending.result(), opens) {
            (Ended::Open, _) => return,
            (Ended::Accepted, Some(opens)) => {
                self.see(Witness::Closed);
                world.ghosts.reported(grant, opens);
            }
            _ => {}
        }
        world.clients[c].stage = Stage::Idle;
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
            Stage::Idle | Stage::Decided(_) => {}
            Stage::Looking(_) => self.looked(world, c),
            Stage::Claiming(claiming) => {
                for member in
                    (0..self.size(c)).filter(|m| claiming.tally.reply(*m) == Reply::Waiting).collect::<Vec<_>>()
                {
                    claiming.tally.hear(member, Reply::Unknown);
                }
                self.count_claim(world, c);
            }
            Stage::Holding(holding) => holding.call = None,
            Stage::Ending(closing) => {
                for member in (0..self.size(c)).filter(|m| closing.ending.waits_for(*m)).collect::<Vec<_>>() {
                    closing.ending.unknown(member);
                }
                self.count_end(world, c);
            }
        }
    }

    /// What is known of the members' clocks, where that is believed.
    pub(crate) fn time(&self, now: &Stamp) -> Option<StoreTime> {
        let mut time = StoreTime::default();
        time.learn(Sample { date: now.real, sent: *now, received: *now }, now, &CLOCKS);
        self.setup.dated.then_some(time)
    }

    pub(crate) fn end_of(&self, now: u64) -> Option<u64> {
        self.setup.dated.then_some(now + self.setup.ttl)
    }

    pub(crate) fn claim(&self, c: usize, token: u64, grant: Grant, expect: Expect, now: u64) -> Claim {
        let (name, ttl_ms, expires_at_ms) = (self.name.clone(), self.setup.ttl, self.end_of(now));
        Claim { name, token, grant, ttl_ms, expires_at_ms, holder: None, data: None, set: self.set(c), expect }
    }

    fn vacate(&self, mine: &Mine, burn: bool, close: Option<Close>) -> Body {
        let (name, token, grant) = (self.name.clone(), mine.token, mine.grant);
        Body::Vacate(Vacate { name, token, grant, burn, close, now_ms: None })
    }
}

pub(crate) fn at(now: u64) -> Stamp {
    Stamp { boot: now, mono: now, raw: now, real: now }
}
