//! A store made of three or five stores: a grant counts where a majority of them carries it.
//!
//! Everything is decided in `protocol::majority`; here it is performed. `docs/multi-region.md` has the reasons.

mod build;
mod claim;
mod end;
mod error;
mod grants;
mod look;
mod member;
mod move_list;
mod names;
mod renew;
mod round;
mod set_up;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

pub use self::build::MajorityStoreBuilder;

use self::grants::Grants;
use self::member::Member;
use self::names::Names;
use crate::protocol::rules::Clocks;
use crate::protocol::tokens;
use crate::store::Store;
use crate::time::Clock;
use crate::types::{
    Answer, Ask, Asked, Claim, Claimed, Description, ListPage, MemberSet, Name, Page, Renew, Renewed, Revoke, Revoked,
    Stamp, TokenFloor, Vacate, Vacated, View,
};

/// The longest that a request to one member goes on, however long the term.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);
/// How long it may take at least, however short the term: its client waits as long as it likes.
const SHORTEST_REQUEST: Duration = Duration::from_millis(500);

/// A store made of three or five stores, any mix of them. Clones share one way to the members.
///
/// A lease is held where a majority of the members carries its grant, so it survives the loss of a minority of them, a
/// whole cloud included. The members are judged one by one, each by its own means; the majority itself has no time.
/// [`set_up`](Self::set_up) has to be called once for a list of members, by whoever administers them.
///
/// An acquire is two rounds of requests to all members, a renewal and a release one; each takes as long as the middle
/// one of the members. The slowest request goes on in a task, unless the store was built with
/// [`wait_for_all`](MajorityStoreBuilder::wait_for_all).
///
/// # Examples
/// ```
/// use leasehold::majority::MajorityStore;
/// use leasehold::{Error, Leases, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let store = MajorityStore::new([MemoryStore::new(), MemoryStore::new(), MemoryStore::new()])?;
/// store.set_up().await?; // once, by the administrator
///
/// let leases = Leases::builder(store).build()?;
/// leases.acquire("settlement").await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MajorityStore {
    team: Arc<Team>,
}

/// The members and what is known of them.
struct Team {
    members: Vec<Member>,
    about: Description,
    set: MemberSet,
    clock: Arc<dyn Clock>,
    clocks: Clocks,
    /// How long a call waits for every member, where nothing may go on after it.
    wait_for_all: Option<Duration>,
    known: Arc<Known>,
}

/// What all ways to the same members share.
struct Known {
    roster: Mutex<Option<Vec<u128>>>,
    names: Names,
    grants: Grants,
}

impl Team {
    fn size(&self) -> usize {
        self.members.len()
    }

    /// How long one request may take, for a lease of this term: less than what its client waits for the whole call.
    fn limit(&self, ttl_ms: Option<u64>) -> Duration {
        let of_term =
            ttl_ms.map_or(LONGEST_REQUEST, |ms| Duration::from_millis(ms / 8).clamp(SHORTEST_REQUEST, LONGEST_REQUEST));
        self.wait_for_all.map_or(of_term, |limit| limit.min(of_term))
    }
}

#[async_trait]
impl Store for MajorityStore {
    fn describe(&self) -> Description {
        self.team.about.clone()
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.team.claim(claim).await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        self.team.renew(renewals).await
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        self.team.vacate(vacate).await
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.team.revoke(revoke).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.team.ask(ask).await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        self.team.read(name).await
    }

    async fn list(&self, prefix: &str, _page: Option<Page>) -> Answer<ListPage> {
        self.team.list(prefix).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        let apart: Vec<_> = self.team.members.iter().map(|member| member.store.isolated()).collect();
        if apart.iter().all(Option::is_none) {
            return None;
        }
        let members = self.team.members.iter().zip(apart).map(|(member, store)| member.over(store)).collect();
        let Team { about, set, clock, clocks, wait_for_all, known, .. } = &*self.team;
        let (about, clock, known) = (about.clone(), Arc::clone(clock), Arc::clone(known));
        let team = Team { members, about, set: *set, clock, clocks: *clocks, wait_for_all: *wait_for_all, known };
        Some(Arc::new(Self { team: Arc::new(team) }))
    }

    /// The highest floor that the members' own dates give.
    fn token_floor(&self, now: &Stamp) -> TokenFloor {
        let team = &self.team;
        let dated = || team.members.iter().filter(|member| member.about.has_store_time);
        let early: Vec<u64> = dated().filter_map(|member| member.time().early(now, &team.clocks)).collect();
        match early.iter().filter_map(|early| tokens::floor(*early, &team.clocks)).max() {
            Some(floor) => TokenFloor::At(floor),
            None if early.is_empty() && dated().next().is_some() => TokenFloor::Unknown,
            None => TokenFloor::None,
        }
    }
}

impl fmt::Debug for MajorityStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.team.members.iter().map(|member| &member.about.identity).collect();
        f.debug_struct("MajorityStore").field("members", &members).finish_non_exhaustive()
    }
}
