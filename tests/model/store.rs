//! The store: one record, decided by `protocol::record`; and the acts of operators on it.

use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{Ask, Claim, Claimed, Grant, Record, Renew, Renewed, Revoke, StepDown, Vacate, Vacated, View};

use crate::Model;
use crate::monitor::{Invariant, Witness};
use crate::steps::drawn;
use crate::world::{Answer, Body, Request, World};

/// Grants that an operator draws.
const OPERATOR: u128 = 20;

impl Model {
    /// The store acts on a request by a clock that is `skew` off; with `keep` the network has one more copy of it.
    pub(crate) fn store(&self, world: &mut World, at: usize, skew: i64, keep: bool) {
        let request = world.network.remove(at);
        if keep {
            world.left.copies -= 1;
            world.post(Request { waits: None, repeated: true, ..Request::clone(&request) });
        }
        let answer = match &request.body {
            Body::Read => Answer::Seen(world.stored.view()),
            Body::Claim(claim) => Answer::Claimed(self.on_claim(world, claim, &request)),
            Body::Renew(renew) => Answer::Renewed(self.on_renew(world, renew, &request)),
            Body::Vacate(vacate) => Answer::Vacated(self.on_vacate(world, vacate, &request)),
        };
        let date = self.date(world, skew);
        let waits = request.waits.and_then(|lane| world.call(request.from, lane));
        if let Some(Some(call)) = waits {
            call.answer = Some((answer, date));
        }
    }

    fn date(&self, world: &World, skew: i64) -> u64 {
        if !self.setup.rules.has_store_time {
            return 0;
        }
        let clock = (world.now * self.setup.scale).saturating_add_signed(skew);
        clock - clock % self.setup.rules.clocks.date_grain
    }

    fn on_claim(&self, world: &mut World, claim: &Claim, request: &Request) -> Claimed {
        let before = world.stored.clone();
        match record::claim(&before, claim) {
            Outcome::Refuse => {
                self.see_if(self.setup.looks && is_overtaken(&before, claim), Witness::SlowLookRefused);
                let late = request.waits.is_none();
                self.see_if(late, Witness::LateClaimRefused);
                self.see_if(!late && claims_a_hand_over(claim), Witness::ResumedTwiceRefused);
                Claimed::Refused(before.view())
            }
            Outcome::Already => {
                self.see_if(request.waits.is_some(), Witness::LostAnswerRecovered);
                Claimed::Granted
            }
            Outcome::Write(after) => {
                self.see_if(is_closed(&before), Witness::ClosedOpened);
                self.see_after_restore(world, &before, claim);
                world.ghosts.flag(Invariant::Look, self.setup.looks && says_no(&before.view()));
                world.ghosts.claimed(&before, &after, claim, request, world.now);
                *world.stored = Stored::Record(after);
                Claimed::Granted
            }
        }
    }

    fn on_renew(&self, world: &mut World, renew: &Renew, request: &Request) -> Renewed {
        let before = world.stored.clone();
        let Outcome::Write(after) = record::renew(&before, renew) else {
            self.see_if(request.waits.is_none(), Witness::LateRenewalRefused);
            return Renewed::Refused(before.view());
        };
        world.ghosts.renewed(&before, &after, renew, request);
        let asked = after.asked.clone();
        *world.stored = Stored::Record(after);
        Renewed::Renewed(asked)
    }

    fn on_vacate(&self, world: &mut World, vacate: &Vacate, request: &Request) -> Vacated {
        let before = world.stored.clone();
        let Outcome::Write(after) = record::vacate(&before, vacate) else { return Vacated::Refused(before.view()) };
        world.ghosts.vacated(&before, &after, vacate, request, world.now);
        *world.stored = Stored::Record(after);
        Vacated::Vacated
    }

    pub(crate) fn revoke(&self, world: &mut World, force: bool) {
        let Stored::Record(Record { token, .. }) = *world.stored else { return };
        let fresh = Grant::from_bits(OPERATOR + u128::from(world.left.revokes));
        let outcome = record::revoke(&world.stored, &Revoke { name: self.name.clone(), token, fresh, force });
        let Outcome::Write(after) = outcome else { return };
        *world.stored = Stored::Record(after);
        if force {
            world.left.forces -= 1;
            world.ghosts.void_until = world.now + self.setup.rules.ttl;
        } else {
            world.left.revokes -= 1;
        }
    }

    pub(crate) fn ask(&self, world: &mut World) {
        let Stored::Record(Record { token, .. }) = *world.stored else { return };
        let step_down = StepDown { token, grace_ms: 1, by: None };
        let Outcome::Write(after) = record::ask(&world.stored, &Ask { name: self.name.clone(), step_down }) else {
            return;
        };
        *world.stored = Stored::Record(after);
        world.left.asks -= 1;
    }

    /// By hand, around which acquires are kept stopped.
    pub(crate) fn delete(&self, world: &mut World) {
        world.left.deletions -= 1;
        *world.stored = Stored::Absent;
        self.reset(world);
    }

    pub(crate) fn back_up(&self, world: &mut World) {
        world.left.backups -= 1;
        world.backup = Some(world.stored.clone());
    }

    /// The whole record as it was, whoever has written it since. A failover that lost writes does the same.
    pub(crate) fn restore(&self, world: &mut World) {
        let Some(backup) = world.backup.take() else { return };
        world.left.restores -= 1;
        world.stored = backup;
        self.reset(world);
    }

    fn reset(&self, world: &mut World) {
        let term = if self.setup.voids_a_term { self.setup.rules.ttl / self.setup.scale } else { 0 };
        let grants = [0, 1].map(|c| world.clients[c].grants);
        let drawn = (0..2).flat_map(|c| (0..grants[c]).map(move |after| drawn(c, after)));
        world.ghosts.reset(drawn, world.now + term, world.now + self.setup.quiet);
    }

    pub(crate) fn was_restored(&self, world: &World) -> bool {
        world.left.restores < self.setup.left.restores
    }

    fn see_after_restore(&self, world: &World, before: &Stored, claim: &Claim) {
        let Stored::Record(record) = before else { return };
        let after_all = world.ghosts.is_after_reset(claim.grant) && world.now >= world.ghosts.void_until;
        if self.was_restored(world) && after_all && claim.token > world.ghosts.highest {
            let witness =
                if record.grant.is_some() { Witness::TakenAfterRestore } else { Witness::GrantedAfterRestore };
            self.see_if(record.token < world.ghosts.highest, witness);
        }
    }
}

fn claims_a_hand_over(claim: &Claim) -> bool {
    matches!(claim.expect, leasehold::Expect::Handed(_))
}

/// Whether tokens alone would have let this claim in.
fn is_overtaken(stored: &Stored, claim: &Claim) -> bool {
    matches!(stored, Stored::Record(record) if record.grant.is_none() && record.token < claim.token)
}

/// Here any payload says no.
pub(crate) fn says_no(view: &View) -> bool {
    view.record.as_ref().is_some_and(|record| record.data.is_some())
}

fn is_closed(stored: &Stored) -> bool {
    matches!(stored, Stored::Record(record) if record.closed.is_some())
}
