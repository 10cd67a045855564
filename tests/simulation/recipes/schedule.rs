//! A job that runs once a tick.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::Name;
use leasehold::recipes::{Schedule, Turn};

use super::super::plan::Plan;
use super::super::worker::Worker;
use super::{Failed, Recipe, Wrong};

pub const NAME: &str = "job";

impl Plan {
    pub fn period(&self) -> Duration {
        self.longest_ttl() * 2
    }

    pub fn at_least(&self) -> Duration {
        match self.recipe {
            Some(Recipe::Schedule { at_least, .. }) => self.period() * at_least / 8,
            _ => Duration::ZERO,
        }
    }
}

impl Worker {
    pub async fn keep_schedule(self) {
        let plan = &self.world.plan;
        let schedule = Schedule::new(&self.process.leases, NAME, plan.period()).unwrap().at_least(plan.at_least());
        let schedule = if self.is_wrong(Wrong::BeginsAgain) { schedule.retry() } else { schedule };
        while !self.world.is_healed() {
            self.rest().await;
            let (cancel, before) = (self.cancel(), self.returned());
            let turn = match self.chance.per_mille(500) {
                true => cancel.of(schedule.try_turn()).await,
                false => match self.until_healed(cancel.of(schedule.turn())).await {
                    Some(turn) => turn.map(|turn| turn.map(Some)),
                    None => break,
                },
            };
            match self.told(turn, "turn").flatten().flatten() {
                Some(turn) => self.run_turn(turn, &before).await,
                None => self.gave_up(),
            }
        }
        self.gave_up();
        self.run_at_last(&schedule).await;
    }

    async fn run_turn(&self, turn: Turn, before: &BTreeMap<Name, u64>) {
        let (tick, held) = (turn.tick(), turn.held());
        let (name, token) = (held.name(), held.token().as_u64());
        self.world.checks(|checks| checks.turn_begins(name, tick, token));
        if self.chance.per_mille(100) {
            drop(turn);
        } else {
            let work = turn.run(|held| async move {
                let _working = self.begins(&held, before);
                self.use_it(&held, None).await;
                if self.chance.per_mille(200) { Err(Failed::Own) } else { Ok(()) }
            });
            if self.cancel().of(work).await.is_none() {
                self.cancelled("turn run");
            }
        }
        self.must_be_gone(&held, "a turn");
        self.gave_up();
    }

    /// A tick runs once more, whoever gets it.
    async fn run_at_last(&self, schedule: &Schedule) {
        let somebody_has_it = async {
            while !self.world.checks(|checks| checks.promises.goes_on) {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let before = self.returned();
        let turn = tokio::select! {
            biased;
            () = somebody_has_it => None,
            turn = schedule.turn() => Some(turn),
        };
        match turn {
            Some(Ok(turn)) => {
                self.world.checks(|checks| checks.promises.goes_on = true);
                self.count("ticks after all faults");
                self.run_turn(turn, &before).await;
            }
            Some(Err(error)) => self.expect(&error),
            None => self.gave_up(),
        }
    }
}
