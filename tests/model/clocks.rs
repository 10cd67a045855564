//! The local clocks: their rates, jumps and freezes, and what a jump may cost.

use leasehold::Stamp;
use leasehold::protocol::hold::{Due, Loss, State};

use crate::Model;
use crate::monitor::{Invariant, Witness};
use crate::setup::START;
use crate::world::{Action, Client, How, World};

impl Model {
    pub(crate) fn stamp(&self, world: &World, client: usize) -> Stamp {
        let Client { lag, drift, jump, .. } = &*world.clients[client];
        let steady = (world.now * self.setup.rates[client]).saturating_add_signed(*drift) - lag;
        Stamp { boot: steady, mono: steady, raw: steady, real: steady.saturating_add_signed(*jump) }
    }

    /// A tick at the clients' own rates, or one for each pair of those that can be drawn.
    pub(crate) fn ticks(&self, actions: &mut Vec<Action>) {
        let [first, second] = self.setup.rates_drawn;
        if first.is_empty() && second.is_empty() {
            return actions.push(Action::Tick);
        }
        let drawn =
            |c: usize, rates: &'static [u64]| if rates.is_empty() { vec![self.setup.rates[c]] } else { rates.to_vec() };
        for a in drawn(0, first) {
            actions.extend(drawn(1, second).into_iter().map(|b| Action::TickAt([a, b])));
        }
    }

    pub(crate) fn tick_at(&self, world: &mut World, rates: [u64; 2]) {
        world.now += 1;
        for (c, rate) in rates.into_iter().enumerate() {
            let drift = rate.cast_signed() - self.setup.rates[c].cast_signed();
            if drift != 0 {
                world.clients[c].drift += drift;
            }
        }
    }

    /// Whether a clock can have come where it is only by a change of its rate.
    fn has_changed_rate(&self, world: &World, c: usize) -> bool {
        let ticks = (world.now - START).cast_signed();
        let own = self.setup.rates[c].cast_signed();
        let drift = world.clients[c].drift;
        let mut drawn = self.setup.rates_drawn[c].iter();
        drift != 0 && !drawn.any(|rate| drift == ticks * (rate.cast_signed() - own))
    }

    pub(crate) fn see_rates(&self, world: &World, how: How) {
        let taken = matches!(how, How::Observed | How::StoreTime);
        let changed = (0..world.clients.len()).all(|c| self.has_changed_rate(world, c));
        self.see_if(taken && changed, Witness::TakenAtChangedRates);
    }

    pub(crate) fn freeze(&self, world: &mut World, c: usize) {
        world.left.freezes -= 1;
        world.now = (world.now + self.setup.freeze).min(START + self.setup.ticks);
        world.clients[c].lag += self.setup.freeze * self.setup.rates[c];
    }

    /// What a ghost remembers of the clocks; only where somebody sets one, because it multiplies states.
    pub(crate) fn if_jumps(&self, stamp: Stamp) -> Stamp {
        if self.setup.left.jumps > 0 { stamp } else { Stamp::default() }
    }

    /// What a wall clock may jump by; it stays within one jump of the others.
    pub(crate) fn jumps(&self, world: &World, c: usize) -> impl Iterator<Item = i64> {
        let (so_far, all) = (world.clients[c].jump, self.setup.jumps);
        let most = all.iter().map(|by| by.abs()).max().unwrap_or(0);
        all.iter().copied().filter(move |by| (so_far + by).abs() <= most)
    }

    pub(crate) fn jump(&self, world: &mut World, c: usize, by: i64) {
        let believed = self.believes(world, c);
        world.left.jumps -= 1;
        world.clients[c].jump += by;
        let believes = self.believes(world, c);
        self.see_if(by < 0 && believed, Witness::StepBackIgnored);
        world.ghosts.flag(Invariant::Wall, by < 0 && believed && !believes);
        world.ghosts.flag(Invariant::Wall, believed && !believes && !self.renews_at_once(world, c));
    }

    /// Whether a holder that was told "over" asks the store at once; one whose renewal is under way need not.
    fn renews_at_once(&self, world: &World, c: usize) -> bool {
        let now = self.stamp(world, c);
        let Client { hold: Some(run), time, .. } = &*world.clients[c] else { return true };
        let mut machine = run.machine.clone();
        machine.is_under_way() || machine.tick(&now, time, &self.setup.rules) == Due::Renew
    }

    /// A renewal that was accepted, and answered before the deadline, restores a lease, unless the wall clock has jumped again since it was sent.
    pub(crate) fn judge_renewal_after_jump(&self, world: &mut World, c: usize, sent: Stamp) {
        let now = self.stamp(world, c);
        let ahead = |stamp: Stamp| stamp.real.wrapping_sub(stamp.boot);
        let concerned = self.setup.left.jumps > 0 && ahead(now) == ahead(sent);
        let believes = self.believes(world, c);
        world.ghosts.flag(Invariant::Wall, concerned && !believes);
    }

    /// Only the clocks that nobody sets end a term.
    pub(crate) fn judge_deadlines(&self, world: &mut World) {
        if self.setup.left.jumps == 0 {
            return; // The ghosts know nothing then.
        }
        for c in 0..world.clients.len() {
            let now = self.stamp(world, c);
            let Some(run) = &world.clients[c].hold else { continue };
            let by_clock = matches!(run.machine.state(), State::Lost(Loss::Deadline | Loss::ClockSuspect));
            let early = by_clock && now.steady_since(&run.since) < self.setup.rules.term();
            world.ghosts.flag(Invariant::Wall, early);
        }
    }
}
