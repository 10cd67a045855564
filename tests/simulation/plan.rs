//! What a seed stands for: the clients, their store, and which faults happen. `setting` draws it.

use std::fmt;
use std::time::Duration;

use leasehold::{Renewal, Takeover};

use super::chance::Chance;
use super::recipes::{Recipe, Wrong};
use super::setting::{Fault, Setting};

/// Everything that is drawn before a run begins.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub theme: Theme,
    pub setting: Setting,
    pub names: usize,
    pub clients: Vec<ClientPlan>,
    /// How often each fault happens, in thousandths of its occasions; 0: not in this run.
    pub faults: Vec<(Fault, u64)>,
    /// The longest ordinary way to the store, one way.
    pub latency: Duration,
    /// For how long faults happen.
    pub lasts: Duration,
    pub recipe: Option<Recipe>,
    /// How the recipe is used wrongly: only to see that it is noticed.
    pub wrong: Option<Wrong>,
}

/// One client: a machine with clocks of its own.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    pub ttl: Duration,
    pub margin: Option<Duration>,
    pub poll: Option<Duration>,
    pub renewal: Renewal,
    pub takeover: Takeover,
    pub concurrency: usize,
    pub workers: usize,
    pub rate_ppm: i32,
    pub wall_ahead: i64,
    /// How long its workers hold, at the longest.
    pub holds: Duration,
    /// How many of a thousand times that it uses a lease it stores a payload.
    pub stores: u64,
    /// How many of ten leases it hands over.
    pub hands_over: u64,
    /// How many of a thousand acquires take up a hand-over, if there is one.
    pub takes_up: u64,
    /// How many of ten leases it closes, and for how long at the longest.
    pub closes: u64,
    pub keeps: Duration,
}

/// Faults drawn without a plan seldom meet at the moment that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Any faults at any time.
    Anything,
    /// A holder is cut off while others wait, so that its deadline and their count end together.
    Deadline,
    /// Leases are short, and are closed.
    Closing,
    /// Long pauses between leases, in which a client's knowledge of the store's time grows old, or its clocks freeze.
    Idle,
}

impl Plan {
    /// How often this fault happens, in thousandths of its occasions.
    pub fn often(&self, fault: Fault) -> u64 {
        self.faults.iter().find(|(other, _)| *other == fault).map_or(0, |(_, often)| *often)
    }

    /// How many of a thousand requests of a client that is cut off do not arrive; of the others the answer does not.
    pub fn lost_when_cut_off(&self) -> u64 {
        if self.theme == Theme::Anything { 500 } else { 1000 }
    }

    pub fn shortest_ttl(&self) -> Duration {
        self.clients.iter().map(|client| client.ttl).min().unwrap_or_default()
    }

    /// How long a closed record keeps whoever watches it from the beginning, at the longest.
    pub fn longest_closing(&self) -> Duration {
        let keeps = self.clients.iter().filter(|client| client.closes > 0).map(|client| client.keeps);
        keeps.max().map_or(Duration::ZERO, |keeps| keeps * 103 / 100 + Duration::from_secs(5))
    }

    pub fn longest_ttl(&self) -> Duration {
        self.clients.iter().map(|client| client.ttl).max().unwrap_or_default()
    }
}

/// A run with few faults, often, finds other things than one with all of them.
pub fn likelihood(chance: &Chance, calm: u64) -> u64 {
    if chance.between(0, 5) < calm {
        return 0;
    }
    chance.of(&[10, 30, 100, 250])
}

impl ClientPlan {
    pub fn draw(chance: &Chance, ttls: &[u64]) -> Self {
        let ttl = Duration::from_secs(chance.of(ttls));
        let margins = [Some(Duration::ZERO), Some(ttl / 20), None, Some(ttl * 3 / 10)];
        Self {
            ttl,
            margin: chance.of(&margins),
            poll: chance.of(&[None, Some(ttl / 20), Some(ttl / 3)]),
            renewal: chance.of(&[Renewal::Task, Renewal::Task, Renewal::Task, Renewal::Manual]),
            takeover: chance.of(&[
                Takeover::StoreTime,
                Takeover::StoreTime,
                Takeover::StoreTime,
                Takeover::ObservedOnly,
            ]),
            concurrency: chance.of(&[1, 2, 64]),
            workers: chance.of(&[1, 1, 2, 3]),
            rate_ppm: draw_rate(chance),
            wall_ahead: chance.of(&[0, 0, 3600, -3600]),
            holds: chance.of(&[ttl / 4, ttl, ttl * 4]),
            stores: 150,
            hands_over: 2,
            takes_up: 200,
            closes: 0,
            keeps: ttl,
        }
    }

    pub fn suited(self, theme: Theme, chance: &Chance) -> Self {
        let ttl = self.ttl;
        match theme {
            Theme::Anything => Self { closes: chance.of(&[0, 0, 2]), ..self },
            Theme::Closing => Self {
                poll: Some(ttl / chance.of(&[3, 10, 50])),
                holds: ttl / chance.of(&[4, 50]),
                hands_over: 1,
                closes: chance.of(&[2, 5, 9]),
                keeps: ttl / chance.of(&[1, 4]),
                ..self
            },
            Theme::Deadline => Self {
                margin: chance.of(&[Some(Duration::ZERO), Some(Duration::ZERO), Some(ttl / 20), None]),
                poll: Some(ttl / chance.of(&[20, 100])),
                renewal: chance.of(&[Renewal::Task, Renewal::Task, Renewal::Task, Renewal::Task, Renewal::Manual]),
                rate_ppm: chance.of(&[10_000, -10_000]),
                holds: ttl * 6,
                ..self
            },
            Theme::Idle => Self {
                margin: chance.of(&[Some(Duration::ZERO), Some(ttl * 3 / 10)]),
                poll: Some(ttl / chance.of(&[20, 100])),
                renewal: Renewal::Task,
                takeover: Takeover::StoreTime,
                workers: 1,
                rate_ppm: chance.of(&[10_000, -10_000]),
                holds: chance.of(&[ttl / 4, ttl]),
                ..self
            },
        }
    }

    /// The margin that the library chooses or is told.
    pub fn effective_margin(&self) -> Duration {
        self.margin.unwrap_or((self.ttl / 10).max(Duration::from_secs(1)))
    }
}

/// Within 1 %, and often at its ends.
pub fn draw_rate(chance: &Chance) -> i32 {
    match chance.between(0, 3) {
        0 => 10_000,
        1 => -10_000,
        2 => 0,
        _ => chance.between(0, 20_000) as i32 - 10_000,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {:?}, {:?}, {} names, recipe: {:?}, one way up to {:?}, faults for {:?}",
            self.seed, self.theme, self.setting, self.names, self.recipe, self.latency, self.lasts
        )?;
        let faults = self.faults.iter().filter(|(_, often)| *often > 0);
        let faults = faults.map(|(fault, often)| format!("{fault:?} {often}")).collect::<Vec<_>>();
        writeln!(f, "  faults in thousandths: {}", faults.join(", "))?;
        for (number, client) in self.clients.iter().enumerate() {
            writeln!(f, "  client {number}: {client:?}")?;
        }
        Ok(())
    }
}
