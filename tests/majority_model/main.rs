//! An exhaustive model of a majority of three or five members within small bounds: it drives the real `protocol::majority`,
//! observers and record; it only carries requests, lets time pass and fails things. Each of its rules is broken once in
//! the real code and refuted, with the length of the shortest way to the harm.

mod change;
mod explored;
mod ghosts;
mod lists;
mod look;
mod members;
mod operator;
mod refuted;
mod renewals;
mod steps;
mod world;

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::Name;
use stateright::Property;

use self::ghosts::Harm;
use self::world::{Action, Client, Setup, Stage, World};

/// One configuration, explored.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) setup: Setup,
    pub(crate) name: Name,
    /// Bits of what has happened in some state. Outside the states, so that history does not multiply them.
    seen: AtomicU32,
}

macro_rules! witnesses {
    ($($witness:ident),* $(,)?) => {
        /// What has to happen somewhere, or the model says nothing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum Witness {
            $($witness),*
        }

        impl Witness {
            pub(crate) const ALL: &[Witness] = &[$(Self::$witness),*];
        }
    };
}

witnesses! {
    Granted,
    TakenOver,
    GivenBack,
    Renewed,
    RenewedByOneThatWasJoinedAgain,
    Closed,
    Resumed,
    GrantedAfterAWriteBetweenReads,
    Revoked,
    LostByRevocation,
    TakenOverAfterARevocation,
    SetData,
    PayloadTakenOver,
    Opened,
    Asked,
    WishHeard,
    ListChanged,
    GrantedToTheNewList,
    ClosingCarriedOver,
}

impl Model {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup, name: Name::new("n").expect("a good name"), seen: AtomicU32::new(0) }
    }

    /// How many members a client's list has.
    pub(crate) fn size(&self, c: usize) -> usize {
        self.setup.lists[c].len()
    }

    /// Which store a member of a client's list is.
    pub(crate) fn store(&self, c: usize, member: usize) -> usize {
        self.setup.lists[c][member]
    }

    pub(crate) fn see(&self, witness: Witness) {
        self.seen.fetch_or(1 << witness as u32, Ordering::Relaxed);
    }

    pub(crate) fn has_seen(&self, witness: Witness) -> bool {
        self.seen.load(Ordering::Relaxed) & 1 << witness as u32 != 0
    }

    fn client_actions(&self, world: &World, c: usize, actions: &mut Vec<Action>) {
        let client = &world.clients[c];
        let left = &world.left;
        if !self.runs(world, c) {
            return;
        }
        match &client.stage {
            Stage::Idle if self.may_look(world, c) => {
                actions.push(Action::Look(c));
            }
            Stage::Decided(_) => actions.push(Action::Look(c)),
            Stage::Looking(looking) => {
                let unread: Vec<usize> = (0..self.size(c)).filter(|member| looking.read[*member].is_none()).collect();
                for member in unread.iter().copied() {
                    actions.push(Action::Read { client: c, member, late: false });
                    if unread.len() > 1 {
                        actions.push(Action::Read { client: c, member, late: true });
                    }
                }
            }
            Stage::Holding(holding) => {
                let free = !holding.waits() || left.give_ups > 0;
                if holding.renewals > 0 && free && self.believes(world, c) {
                    actions.push(Action::Renew(c));
                    actions.extend((holding.payloads > 0).then_some(Action::SetData(c)));
                }
                if self.believes(world, c) {
                    actions.extend(self.setup.release.then_some(Action::End(c, false)));
                    actions.extend(self.setup.closing.then_some(Action::End(c, true)));
                    actions.extend((left.hand_overs > 0).then_some(Action::HandOver(c)));
                }
            }
            _ => {}
        }
        if matches!(client.stage, Stage::Idle) && world.handed.is_some() && left.resumes > 0 {
            actions.push(Action::Resume(c));
        }
        if left.give_ups > 0 && client.waits() {
            actions.push(Action::GiveUp(c));
        }
        if left.crashes > 0 && !matches!(client.stage, Stage::Idle) {
            actions.push(Action::Crash(c));
        }
    }

    fn may_look(&self, world: &World, c: usize) -> bool {
        match c {
            1 if world.now < self.setup.rival_from => false,
            1 if self.setup.reader => world.ghosts.highest() > 0,
            _ => world.clients[c].attempts > 0,
        }
    }

    fn take(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => world.now += 1,
            Action::Look(c) => self.look(world, c, None),
            Action::Resume(c) => {
                world.left.resumes -= 1;
                let handed = world.handed;
                self.look(world, c, handed);
            }
            Action::Read { client, member, late } => self.read(world, client, member, late),
            Action::Renew(c) => self.renew(world, c),
            Action::SetData(c) => self.set_data(world, c),
            Action::Revoke => self.revoke(world),
            Action::Ask => self.ask(world),
            Action::End(c, closing) => self.end(world, c, closing),
            Action::HandOver(c) => self.hand_over(world, c),
            Action::Stop => self.operator_stops(world),
            Action::Wipe => self.wipe(world),
            Action::Administer(fails) => self.administer(world, fails),
            Action::GiveUp(c) => self.give_up(world, c),
            Action::Crash(c) => {
                world.left.crashes -= 1;
                let (attempts, grants) = (world.clients[c].attempts, world.clients[c].grants);
                world.clients[c] = Client { attempts, grants, ..Client::new(self.size(c)) };
            }
            Action::Deliver { request, lost, keep, .. } => self.deliver(world, request, lost, keep),
        }
    }
}

impl stateright::Model for Model {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.setup)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.ghosts.harm != 0 {
            return;
        }
        if world.now < self.setup.ticks {
            actions.push(Action::Tick);
        }
        for c in 0..world.clients.len() {
            self.client_actions(world, c, actions);
        }
        if world.left.revocations > 0 && world.ghosts.highest() > 0 {
            actions.push(Action::Revoke);
        }
        if world.left.asks > 0 && world.ghosts.highest() > 0 {
            actions.push(Action::Ask);
        }
        self.list_actions(world, actions);
        for (request, one) in world.network.iter().enumerate() {
            let what = one.what();
            actions.push(Action::Deliver { request, what, lost: false, keep: false });
            if world.left.faults > 0 && one.heard {
                actions.push(Action::Deliver { request, what, lost: true, keep: false });
            }
            if world.left.copies > 0 {
                actions.push(Action::Deliver { request, what, lost: false, keep: true });
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, action);
        self.judge(&mut next);
        self.forget_the_stopped(&mut next);
        next.network.sort();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Harm::properties()
    }
}
