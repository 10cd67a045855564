//! An exhaustive model of the protocol within small bounds. It drives the real `protocol/` code: every decision of
//! the clients and of the record is made there; the model only carries requests, lets time pass and fails things.
//!
//! `configurations` says what is explored, `refutations` breaks one rule at a time in the real code and shows the
//! shortest way to the harm. `docs/protocol.md` has the invariants and the results.

mod assumptions;
mod clocks;
mod configurations;
mod monitor;
mod refutations;
mod setup;
mod steps;
mod store;
mod world;

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::protocol::hold::{Due, State};
use leasehold::protocol::record::Stored;
use leasehold::{Applied, Name, Record};
use stateright::Property;

use self::monitor::{Ghosts, Invariant, Witness};
use self::setup::{START, Setup};
use self::world::{Action, Body, Client, Ending, Shared, Stage, World};

/// One configuration, explored.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) setup: Setup,
    pub(crate) name: Name,
    /// Bits of the invariants at whose violation a path ends.
    sought: u16,
    /// Bits of what has happened in some state. Outside the states, so that history does not multiply them.
    seen: AtomicU32,
}

impl Model {
    pub(crate) fn new(setup: Setup) -> Self {
        let excepted = setup.excepted.iter().fold(0, |bits, invariant| bits | invariant.bit());
        Self { setup, name: Name::new("n").expect("a good name"), sought: !excepted, seen: AtomicU32::new(0) }
    }

    /// Only one invariant is of interest.
    pub(crate) fn seeking(self, invariant: Invariant) -> Self {
        Self { sought: invariant.bit(), ..self }
    }

    fn first_record(&self) -> Stored {
        if !self.setup.begins_free {
            return Stored::Absent;
        }
        let mut free = Record::default();
        free.token = 1;
        Stored::Record(free)
    }

    pub(crate) fn see(&self, witness: Witness) {
        if self.seen.load(Ordering::Relaxed) & witness.bit() == 0 {
            self.seen.fetch_or(witness.bit(), Ordering::Relaxed);
        }
    }

    pub(crate) fn see_if(&self, happens: bool, witness: Witness) {
        if happens {
            self.see(witness);
        }
    }

    pub(crate) fn has_seen(&self, witness: Witness) -> bool {
        self.seen.load(Ordering::Relaxed) & witness.bit() != 0
    }

    fn client_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        let client = &world.clients[c];
        let quiet = world.now < world.ghosts.quiet_until;
        let idle = client.acquire.is_none() && client.release.is_none() && !self.believes(world, c);
        // The clients are alike: the first one begins.
        let in_turn = c == 0 || self.setup.goals[0] != self.setup.goals[1] || self.has_begun(&world.clients[0]);
        if idle && !quiet && in_turn && client.attempts > 0 {
            actions.push(Action::Begin(c));
        }
        if idle && !quiet && world.handed.is_some() && world.left.resumes > 0 {
            actions.push(Action::Resume(c));
        }
        self.acquire_actions(world, c, actions);
        self.hold_actions(world, c, actions);
        if client.release.as_ref().is_some_and(|run| run.call.is_none()) {
            actions.push(Action::SendRelease(c));
        }
        let now = self.stamp(world, c).boot;
        for owing in client.debts.iter().filter(|owing| owing.call.is_none() && now >= owing.not_before) {
            actions.push(Action::CleanUp(c, owing.machine.debt.grant));
        }
        self.call_actions(world, c, actions);
        self.clock_actions(world, c, actions);
        if world.left.crashes > 0 && (client.acquire.is_some() || client.hold.is_some()) {
            actions.push(Action::Crash(c));
        }
    }

    fn is_underway(&self, world: &World) -> bool {
        let is_prompt = |c: usize| self.setup.slow != Some(c);
        let waits = |client: &Client| client.lanes().iter().any(|(_, call)| call.answer.is_some());
        world.network.iter().any(|request| is_prompt(request.from))
            || world.clients.iter().enumerate().any(|(c, client)| is_prompt(c) && waits(client))
    }

    fn has_begun(&self, client: &Client) -> bool {
        client.attempts < self.setup.attempts[0]
    }

    fn acquire_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        let Some(run) = &world.clients[c].acquire else { return };
        match run.stage {
            Stage::Ready(_) => actions.push(Action::SendClaim(c)),
            Stage::Paused(until) if self.stamp(world, c).boot >= until => actions.push(Action::Wake(c)),
            _ => {}
        }
        if world.left.give_ups > 0 {
            actions.push(Action::GiveUp(c));
        }
    }

    fn hold_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        let client = &world.clients[c];
        let Some(run) = &client.hold else { return };
        let now = self.stamp(world, c);
        // A lost one is asked too: it must say "never again".
        let mut machine = run.machine.clone();
        let due = machine.tick(&now, &client.time, &self.setup.rules);
        if (due == Due::Renew && run.renewals > 0) || machine.state() != run.machine.state() {
            actions.push(Action::Renew(c));
        }
        if self.setup.set_data && run.payload < 2 && !matches!(run.machine.state(), State::Lost(_)) {
            actions.push(Action::SetData(c));
        }
        if self.setup.release {
            actions.push(Action::Release(c, Ending::Plain));
        }
        if self.setup.closing.is_some() {
            actions.push(Action::Release(c, Ending::Closing));
        }
        if world.left.hand_overs > 0 {
            actions.push(Action::HandOver(c));
        }
        if world.left.writes > 0 {
            actions.push(Action::Write(c));
        }
    }

    fn call_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        for (lane, call) in world.clients[c].lanes() {
            if call.answer.is_some() {
                actions.push(Action::Receive(c, lane));
            }
            if world.left.faults > 0 {
                actions.push(Action::Lose(c, lane));
                if world.is_in_flight(c, lane) {
                    actions.push(Action::Fail(c, lane));
                }
            }
        }
    }

    fn clock_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        if world.left.jumps > 0 {
            actions.extend(self.jumps(world, c).map(|by| Action::Jump(c, by)));
        }
        // A freeze after the store has answered is what P3 excludes.
        let client = &world.clients[c];
        let answered = client.lanes().iter().any(|(_, call)| call.answer.is_some());
        if world.left.freezes > 0 && client.hold.is_none() && !answered {
            actions.push(Action::Freeze(c));
        }
    }

    fn operator_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Stored::Record(record) = &*world.stored else { return };
        if record.grant.is_some() {
            let acts = [
                (world.left.revokes, Action::Revoke),
                (world.left.forces, Action::Force),
                (world.left.asks, Action::Ask),
            ];
            actions.extend(acts.into_iter().filter(|(left, _)| *left > 0).map(|(_, act)| act));
        }
        if world.left.backups > 0 {
            actions.push(Action::Backup);
        }
        if self.setup.stops_acquires && world.clients.iter().any(|client| client.acquire.is_some()) {
            return;
        }
        if world.left.deletions > 0 {
            actions.push(Action::Delete);
        }
        if world.left.restores > 0 && world.backup.as_ref().is_some_and(|backup| *backup != world.stored) {
            actions.push(Action::Restore);
        }
    }

    fn network_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, request) in world.network.iter().enumerate() {
            if at > 0 && world.network[at - 1] == *request {
                continue;
            }
            let what = request.body.what();
            let skews: &[i64] = if self.setup.skew == 0 || request.waits.is_none() { &[0] } else { &[-1, 1] };
            for skew in skews.iter().map(|sign| sign * self.setup.skew) {
                actions.push(Action::Store { request: at, what, skew, keep: false });
                if world.left.copies > 0 && !matches!(request.body, Body::Read) {
                    actions.push(Action::Store { request: at, what, skew, keep: true });
                }
            }
        }
    }

    fn take(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => world.now += 1,
            Action::TickAt(rates) => self.tick_at(world, rates),
            Action::Begin(c) => self.begin(world, c),
            Action::Resume(c) => self.resume(world, c),
            Action::SendClaim(c) => self.send_claim(world, c),
            Action::Wake(c) => self.feed(world, c, leasehold::protocol::acquire::Event::Woken),
            Action::GiveUp(c) => self.give_up(world, c),
            Action::Crash(c) => self.crash(world, c),
            Action::Renew(c) => self.renew(world, c),
            Action::SetData(c) => self.set_data(world, c),
            Action::Release(c, ending) => self.release(world, c, ending),
            Action::HandOver(c) => self.hand_over(world, c),
            Action::SendRelease(c) => self.send_release(world, c),
            Action::CleanUp(c, grant) => self.clean_up(world, c, grant),
            Action::Store { request, skew, keep, .. } => self.store(world, request, skew, keep),
            Action::Receive(c, lane) => self.receive(world, c, lane),
            Action::Lose(c, lane) => self.lose(world, c, lane, Applied::Unknown),
            Action::Fail(c, lane) => self.lose(world, c, lane, Applied::No),
            Action::Revoke => self.revoke(world, false),
            Action::Force => self.revoke(world, true),
            Action::Ask => self.ask(world),
            Action::Delete => self.delete(world),
            Action::Backup => self.back_up(world),
            Action::Restore => self.restore(world),
            Action::Freeze(c) => self.freeze(world, c),
            Action::Jump(c, by) => self.jump(world, c, by),
            Action::Write(c) => self.write(world, c),
        }
    }

    /// A write to the fenced resource, which compares tokens and nothing else.
    fn write(&self, world: &mut World, c: usize) {
        world.left.writes -= 1;
        let believes = self.believes(world, c) && world.now >= world.ghosts.void_until;
        let Some(token) = world.clients[c].hold.as_ref().map(|hold| hold.machine.token) else { return };
        let accepted = token >= world.ghosts.fence;
        self.see_if(!accepted, Witness::ZombieRefused);
        world.ghosts.flag(Invariant::I7, believes && !accepted);
        world.ghosts.fence = world.ghosts.fence.max(token);
    }
}

impl stateright::Model for Model {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let client = |c: usize| Client { attempts: self.setup.attempts[c], ..Client::default() };
        let client = |c| Shared::new(client(c));
        vec![World {
            now: START,
            stored: Shared::new(self.first_record()),
            clients: [client(0), client(1)],
            network: Vec::new(),
            handed: None,
            backup: None,
            left: self.setup.left,
            ghosts: Ghosts::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.ghosts.violated & self.sought != 0 {
            return;
        }
        if world.now < START + self.setup.ticks && !(self.setup.prompt && self.is_underway(world)) {
            self.ticks(actions);
        }
        for c in 0..world.clients.len() {
            self.client_actions(world, c, actions);
        }
        self.network_actions(world, actions);
        self.operator_actions(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, action);
        let believes = [self.believes(&next, 0), self.believes(&next, 1)];
        monitor::judge(&mut next, believes, self.setup.left.jumps > 0);
        self.judge_deadlines(&mut next);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! never {
            ($($invariant:ident),*) => {
                vec![$(Property::always(Invariant::$invariant.name(), |model: &Self, world: &World| {
                    world.ghosts.violated & model.sought & Invariant::$invariant.bit() == 0
                })),*]
            };
        }
        never!(I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, Closed, Outcome, Payload, Wall, Look)
    }
}
