//! The state of the model: one record, two clients that run the real machines, and the requests in flight.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use leasehold::protocol::acquire::Acquire;
use leasehold::protocol::cleanup::Cleanup;
use leasehold::protocol::hold::Hold;
use leasehold::protocol::observer::Observer;
use leasehold::protocol::record::Stored;
use leasehold::protocol::release::Release;
use leasehold::protocol::store_time::StoreTime;
use leasehold::{Claim, Claimed, Grant, Renew, Renewed, Stamp, Vacate, Vacated, View};

use crate::monitor::Ghosts;
use crate::setup::Left;

/// Everything there is at one instant of true time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// True time in ticks.
    pub(crate) now: u64,
    pub(crate) stored: Shared<Stored>,
    pub(crate) clients: [Shared<Client>; 2],
    /// Requests that the store may still see, in a canonical order.
    pub(crate) network: Vec<Shared<Request>>,
    /// A hand-over that can be resumed: grant and token.
    pub(crate) handed: Option<(Grant, u64)>,
    /// The record as it was, for an operator to put back.
    pub(crate) backup: Option<Shared<Stored>>,
    /// How many more faults and acts of operators there may be.
    pub(crate) left: Left,
    pub(crate) ghosts: Ghosts,
}

/// A part of the world that states share until one of them changes it: millions of them are in memory at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    /// What a freeze of all its clocks has cost.
    pub(crate) lag: u64,
    /// How far its clocks are ahead of what they would be at its own rate.
    pub(crate) drift: i64,
    /// How far its wall clock is ahead of the others.
    pub(crate) jump: i64,
    pub(crate) time: StoreTime,
    /// Acquires that it may still begin.
    pub(crate) attempts: u8,
    /// Grants drawn so far.
    pub(crate) grants: u8,
    pub(crate) acquire: Option<Acquiring>,
    /// What earlier calls have watched.
    pub(crate) watched: Observer,
    pub(crate) hold: Option<Holding>,
    pub(crate) release: Option<Releasing>,
    pub(crate) debts: Vec<Owing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acquiring {
    pub(crate) machine: Acquire,
    pub(crate) stage: Stage,
    pub(crate) call: Option<Call>,
    /// The claim that was sent last.
    pub(crate) pending: Option<Pending>,
    /// What it has seen last, where a payload may say no.
    pub(crate) seen: Option<Box<View>>,
}

/// A claim that is out. A ghost: the machine knows this on its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) grant: Grant,
    pub(crate) how: How,
    /// When it was decided on, by the client's clocks.
    pub(crate) since: Stamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// The claim is decided and has not left yet.
    Ready(Box<Claim>),
    Waiting,
    /// For a record that a claim can name.
    Making,
    /// Until this moment of the client's clocks.
    Paused(u64),
}

/// Why a claim may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum How {
    Vacant,
    Observed,
    StoreTime,
    Handed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) machine: Hold,
    pub(crate) call: Option<Call>,
    pub(crate) renewals: u8,
    /// The number of its newest payload.
    pub(crate) payload: u8,
    /// A ghost: it has been over once.
    pub(crate) lost: bool,
    /// A ghost: what its term counts from.
    pub(crate) since: Stamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Releasing {
    pub(crate) machine: Release,
    pub(crate) body: Vacate,
    /// When it was first sent, in true time.
    pub(crate) first: u64,
    pub(crate) call: Option<Call>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owing {
    pub(crate) machine: Cleanup,
    pub(crate) not_before: u64,
    pub(crate) call: Option<Call>,
}

/// A call that a client waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) sent: Stamp,
    /// The store has acted; the answer is on its way, with the store's date.
    pub(crate) answer: Option<(Answer, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Seen(View),
    Claimed(Claimed),
    Renewed(Renewed),
    Vacated(Vacated),
}

/// Which of a client's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lane {
    Acquire,
    Hold,
    Release,
    /// The clean-up for this grant.
    Debt(Grant),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) from: usize,
    /// Who waits for the answer, if anybody still does.
    pub(crate) waits: Option<Lane>,
    pub(crate) body: Body,
    /// A copy that the network has made.
    pub(crate) repeated: bool,
    /// When the first copy of its body left, in true time.
    pub(crate) first: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Body {
    Read,
    Claim(Box<Claim>),
    Renew(Box<Renew>),
    Vacate(Box<Vacate>),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// A tick in which the clients' clocks have these rates.
    TickAt([u64; 2]),
    Begin(usize),
    Resume(usize),
    SendClaim(usize),
    Wake(usize),
    GiveUp(usize),
    Crash(usize),
    Renew(usize),
    SetData(usize),
    Release(usize, Ending),
    HandOver(usize),
    SendRelease(usize),
    CleanUp(usize, Grant),
    /// The store acts on a request, by a clock that is so far off; `keep`: the network has one more copy.
    Store {
        request: usize,
        what: What,
        skew: i64,
        keep: bool,
    },
    Receive(usize, Lane),
    /// Time-out, cancellation or a lost answer: nobody knows whether it was or will be applied.
    Lose(usize, Lane),
    /// A definite "not applied".
    Fail(usize, Lane),
    Revoke,
    Force,
    Ask,
    Delete,
    Backup,
    Restore,
    /// All clocks of a client stand still for a while.
    Freeze(usize),
    /// Its wall clock jumps, forward or back.
    Jump(usize, i64),
    /// A holder, or one who was, writes to the fenced resource.
    Write(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Plain,
    Closing,
}

/// The kind of a request, for people who read a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Read,
    Claim,
    Renew,
    Release,
    Burn,
}

impl World {
    /// The slot of a call, if the lane is there.
    pub(crate) fn call(&mut self, client: usize, lane: Lane) -> Option<&mut Option<Call>> {
        let client: &mut Client = &mut self.clients[client];
        match lane {
            Lane::Acquire => client.acquire.as_mut().map(|run| &mut run.call),
            Lane::Hold => client.hold.as_mut().map(|run| &mut run.call),
            Lane::Release => client.release.as_mut().map(|run| &mut run.call),
            Lane::Debt(grant) => {
                client.debts.iter_mut().find(|owing| owing.machine.debt.grant == grant).map(|run| &mut run.call)
            }
        }
    }

    /// Puts a request on its way.
    pub(crate) fn post(&mut self, request: Request) {
        self.network.push(Shared::new(request));
        self.network.sort_by_key(|request| request.order());
    }

    /// Nobody waits for this call any more; what is in flight stays there.
    pub(crate) fn abandon(&mut self, client: usize, lane: Lane) {
        for request in &mut self.network {
            if request.from == client && request.waits == Some(lane) {
                request.waits = None; // clones it if another state shares it
            }
        }
        // A read that nobody waits for does nothing.
        self.network.retain(|request| request.waits.is_some() || request.body != Body::Read);
        self.network.sort_by_key(|request| request.order());
        if let Some(call) = self.call(client, lane) {
            *call = None;
        }
    }

    /// Whether the request of a call has not reached the store.
    pub(crate) fn is_in_flight(&self, client: usize, lane: Lane) -> bool {
        self.network.iter().any(|request| request.from == client && request.waits == Some(lane))
    }
}

impl Client {
    /// All calls that it waits for.
    pub(crate) fn lanes(&self) -> Vec<(Lane, &Call)> {
        let mut lanes = Vec::new();
        let named = [
            (Lane::Acquire, self.acquire.as_ref().and_then(|run| run.call.as_ref())),
            (Lane::Hold, self.hold.as_ref().and_then(|run| run.call.as_ref())),
            (Lane::Release, self.release.as_ref().and_then(|run| run.call.as_ref())),
        ];
        lanes.extend(named.into_iter().filter_map(|(lane, call)| Some((lane, call?))));
        let debts = self.debts.iter().map(|run| (Lane::Debt(run.machine.debt.grant), run.call.as_ref()));
        lanes.extend(debts.filter_map(|(lane, call)| Some((lane, call?))));
        lanes
    }
}

impl Request {
    fn order(&self) -> (What, usize, Option<Grant>, u64, Option<Lane>, bool) {
        let (grant, version) = match &self.body {
            Body::Read => (None, 0),
            Body::Claim(claim) => (Some(claim.grant), claim.token),
            Body::Renew(renew) => (Some(renew.grant), renew.version),
            Body::Vacate(vacate) => (Some(vacate.grant), vacate.token),
        };
        (self.body.what(), self.from, grant, version, self.waits, self.repeated)
    }
}

impl Body {
    pub(crate) fn what(&self) -> What {
        match self {
            Body::Read => What::Read,
            Body::Claim(_) => What::Claim,
            Body::Renew(_) => What::Renew,
            Body::Vacate(vacate) if vacate.burn => What::Burn,
            Body::Vacate(_) => What::Release,
        }
    }
}
