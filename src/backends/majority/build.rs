//! Building a majority, and what it refuses.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::member::Member;
use super::{Known, MajorityStore, Team};
use crate::protocol::majority::roster::member_set;
use crate::protocol::rules::Clocks;
use crate::store::Store;
use crate::time::{Clock, RHO_PERCENT, SystemClock};
use crate::types::{Description, Error, ErrorKind, ExpiryJudge, MemberSet, Operation};

const KIND: &str = "majority";

/// A shorter term leaves no room for the rounds of a claim, each of which may take half a second.
const SHORTEST_TERM: Duration = Duration::from_secs(2);

/// Options for building a [`MajorityStore`].
#[must_use = "a builder does nothing until build() is called"]
pub struct MajorityStoreBuilder {
    members: Vec<Arc<dyn Store>>,
    wait_for_all: Option<Duration>,
    observed_only: bool,
    clock: Arc<dyn Clock>,
}

impl MajorityStore {
    /// A majority of these stores, which must be of one type; [`builder`](Self::builder) takes a mix, and so does a
    /// list of `Arc<dyn Store>`. Sends nothing.
    ///
    /// The order does not matter: all clients put the members into the same one.
    ///
    /// # Errors
    /// As [`MajorityStoreBuilder::build`].
    pub fn new<S: Store>(members: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        members.into_iter().fold(Self::builder(), MajorityStoreBuilder::member).build()
    }

    /// A majority with options, or of stores of several types.
    pub fn builder() -> MajorityStoreBuilder {
        let (members, clock) = (Vec::new(), Arc::new(SystemClock));
        MajorityStoreBuilder { members, wait_for_all: None, observed_only: false, clock }
    }
}

impl MajorityStoreBuilder {
    /// One more member.
    pub fn member(mut self, store: impl Store) -> Self {
        self.members.push(Arc::new(store));
        self
    }

    /// Leaves no request behind: each call waits for every member, at most so long, instead of letting the slowest go
    /// on in a task. Default: off. Needed for [`Renewal::Manual`](crate::Renewal::Manual), where nothing may run
    /// between two calls.
    ///
    /// An acquire is up to three rounds, each of which waits so long for a member that hangs: stay below a twentieth of
    /// the term.
    pub fn wait_for_all(mut self, at_most: Duration) -> Self {
        self.wait_for_all = Some(at_most);
        self
    }

    /// Neither writes nor believes the ends of terms on the members' clocks: a rival is taken for dead only by
    /// watching. Default: off. Members that judge by themselves still do.
    pub fn observed_only(mut self) -> Self {
        self.observed_only = true;
        self
    }

    /// Where time and chance come from.
    #[cfg(any(test, feature = "testing"))]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks the members and builds the store. Sends nothing: whether they were
    /// [set up](MajorityStore::set_up) together shows in the first call.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there are not three or five members; when two have the same identity, so that they
    /// are two names for one store; when one is itself a majority; when their ranges of terms do not meet.
    /// [`ErrorKind::Misconfigured`] for a member that is not linearizable, or that is one replica of an eventually
    /// consistent table.
    pub fn build(self) -> Result<MajorityStore, Error> {
        let mut members: Vec<_> =
            self.members.into_iter().map(|store| Member::new(store, self.observed_only)).collect();
        // The same order for all clients: after a split they meet at the same first member.
        members.sort_by(|a, b| a.about.identity.cmp(&b.about.identity));
        check(&members)?;
        let identities: Vec<_> = members.iter().map(|member| member.about.identity.clone()).collect();
        let set = member_set(&identities);
        let about = describe(&members, set, self.wait_for_all.is_none())?;
        let known = Known {
            roster: Mutex::default(),
            names: super::Names::new(members.len()),
            grants: super::Grants::default(),
        };
        let (clocks, clock) = (Clocks::of_machines(RHO_PERCENT), self.clock);
        let team = Team { members, about, set, clock, clocks, wait_for_all: self.wait_for_all, known: Arc::new(known) };
        Ok(MajorityStore { team: Arc::new(team) })
    }
}

fn check(members: &[Member]) -> Result<(), Error> {
    if !matches!(members.len(), 3 | 5) {
        let why =
            format!("a majority has three or five members, not {}: an even number survives no more", members.len());
        return Err(error(ErrorKind::Invalid, why));
    }
    if let Some(twice) = members.windows(2).find(|pair| pair[0].about.identity == pair[1].about.identity) {
        let why = format!("two of the members are the same store, {}: give each its own", twice[0].about.identity);
        return Err(error(ErrorKind::Invalid, why));
    }
    for Member { about, .. } in members {
        let unfit = match about {
            about if about.kind == KIND => Some((ErrorKind::Invalid, "is itself a majority: give its members")),
            about if about.replica => Some((
                ErrorKind::Misconfigured,
                "is a replica of a table with eventual consistency, where a write can be undone by another region's: \
                 give a table of its own in each region",
            )),
            about if !about.linearizable => Some((ErrorKind::Misconfigured, "is not linearizable: take another store")),
            _ => None,
        };
        if let Some((kind, why)) = unfit {
            return Err(error(kind, format!("the member {} {why}", about.identity)));
        }
    }
    Ok(())
}

/// What the members can do together.
fn describe(members: &[Member], set: MemberSet, goes_on: bool) -> Result<Description, Error> {
    let of = |get: fn(&Description) -> Duration| members.iter().map(move |member| get(&member.about));
    let (shortest, longest) = (of(|about| *about.ttl.start()).max(), of(|about| *about.ttl.end()).min());
    let (shortest, longest) = (shortest.unwrap_or_default().max(SHORTEST_TERM), longest.unwrap_or_default());
    if shortest > longest {
        let why = format!("no term suits all members: one needs at least {shortest:?}, another at most {longest:?}");
        return Err(error(ErrorKind::Invalid, why));
    }
    let batch = members.iter().map(|member| member.about.renew_batch).min().unwrap_or(1);
    Ok(Description {
        ttl: shortest..=longest,
        // The stores of this library have 1 ms or 1 s: the coarser is a multiple of the finer.
        grain: of(|about| about.grain).max().unwrap_or_default(),
        judge: ExpiryJudge::Store,
        renew_batch: batch,
        data_in_every_renewal: true,
        goes_on,
        ..Description::new(KIND, format!("majority:{:016x}", set.0))
    })
}

fn error(kind: ErrorKind, why: impl Into<String>) -> Error {
    Error::new(kind, Operation::Open, why).on(KIND)
}

impl fmt::Debug for MajorityStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.members.iter().map(|store| store.describe().identity).collect();
        f.debug_struct("MajorityStoreBuilder").field("members", &members).finish_non_exhaustive()
    }
}
