//! The members: each acts on one request at a time, decided by `protocol::record`.

use leasehold::protocol::majority::tally::Reply;
use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{Claim, Record, Renew, StepDown, Vacate, View};

use crate::Model;
use crate::change::ADMINISTRATOR;
use crate::world::{Body, Client, OPERATOR, Request, Stage, World};

/// What a member answers.
pub(crate) enum Answer {
    /// With the wish that a renewal is told of.
    Accepted(Option<StepDown>),
    Refused(View),
}

impl Model {
    pub(crate) fn deliver(&self, world: &mut World, at: usize, lost: bool, keep: bool) {
        let mut request = world.network.remove(at);
        if keep {
            world.left.copies -= 1;
            world.network.push(Request { heard: false, ..request.clone() });
        }
        if lost {
            world.left.faults -= 1;
            request.heard = false;
        }
        let store = self.store_of(&request);
        let answer = match &request.body {
            Body::Claim(claim) | Body::Rejoin(claim) => self.on_claim(world, store, &request, claim),
            Body::Renew(renew) => self.on_renew(world, store, renew),
            Body::Vacate(vacate) => self.on_vacate(world, store, &request, vacate),
            Body::Revoke(revoke) => self.on_revoke(world, store, revoke),
            Body::Ask(ask) => self.on_ask(world, store, request.member, ask),
        };
        match request.body {
            _ if !request.heard => {}
            Body::Revoke(_) => self.hear_of_revocation(world, request.member, answer),
            Body::Ask(_) => self.hear_of_ask(world, request.member, answer),
            _ => self.hear(world, &request, answer),
        }
    }

    /// Where a request goes. An operator has the list of the first client, an administrator brings to the other.
    fn store_of(&self, request: &Request) -> usize {
        let list = match request.client {
            OPERATOR => 0,
            ADMINISTRATOR => 1,
            client => client,
        };
        self.store(list, request.member)
    }

    pub(crate) fn write(&self, world: &mut World, store: usize, after: Record) {
        world.stores[store] = Stored::Record(after);
        world.clients.iter_mut().for_each(Client::sees_no_write);
    }

    fn on_claim(&self, world: &mut World, store: usize, request: &Request, claim: &Claim) -> Answer {
        match record::claim(&world.stores[store], claim) {
            Outcome::Refuse => Answer::Refused(world.stores[store].view()),
            Outcome::Already => Answer::Accepted(None),
            Outcome::Write(after) => {
                if request.client != ADMINISTRATOR {
                    world.ghosts.claimed(claim.grant, request.member);
                }
                self.write(world, store, after);
                Answer::Accepted(None)
            }
        }
    }

    fn on_renew(&self, world: &mut World, store: usize, renew: &Renew) -> Answer {
        match record::renew(&world.stores[store], renew) {
            Outcome::Write(after) => {
                let asked = after.asked.clone();
                self.write(world, store, after);
                Answer::Accepted(asked)
            }
            _ => Answer::Refused(world.stores[store].view()),
        }
    }

    fn on_vacate(&self, world: &mut World, store: usize, request: &Request, vacate: &Vacate) -> Answer {
        match record::vacate(&world.stores[store], vacate) {
            Outcome::Write(after) => {
                if vacate.close.is_some() && request.client != ADMINISTRATOR {
                    world.ghosts.recorded(vacate.grant, request.member);
                }
                self.write(world, store, after);
                Answer::Accepted(None)
            }
            _ => Answer::Refused(world.stores[store].view()),
        }
    }

    /// The client hears an answer: its trail learns of it in any case, its count only if it is of this call.
    fn hear(&self, world: &mut World, request: &Request, answer: Answer) {
        let Request { client: c, member, call, body, .. } = request;
        if let Body::Vacate(vacate) = body {
            // Where somebody else holds with a lower token nothing is shut yet: that clean-up is not settled.
            let shut = match &answer {
                Answer::Accepted(_) => true,
                Answer::Refused(view) => view.token() >= vacate.token || view.grant().is_none(),
            };
            if shut {
                world.ghosts.ended(vacate.grant, *member);
            }
        }
        let client = &mut world.clients[*c];
        let of_this_call = client.call == *call;
        let grant = request.grant();
        let Some(mine) = client.mine().filter(|mine| mine.grant == grant) else { return };
        if let Body::Claim(_) | Body::Rejoin(_) = body {
            match &answer {
                Answer::Accepted(_) => mine.trail.claim_accepted(*member),
                Answer::Refused(_) => mine.trail.claim_refused(*member),
            }
        }
        if !of_this_call {
            return;
        }
        let accepted = matches!(answer, Answer::Accepted(_));
        match (&mut client.stage, body) {
            (Stage::Claiming(claiming), Body::Claim(_)) => {
                claiming.tally.hear(*member, if accepted { Reply::Accepted } else { Reply::Refused });
                self.count_claim(world, *c);
            }
            (Stage::Holding(_), Body::Renew(_)) => self.hear_renewal(world, *c, *member, answer),
            (Stage::Holding(holding), Body::Rejoin(_)) if accepted => {
                holding.joined = true;
                if let Some(of_now) = &mut holding.call {
                    of_now.renewal.rejoined(*member);
                    self.count_renewal(world, *c);
                }
            }
            (Stage::Ending(closing), Body::Vacate(_)) => {
                match answer {
                    Answer::Accepted(_) => closing.ending.accepted(*member),
                    Answer::Refused(view) => closing.ending.refused(*member, view),
                }
                self.count_end(world, *c);
            }
            _ => {}
        }
    }
}
