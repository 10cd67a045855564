//! What is explored with nothing broken.

use std::time::Instant;

use leasehold::protocol::acquire::Goal;
use leasehold::protocol::broken::switch::Guard;
use leasehold::protocol::rules::Ratio;
use stateright::{Checker, Model as _};

use crate::Model;
use crate::monitor::Witness;
use crate::setup::{Left, Setup};

fn core() -> Setup {
    Setup::observed("core: observation, renewals, faults, copies, fence").with(|s| {
        s.ticks = 5;
        s.ticks = envn("TICKS", 4);
        s.renewals = envn("REN", 1) as u8;
        s.left = Left { faults: envn("FAULTS",1) as u8, copies: envn("COPIES",0) as u8, writes: envn("WRITES",0) as u8, ..Left::default() };
    })
}

fn dated() -> Setup {
    Setup::dated("store time: dates off by kappa", 1).with(|s| {
        s.ticks = envn("TICKS", 6);
 s.rules.ttl = envn("TTL", 2);        s.left.faults = envn("FAULTS", 1) as u8;
        s.goals = [Goal::Try, Goal::Wait];
    })
}

#[test]
fn probe() {
    let _guard = Guard::nothing_broken();
    for setup in [core(), dated()] {
        explore(setup);
    }
}

fn explore(setup: Setup) -> usize {
    let title = setup.title;
    let begun = Instant::now();
    let checker = Model::new(setup).checker().threads(2).timeout(std::time::Duration::from_secs(40)).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{title}: {states} distinct states, {} generated, depth {}, {:.1?}", checker.state_count(), checker.max_depth(), begun.elapsed());
    for (name, path) in checker.discoveries() {
        println!("VIOLATED {name}");
        for (n, step) in path.into_actions().iter().enumerate() { println!("  {} {step:?}", n + 1); }
    }
    for (w, name) in Witness::ALL { if checker.model().has_seen(w) { println!("   seen: {name}"); } }
    states
}

fn envn(name: &str, default: u64) -> u64 { std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default) }
