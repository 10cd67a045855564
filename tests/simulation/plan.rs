//! What a seed stands for: the clients, the store, and which faults happen.

use std::fmt;
use std::time::Duration;

use leasehold::{Renewal, Takeover};

use super::chance::Chance;

/// Everything that is drawn before a run begins.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub theme: Theme,
    pub store: StoreKind,
    pub names: usize,
    pub clients: Vec<ClientPlan>,
    /// How often each fault happens, in thousandths of its occasions; 0: not in this run.
    pub faults: Vec<(Fault, u64)>,
    /// The longest ordinary way to the store, one way.
    pub latency: Duration,
    pub renew_batch: usize,
    /// For how long faults happen.
    pub lasts: Duration,
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
}

/// Who judges expiry, and whether there is store time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Clients judge; answers carry a date.
    Dated,
    /// Clients judge, by observation alone.
    Undated,
    /// The store judges by its own clock.
    Judging,
}

/// Faults drawn without a plan seldom meet at the moment that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Any faults at any time.
    Anything,
    /// A holder is cut off while others wait, so that its deadline and their count end together.
    Deadline,
    /// Long pauses between leases, in which a client's knowledge of the store's time grows old, or its clocks freeze.
    Idle,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    RequestLost,
    AnswerLost,
    /// Either way takes up to five terms.
    Delay,
    /// An answer takes nearly as long as the client waits.
    SlowAnswer,
    /// A second copy arrives later.
    Duplicate,
    Throttle,
    FailBefore,
    FailAfter,
    Denied,
    /// The machines of the store's fleet differ by up to a second from true time.
    FleetSkew,
    /// A future of the API is dropped at some await.
    Cancel,
    /// A request is sent while all clocks of a machine freeze; only claims of manual clients with one worker.
    FreezeInClaim,
    /// All clocks of an idle machine freeze; only where the margin covers what the date check lets pass.
    FreezeIdle,
    // Those of the world, which happen at moments of their own.
    Partition,
    StoreAway,
    Pause,
    Suspend,
    WallJump,
    RateChange,
    Crash,
    Operator,
}

impl Fault {
    pub const ALL: [Fault; 21] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::Delay,
        Self::SlowAnswer,
        Self::Duplicate,
        Self::Throttle,
        Self::FailBefore,
        Self::FailAfter,
        Self::Denied,
        Self::FleetSkew,
        Self::Cancel,
        Self::FreezeInClaim,
        Self::FreezeIdle,
        Self::Partition,
        Self::StoreAway,
        Self::Pause,
        Self::Suspend,
        Self::WallJump,
        Self::RateChange,
        Self::Crash,
        Self::Operator,
    ];
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let chance = Chance::new(seed, 1);
        let theme = chance.of(&[
            Theme::Anything,
            Theme::Anything,
            Theme::Anything,
            Theme::Deadline,
            Theme::Deadline,
            Theme::Idle,
        ]);
        let ttls = chance.of(&[&[10u64][..], &[20], &[10, 30], &[12, 20, 30]]);
        let clients = (0..chance.between(2, 4))
            .map(|_| ClientPlan::draw(&chance, ttls).suited(theme, &chance))
            .collect::<Vec<_>>();
        let longest = clients.iter().map(|client| client.ttl).max().unwrap_or_default();
        let calm = chance.between(0, 4);
        let stores = [StoreKind::Dated, StoreKind::Dated, StoreKind::Undated, StoreKind::Judging];
        let faults = |fault| match theme {
            Theme::Anything => likelihood(&chance, calm),
            _ => theme.likelihood(fault, &chance),
        };
        Self {
            seed,
            theme,
            store: if theme == Theme::Idle { StoreKind::Dated } else { chance.of(&stores) },
            names: chance.of(&[1, 1, 2]),
            faults: Fault::ALL.into_iter().map(|fault| (fault, faults(fault))).collect(),
            latency: Duration::from_millis(match theme {
                Theme::Anything => chance.of(&[0, 5, 50, 300]),
                _ => chance.of(&[0, 5]),
            }),
            renew_batch: chance.of(&[1, 1, 2, 100]),
            lasts: longest * chance.between(6, 12) as u32 * if theme == Theme::Idle { 3 } else { 1 },
            clients,
        }
    }

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

    pub fn longest_ttl(&self) -> Duration {
        self.clients.iter().map(|client| client.ttl).max().unwrap_or_default()
    }
}

impl Theme {
    fn likelihood(self, fault: Fault, chance: &Chance) -> u64 {
        let maybe = |often| if chance.per_mille(500) { often } else { 0 };
        match (self, fault) {
            (_, Fault::FleetSkew) => maybe(250),
            (Self::Deadline, Fault::Partition) => 250,
            (Self::Idle, Fault::Partition) => 100,
            (Self::Idle, Fault::FreezeIdle) => maybe(500),
            (Self::Deadline, Fault::SlowAnswer) => maybe(500),
            (Self::Deadline, Fault::AnswerLost | Fault::WallJump | Fault::Operator) => maybe(250),
            (_, Fault::RequestLost | Fault::Cancel | Fault::RateChange | Fault::Pause) => maybe(10),
            _ => 0,
        }
    }
}

/// A run with few faults, often, finds other things than one with all of them.
fn likelihood(chance: &Chance, calm: u64) -> u64 {
    if chance.between(0, 5) < calm {
        return 0;
    }
    chance.of(&[10, 30, 100, 250])
}

impl ClientPlan {
    fn draw(chance: &Chance, ttls: &[u64]) -> Self {
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
        }
    }

    fn suited(self, theme: Theme, chance: &Chance) -> Self {
        let ttl = self.ttl;
        match theme {
            Theme::Anything => self,
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
            "seed {}: {:?}, {:?} store, {} names, one way up to {:?}, renewals in batches of {}, faults for {:?}",
            self.seed, self.theme, self.store, self.names, self.latency, self.renew_batch, self.lasts
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
