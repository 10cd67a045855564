//! The state: three members' records, two clients that run the real code, and the requests in flight.

use leasehold::protocol::majority::ending::Ending;
use leasehold::protocol::majority::renewal::Renewal;
use leasehold::protocol::majority::tally::Tally;
use leasehold::protocol::majority::trail::Trail;
use leasehold::protocol::observer::Observer;
use leasehold::protocol::record::Stored;
use leasehold::{Claim, Expect, Grant, Renew, Vacate};

use crate::Witness;
use crate::ghosts::Ghosts;

pub(crate) const MEMBERS: usize = 3;

/// A configuration: how much may happen.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) title: &'static str,
    pub(crate) ttl: u64,
    pub(crate) ticks: u64,
    pub(crate) attempts: [u8; 2],
    pub(crate) renewals: u8,
    pub(crate) release: bool,
    pub(crate) closing: bool,
    /// Whether the ends of terms are written and believed, on clocks of the members that are exact.
    pub(crate) dated: bool,
    /// The second client begins at this tick.
    pub(crate) rival_from: u64,
    /// Explored to this depth, breadth first; to its end where none is given.
    pub(crate) depth: Option<usize>,
    pub(crate) left: Left,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// Answers that are lost.
    pub(crate) faults: u8,
    /// Copies that the network makes.
    pub(crate) copies: u8,
    pub(crate) give_ups: u8,
    pub(crate) crashes: u8,
    pub(crate) hand_overs: u8,
    pub(crate) resumes: u8,
}

impl Setup {
    pub(crate) fn new(title: &'static str) -> Self {
        let left = Left::default();
        Self {
            title,
            ttl: 2,
            ticks: 3,
            attempts: [1, 1],
            renewals: 0,
            release: false,
            closing: false,
            dated: false,
            rival_from: 0,
            depth: None,
            left,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) members: [Stored; MEMBERS],
    pub(crate) clients: [Client; 2],
    /// In a canonical order.
    pub(crate) network: Vec<Request>,
    /// A hand-over that can be resumed: grant and token.
    pub(crate) handed: Option<(Grant, u64)>,
    pub(crate) left: Left,
    pub(crate) ghosts: Ghosts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) attempts: u8,
    pub(crate) grants: u8,
    /// The highest token that it has proposed.
    pub(crate) proposed: u64,
    pub(crate) observers: [Observer; MEMBERS],
    /// Answers to earlier calls are not counted.
    pub(crate) call: u8,
    pub(crate) stage: Stage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    #[default]
    Idle,
    Claiming(Claiming),
    Holding(Holding),
    Ending(Closing),
}

/// A grant on its way, or held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mine {
    pub(crate) grant: Grant,
    pub(crate) token: u64,
    pub(crate) trail: Trail,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claiming {
    pub(crate) mine: Mine,
    pub(crate) begun: u64,
    /// The highest token that had been granted then.
    pub(crate) highest: u64,
    pub(crate) takes: Witness,
    pub(crate) tally: Tally,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) mine: Mine,
    /// The start of the call that counts.
    pub(crate) since: u64,
    pub(crate) version: u64,
    pub(crate) renewals: u8,
    /// The renewal under way, and when its call began.
    pub(crate) renewal: Option<(Renewal, u64)>,
    /// Whether a member was joined again.
    pub(crate) joined: bool,
    pub(crate) lost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Closing {
    pub(crate) mine: Mine,
    pub(crate) ending: Ending,
    pub(crate) closing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) client: usize,
    pub(crate) member: usize,
    pub(crate) call: u8,
    /// Whether anybody hears the answer.
    pub(crate) heard: bool,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Body {
    Claim(Claim),
    Rejoin(Claim),
    Renew(Renew),
    Vacate(Vacate),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// Reads all members, and claims if a majority looks claimable.
    Look(usize),
    Resume(usize),
    Renew(usize),
    /// Releases; `true`: closing.
    End(usize, bool),
    HandOver(usize),
    /// Waits no longer.
    GiveUp(usize),
    Crash(usize),
    /// A member acts on a request; its answer is lost, or the network has one more copy.
    Deliver {
        request: usize,
        what: What,
        lost: bool,
        keep: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Claim(usize, usize),
    Rejoin(usize, usize),
    Renew(usize, usize),
    Vacate(usize, usize),
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let client = |c: usize| Client { attempts: setup.attempts[c], ..Client::default() };
        Self {
            now: 0,
            members: [Stored::Absent, Stored::Absent, Stored::Absent],
            clients: [client(0), client(1)],
            network: Vec::new(),
            handed: None,
            left: setup.left,
            ghosts: Ghosts::default(),
        }
    }
}

impl Client {
    /// Whether it waits for an answer.
    pub(crate) fn waits(&self) -> bool {
        match &self.stage {
            Stage::Idle => false,
            Stage::Claiming(_) | Stage::Ending(_) => true,
            Stage::Holding(holding) => holding.renewal.is_some(),
        }
    }

    pub(crate) fn mine(&mut self) -> Option<&mut Mine> {
        match &mut self.stage {
            Stage::Idle => None,
            Stage::Claiming(claiming) => Some(&mut claiming.mine),
            Stage::Holding(holding) => Some(&mut holding.mine),
            Stage::Ending(closing) => Some(&mut closing.mine),
        }
    }
}

impl Request {
    /// For people who read a trace: from whom, to which member.
    pub(crate) fn what(&self) -> What {
        match self.body {
            Body::Claim(_) => What::Claim(self.client, self.member),
            Body::Rejoin(_) => What::Rejoin(self.client, self.member),
            Body::Renew(_) => What::Renew(self.client, self.member),
            Body::Vacate(_) => What::Vacate(self.client, self.member),
        }
    }

    pub(crate) fn grant(&self) -> Grant {
        match &self.body {
            Body::Claim(claim) | Body::Rejoin(claim) => claim.grant,
            Body::Renew(renew) => renew.grant,
            Body::Vacate(vacate) => vacate.grant,
        }
    }

    fn rank(&self) -> (What, Grant, u8, bool, u64) {
        let detail = match &self.body {
            Body::Claim(claim) | Body::Rejoin(claim) => match claim.expect {
                Expect::Vacant => 0,
                Expect::Expired(_) => 1,
                Expect::Handed(_) => 2,
            },
            Body::Renew(renew) => renew.version,
            Body::Vacate(_) => 0,
        };
        (self.what(), self.grant(), self.call, self.heard, detail)
    }
}

impl PartialOrd for Request {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Request {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}
