//! Work under a lease that cannot outlive it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::select_all;

use super::core::Core;
use super::guard::Lease;
use super::held::{Ended, Held, until_ended};
use crate::time;
use crate::types::{Error, Lost, LostReason};

/// What came of work under a lease; see [`Lease::run_to_end`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<T> {
    /// What the work returned; `None` when it was dropped because the lease was lost and it did not end in time.
    pub output: Option<T>,
    /// How the lease has ended.
    pub ended: Ended,
    /// Whether the store has answered the release.
    pub released: Result<(), Error>,
}

impl Lease {
    /// Runs `work` under the lease, and releases it when the work has ended.
    ///
    /// On loss the work is told (through [`Held::lost`] and the like), may go on for the margin to clean up, and is
    /// dropped then. The lease is released after the work has ended, on every path: success, error, panic and
    /// cancellation.
    ///
    /// What the work has spawned, as tasks or blocking threads, is not dropped with it, and work that never awaits cannot
    /// be dropped. After a forced release, a takeover or a deletion the loss is noticed at the next renewal.
    ///
    /// # Errors
    /// The work's own error first; else the loss, if the lease was lost before the work had ended. With
    /// [`Renewal::Manual`](crate::Renewal::Manual) nothing renews: the work is not begun and the error is a
    /// [`Lost`] with [`LostReason::NotRenewed`]. A release that is not answered is not an error here; see
    /// [`Lease::run_to_end`].
    ///
    /// # Cancel safety
    /// Safe: the work is dropped first, then the lease is released in the background.
    pub async fn run<T, E, F, Fut>(self, work: F) -> Result<T, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Lost>,
    {
        let shut_down = Lost::new(self.name().clone(), self.token(), LostReason::Shutdown, None);
        let finished = self.run_to_end(work).await;
        match (finished.output, finished.ended) {
            (Some(Err(error)), _) => Err(error),
            (_, Ended::Lost(lost)) => Err(E::from(lost)),
            (Some(Ok(output)), _) => Ok(output),
            // Somebody has shut the client down under it.
            (None, _) => Err(E::from(shut_down)),
        }
    }

    /// As [`Lease::run`], and nothing is swallowed.
    ///
    /// # Cancel safety
    /// As [`Lease::run`].
    pub async fn run_to_end<T, F, Fut>(self, work: F) -> Finished<T>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = T>,
    {
        if !self.core().background {
            let lost = self.nobody_renews();
            let released = self.release().await.map(drop);
            return Finished { output: None, ended: Ended::Lost(lost), released };
        }
        let output = self.work(work).await;
        let ended_before = self.core().judge();
        let (ended, released) = match self.release().await {
            Ok(ended) => (ended, Ok(())),
            Err(error) => (Ended::Released, Err(error)),
        };
        Finished { output, ended: ended_before.unwrap_or(ended), released }
    }

    /// Runs work under the lease, which is there afterwards. `None`: it was lost, and the work did not end in time.
    pub(crate) async fn work<T, F, Fut>(&self, work: F) -> Option<T>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = T>,
    {
        let core = self.core();
        under(&[core], async { drop(until_ended(core).await) }, Box::pin(work(self.held()))).await
    }

    /// Runs work under all of these leases, which are there afterwards. `None`: one of them was lost, and the work did not
    /// end within the shortest of their margins.
    pub(crate) async fn work_under_all<T>(leases: &[Lease], work: impl Future<Output = T>) -> Option<T> {
        let cores: Vec<_> = leases.iter().map(|lease| lease.core().as_ref()).collect();
        let ends = cores.iter().map(|core| Box::pin(until_ended(core)));
        under(&cores, async { drop(select_all(ends).await) }, Box::pin(work)).await
    }

    fn nobody_renews(&self) -> Lost {
        Lost::new(self.name().clone(), self.token(), LostReason::NotRenewed, None)
    }
}

/// The work's output, or `None` if a lease was lost, which `lost` waits for, and the work did not end within the margin.
///
/// The work is in a box, so that the compiler counts its depth anew. Else the futures of a function's runtime, of this
/// library and of an SDK, each in the type of the one before, are deeper than its limit of 128 (examples/lambda).
async fn under<T>(
    cores: &[&Core],
    lost: impl Future<Output = ()>,
    mut work: Pin<Box<impl Future<Output = T>>>,
) -> Option<T> {
    {
        let mut lost = pin!(lost);
        let before_loss = poll_fn(|context| {
            // Judged at every wake, before the work goes on: after a pause it must not go on as if held.
            let over = cores.iter().any(|core| core.judge().is_some());
            if over || lost.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        });
        if let Some(output) = before_loss.await {
            return Some(output);
        }
    }
    let margin = cores.iter().map(|core| core.rules.margin).min().unwrap_or(0);
    let clock = &cores.first()?.client.clock;
    time::within(&**clock, Duration::from_nanos(margin), work).await
}
