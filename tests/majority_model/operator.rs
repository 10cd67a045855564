//! An operator who revokes or asks, and whose requests reach the members one by one, in any order, or never.

use leasehold::protocol::majority::ending::{Ended, Ending, Kind};
use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{Ask, Grant, Record, Revoke, Revoked, StepDown};

use crate::ghosts::Harm;
use crate::members::Answer;
use crate::world::{Body, OPERATOR, Request, World};
use crate::{Model, Witness};

impl Model {
    /// Sends a revocation of the newest grant to all members.
    pub(crate) fn revoke(&self, world: &mut World) {
        world.left.revocations -= 1;
        let token = world.ghosts.highest();
        world.revocation = Some((token, self.vote()));
        let body = Body::Revoke(Revoke { name: self.name.clone(), token, fresh: Grant::from_bits(99), force: false });
        self.send_to_all(world, &body);
    }

    /// Sends a wish that the holder of the newest grant finish.
    pub(crate) fn ask(&self, world: &mut World) {
        world.left.asks -= 1;
        let token = world.ghosts.highest();
        world.asking = Some((token, self.vote()));
        let step_down = StepDown { token, grace_ms: 1, by: None };
        self.send_to_all(world, &Body::Ask(Ask { name: self.name.clone(), step_down }));
    }

    fn vote(&self) -> Ending {
        Ending::new(Kind::Vote, self.size(0), &(0..self.size(0)).collect::<Vec<_>>())
    }

    fn send_to_all(&self, world: &mut World, body: &Body) {
        let to = |member| Request { client: OPERATOR, member, call: 0, heard: true, body: body.clone() };
        world.network.extend((0..self.size(0)).map(to));
    }

    pub(crate) fn on_ask(&self, world: &mut World, store: usize, member: usize, ask: &Ask) -> Answer {
        let Outcome::Write(after) = record::ask(&world.stores[store], ask) else {
            return Answer::Refused(world.stores[store].view());
        };
        let without = |record: &Record| {
            let mut record = record.clone();
            record.asked = None;
            record
        };
        let same = matches!(&world.stores[store], Stored::Record(before) if without(before) == without(&after));
        world.ghosts.flag(Harm::WishWrites, !same);
        world.ghosts.asked(ask.step_down.token, member);
        self.write(world, store, after);
        Answer::Accepted(None)
    }

    pub(crate) fn hear_of_ask(&self, world: &mut World, member: usize, answer: Answer) {
        let Some((_, ending)) = &mut world.asking else { return };
        match answer {
            Answer::Accepted(_) => ending.accepted(member),
            Answer::Refused(view) => ending.refused(member, view),
        }
        if ending.result() == Ended::Accepted {
            self.see(Witness::Asked);
            world.ghosts.ask_reported();
        }
    }

    pub(crate) fn on_revoke(&self, world: &mut World, store: usize, revoke: &Revoke) -> Answer {
        match record::revoke(&world.stores[store], revoke) {
            Outcome::Write(after) => {
                self.write(world, store, after);
                Answer::Accepted(None)
            }
            Outcome::Already => Answer::Accepted(None),
            Outcome::Refuse => match record::revoke_refused(&world.stores[store], revoke) {
                Revoked::Refused(view) => Answer::Refused(view),
                _ => Answer::Accepted(None),
            },
        }
    }

    pub(crate) fn hear_of_revocation(&self, world: &mut World, member: usize, answer: Answer) {
        let Some((token, ending)) = &mut world.revocation else { return };
        match answer {
            Answer::Accepted(_) => ending.accepted(member),
            Answer::Refused(view) => ending.refused(member, view),
        }
        if ending.result() == Ended::Accepted {
            self.see(Witness::Revoked);
            world.ghosts.revoked(*token);
        }
    }
}
