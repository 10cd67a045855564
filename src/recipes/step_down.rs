//! "Please finish and hand over": a holder that goes when it is asked to, and who asks it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use crate::lease::{Finished, Held, Inspection, Lease, Leases, Status};
use crate::time;
use crate::types::{Error, ErrorKind, FencingToken, Operation};

/// What became of asking a holder to finish; see [`step_down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the holder may not have gone"]
pub enum Yielded {
    /// Nobody held it, so nobody was asked.
    Nobody,
    /// The holder with this token does not hold it any more.
    Gone(FencingToken),
    /// The holder with this token was asked and its time is over, and it still has the lease: it does not listen, it is cut
    /// off, or it is dead and only watching would tell. [`Leases::revoke`](crate::Leases::revoke) ends it.
    StillHeld(FencingToken),
}

/// Runs `work` under the lease until it has ended, or somebody has asked for the lease; then releases it.
///
/// Signal, drain, release: when the holder is asked to finish ([`step_down`], [`Leases::ask`](crate::Leases::ask)), the work
/// is told by [`Held::until_asked`] and may go on for the grace that the asker gave; it is dropped then. A loss does the
/// same for the margin, as in [`Lease::run`]. On every path (success, error, panic, cancellation, grace, loss) the lease is
/// released only after the work has ended.
///
/// The ask is seen at the next renewal, so within a third of the term (and one attempt). [`Finished::output`] is `None` when
/// the work was dropped; what it returned is there otherwise, also when that was an answer to the signal.
///
/// On Azure Blob nobody can write to a held lease, so an ask is a revocation there: the work is told by
/// [`Held::lost`], has the margin and not the grace, and the next holder comes at the end of the term.
///
/// With [`Renewal::Manual`](crate::Renewal::Manual) the work is not begun, as in [`Lease::run_to_end`].
///
/// # Cancel safety
/// As [`Lease::run`]: the work is dropped first, then the lease is released in the background.
///
/// ```
/// use std::time::Duration;
/// use leasehold::recipes::{Yielded, run_until_asked, step_down};
/// # use leasehold::{Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let leases = Leases::builder(MemoryStore::new()).ttl(Duration::from_millis(300)).margin(Duration::from_millis(30)).build()?;
/// # let other = leases.clone();
/// let lease = leases.acquire("shard/7").await?;
/// let worker = tokio::spawn(run_until_asked(lease, |held| async move {
///     held.until_asked().await; // beside the work: finish what was begun, take nothing new
///     "drained"
/// }));
///
/// // Elsewhere, by somebody who wants the shard:
/// assert!(matches!(step_down(&other, "shard/7", Duration::from_secs(5)).await?, Yielded::Gone(_)));
/// assert_eq!(worker.await?.output, Some("drained"));
/// # Ok(())
/// # }
/// ```
pub async fn run_until_asked<T, F, Fut>(lease: Lease, work: F) -> Finished<T>
where
    F: FnOnce(Held) -> Fut,
    Fut: Future<Output = T>,
{
    let finished = lease.run_to_end(|held| oblige(held.clone(), work(held))).await;
    Finished { output: finished.output.flatten(), ended: finished.ended, released: finished.released }
}

/// The work's output, or `None` when it was asked to finish and did not within the grace.
async fn oblige<T>(held: Held, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let asked = tokio::select! {
        biased;
        asked = held.until_asked() => asked,
        output = &mut work => return Some(output),
    };
    match asked {
        Some(asked) => time::within(held.clock(), asked.grace(), work).await,
        // The run that it is under tells the work, and drops it after the margin.
        None => Some(work.await),
    }
}

/// Asks whoever holds `name` to finish within `grace`, and waits until it has.
///
/// One read to see who that is, one write to ask it, then a read every poll. The holder sees it at its next renewal and the
/// grace counts from there; so this waits for one term and the grace at the most. It does not acquire the lease: whoever
/// waits for it in [`Leases::acquire`] gets it, within one poll of the release.
///
/// Only the grant that was seen is asked, by its token: a successor is left alone. What `grace` is on Azure Blob:
/// see [`run_until_asked`]; there this waits until the term is over.
///
/// # Errors
/// As of [`Leases::inspect`] and [`Leases::ask`]. While it waits, [`ErrorKind::Unavailable`] only when the time is over and the
/// last look had no answer: then the holder was asked, and may have gone.
///
/// # Cancel safety
/// The holder may have been asked. Calling again asks it again, which changes nothing but the grace.
pub async fn step_down(leases: &Leases, name: impl AsRef<str>, grace: Duration) -> Result<Yielded, Error> {
    let name = name.as_ref();
    let seen = leases.inspect(name).await?;
    let Some(token) = holder(&seen)? else { return Ok(Yielded::Nobody) };
    match leases.ask(name, token, grace).await {
        // It has gone by itself since it was seen.
        Err(error) if error.kind() == ErrorKind::Refused => return Ok(Yielded::Gone(token)),
        asked => asked?,
    }
    let (asked, clock) = (leases.clock().stamp(), leases.clock());
    let longest = grace.saturating_add(seen.ttl.unwrap_or_default()).saturating_add(leases.poll_pause());
    loop {
        clock.sleep(leases.poll_pause()).await;
        let is_over = Duration::from_nanos(clock.stamp().steady_since(&asked)) >= longest;
        match leases.inspect(name).await.and_then(|seen| holder(&seen)) {
            Ok(holder) if holder != Some(token) => return Ok(Yielded::Gone(token)),
            Ok(_) if is_over => return Ok(Yielded::StillHeld(token)),
            Err(error) if is_over || error.kind() != ErrorKind::Unavailable => return Err(error),
            _ => {}
        }
    }
}

/// Who holds it, as far as one look can tell.
pub(super) fn holder(seen: &Inspection) -> Result<Option<FencingToken>, Error> {
    match &seen.status {
        Status::Held | Status::NotKnownToHaveExpired if seen.token.is_none() => {
            let why = "no majority of the members shows who holds it: look again";
            Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, why).for_name(&seen.name))
        }
        Status::Held | Status::NotKnownToHaveExpired => Ok(seen.token),
        Status::Unreadable(reason) => {
            let why = format!("the record is left alone: {reason}");
            Err(Error::new(ErrorKind::Unreadable, Operation::Inspect, why).for_name(&seen.name))
        }
        _ => Ok(None),
    }
}
