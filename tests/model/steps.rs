//! What each action does: the real machines decide, the model only carries.

use leasehold::protocol::acquire::{Acquire, At, Dice, Event, Goal, Next, Outcome, Proposal, Step};
use leasehold::protocol::cleanup::{Cleanup, Debt, Settlement};
use leasehold::protocol::hold::{Due, Loss, RenewalAnswer, State};
use leasehold::protocol::look::{needs_a_record, only_what_was_seen};
use leasehold::protocol::release::{Release, Released};
use leasehold::protocol::retry::Retry;
use leasehold::{
    Applied, Claim, Claimed, Close, Data, Expect, Grant, Renew, Renewed, Sample, Stamp, TokenFloor, Vacate, Vacated,
    View,
};

use crate::Model;
use crate::monitor::Witness;
use crate::store::says_no;
use crate::world::{
    Acquiring, Answer, Body, Call, Client, Ending, Holding, How, Lane, Owing, Pending, Releasing, Request, Stage, World,
};

impl Model {
    pub(crate) fn believes(&self, world: &World, client: usize) -> bool {
        let now = self.stamp(world, client);
        let Client { hold, time, .. } = &*world.clients[client];
        hold.as_ref().is_some_and(|hold| hold.machine.is_held(&now, time, &self.setup.rules))
    }

    pub(crate) fn begin(&self, world: &mut World, c: usize) {
        world.clients[c].attempts -= 1;
        self.start(world, c, self.setup.goals[c]);
    }

    pub(crate) fn resume(&self, world: &mut World, c: usize) {
        let Some((from, token)) = world.handed else { return };
        world.left.resumes -= 1;
        self.start(world, c, Goal::Resume { from, token });
    }

    fn start(&self, world: &mut World, c: usize, goal: Goal) {
        world.abandon(c, Lane::Hold);
        world.clients[c].hold = None;
        let machine = Acquire::new(goal, 0).watching(world.clients[c].watched.clone());
        let machine = if self.setup.looks { machine.reading_first() } else { machine };
        let (stage, call, pending, seen) = (Stage::Waiting, None, None, None);
        world.clients[c].acquire = Some(Acquiring { machine, stage, call, pending, seen });
        self.feed(world, c, Event::Begin);
    }

    /// Gives one event to an acquire, and does what it says.
    pub(crate) fn feed(&self, world: &mut World, c: usize, event: Event<'_>) {
        let now = self.stamp(world, c);
        let client: &mut Client = &mut world.clients[c];
        let Some(run) = &mut client.acquire else { return };
        let grant = drawn(c, client.grants);
        let at = At { now, time: &client.time, floor: TokenFloor::None, dice: Dice { grant, digits: 0, jitter: 0 } };
        let refused = matches!(event, Event::Claimed(Claimed::Refused(_), _));
        let step = run.machine.on(event, at, &self.setup.rules);
        if let (true, Event::Seen(view) | Event::Claimed(Claimed::Refused(view), _)) = (self.setup.looks, event) {
            run.seen = Some(Box::new(view.clone()));
        }
        let seen = run.seen.clone();
        let says_no = seen.as_ref().is_some_and(|view| says_no(view));
        let needs_a_record = |proposal: &Proposal| {
            self.setup.looks && needs_a_record(&proposal.expect, seen.as_deref(), &self.setup.rules)
        };
        self.account(world, c, &step, refused);
        match step.next {
            Next::Claim(_) if says_no => {
                self.see(Witness::SaidNo);
                self.feed(world, c, Event::GiveUp);
            }
            Next::Claim(proposal) if needs_a_record(&proposal) => self.make_record(world, c, &proposal),
            Next::Read => self.send(world, c, Lane::Acquire, Body::Read, world.now),
            Next::Claim(proposal) => self.propose(world, c, proposal, grant),
            Next::Pause(pause) => self.acquiring(world, c).stage = Stage::Paused(now.boot + pause),
            Next::Done(outcome) => self.done(world, c, outcome),
        }
    }

    /// Keeps the books of which claims are out, and of what is owed.
    fn account(&self, world: &mut World, c: usize, step: &Step, refused: bool) {
        let pending = self.acquiring(world, c).pending.as_ref().map(|pending| pending.grant);
        if let Some(debt) = step.owed {
            self.owe(world, c, debt);
        }
        let stays = match &step.next {
            Next::Claim(proposal) => Some(proposal.grant) == pending,
            Next::Pause(_) => !refused && step.owed.is_none(),
            Next::Read => false,
            Next::Done(outcome) => matches!(outcome, Outcome::Granted(_)),
        };
        let Some(grant) = pending.filter(|_| !stays) else { return };
        self.acquiring(world, c).pending = None;
        if step.owed.is_none_or(|debt| debt.grant != grant) {
            world.ghosts.all_copies_answered(grant);
        }
    }

    fn owe(&self, world: &mut World, c: usize, debt: Debt) {
        let owing = Owing { machine: Cleanup::new(debt), not_before: 0, call: None };
        self.see(if debt.burn { Witness::Burn } else { Witness::GivenBack });
        world.clients[c].debts.push(owing);
    }

    fn propose(&self, world: &mut World, c: usize, proposal: Proposal, fresh: Grant) {
        let now = self.stamp(world, c);
        let since = self.if_jumps(now);
        let run = self.acquiring(world, c);
        if run.pending.as_ref().is_none_or(|pending| pending.grant != proposal.grant) {
            let progress = run.machine.progress(&now);
            let how = match &proposal.expect {
                Expect::Vacant => How::Vacant,
                Expect::Handed(_) => How::Handed,
                Expect::Expired(_) if progress.of.is_some_and(|of| progress.seen_for >= of) => How::Observed,
                Expect::Expired(_) => How::StoreTime,
            };
            run.pending = Some(Pending { grant: proposal.grant, how, since });
        }
        let seen = run.seen.clone();
        let claim = Box::new(self.claim(proposal, seen.as_deref()));
        run.stage = Stage::Ready(claim);
        world.clients[c].grants += u8::from(
            world.clients[c]
                .acquire
                .as_ref()
                .is_some_and(|run| matches!(&run.stage, Stage::Ready(claim) if claim.grant == fresh)),
        );
        if !self.setup.slow_send {
            self.send_claim(world, c);
        }
    }

    fn make_record(&self, world: &mut World, c: usize, proposal: &Proposal) {
        world.clients[c].grants += 1;
        let (token, grant) = (proposal.token, proposal.grant);
        let burn = Vacate { name: self.name.clone(), token, grant, burn: true, close: None, now_ms: None };
        self.send(world, c, Lane::Acquire, Body::Vacate(Box::new(burn)), world.now);
        self.acquiring(world, c).stage = Stage::Making;
        self.see(Witness::RecordMade);
    }

    fn claim(&self, proposal: Proposal, seen: Option<&View>) -> Claim {
        let looks = self.setup.looks;
        Claim {
            name: self.name.clone(),
            token: proposal.token,
            grant: proposal.grant,
            ttl_ms: self.setup.rules.ttl_ms(),
            expires_at_ms: proposal.expires_at_ms,
            holder: None,
            data: if looks { Data::new(&[1]) } else { None },
            set: None,
            expect: if looks { only_what_was_seen(proposal.expect, seen) } else { proposal.expect },
        }
    }

    pub(crate) fn send_claim(&self, world: &mut World, c: usize) {
        let now = self.stamp(world, c);
        let run = self.acquiring(world, c);
        let Stage::Ready(claim) = std::mem::replace(&mut run.stage, Stage::Waiting) else { return };
        run.machine.sent(now);
        world.ghosts.sends_for(claim.grant);
        self.send(world, c, Lane::Acquire, Body::Claim(claim), world.now);
    }

    fn done(&self, world: &mut World, c: usize, outcome: Outcome) {
        if let (true, Some(run)) = (self.setup.remembers, &world.clients[c].acquire) {
            world.clients[c].watched = run.machine.watched().clone();
        }
        let pending = world.clients[c].acquire.take().and_then(|run| run.pending);
        let (Outcome::Granted(hold), Some(Pending { how, since, .. })) = (outcome, pending) else { return };
        match how {
            How::Observed => self.see(Witness::TakeoverByObservation),
            How::StoreTime => self.see(Witness::TakeoverByStoreTime),
            How::Handed => self.see(Witness::Resumed),
            How::Vacant => {}
        }
        self.see_rates(world, how);
        let renewals = self.setup.renewals;
        world.clients[c].hold = Some(Holding { machine: *hold, call: None, renewals, payload: 0, lost: false, since });
    }

    pub(crate) fn give_up(&self, world: &mut World, c: usize) {
        world.left.give_ups -= 1;
        world.abandon(c, Lane::Acquire);
        self.feed(world, c, Event::GiveUp);
    }

    /// A fresh process with nothing but its options; what is in flight stays there.
    pub(crate) fn crash(&self, world: &mut World, c: usize) {
        world.left.crashes -= 1;
        let lanes: Vec<Lane> = world.clients[c].lanes().into_iter().map(|(lane, _)| lane).collect();
        for lane in lanes {
            world.abandon(c, lane);
        }
        let Client { lag, drift, jump, attempts, grants, .. } = *world.clients[c];
        *world.clients[c] = Client { lag, drift, jump, attempts, grants, ..Client::default() };
    }

    /// The keeper looks at the grant, and sends what is due.
    pub(crate) fn renew(&self, world: &mut World, c: usize) {
        let now = self.stamp(world, c);
        let Client { hold: Some(run), time, .. } = &mut *world.clients[c] else { return };
        if run.machine.tick(&now, time, &self.setup.rules) != Due::Renew || run.renewals == 0 {
            return;
        }
        let was_lost = matches!(run.machine.state(), State::Lost(_));
        let overdue = run.machine.is_under_way();
        let body = run.machine.renewal(&now, time, &self.setup.rules);
        run.renewals -= 1;
        let renew = Renew {
            name: self.name.clone(),
            token: run.machine.token,
            grant: run.machine.grant,
            version: body.version,
            ttl_ms: body.ttl_ms,
            expires_at_ms: body.expires_at_ms,
            holder: None,
            data: if body.with_data { Data::new(&[run.payload]) } else { None },
            set: None,
        };
        if overdue {
            world.abandon(c, Lane::Hold); // Its answer would say nothing any more.
        }
        world.ghosts.sends_for(renew.grant);
        world.ghosts.flag(crate::monitor::Invariant::I6, was_lost);
        self.send(world, c, Lane::Hold, Body::Renew(Box::new(renew)), world.now);
    }

    pub(crate) fn release(&self, world: &mut World, c: usize, ending: Ending) {
        let now = self.stamp(world, c);
        world.abandon(c, Lane::Hold);
        let Some(mut run) = world.clients[c].hold.take() else { return };
        run.machine.end();
        let until = world.clients[c].time.interval(&now, &self.setup.rules.clocks).map(|(_, late)| late);
        let use_time = self.setup.rules.use_store_time;
        let close = self.setup.closing.filter(|_| ending == Ending::Closing).map(|for_ms| Close {
            for_ms,
            until_ms: until.filter(|_| use_time).map(|late| late + for_ms),
            data: None,
        });
        let (token, grant) = (run.machine.token, run.machine.grant);
        let body = Vacate { name: self.name.clone(), token, grant, burn: false, close, now_ms: None };
        let machine = Release::new(ending == Ending::Closing);
        world.clients[c].release = Some(Releasing { machine, body, first: world.now, call: None });
        self.send_release(world, c);
    }

    pub(crate) fn send_release(&self, world: &mut World, c: usize) {
        let Some(Releasing { body, first, .. }) = &world.clients[c].release else { return };
        let (body, first) = (Box::new(body.clone()), *first);
        self.send(world, c, Lane::Release, Body::Vacate(body), first);
    }

    pub(crate) fn set_data(&self, world: &mut World, c: usize) {
        let Some(run) = &mut world.clients[c].hold else { return };
        run.payload = u8::try_from(run.machine.set_data()).expect("few payloads");
    }

    pub(crate) fn hand_over(&self, world: &mut World, c: usize) {
        world.left.hand_overs -= 1;
        world.abandon(c, Lane::Hold);
        let Some(mut run) = world.clients[c].hold.take() else { return };
        run.machine.end();
        world.handed = Some((run.machine.grant, run.machine.token));
    }

    pub(crate) fn clean_up(&self, world: &mut World, c: usize, grant: Grant) {
        let Some(owing) = world.clients[c].debts.iter().find(|owing| owing.machine.debt.grant == grant) else { return };
        let Debt { token, grant, burn, .. } = owing.machine.debt;
        let vacate = Vacate { name: self.name.clone(), token, grant, burn, close: None, now_ms: None };
        self.send(world, c, Lane::Debt(grant), Body::Vacate(Box::new(vacate)), world.now);
    }

    fn send(&self, world: &mut World, c: usize, lane: Lane, body: Body, first: u64) {
        if lane == Lane::Acquire {
            self.acquiring(world, c).stage = Stage::Waiting;
        }
        let sent = self.stamp(world, c);
        if let Some(call) = world.call(c, lane) {
            *call = Some(Call { sent, answer: None });
        }
        world.post(Request { from: c, waits: Some(lane), body, repeated: false, first });
    }

    pub(crate) fn receive(&self, world: &mut World, c: usize, lane: Lane) {
        let now = self.stamp(world, c);
        let Some(Call { sent, answer: Some((answer, date)) }) = world.call(c, lane).and_then(Option::take) else {
            return;
        };
        let rules = &self.setup.rules;
        let sample = rules.has_store_time.then_some(Sample { date, sent, received: now });
        if let Some(sample) = sample {
            world.clients[c].time.learn(sample, &now, &rules.clocks);
        }
        match (lane, answer) {
            (_, Answer::Seen(view)) => self.feed(world, c, Event::Seen(&view)),
            (_, Answer::Claimed(claimed)) => self.feed(world, c, Event::Claimed(&claimed, sample)),
            (_, Answer::Renewed(renewed)) => self.renewed(world, c, &renewed, sent, sample),
            (Lane::Acquire, Answer::Vacated(_)) => {
                self.feed(world, c, Event::Failed { applied: Applied::No, retry: Retry::Soon });
            }
            (Lane::Release, Answer::Vacated(vacated)) => self.released(world, c, &vacated),
            (_, Answer::Vacated(vacated)) => {
                self.settled(world, c, lane, |owing| owing.machine.answered(&vacated, &now, rules, 0));
            }
        }
    }

    fn renewed(&self, world: &mut World, c: usize, renewed: &Renewed, sent: Stamp, sample: Option<Sample>) {
        let now = self.stamp(world, c);
        let doubted = world.clients[c].jump > 0 && !self.believes(world, c);
        let Client { hold: Some(run), time, .. } = &mut *world.clients[c] else { return };
        let in_time = now.steady_since(&run.since) < self.setup.rules.term();
        // One request of a lane waits at a time, so that an answer is that of the newest body.
        let version = run.machine.version();
        run.machine.answered(version, RenewalAnswer::Answered(renewed, sample), &now, time, &self.setup.rules, 0);
        match run.machine.state() {
            State::Held => {
                run.since = self.if_jumps(sent);
                self.see(Witness::Renewed);
            }
            State::Lost(Loss::Revoked) => self.see(Witness::Revoked),
            _ => {}
        }
        let deposed = run.machine.state() == State::Lost(Loss::Deleted) && self.was_restored(world);
        self.see_if(deposed, Witness::LostToRestore);
        if doubted && self.believes(world, c) {
            self.see(Witness::SavedFromJump);
        }
        if in_time && matches!(renewed, Renewed::Renewed(_)) {
            self.judge_renewal_after_jump(world, c, sent);
        }
    }

    fn released(&self, world: &mut World, c: usize, vacated: &Vacated) {
        let Some(run) = &world.clients[c].release else { return };
        let (token, grant, closing) = (run.body.token, run.body.grant, run.body.close.is_some());
        match run.machine.answered(vacated, token) {
            Released::Done => {
                if closing && matches!(vacated, Vacated::Refused(_)) {
                    self.see(Witness::OutcomeRecoveredFromView);
                }
                world.ghosts.release_done(grant, closing);
            }
            Released::NotRecorded => world.ghosts.release_not_recorded(grant),
            Released::Unknown | Released::Again => {}
        }
        world.clients[c].release = None;
    }

    fn settled(&self, world: &mut World, c: usize, lane: Lane, judge: impl FnOnce(&mut Owing) -> Settlement) {
        let now = self.stamp(world, c).boot;
        let Lane::Debt(grant) = lane else { return };
        let Some(at) = world.clients[c].debts.iter().position(|owing| owing.machine.debt.grant == grant) else {
            return;
        };
        let owing = &mut world.clients[c].debts[at];
        match judge(owing) {
            Settlement::Settled => world.ghosts.cleanup_settled(grant),
            Settlement::RanOut => {}
            Settlement::Again(pause) => {
                owing.not_before = now + pause;
                return;
            }
        }
        world.clients[c].debts.remove(at);
    }

    /// No answer: it may have been applied, or it has certainly not.
    pub(crate) fn lose(&self, world: &mut World, c: usize, lane: Lane, applied: Applied) {
        let now = self.stamp(world, c);
        world.left.faults -= 1;
        if applied == Applied::No {
            world.network.retain(|request| request.from != c || request.waits != Some(lane));
        }
        world.abandon(c, lane);
        let rules = &self.setup.rules;
        match lane {
            Lane::Acquire => {
                // A record that is made is no claim.
                let makes = self.acquiring(world, c).stage == Stage::Making;
                let applied = if makes { Applied::No } else { applied };
                self.feed(world, c, Event::Failed { applied, retry: Retry::Later });
            }
            Lane::Hold => {
                let Client { hold: Some(run), time, .. } = &mut *world.clients[c] else { return };
                let version = run.machine.version();
                run.machine.answered(version, RenewalAnswer::Failed { retry: Retry::Later }, &now, time, rules, 0);
            }
            Lane::Release => {
                let Some(run) = &mut world.clients[c].release else { return };
                run.machine.failed(applied);
            }
            Lane::Debt(_) => self.settled(world, c, lane, |owing| owing.machine.failed(&now, rules, 0)),
        }
    }

    fn acquiring<'w>(&self, world: &'w mut World, c: usize) -> &'w mut Acquiring {
        world.clients[c].acquire.as_mut().expect("only called while an acquire runs")
    }
}

/// The grant that a client draws after so many.
pub(crate) fn drawn(client: usize, after: u8) -> Grant {
    Grant::from_bits(1 + 8 * client as u128 + u128::from(after))
}
