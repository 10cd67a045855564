//! The store of a run, and what a seed draws.

use std::time::Duration;

use super::chance::Chance;
use super::plan::{ClientPlan, Plan, Theme, likelihood};
use super::recipes::Recipe;

/// The store of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub kind: StoreKind,
    pub renew_batch: usize,
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
    /// A future of the API is not polled for a while. Not drawn here: a verb is one request, and the others, which the
    /// rarest of the broken rules needs together, would be rarer for it.
    Stall,
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
            Theme::Closing,
            Theme::Idle,
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
        let kind = if theme == Theme::Idle { StoreKind::Dated } else { chance.of(&stores) };
        let names = chance.of(&[1, 1, 2]);
        let faults = Fault::ALL.into_iter().map(|fault| (fault, faults(fault))).collect();
        let latency = Duration::from_millis(match theme {
            Theme::Anything => chance.of(&[0, 5, 50, 300]),
            _ => chance.of(&[0, 5]),
        });
        let renew_batch = chance.of(&[1, 1, 2, 100]);
        let lasts = longest * chance.between(6, 12) as u32 * if theme == Theme::Idle { 3 } else { 1 };
        let (setting, recipe, wrong) = (Setting { kind, renew_batch }, None, None);
        let plan = Self { seed, theme, setting, names, clients, faults, latency, lasts, recipe, wrong };
        plan.with(Recipe::of(seed))
    }

    /// For how long after a term a name may still not be to be had.
    pub fn slack(&self) -> Duration {
        self.longest_closing()
    }

    /// Whether a claim can name the write of a free record that it expects.
    pub fn names_free_records(&self) -> bool {
        self.setting.kind != StoreKind::Judging
    }

    /// Whether a held record always says by whom.
    pub fn says_who_holds(&self) -> bool {
        true
    }

    /// How much of a freeze of all clocks of a machine no date shows: 3 s, and what an answer takes.
    pub fn unseen(&self) -> Duration {
        let freezes = self.often(Fault::FreezeIdle) + self.often(Fault::FreezeInClaim) > 0;
        if freezes { Duration::from_secs(3) + self.longest_ttl() / 6 } else { Duration::ZERO }
    }
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
            (Self::Closing, Fault::AnswerLost | Fault::SlowAnswer | Fault::RequestLost) => maybe(250),
            (Self::Closing, Fault::Cancel | Fault::Duplicate | Fault::Operator) => maybe(100),
            (_, Fault::RequestLost | Fault::Cancel | Fault::RateChange | Fault::Pause) => maybe(10),
            _ => 0,
        }
    }
}
