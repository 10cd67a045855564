//! Several leases, all or none.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;

use crate::lease::{Attempt, Ended, Held, Lease, Leases, State};
use crate::time;
use crate::types::{Error, ErrorKind, HeldBy, Lost, LostReason, Name, Operation, Written};

/// Several leases that are held together: lost when any of them is lost.
///
/// In the canonical order of their names. Dropped, all are released in the background.
#[derive(Debug)]
#[must_use = "leases are released when they are dropped"]
pub struct All {
    /// Without the client's prefix; in order, and not empty.
    names: Arc<[String]>,
    leases: Vec<Lease>,
}

/// A clonable view of leases that are held together, for the code that works under them.
#[derive(Clone, Debug)]
pub struct AllHeld {
    names: Arc<[String]>,
    held: Vec<Held>,
}

/// What came of a try to get all.
#[derive(Debug)]
#[must_use = "acquired leases are released when they are dropped"]
pub enum AllAttempt {
    /// All are ours.
    Acquired(All),
    /// None is: somebody has this one, or it is closed.
    Held(Name, HeldBy),
}

/// Tries to get the leases of all these names, once and without waiting: all or none.
///
/// They are taken in the order of their names, each by one request or two as in [`Leases::try_acquire`]; at the first that
/// somebody else has, those taken are given back in reverse order, each by one request.
///
/// # Errors
/// As [`Leases::try_acquire`], after giving back; and [`ErrorKind::Invalid`] without a name.
///
/// # Cancel safety
/// Safe: what was taken is given back in the background.
pub async fn try_acquire_all<N: AsRef<str>>(
    leases: &Leases,
    names: impl IntoIterator<Item = N>,
) -> Result<AllAttempt, Error> {
    let names = in_order(leases, names)?;
    let mut taken = Taken::default();
    for name in &names {
        match leases.try_acquire(name).await {
            Ok(Attempt::Acquired(lease)) => taken.0.push(lease),
            Ok(Attempt::Held(by)) => {
                taken.give_back().await;
                return Ok(AllAttempt::Held(leases.full_name(name)?, by));
            }
            Err(error) => {
                taken.give_back().await;
                return Err(error);
            }
        }
    }
    match taken.all_held() {
        Ok(()) => Ok(AllAttempt::Acquired(taken.into_all(&names))),
        Err(lost) => {
            taken.give_back().await;
            Err(Error::from(lost).during(Operation::Acquire))
        }
    }
}

/// Waits until the leases of all these names are ours at once.
///
/// They are taken one after the other in the order of their names (as bytes; a name that comes twice counts once), and
/// those taken are held while it waits for the next. Everybody takes them in that order, so there is no deadlock: whoever
/// has the highest name that anybody has waits for nobody. If one of those taken is lost meanwhile, all are given back and
/// it begins again. So what you get is held together, all at one moment.
///
/// Take all that you need in one call. A second call, or a plain [`Leases::acquire`], while you hold some is outside of the
/// order, and two such programs can wait for each other for ever; give those a limit ([`acquire_all_within`]).
///
/// On DynamoDB one request for each name, and one for each to give it back. While it waits, those taken are renewed. With
/// [`Renewal::Manual`](crate::Renewal::Manual) nobody renews them, so a wait that is longer than the term begins again and
/// again: take [`try_acquire_all`] there.
///
/// ```
/// use leasehold::recipes::acquire_all;
/// # use leasehold::{Error, Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let leases = Leases::builder(MemoryStore::new()).build()?;
/// let both = acquire_all(&leases, ["accounts/42", "accounts/7"]).await?;
/// both.run(|held| async move {
///     let (from, to) = (held.of("accounts/42").unwrap(), held.of("accounts/7").unwrap());
///     // transfer(from.token(), to.token()).await
/// #   let _ = (from, to);
///     Ok::<_, Error>(())
/// })
/// .await?; // both are given back when the work has ended
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Leases::acquire`], after giving back; and [`ErrorKind::Invalid`] without a name.
///
/// # Cancel safety
/// Safe: what was taken is given back in the background.
pub async fn acquire_all<N: AsRef<str>>(leases: &Leases, names: impl IntoIterator<Item = N>) -> Result<All, Error> {
    let names = in_order(leases, names)?;
    wait(leases, &names, &mut Taken::default()).await
}

/// Waits at most `limit`, and gives back what was taken by then.
///
/// # Errors
/// As [`acquire_all`], and [`ErrorKind::TimedOut`]: [`Error::lease`] is the name that it waited for.
///
/// # Cancel safety
/// As [`acquire_all`].
pub async fn acquire_all_within<N: AsRef<str>>(
    leases: &Leases,
    names: impl IntoIterator<Item = N>,
    limit: Duration,
) -> Result<All, Error> {
    let names = in_order(leases, names)?;
    let mut taken = Taken::default();
    if let Some(got) = time::within(leases.clock(), limit, wait(leases, &names, &mut taken)).await {
        return got;
    }
    let waited_for = names.iter().nth(taken.0.len()).map_or("", String::as_str);
    let why = format!(
        "the time that was given is over, with {} of {} taken: they are given back",
        taken.0.len(),
        names.len()
    );
    let error = Error::new(ErrorKind::TimedOut, Operation::Acquire, why).written_if(Written::Unknown);
    let error = error.for_name(&leases.full_name(waited_for)?);
    taken.give_back().await;
    Err(error)
}

async fn wait(leases: &Leases, names: &BTreeSet<String>, taken: &mut Taken) -> Result<All, Error> {
    loop {
        for name in names {
            let got = tokio::select! {
                biased;
                () = taken.one_ends() => break,
                got = leases.acquire(name) => got,
            };
            match got {
                Ok(lease) => taken.0.push(lease),
                Err(error) => {
                    taken.give_back().await;
                    return Err(error);
                }
            }
        }
        if taken.0.len() == names.len() && taken.all_held().is_ok() {
            return Ok(std::mem::take(taken).into_all(names));
        }
        taken.give_back().await;
    }
}

/// Each name once, in the order that everybody takes them in.
fn in_order<N: AsRef<str>>(leases: &Leases, names: impl IntoIterator<Item = N>) -> Result<BTreeSet<String>, Error> {
    let names: BTreeSet<_> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, Operation::Acquire, "give at least one name"));
    }
    // All are checked before the first is taken.
    names.iter().try_for_each(|name| leases.full_name(name).map(drop))?;
    Ok(names)
}

/// What was taken so far. Dropped, it is given back in the background.
#[derive(Default)]
struct Taken(Vec<Lease>);

impl Taken {
    /// The last one first: whoever waits for the first finds the others free.
    async fn give_back(&mut self) {
        while let Some(lease) = self.0.pop() {
            // One that is not answered goes on in the background, or ends with its term.
            let _ = lease.release().await;
        }
    }

    fn all_held(&self) -> Result<(), Lost> {
        let lost = |lease: &Lease| Lost::new(lease.name().clone(), lease.token(), LostReason::Deadline, None);
        self.0.iter().find(|lease| !lease.held().is_held()).map_or(Ok(()), |lease| Err(lost(lease)))
    }

    async fn one_ends(&self) {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        select_all(self.0.iter().map(|lease| Box::pin(lease.held().lost()))).await;
    }

    fn into_all(mut self, names: &BTreeSet<String>) -> All {
        All { names: names.iter().cloned().collect(), leases: std::mem::take(&mut self.0) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

impl All {
    /// The leases, in the order of their names. Each has its own token.
    pub fn leases(&self) -> &[Lease] {
        &self.leases
    }

    /// A view for the code that works under them.
    pub fn held(&self) -> AllHeld {
        AllHeld { names: Arc::clone(&self.names), held: self.leases.iter().map(Lease::held).collect() }
    }

    /// Runs `work` under all of them, and gives them back in reverse order when the work has ended.
    ///
    /// As soon as one is lost the work is told ([`AllHeld::lost`]), may go on for the shortest margin, and is dropped
    /// then. They are given back after the work has ended, on every path.
    ///
    /// # Errors
    /// The work's own error first; else the loss, if any lease was lost before the work had ended. With
    /// [`Renewal::Manual`](crate::Renewal::Manual) the work is begun, and has to end within the term.
    ///
    /// # Cancel safety
    /// Safe: the work is dropped first, then they are given back in the background.
    pub async fn run<T, E, F, Fut>(self, work: F) -> Result<T, E>
    where
        F: FnOnce(AllHeld) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Lost>,
    {
        let work = work(self.held());
        let output = Lease::work_under_all(&self.leases, work).await;
        let first = &self.leases[0];
        let shut_down = Lost::new(first.name().clone(), first.token(), LostReason::Shutdown, None);
        let (_, lost) = self.end().await;
        match (output, lost) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(lost)) => Err(E::from(lost)),
            (Some(Ok(output)), None) => Ok(output),
            // Somebody has shut the client down under it.
            (None, None) => Err(E::from(shut_down)),
        }
    }

    /// Gives all back in reverse order, and says how they have ended: [`Ended::Lost`] when any was lost before.
    ///
    /// # Errors
    /// As [`Lease::release`], of the first that was not answered; the others are given back all the same.
    ///
    /// # Cancel safety
    /// Safe: the rest is given back in the background.
    pub async fn release(self) -> Result<Ended, Error> {
        match self.end().await {
            (_, Some(lost)) => Ok(Ended::Lost(lost)),
            (Some(error), None) => Err(error),
            (None, None) => Ok(Ended::Released),
        }
    }
}

impl All {
    /// Each in its turn, the last one first.
    async fn end(mut self) -> (Option<Error>, Option<Lost>) {
        let (mut failed, mut lost) = (None, None);
        while let Some(lease) = self.leases.pop() {
            let held = lease.held();
            if let Err(error) = lease.release().await {
                failed = Some(error);
            }
            if let State::Ended(Ended::Lost(loss)) = held.state() {
                lost = Some(loss);
            }
        }
        (failed, lost)
    }
}

impl AllHeld {
    /// The view of the lease of this name, without the client's prefix.
    pub fn of(&self, name: impl AsRef<str>) -> Option<&Held> {
        let place = self.names.binary_search_by(|known| known.as_str().cmp(name.as_ref())).ok()?;
        self.held.get(place)
    }

    /// All views, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    /// Whether all are held at this moment on every clock; see [`Held::is_held`].
    pub fn is_held(&self) -> bool {
        self.held.iter().all(Held::is_held)
    }

    /// For how much longer all are held without another answer from the store; zero when one is not.
    pub fn remaining(&self) -> Duration {
        self.held.iter().map(Held::remaining).min().unwrap_or_default()
    }

    /// Waits for the end of the first that ends. An owned future, as that of [`Held::lost`].
    ///
    /// # Cancel safety
    /// Safe.
    pub fn lost(&self) -> impl Future<Output = Ended> + Send + use<> {
        let ends = select_all(self.held.iter().map(|held| Box::pin(held.lost())));
        async move { ends.await.0 }
    }
}
