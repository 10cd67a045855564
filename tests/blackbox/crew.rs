//! The worker processes of a run, each behind its own proxy.

use std::path::Path;

use super::Ground;
use super::assignment::Assignment;
use super::fake_clock::FakeClock;
use super::plan::{Plan, What};
use crate::support::proxy::Proxy;
use crate::support::worker::Worker;

/// A worker's place: its proxy stays, its processes come and go.
pub struct Member {
    pub proxy: Proxy,
    assignment: Assignment,
    clock: Option<FakeClock>,
    process: Option<Worker>,
    /// What has hit it and is not over.
    pub hit: Option<What>,
}

impl Member {
    fn start(&mut self) {
        self.assignment.life += 1;
        let mut variables = vec![self.assignment.variable()];
        if let Some(clock) = &self.clock {
            variables.extend(clock.variables());
        }
        self.process = Some(Worker::start("black box", variables));
    }

    /// It must not be hit already.
    pub fn hit(&mut self, what: What) {
        self.hit = Some(what);
        match what {
            What::Kill => self.process = None,
            What::Freeze => self.process.as_ref().expect("it runs").freeze(),
            What::Partition => self.proxy.down(),
        }
    }

    pub fn recover(&mut self) {
        match self.hit.take() {
            Some(What::Kill) => self.start(),
            Some(What::Freeze) => self.process.as_ref().expect("it is frozen").thaw(),
            Some(What::Partition) => self.proxy.up(),
            None => {}
        }
    }
}

pub fn start(ground: &Ground, plan: &Plan, folder: &Path) -> Vec<Member> {
    let make = |worker| {
        let proxy = Proxy::to(ground.upstream);
        let assignment = Assignment {
            worker,
            life: 0,
            seed: plan.seed,
            role: plan.roles[worker],
            folder: folder.to_owned(),
            proxy: proxy.addr().to_string(),
            place: ground.place.clone(),
            options: plan.options.clone(),
            broken: plan.broken.clone(),
            bad_habit: plan.bad_habit,
            tells_clocks: !plan.clocks.is_empty(),
        };
        let mut member =
            Member { proxy, assignment, clock: plan.clocks.get(worker).cloned(), process: None, hit: None };
        member.start();
        member
    };
    (0..plan.workers).map(make).collect()
}
