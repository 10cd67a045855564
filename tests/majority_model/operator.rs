//! An operator who revokes, and whose requests reach the members one by one, in any order, or never.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::record::{self, Outcome};
use leasehold::{Grant, Revoke, Revoked};

use crate::members::Answer;
use crate::world::{Body, OPERATOR, Request, World};
use crate::{Model, Witness};

impl Model {
    /// Sends a revocation of the newest grant to all members.
    pub(crate) fn revoke(&self, world: &mut World) {
        world.left.revocations -= 1;
        let token = world.ghosts.highest();
        let all: Vec<usize> = (0..self.size(0)).collect();
        world.revocation = Some((token, Ending::new(Kind::Vote, self.size(0), &all)));
        let body = Body::Revoke(Revoke { name: self.name.clone(), token, fresh: Grant::from_bits(99), force: false });
        let requests = all.into_iter().map(|member| Request {
            client: OPERATOR,
            member,
            call: 0,
            heard: true,
            body: body.clone(),
        });
        world.network.extend(requests);
    }

    pub(crate) fn on_revoke(&self, world: &mut World, store: usize, revoke: &Revoke) -> Answer {
        match record::revoke(&world.stores[store], revoke) {
            Outcome::Write(after) => {
                self.write(world, store, after);
                Answer::Accepted
            }
            Outcome::Already => Answer::Accepted,
            Outcome::Refuse => match record::revoke_refused(&world.stores[store], revoke) {
                Revoked::Refused(view) => Answer::Refused(view),
                _ => Answer::Accepted,
            },
        }
    }

    pub(crate) fn hear_of_revocation(&self, world: &mut World, member: usize, answer: Answer) {
        let Some((token, ending)) = &mut world.revocation else { return };
        match answer {
            Answer::Accepted => ending.accepted(member),
            Answer::Refused(view) => ending.refused(member, view),
        }
        if ending.result() == Ended::Accepted {
            self.see(Witness::Revoked);
            world.ghosts.revoked(*token);
        }
    }
}
