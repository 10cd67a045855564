//! At most n at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::lease::{Attempt, Event, Events, Lease, Leases};
use crate::time;
use crate::types::{Error, ErrorKind, HeldBy, Operation, Written};

/// The most permits of a semaphore.
const MOST: u32 = 1000;
/// How many looks a waiter spends in a poll, however many permits there are.
const LOOKS: u32 = 5;

/// At most *n* holders at a time, across processes.
///
/// Each permit is a lease of its own (`NAME/0` to `NAME/n-1`) with its own term and token, and there is no counter anywhere.
/// So a killed holder's permit comes back by itself when its term is over, a release that is repeated, late or of somebody
/// who has lost the permit changes nothing, and after any number of crashes there are still *n*.
///
/// A permit is a [`Lease`]: run the work under it, or hold it and release it. Its token is higher than those of earlier
/// holders of *the same permit*, and says nothing about the other permits: a resource that checks tokens keeps one fence
/// for each permit, by [`Lease::name`].
///
/// All clients of a name should give the same *n*. Where they differ, at most the largest *n* hold at once, and a client with
/// a smaller one uses only the first permits. So *n* is raised by raising it everywhere in any order; when it is lowered, those
/// who hold a permit above keep it until they release it.
///
/// ```
/// use leasehold::recipes::Semaphore;
/// # use leasehold::{Attempt, Error, Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let leases = Leases::builder(MemoryStore::new()).build()?;
/// let licences = Semaphore::new(&leases, "licences", 2)?;
/// let first = licences.acquire().await?;
/// let second = licences.acquire().await?;
/// assert!(matches!(licences.try_acquire().await?, Attempt::Held(_)), "two of two are out");
///
/// first.run(|held| async move { Ok::<_, Error>(held.token()) }).await?; // gives it back when the work has ended
/// assert!(licences.try_acquire().await?.acquired().is_some());
/// # drop(second);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    leases: Leases,
    name: Arc<str>,
    permits: u32,
    /// Waiters of this semaphore are served first-in first-out, and only the first asks the store.
    turn: Arc<Mutex<()>>,
}

impl Semaphore {
    /// A semaphore of 1 to 1,000 permits on this client. Clones share one queue of waiters.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a number of permits outside of that, and for a bad name.
    pub fn new(leases: &Leases, name: impl AsRef<str>, permits: u32) -> Result<Self, Error> {
        let name = name.as_ref();
        if !(1..=MOST).contains(&permits) {
            let why = format!("a semaphore has 1 to {MOST} permits, not {permits}");
            return Err(Error::new(ErrorKind::Invalid, Operation::Acquire, why));
        }
        if name.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, Operation::Acquire, "a semaphore needs a name"));
        }
        leases.full_name(&format!("{name}/{}", permits - 1))?;
        Ok(Self { leases: leases.clone(), name: name.into(), permits, turn: Arc::default() })
    }

    /// Tries each permit once, beginning with one that is drawn by chance. Does not wait, and does not queue behind waiters.
    ///
    /// One request if it is lucky, and at most one for each permit that this client does not hold itself.
    /// [`Attempt::Held`] says who has the last one tried.
    ///
    /// # Errors
    /// As [`Leases::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`].
    pub async fn try_acquire(&self) -> Result<Attempt, Error> {
        let first = self.by_chance();
        let mut answer = self.leases.try_acquire(self.permit(first)).await?;
        for next in 1..self.permits {
            if let Attempt::Acquired(_) = answer {
                break;
            }
            answer = self.leases.try_acquire(self.permit(first + next)).await?;
        }
        Ok(answer)
    }

    /// Waits for a permit.
    ///
    /// Waiters of one semaphore and its clones are served first-in first-out, and only the first of them asks the store:
    /// once for each permit, then by one read for one permit after the other, as many in a poll as there are permits
    /// but at most five. So with five permits or fewer a permit that somebody else gives back, or a dead holder's whose
    /// term is over, is found within one poll; with more, within `n/5` polls, and sooner the more clients wait.
    /// A permit that this client gives back is taken at once. Between clients there is no order.
    ///
    /// # Errors
    /// As [`Leases::acquire`]. While the store is away it goes on trying.
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`]; the place in the queue is given up.
    pub async fn acquire(&self) -> Result<Lease, Error> {
        self.wait(&mut None).await
    }

    /// Waits at most `limit`.
    ///
    /// # Errors
    /// As [`Semaphore::acquire`], and [`ErrorKind::TimedOut`]: [`held_by`](Error::held_by) then says who had the permit that
    /// was looked at last.
    ///
    /// # Cancel safety
    /// As [`Semaphore::acquire`].
    pub async fn acquire_within(&self, limit: Duration) -> Result<Lease, Error> {
        let mut seen = None;
        if let Some(got) = time::within(self.leases.clock(), limit, self.wait(&mut seen)).await {
            return got;
        }
        let why = format!("no permit of {} was free in the time that was given", self.permits);
        let error =
            Error::new(ErrorKind::TimedOut, Operation::Acquire, why).for_name(&self.leases.full_name(&self.name)?);
        Err(error.written_if(Written::Unknown).seen_held_by(seen))
    }

    async fn wait(&self, seen: &mut Option<HeldBy>) -> Result<Lease, Error> {
        let _turn = self.turn.lock().await;
        // From before the first look, so that no release is missed.
        let mut events = self.leases.events();
        let mut next = self.by_chance();
        for looks in 0u64.. {
            let request = self.leases.request(self.permit(next));
            // A free one is had by one claim; where all are held, a read is cheaper than a refused claim.
            let request = if looks < u64::from(self.permits) { request } else { request.reading_first() };
            match request.try_acquire().await {
                Ok(Attempt::Acquired(lease)) => return Ok(lease),
                Ok(Attempt::Held(by)) => *seen = Some(by),
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => return Err(error),
            }
            next = if looks + 1 < u64::from(self.permits) { next + 1 } else { self.pause(&mut events, next).await };
        }
        unreachable!("it looks for ever")
    }

    /// The permit to look at after a pause; one that this client has given back, at once.
    async fn pause(&self, events: &mut Events, last: u32) -> u32 {
        let pause = self.leases.poll_pause() / self.permits.min(LOOKS);
        tokio::select! {
            biased;
            freed = self.freed(events) => freed,
            () = self.leases.clock().sleep(pause) => last + 1,
        }
    }

    async fn freed(&self, events: &mut Events) -> u32 {
        while let Some(event) = events.next().await {
            if let Event::Released { name, .. } = event
                && let Some(number) = self.number(name.as_str())
            {
                return number;
            }
        }
        std::future::pending().await
    }

    /// Which of these permits has that full name.
    fn number(&self, full_name: &str) -> Option<u32> {
        let own = self.leases.full_name(&self.name).ok()?;
        let number = full_name.strip_prefix(own.as_str())?.strip_prefix('/')?.parse().ok()?;
        (number < self.permits).then_some(number)
    }

    fn permit(&self, number: u32) -> String {
        format!("{}/{}", self.name, number % self.permits)
    }

    fn by_chance(&self) -> u32 {
        (self.leases.clock().random() % u128::from(self.permits)) as u32
    }
}
