//! One leader at a time.

use std::fmt;
use std::future::Future;

use super::observe::Observer;
use super::step_down::run_until_asked;
use crate::lease::{Ended, Held, Lease, Leases};
use crate::types::{Error, ErrorKind, Lost, LostReason, Operation};

/// An election: any number of candidates, one leader at a time, and observers who learn who it is.
///
/// A leader is who holds the lease of that name, and what it publishes about itself (an address, say) is written by the claim
/// that makes it the leader: no observer sees a leader without it. No two leaders share a token, and a later one has a
/// higher: send it along with whatever the leader writes or orders, and let the other side refuse a lower one. That is
/// what keeps out a deposed leader that was paused and does not know it yet.
///
/// ```
/// use leasehold::recipes::{Election, Sight};
/// # use leasehold::{Error, Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let leases = Leases::builder(MemoryStore::new()).holder("web-1").build()?;
/// let election = Election::new(&leases, "scheduler").publish("10.0.0.7:8080");
/// let mut observer = election.observe();
///
/// let led = election
///     .lead(|held| async move {
///         // Here it leads. `held.lost()` and `held.until_asked()` say when to stop.
///         Ok::<_, Error>(held.token())
///     }) // it resigns by returning; after a loss it campaigns again by itself
///     .await?;
/// # assert!(led.is_some());
///
/// let lease = election.campaign().await?; // the same without the loop
/// if let Sight::Leader(leader) = observer.next().await? {
///     assert_eq!((leader.token, leader.data()), (lease.token(), &b"10.0.0.7:8080"[..]));
/// }
/// lease.release().await?; // resigns: the next leader comes within one poll
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Election {
    leases: Leases,
    name: String,
    publish: Option<Vec<u8>>,
}

impl Election {
    /// The election of that name on this client: its prefix, term, poll and holder label.
    pub fn new(leases: &Leases, name: impl Into<String>) -> Self {
        Self { leases: leases.clone(), name: name.into(), publish: None }
    }

    /// What this candidate publishes about itself when it leads: at most 4 KiB, readable by whoever may read the store.
    /// Default: nothing but the client's holder label. A leader changes it by [`Held::set_data`].
    pub fn publish(mut self, what: impl Into<Vec<u8>>) -> Self {
        self.publish = Some(what.into());
        self
    }

    /// Waits until this candidate leads. It leads for as long as the lease is held, and resigns by
    /// [`Lease::release`], or by dropping it.
    ///
    /// # Errors
    /// As [`Leases::acquire`], and [`ErrorKind::Invalid`] when there is too much to publish.
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`].
    #[doc(alias = "resign")]
    pub async fn campaign(&self) -> Result<Lease, Error> {
        let request = self.leases.request(&self.name);
        let request = match &self.publish {
            Some(what) => request.data(what.as_slice()),
            None => request,
        };
        request.acquire().await
    }

    /// Campaigns, runs `work` while it leads, and campaigns again whenever the leadership was lost.
    ///
    /// When it is lost the work is told ([`Held::lost`]), may go on for the margin, and is dropped then. What the work of a
    /// deposed leader returns, an error too, is dropped: somebody else may lead, and the next term begins with a new call
    /// of `work`.
    ///
    /// It ends when the work ends by itself: `Ok(Some(output))`, after resigning. Or when the leader was asked to
    /// [step down](super::step_down) and its work did not end within the grace: `Ok(None)`, also after resigning. Asked, it
    /// does not campaign again by itself, so that another can; if you do, let two polls pass first.
    ///
    /// It resigns only after the work has ended, on every path: success, error, panic, cancellation, grace and loss. What the
    /// work has spawned is not dropped with it.
    ///
    /// # Errors
    /// The work's own, after resigning. Else as [`Election::campaign`]; [`ErrorKind::Closed`] when the client was shut down;
    /// and [`ErrorKind::Invalid`] with [`Renewal::Manual`](crate::Renewal::Manual), where nobody renews: nothing is written then.
    ///
    /// # Cancel safety
    /// Safe: the work is dropped first, then it resigns in the background.
    pub async fn lead<T, E, F, Fut>(&self, mut work: F) -> Result<Option<T>, E>
    where
        F: FnMut(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        if !self.leases.renews() {
            let why = "leading needs renewal in the background: with manual renewal, campaign and renew yourself";
            return Err(Error::new(ErrorKind::Invalid, Operation::Run, why).into());
        }
        loop {
            let lease = self.campaign().await?;
            let held = lease.held();
            let finished = run_until_asked(lease, &mut work).await;
            match (finished.ended, finished.output) {
                (Ended::Lost(lost), _) => {
                    tracing::info!(lease.name = %lost.name(), lease.token = %lost.token(), "deposed; campaigns again");
                }
                (_, Some(output)) => return output.map(Some),
                (_, None) if held.asked().is_some() => return Ok(None),
                (_, None) => return Err(shut_down(&held).into()),
            }
        }
    }

    /// Watches who leads, as a stream of [`Sight`](super::Sight)s. Candidates and leaders may observe too.
    pub fn observe(&self) -> Observer {
        Observer::new(&self.leases, &self.name)
    }
}

/// Somebody has shut the client down under the work.
fn shut_down(held: &Held) -> Error {
    let lost = Lost::new(held.name().clone(), held.token(), LostReason::Shutdown, None);
    let why = format!("{lost}: build a new client");
    Error::new(ErrorKind::Closed, Operation::Run, why).for_name(held.name())
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("leases", &self.leases).field("name", &self.name).finish_non_exhaustive()
    }
}
