//! The state: the members' records, two clients that run the real code, and the requests in flight.

use leasehold::protocol::majority::ending::Ending;
use leasehold::protocol::majority::renewal::Renewal;
use leasehold::protocol::majority::roster::Checked;
use leasehold::protocol::majority::tally::Tally;
use leasehold::protocol::majority::trail::Trail;
use leasehold::protocol::majority::{Seen, quorum};
use leasehold::protocol::observer::Observer;
use leasehold::protocol::payload::Payload;
use leasehold::protocol::record::Stored;
use leasehold::{Ask, Claim, Data, Expect, Grant, Record, Renew, Revoke, Vacate, View};

use crate::Witness;
use crate::change::{Change, Procedure};
use crate::ghosts::Ghosts;

/// A list of three, and one of five.
pub(crate) const THREE: &[usize] = &[0, 1, 2];
pub(crate) const FIVE: &[usize] = &[0, 1, 2, 3, 4];
/// Who revokes; it is none of the clients.
pub(crate) const OPERATOR: usize = 2;
/// The grant of somebody who was there before. No client has so many of its own.
const PREDECESSOR: Grant = Grant::from_bits(7);

/// A configuration: how much may happen.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) title: &'static str,
    /// The members of each client's list, as stores.
    pub(crate) lists: [&'static [usize]; 2],
    pub(crate) ttl: u64,
    pub(crate) ticks: u64,
    pub(crate) attempts: [u8; 2],
    pub(crate) renewals: u8,
    /// So many of the renewals may bring a payload.
    pub(crate) payloads: u8,
    pub(crate) release: bool,
    pub(crate) closing: bool,
    /// For how long a closing keeps everybody out, where it is judged whether it does.
    pub(crate) closed_for: Option<u64>,
    /// Which clients read the members one by one, at different moments.
    pub(crate) reads_apart: [bool; 2],
    /// Whether the second client looks once more before it takes over what it has seen.
    pub(crate) looks_twice: bool,
    /// Whether all members carry the grant of somebody who is dead.
    pub(crate) predecessor: bool,
    /// Whether the second client looks only, as often as it likes, and never claims.
    pub(crate) reader: bool,
    /// By how much the tokens of each client are higher than they have to be, as by a floor.
    pub(crate) ahead: [u64; 2],
    /// Whether the ends of terms are written and believed, on clocks of the members that are exact.
    pub(crate) dated: bool,
    /// The list of members is changed: the first client has the old one, the second the new one.
    pub(crate) change: Option<Procedure>,
    /// Whether a holder may believe that is not carried: on the way to two of them.
    pub(crate) excepts_i4: bool,
    /// The second client begins at this tick.
    pub(crate) rival_from: u64,
    /// Explored to this depth, breadth first; to its end where none is given.
    pub(crate) depth: Option<usize>,
    /// What has to happen in it somewhere.
    pub(crate) shows: &'static [Witness],
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
    pub(crate) revocations: u8,
    pub(crate) asks: u8,
    /// Moves that the administrator begins, and errors on the way.
    pub(crate) moves: u8,
    pub(crate) stumbles: u8,
    pub(crate) wipes: u8,
}

impl Setup {
    pub(crate) fn new(title: &'static str) -> Self {
        let left = Left::default();
        Self {
            title,
            lists: [THREE; 2],
            ttl: 2,
            ticks: 3,
            attempts: [1, 1],
            renewals: 0,
            payloads: 0,
            release: false,
            closing: false,
            closed_for: None,
            reads_apart: [false; 2],
            looks_twice: false,
            predecessor: false,
            reader: false,
            ahead: [0; 2],
            shows: &[],
            dated: false,
            change: None,
            excepts_i4: false,
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
    pub(crate) stores: Vec<Stored>,
    pub(crate) clients: [Client; 2],
    /// In a canonical order.
    pub(crate) network: Vec<Request>,
    /// A hand-over that can be resumed: grant and token.
    pub(crate) handed: Option<(Grant, u64)>,
    /// The token that is being revoked, and what the members have answered.
    pub(crate) revocation: Option<(u64, Ending)>,
    /// The token whose holder is asked to finish, and what the members have answered.
    pub(crate) asking: Option<(u64, Ending)>,
    pub(crate) change: Option<Change>,
    pub(crate) left: Left,
    pub(crate) ghosts: Ghosts,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) attempts: u8,
    pub(crate) grants: u8,
    /// The highest token that it has proposed.
    pub(crate) proposed: u64,
    pub(crate) observers: Vec<Observer>,
    /// The incarnations that it knows, and what it has seen of each mark, where lists change.
    pub(crate) roster: Vec<u128>,
    pub(crate) checked: Vec<Option<Checked>>,
    /// Answers to earlier calls are not counted.
    pub(crate) call: u8,
    pub(crate) stage: Stage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    #[default]
    Idle,
    Looking(Looking),
    /// Between its two looks.
    Decided(Decision),
    Claiming(Claiming),
    Holding(Holding),
    Ending(Closing),
}

/// A look at all members under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Looking {
    pub(crate) begun: u64,
    pub(crate) handed: Option<(Grant, u64)>,
    /// What an earlier look has led to.
    pub(crate) decided: Option<Decision>,
    /// By member.
    pub(crate) read: Vec<Option<Read>>,
    /// The payloads that were answered when it began.
    pub(crate) answered: [u8; 8],
    /// Whether a member was written between two reads.
    pub(crate) written: bool,
}

/// What a member has shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Read {
    Heard(Seen),
    /// The answer comes as the last of its look.
    OnItsWay(View),
    /// Its mark says that it does not count.
    OfOthers,
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    /// The highest token of any member.
    pub(crate) highest: u64,
    /// Token and payload of the record that a majority has.
    pub(crate) token: u64,
    pub(crate) payload: u8,
}

/// What a client has decided to claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decision {
    pub(crate) expect: Expect,
    pub(crate) token: u64,
    pub(crate) from: Shown,
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
    pub(crate) from: Shown,
    /// Whether a member was written while it read them.
    pub(crate) written: bool,
    pub(crate) tally: Tally,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) mine: Mine,
    /// The start of the call that counts.
    pub(crate) since: u64,
    pub(crate) version: u64,
    pub(crate) renewals: u8,
    pub(crate) payloads: u8,
    pub(crate) payload: Payload,
    /// The renewal under way.
    pub(crate) call: Option<Call>,
    /// Whether a member was joined again.
    pub(crate) joined: bool,
    pub(crate) lost: bool,
}

/// One renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) renewal: Renewal,
    pub(crate) begun: u64,
    /// The number of the payload that it leaves, and the payload that its body carries.
    pub(crate) payload: u32,
    pub(crate) data: Option<Data>,
    /// Whether the grant had been reported as revoked when it began.
    pub(crate) revoked: bool,
    /// Whether a wish that its holder finish had been reported as done when it began.
    pub(crate) wished: bool,
    /// Whether a majority has accepted it, in time.
    pub(crate) counted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Closing {
    pub(crate) mine: Mine,
    pub(crate) ending: Ending,
    /// When it opens again, if it closes and that is judged; else 0.
    pub(crate) opens: Option<u64>,
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
    Revoke(Revoke),
    Ask(Ask),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    /// Reads all members, and claims if a majority looks claimable.
    Look(usize),
    /// Reads one member; its answer comes at once, or as the last of its look.
    Read {
        client: usize,
        member: usize,
        late: bool,
    },
    Resume(usize),
    Renew(usize),
    /// Renews with a new payload.
    SetData(usize),
    /// An operator revokes the newest grant.
    Revoke,
    /// An operator asks the newest holder to finish.
    Ask,
    /// Releases; `true`: closing.
    End(usize, bool),
    HandOver(usize),
    /// The operator stops the clients of the old list.
    Stop,
    /// A store is wiped.
    Wipe,
    /// The administrator's next step; `true`: a member does not answer in time.
    Administer(bool),
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
    Revoke(usize, usize),
    Ask(usize, usize),
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let client = |c: usize| Client { attempts: setup.attempts[c], ..Client::new(setup.lists[c].len()) };
        let dead = || {
            let mut record = Record::new();
            (record.token, record.grant, record.version) = (1, Some(PREDECESSOR), Some(1));
            (record.ttl_ms, record.expires_at_ms) = (Some(setup.ttl), Some(0));
            record.set = setup.set_of(0);
            Stored::Record(record)
        };
        let number = setup.lists.iter().copied().flatten().max().map_or(0, |highest| highest + 1);
        let mut stores = vec![Stored::Absent; number];
        let mut ghosts = Ghosts::new(setup.lists[0].len() / 2 + 1);
        if setup.predecessor {
            setup.lists[0].iter().for_each(|store| stores[*store] = dead());
            ghosts.granted(PREDECESSOR, 1, 0, 0);
        }
        let change = Change::new(setup, number);
        let mut clients = [client(0), client(1)];
        change.iter().for_each(|change| clients[0].knows_the_marks(change, setup.lists[0]));
        let (network, handed, revocation, asking) = (Vec::new(), None, None, None);
        Self { now: 0, stores, clients, network, handed, revocation, asking, change, left: setup.left, ghosts }
    }
}

impl Client {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            attempts: 0,
            grants: 0,
            proposed: 0,
            observers: vec![Observer::default(); members],
            roster: Vec::new(),
            checked: Vec::new(),
            call: 0,
            stage: Stage::Idle,
        }
    }

    /// A member was written, which a look under way may see half of.
    pub(crate) fn sees_no_write(&mut self) {
        if let Stage::Looking(looking) = &mut self.stage {
            looking.written |= looking.read.iter().any(Option::is_some);
        }
    }

    /// Whether it waits for an answer.
    pub(crate) fn waits(&self) -> bool {
        match &self.stage {
            Stage::Idle | Stage::Decided(_) => false,
            // A majority is enough.
            Stage::Looking(looking) => looking.read.iter().flatten().count() >= quorum(looking.read.len()),
            Stage::Claiming(_) | Stage::Ending(_) => true,
            Stage::Holding(holding) => holding.waits(),
        }
    }

    pub(crate) fn mine(&mut self) -> Option<&mut Mine> {
        match &mut self.stage {
            Stage::Idle | Stage::Looking(_) | Stage::Decided(_) => None,
            Stage::Claiming(claiming) => Some(&mut claiming.mine),
            Stage::Holding(holding) => Some(&mut holding.mine),
            Stage::Ending(closing) => Some(&mut closing.mine),
        }
    }
}

impl Holding {
    /// Whether it waits for a renewal.
    pub(crate) fn waits(&self) -> bool {
        self.call.as_ref().is_some_and(|call| !call.counted)
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
            Body::Revoke(_) => What::Revoke(self.client, self.member),
            Body::Ask(_) => What::Ask(self.client, self.member),
        }
    }

    pub(crate) fn grant(&self) -> Grant {
        match &self.body {
            Body::Claim(claim) | Body::Rejoin(claim) => claim.grant,
            Body::Renew(renew) => renew.grant,
            Body::Vacate(vacate) => vacate.grant,
            Body::Revoke(revoke) => revoke.fresh,
            Body::Ask(ask) => Grant::from_bits(u128::from(ask.step_down.token)),
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
            Body::Vacate(_) | Body::Revoke(_) | Body::Ask(_) => 0,
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
