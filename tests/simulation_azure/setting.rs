//! The service of a run, and what a seed draws.

use std::time::Duration;

use super::chance::Chance;
use super::plan::{ClientPlan, Plan, Theme, likelihood};
use super::recipes::Recipe;
use super::support::azure::{Knobs, Op};

/// The service of a run, within its documentation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How long after a term the service may still refuse a new lease.
    pub busy_after_expiry: Duration,
    pub term_ends_late_by: Duration,
    pub lease_before_conditions: bool,
    pub longest_page: usize,
    /// The only kind of request that faults happen to, and then more often: one that follows on a fault of its own
    /// kind is seldom met otherwise.
    pub focus: Option<Op>,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    // Those of one request.
    RequestLost,
    AnswerLost,
    /// The client is told that the connection broke, or nothing; the request arrives up to five terms later.
    Late,
    /// Either way takes up to a few terms.
    Delay,
    /// An answer takes nearly as long as the client waits.
    SlowAnswer,
    /// A second copy arrives up to five terms later.
    Duplicate,
    /// 503, without being applied.
    Throttle,
    /// 500, without being applied.
    FailBefore,
    /// 500, after being applied.
    FailAfter,
    /// 403.
    Denied,
    /// 502 of a proxy, whether or not it was applied.
    Foreign,
    /// Nothing is ever answered, whether or not it was applied.
    Hang,
    /// There is no connection.
    Refused,
    /// The machines of the service's fleet differ by up to a second from true time.
    FleetSkew,
    // Those of callers.
    /// A future of the API is dropped at some await.
    Cancel,
    /// A future of the API is not polled for a while.
    Stall,
    /// All clocks of an idle machine freeze.
    FreezeIdle,
    // Those of the world, which happen at moments of their own.
    Partition,
    StoreAway,
    Pause,
    Suspend,
    WallJump,
    RateChange,
    Crash,
    /// Somebody looks, lists, revokes, asks.
    Operator,
    /// And frees a lease by force.
    Force,
    /// And deletes a blob by hand.
    Deletion,
}

impl Fault {
    const ALL: [Fault; 27] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::Late,
        Self::Delay,
        Self::SlowAnswer,
        Self::Duplicate,
        Self::Throttle,
        Self::FailBefore,
        Self::FailAfter,
        Self::Denied,
        Self::Foreign,
        Self::Hang,
        Self::Refused,
        Self::FleetSkew,
        Self::Cancel,
        Self::Stall,
        Self::FreezeIdle,
        Self::Partition,
        Self::StoreAway,
        Self::Pause,
        Self::Suspend,
        Self::WallJump,
        Self::RateChange,
        Self::Crash,
        Self::Operator,
        Self::Force,
        Self::Deletion,
    ];
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let chance = Chance::new(seed, 1);
        let theme = chance.of(&[
            Theme::Anything,
            Theme::Anything,
            Theme::Anything,
            Theme::Anything,
            Theme::Deadline,
            Theme::Deadline,
            Theme::Closing,
            Theme::Idle,
        ]);
        let ttls = chance.of(&[&[15u64][..], &[15], &[20], &[15, 30], &[15, 20, 60]]);
        let mut clients = (0..chance.between(2, 4))
            .map(|_| fitting(ClientPlan::draw(&chance, ttls).suited(theme, &chance), theme, &chance))
            .collect::<Vec<_>>();
        let longest = clients.iter().map(|client| client.ttl).max().unwrap_or_default();
        let calm = chance.between(0, 5);
        let setting = Setting::draw(theme, &chance);
        if setting.focus == Some(Op::SetMetadata) {
            clients.iter_mut().for_each(|client| client.stores = 700);
        }
        if setting.focus == Some(Op::Change) || chance.per_mille(200) {
            clients.iter_mut().for_each(|client| (client.hands_over, client.takes_up) = (6, 700));
        }
        let names = chance.of(&[1, 1, 2]);
        let faults = |fault| match theme {
            Theme::Anything => likelihood(&chance, calm),
            _ => theme.likelihood(fault, &chance),
        };
        let faults = Fault::ALL.into_iter().map(|fault| (fault, faults(fault))).collect();
        let latency = Duration::from_millis(match theme {
            Theme::Anything => chance.of(&[0, 5, 50, 200]),
            _ => chance.of(&[0, 5]),
        });
        let lasts = longest * chance.between(6, 12) as u32 * if theme == Theme::Idle { 3 } else { 1 };
        let (recipe, wrong) = (None, None);
        let plan = Self { seed, theme, setting, names, clients, faults, latency, lasts, recipe, wrong };
        // The simulation of a table has them as often again.
        plan.with(Recipe::of(seed).filter(|_| seed.is_multiple_of(2)))
    }

    /// For how long after a term a name may still not be to be had.
    pub fn slack(&self) -> Duration {
        self.setting.busy_after_expiry + self.setting.term_ends_late_by + self.longest_closing()
    }

    /// Whether a claim can name the write of a free record that it expects.
    pub fn names_free_records(&self) -> bool {
        false
    }

    /// A claim leases the blob, and writes who it is in a second request.
    pub fn says_who_holds(&self) -> bool {
        false
    }

    /// How much of a freeze of all clocks of a machine no date shows: 3 s, and what an answer takes.
    pub fn unseen(&self) -> Duration {
        let freezes = self.often(Fault::FreezeIdle) > 0;
        if freezes { Duration::from_secs(3) + self.longest_ttl() / 6 } else { Duration::ZERO }
    }
}

/// A term here is shorter by the service's second and by rho once more, so the margin has less room. Nobody counts a
/// rival's term, so there is nothing to be seen by looking more often.
fn fitting(client: ClientPlan, theme: Theme, chance: &Chance) -> ClientPlan {
    let ttl = client.ttl;
    let brief = theme == Theme::Anything && chance.per_mille(300);
    ClientPlan {
        margin: client.margin.map(|margin| margin.min(ttl / 5)),
        poll: client.poll.map(|poll| poll.max(ttl / 20)),
        holds: if brief { ttl / 20 } else { client.holds },
        ..client
    }
}

impl Setting {
    fn draw(theme: Theme, chance: &Chance) -> Self {
        let ops = [
            Op::PutBlob,
            Op::Acquire,
            Op::Acquire,
            Op::SetMetadata,
            Op::SetMetadata,
            Op::Change,
            Op::Renew,
            Op::Release,
        ];
        let focused = theme == Theme::Anything && chance.per_mille(400);
        Self {
            busy_after_expiry: Duration::from_secs(chance.of(&[0, 0, 0, 5, 60])),
            term_ends_late_by: Duration::from_millis(chance.of(&[0, 0, 500, 1000])),
            lease_before_conditions: chance.per_mille(500),
            longest_page: chance.of(&[1, 5000]),
            focus: focused.then(|| chance.of(&ops)),
        }
    }

    pub fn apply(&self, knobs: &mut Knobs) {
        knobs.leeway.busy_after_expiry = self.busy_after_expiry;
        knobs.leeway.term_ends_late_by = self.term_ends_late_by;
        knobs.lease_before_conditions = self.lease_before_conditions;
        knobs.longest_page = self.longest_page;
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
            (Self::Deadline, Fault::AnswerLost | Fault::Late | Fault::WallJump | Fault::Operator) => maybe(250),
            (
                _,
                Fault::RequestLost | Fault::Cancel | Fault::Stall | Fault::RateChange | Fault::Pause | Fault::Duplicate,
            ) => maybe(10),
            _ => 0,
        }
    }
}
