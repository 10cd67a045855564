//! A change of the list of members: the operator stops the clients, waits, and an administrator brings the record to the
//! new members and marks them. The real code decides; here its requests are sent, lost, or arrive late.

use leasehold::protocol::majority::moving::{Brought, brought, expectation, needed, written};
use leasehold::protocol::majority::roster::{Checked, Fitness, Mark, fitness, member_set, pinned};
use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::{MemberSet, Stamp, View};

use crate::ghosts::Harm;
use crate::steps::at;
use crate::world::{Action, Body, Client, Request, Setup, Stage, World};
use crate::{Model, Witness};

/// Who brings the record over; it is none of the clients.
pub(crate) const ADMINISTRATOR: usize = 3;

/// How a list is changed, and what is kept of the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Procedure {
    /// Whether the operator waits for a term before the move.
    pub(crate) waits: bool,
    /// Since when a client of the old list may look that was not stopped; `None`: it is stopped.
    pub(crate) goes_on: Option<Since>,
    /// A store that is wiped while the clients are stopped.
    pub(crate) wiped: Option<usize>,
}

/// From where on a client of the old list looks that should have been stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// All the time.
    Ever,
    /// When the record was brought to the new members: its list says no.
    Brought,
    /// When they are marked: the marks say no.
    Marked,
}

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Change {
    pub(crate) phase: Phase,
    /// By store.
    pub(crate) marks: Vec<Option<Mark>>,
    /// How often the members were marked.
    set_ups: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Running,
    Stopped {
        since: u64,
    },
    /// The old members are read, one after the other.
    Reads(Vec<Option<View>>),
    Brings {
        brought: Brought,
        member: usize,
        /// Whether the member was claimed already.
        claimed: bool,
    },
    /// The record is with all of them.
    Brought,
    Marks(usize),
    Done,
}

impl Setup {
    /// The hash of a client's list, where lists matter.
    pub(crate) fn set_of(&self, c: usize) -> Option<MemberSet> {
        self.change?;
        let identities: Vec<_> = self.lists[c].iter().map(|store| format!("store {store}")).collect();
        Some(member_set(&identities))
    }
}

impl Change {
    pub(crate) fn new(setup: &Setup, stores: usize) -> Option<Self> {
        setup.change?;
        let mut change = Self { phase: Phase::Running, marks: vec![None; stores], set_ups: 0 };
        change.new_roster();
        (0..setup.lists[0].len()).for_each(|member| change.mark(setup, 0, member));
        Some(change)
    }

    fn new_roster(&mut self) {
        self.set_ups += 1;
    }

    fn roster(&self, size: usize) -> Vec<u128> {
        (0..size).map(|member| u128::from(self.set_ups) * 10 + member as u128).collect()
    }

    /// Marks a member of a client's list.
    fn mark(&mut self, setup: &Setup, c: usize, member: usize) {
        let roster = self.roster(setup.lists[c].len());
        self.marks[setup.lists[c][member]] = Some(Mark { own: roster[member], roster });
    }

    fn marks_of(&self, list: &[usize]) -> Vec<Option<Mark>> {
        list.iter().map(|store| self.marks[*store].clone()).collect()
    }
}

impl Client {
    /// It was running before, and has looked at the marks just now.
    pub(crate) fn knows_the_marks(&mut self, change: &Change, list: &[usize]) {
        self.roster = pinned(&change.marks_of(list)).unwrap_or_default();
        self.checked = vec![Some(Checked { since: Stamp::default(), fitness: Fitness::Fit }); list.len()];
    }
}

impl Model {
    /// The hash of a client's list, where lists matter.
    pub(crate) fn set(&self, c: usize) -> Option<MemberSet> {
        self.setup.set_of(c)
    }

    /// Whether a client may begin anything.
    pub(crate) fn runs(&self, world: &World, c: usize) -> bool {
        let (Some(change), Some(procedure)) = (&world.change, self.setup.change) else { return true };
        let brought = matches!(change.phase, Phase::Brought | Phase::Marks(_) | Phase::Done);
        match (c, procedure.goes_on) {
            (0, None) => change.phase == Phase::Running,
            (0, Some(Since::Ever)) => true,
            (0, Some(Since::Brought)) => brought,
            (0, Some(Since::Marked)) => change.phase == Phase::Done,
            _ => change.phase == Phase::Done,
        }
    }

    /// Whether a member counts for a client, which looks at its mark if it has not for so long.
    pub(crate) fn is_fit(&self, world: &mut World, c: usize, member: usize) -> bool {
        let Some(change) = &world.change else { return true };
        let (client, now) = (&mut world.clients[c], at(world.now));
        if client.roster.is_empty() {
            let list = self.setup.lists[c];
            client.roster = pinned(&change.marks_of(list)).unwrap_or_default();
            client.checked = vec![None; list.len()];
        }
        let checked = &mut client.checked[member];
        let known = checked.and_then(|checked| checked.known(&now, Some(self.setup.ttl / 2), 0));
        let found = known.unwrap_or_else(|| {
            let mark = change.marks[self.setup.lists[c][member]].as_ref();
            *checked = Some(Checked { since: now, fitness: fitness(mark, &client.roster, member) });
            fitness(mark, &client.roster, member)
        });
        found == Fitness::Fit
    }

    /// Somebody with the old list was granted who has begun when the list was changed.
    pub(crate) fn judge_list(&self, world: &mut World, c: usize) {
        let kept_out = |procedure: Procedure| matches!(procedure.goes_on, Some(Since::Brought | Since::Marked));
        world.ghosts.flag(Harm::OldList, c == 0 && self.setup.change.is_some_and(kept_out));
        if c == 1 && world.change.is_some() {
            self.see(Witness::GrantedToTheNewList);
        }
    }

    pub(crate) fn operator_stops(&self, world: &mut World) {
        let (Some(change), Some(procedure)) = (&mut world.change, self.setup.change) else { return };
        change.phase = Phase::Stopped { since: world.now };
        if procedure.goes_on.is_some() {
            return;
        }
        // It sends nothing any more and hears nothing; one that holds may be frozen, and believes until its time is over.
        world.network.iter_mut().for_each(|request| request.heard = false);
        let stopped = Client::new(world.clients[0].observers.len());
        let stage = std::mem::take(&mut world.clients[0].stage);
        world.clients[0] = stopped;
        if let Stage::Holding(mut holding) = stage {
            (holding.call, holding.renewals) = (None, 0);
            world.clients[0].stage = Stage::Holding(holding);
        }
    }

    pub(crate) fn wipe(&self, world: &mut World) {
        let Some(wiped) = self.setup.change.and_then(|procedure| procedure.wiped) else { return };
        world.left.wipes -= 1;
        world.stores[wiped] = Stored::Absent;
        (0..self.size(0))
            .filter(|member| self.store(0, *member) == wiped)
            .for_each(|member| world.ghosts.wiped(member));
        if let Some(change) = &mut world.change {
            change.marks[wiped] = None;
        }
    }

    pub(crate) fn list_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(change) = &world.change else { return };
        if change.phase == Phase::Running {
            actions.push(Action::Stop);
        }
        let over = |since: u64| world.now >= since + self.setup.ttl;
        // While somebody believes, a wipe voids exclusion.
        if world.left.wipes > 0 && matches!(change.phase, Phase::Stopped { since } if over(since)) {
            actions.push(Action::Wipe);
        }
        if self.administers(world) {
            actions.push(Action::Administer(false));
            let can_fail = !matches!(change.phase, Phase::Stopped { .. } | Phase::Brought);
            actions.extend((can_fail && world.left.stumbles > 0).then_some(Action::Administer(true)));
        }
    }

    /// Whether the administrator can go on.
    pub(crate) fn administers(&self, world: &World) -> bool {
        let (Some(change), Some(procedure)) = (&world.change, self.setup.change) else { return false };
        match &change.phase {
            Phase::Running | Phase::Done => false,
            Phase::Stopped { since } => {
                world.left.moves > 0 && (!procedure.waits || world.now >= since + self.setup.ttl)
            }
            _ => true,
        }
    }

    /// Its next step. `fails`: a member does not answer in time. What was sent to it may arrive later, and the act is over.
    pub(crate) fn administer(&self, world: &mut World, fails: bool) {
        world.left.stumbles -= u8::from(fails);
        let now = world.now;
        let Some(change) = &mut world.change else { return };
        match std::mem::replace(&mut change.phase, Phase::Stopped { since: 0 }) {
            Phase::Running => change.phase = Phase::Stopped { since: now },
            Phase::Stopped { .. } => {
                world.left.moves -= 1;
                let old = self.setup.lists[0];
                let knows = pinned(&change.marks_of(old)).is_some();
                // Else it is refused for good.
                change.phase = if knows { Phase::Reads(Vec::new()) } else { Phase::Stopped { since: u64::MAX / 2 } };
            }
            Phase::Reads(found) => self.reads(world, found, fails),
            Phase::Brings { brought, member, claimed } => self.brings(world, brought, member, claimed, fails),
            Phase::Brought => {
                change.new_roster();
                change.phase = Phase::Marks(0);
            }
            Phase::Marks(_) if fails => change.phase = Phase::Brought,
            Phase::Marks(member) => {
                change.mark(&self.setup, 1, member);
                let done = member + 1 == self.setup.lists[1].len();
                change.phase = if done { Phase::Done } else { Phase::Marks(member + 1) };
                if done {
                    self.see(Witness::ListChanged);
                }
            }
            Phase::Done => change.phase = Phase::Done,
        }
    }

    fn reads(&self, world: &mut World, mut found: Vec<Option<View>>, fails: bool) {
        let Some(change) = &mut world.change else { return };
        let (old, new) = (self.setup.lists[0], self.setup.lists[1]);
        let member = found.len();
        let roster = pinned(&change.marks_of(old)).unwrap_or_default();
        let fit = fitness(change.marks[old[member]].as_ref(), &roster, member) == Fitness::Fit;
        found.push((fit && !fails).then(|| world.stores[old[member]].view()));
        if found.len() < old.len() {
            change.phase = Phase::Reads(found);
            return;
        }
        if found.iter().flatten().count() < needed(old.len()) {
            return;
        }
        let own: Vec<_> = new.iter().map(|store| Some(world.stores[*store].view())).collect();
        change.phase = match found.iter().flatten().any(|view| view.record.is_some()) {
            false => Phase::Brought,
            true => {
                let Ok(brought) = brought(&found, &own, None) else { return };
                world.ghosts.brings(&brought, found.iter().all(Option::is_some));
                if brought.record.closed.is_some() {
                    self.see(Witness::ClosingCarriedOver);
                }
                Phase::Brings { brought, member: written(new.len()).start, claimed: false }
            }
        };
    }

    fn brings(&self, world: &mut World, brought: Brought, member: usize, claimed: bool, fails: bool) {
        let store = self.setup.lists[1][member];
        let expect = expectation(world.stores[store].view());
        let (Ok(expect), Some(set)) = (expect, self.set(1)) else { return };
        let claim = brought.claim(self.name.clone(), set, self.setup.ttl, expect);
        let vacate = brought.vacate(self.name.clone());
        if fails {
            let body = if claimed { Body::Vacate(vacate) } else { Body::Claim(claim) };
            world.network.push(Request { client: ADMINISTRATOR, member, call: 0, heard: false, body });
            return;
        }
        let stored = &world.stores[store];
        let outcome = if claimed { record::vacate(stored, &vacate) } else { record::claim(stored, &claim) };
        match outcome {
            Outcome::Write(after) => self.write(world, store, after),
            Outcome::Already => {}
            // It says that a client is not stopped.
            Outcome::Refuse => return,
        }
        let Some(change) = &mut world.change else { return };
        change.phase = match claimed {
            false => Phase::Brings { brought, member, claimed: true },
            true if member + 1 < written(self.setup.lists[1].len()).end => {
                Phase::Brings { brought, member: member + 1, claimed: false }
            }
            true => Phase::Brought,
        };
    }

    /// One that is stopped and believes no more is nothing any more.
    pub(crate) fn forget_the_stopped(&self, world: &mut World) {
        if world.change.is_some() && !self.runs(world, 0) && !self.believes(world, 0) {
            world.clients[0].stage = Stage::Idle;
        }
    }
}
