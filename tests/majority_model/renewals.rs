//! Renewals of a holder, with its payloads: the real code decides.

use leasehold::protocol::majority::renewal::{Renewal, Renewed};
use leasehold::protocol::majority::{Seen, rules};
use leasehold::{Data, Renew, View};

use crate::ghosts::Harm;
use crate::members::Answer;
use crate::steps::{CLOCKS, at};
use crate::world::{Body, Call, Client, Mine, Request, Stage, World};
use crate::{Model, Witness};

impl Model {
    pub(crate) fn set_data(&self, world: &mut World, c: usize) {
        let Stage::Holding(holding) = &mut world.clients[c].stage else { return };
        holding.payloads -= 1;
        holding.payload.set();
        self.renew(world, c);
    }

    pub(crate) fn renew(&self, world: &mut World, c: usize) {
        let (name, ttl_ms, begun) = (self.name.clone(), self.setup.ttl, world.now);
        let client = &mut world.clients[c];
        let Stage::Holding(holding) = &mut client.stage else { return };
        if holding.waits() {
            world.left.give_ups -= 1;
        }
        holding.renewals -= 1;
        holding.version += 1;
        client.call += 1;
        let (call, Mine { grant, token, .. }) = (client.call, holding.mine.clone());
        let carried = holding.payload.is_carried(rules(CLOCKS, ttl_ms, self.setup.dated).data_in_every_renewal);
        let payload = holding.payload.of_body(carried);
        let data = Data::new(&[payload as u8]).filter(|_| carried && payload > 0);
        let revoked = world.ghosts.is_revoked(token);
        let wished = world.ghosts.is_asked(token);
        let renewal = Renewal::new(token, grant, self.size(c));
        holding.call = Some(Call { renewal, begun, payload, data: data.clone(), revoked, wished, counted: false });
        let (version, expires_at_ms) = (holding.version, self.end_of(begun));
        let renew = Renew { name, token, grant, version, ttl_ms, expires_at_ms, holder: None, data, set: None };
        let body = Body::Renew(renew);
        let requests =
            (0..self.size(c)).map(|member| Request { client: c, member, call, heard: true, body: body.clone() });
        world.network.extend(requests);
    }

    pub(crate) fn hear_renewal(&self, world: &mut World, c: usize, member: usize, answer: Answer) {
        let now = at(world.now);
        let fit = matches!(answer, Answer::Accepted(_)) || self.is_fit(world, c, member);
        let Client { stage: Stage::Holding(holding), observers, call, .. } = &mut world.clients[c] else { return };
        let Some(Call { renewal, data, .. }) = &mut holding.call else { return };
        match answer {
            Answer::Accepted(asked) => {
                renewal.accepted(member, &mut holding.mine.trail);
                renewal.asked(asked);
            }
            Answer::Refused(view) => {
                renewal.refused(member, &view);
                let judgement = observers[member].judge(&view, &now, self.time(&now).as_ref(), &CLOCKS);
                let rejoin = renewal.rejoin(member, &Seen { view, judgement }, &holding.mine.trail).filter(|_| fit);
                if let Some(expect) = rejoin.filter(|_| holding.mine.trail.send_claim(member)) {
                    let claim = self.claim(c, holding.mine.token, holding.mine.grant, expect, world.now);
                    let body = Body::Rejoin(leasehold::Claim { data: data.clone(), ..claim });
                    world.network.push(Request { client: c, member, call: *call, heard: true, body });
                }
            }
        }
        self.count_renewal(world, c);
    }

    pub(crate) fn count_renewal(&self, world: &mut World, c: usize) {
        let believes = self.believes(world, c);
        let Stage::Holding(holding) = &mut world.clients[c].stage else { return };
        let Some(Call { renewal, begun, payload, revoked, wished, counted, .. }) = &mut holding.call else { return };
        let answered = (0..self.size(c)).all(|member| !renewal.waits_for(member));
        match renewal.result(&holding.mine.trail) {
            _ if *counted => {}
            Renewed::Accepted if holding.lost => world.ghosts.flag(Harm::Revived, true),
            Renewed::Accepted if believes => {
                self.see(if holding.joined { Witness::RenewedByOneThatWasJoinedAgain } else { Witness::Renewed });
                world.ghosts.flag(Harm::Revived, *revoked);
                world.ghosts.flag(Harm::WishUnheard, *wished && renewal.wish().is_none());
                if let Some(wish) = renewal.wish() {
                    self.see(Witness::WishHeard);
                    world.ghosts.flag(Harm::WishStrays, wish.token != holding.mine.token);
                }
                holding.payload.accept(*payload);
                if *payload > 0 {
                    self.see(Witness::SetData);
                    world.ghosts.answered(holding.mine.grant, *payload);
                }
                holding.since = *begun;
                // The others' answers are heard still, and members joined again.
                *counted = true;
            }
            Renewed::Lost(view) => {
                holding.lost = true;
                if is_revoked(&view) {
                    self.see(Witness::LostByRevocation);
                }
            }
            Renewed::Open => {}
            // A rejoin under way is heard of still.
            _ => {}
        }
        if answered && holding.call.as_ref().is_some_and(|call| call.counted) {
            holding.call = None;
        }
    }
}

pub(crate) fn is_revoked(view: &View) -> bool {
    view.record.as_ref().is_some_and(|record| record.revoked)
}
