//! At most once a period, across a fleet.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::release_lost;
use crate::lease::{Attempt, Ended, Held, Lease, Leases};
use crate::types::{Data, Error, ErrorKind, HeldBy, Lost, Operation, Stamp};

/// A sleeper looks at the wall clock again after this long, because it may have been set.
const LOOK: Duration = Duration::from_secs(60);
/// A tick that is not to be had now, but may be later, is looked at so often in a period.
const LOOKS_IN_A_PERIOD: u32 = 60;

/// A job that runs at most once a period across a fleet: once an hour, once a day.
///
/// A period is a *tick of the wall clock*, not the time since the last run: tick *k* lasts from *k* periods after 1970 (UTC, and
/// [`offset`](Schedule::offset)) to the next. Whoever looks first in a tick gets its [`Turn`]; the claim writes the number of
/// the tick into the record, and nobody begins that tick again. So one machine that calls once an hour always finds its
/// hour open, whenever the last run ended; and when the fleet was down, the ticks that nobody has begun are skipped, not made
/// up for: the next turn says [how many](Tick::missed).
///
/// *Skew.* Nodes whose wall clocks are less than one period apart never run the same tick twice, because the number stands in
/// the record; the node whose clock is ahead runs it, earlier. And when a run has ended, its record stays *closed* until
/// [`at_least`](Schedule::at_least) has passed since the run began, on clocks that nobody sets: whatever the wall clocks
/// say, no two runs begin closer together than that. So a node whose clock is far off can shift the fleet's ticks, but not
/// run the job more often.
///
/// *Crashes.* A tick that has begun is used up, also when its run crashes, fails, panics or loses its lease: at most once.
/// With [`retry`](Schedule::retry) such a run is begun again in its tick, with a higher token. `at_least` is kept after runs
/// that have ended, not after a crash: then only the term keeps the next tick out.
///
/// ```
/// use std::time::Duration;
/// use leasehold::recipes::Schedule;
/// # use leasehold::{Error, Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let leases = Leases::builder(MemoryStore::new()).build()?;
/// let hourly = Schedule::new(&leases, "reports", Duration::from_secs(3600))?;
/// // In a loop `hourly.turn().await?` waits for one; from cron, this looks once:
/// if let Some(turn) = hourly.try_turn().await? {
///     let tick = turn.tick();
///     turn.run(|held| async move { Ok::<_, Error>(println!("hour {} by token {}", tick.id, held.token())) }).await?;
/// }
/// assert!(hourly.try_turn().await?.is_none(), "this hour is done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    leases: Leases,
    name: String,
    period: Duration,
    offset: Duration,
    at_least: Duration,
    retry: bool,
}

/// One period of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// How many periods after 1970 it began, by the wall clock of the node that has it.
    pub id: u64,
    /// How many ticks nobody has begun between the last one that is known and this; 0 where none is known.
    pub missed: u64,
}

/// The right to run one tick. Dropped, the lease is released and the tick is used up (with
/// [`retry`](Schedule::retry): it is begun again).
#[derive(Debug)]
#[must_use = "a turn that is dropped has used up its tick"]
pub struct Turn {
    lease: Lease,
    tick: Tick,
    schedule: Schedule,
    begun: Stamp,
}

impl Schedule {
    /// A schedule of that period, 1 s to 366 days. Its name is one lease of this client.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a period outside of that, and for a bad name.
    pub fn new(leases: &Leases, name: impl Into<String>, period: Duration) -> Result<Self, Error> {
        let (least, most) = (Duration::from_secs(1), Duration::from_secs(366 * 24 * 60 * 60));
        if !(least..=most).contains(&period) {
            let why = format!("a period is {least:?} to {most:?}, not {period:?}");
            return Err(Error::new(ErrorKind::Invalid, Operation::Acquire, why));
        }
        let name = name.into();
        leases.full_name(&name)?;
        let (leases, offset, at_least) = (leases.clone(), Duration::ZERO, period / 2);
        Ok(Self { leases, name, period, offset, at_least, retry: false })
    }

    /// Ticks begin so much later than whole periods after 1970, UTC: 3 h with a period of a day is three in the morning.
    /// Default: 0. All nodes of a name have to give the same.
    pub fn offset(mut self, offset: Duration) -> Self {
        self.offset = offset;
        self
    }

    /// The least time from the beginning of one run to that of the next, at most a period. Default: half a period.
    ///
    /// More than the wall clocks of the fleet are ever apart; and clearly less than a period, because a closed record opens
    /// some seconds late. Where only watching opens it (SQLite, [`Takeover::ObservedOnly`](crate::Takeover::ObservedOnly)) a process
    /// that lives for shorter than this never sees it open: there give `Duration::ZERO` in such processes, and the tick's
    /// number alone keeps it to once a tick.
    ///
    /// On Azure Blob, a majority and the memory store that number is looked at before the claim and not with it. There a
    /// claim that is slower than another node's whole run may begin the tick again, unless that run has closed the record.
    /// One that is longer than this does not, nor one that was dropped, was cancelled or has lost its lease.
    pub fn at_least(mut self, hold: Duration) -> Self {
        self.at_least = hold.min(self.period);
        self
    }

    /// A run that crashed, failed, panicked or lost its lease is begun again in its tick, by whoever comes, with a higher
    /// token. Default: it is not. Its effects must bear being begun twice.
    pub fn retry(mut self) -> Self {
        self.retry = true;
        self
    }

    /// Looks once: the turn, if this tick is due and nobody has it. For programs that something else starts.
    ///
    /// One read, and one claim if the tick is due (on a store of your choice: as a takeover); [`Turn::run`] ends it by one
    /// more request. A name without a record costs a write and a read more, once, on stores with a time of their own: the
    /// record has to be there before the claim can name what was seen.
    ///
    /// # Errors
    /// As [`Leases::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`], but the tick may be used up.
    pub async fn try_turn(&self) -> Result<Option<Turn>, Error> {
        Ok(self.look(self.tick_now()).await?.ok())
    }

    /// Waits for the next turn of this node: at once if this tick is due, else at the next one that it gets.
    ///
    /// One read a tick that another node gets, within one poll of its beginning, and up to sixty while a record is closed or,
    /// with [`retry`](Schedule::retry), while another node runs. It notices within a minute that the wall clock was set.
    ///
    /// # Errors
    /// As [`Leases::acquire`]. While the store is away it goes on trying.
    ///
    /// # Cancel safety
    /// As [`Schedule::try_turn`].
    pub async fn turn(&self) -> Result<Turn, Error> {
        loop {
            let tick = self.tick_now();
            match self.look(tick).await {
                Ok(Ok(turn)) => return Ok(turn),
                Ok(Err(NotNow::Over)) => self.sleep_until(tick + 1).await,
                Ok(Err(NotNow::Later(left))) => {
                    let longest = (self.period / LOOKS_IN_A_PERIOD).max(self.leases.poll_pause());
                    let again = left.unwrap_or(longest).clamp(Duration::from_millis(1), longest);
                    self.leases.clock().sleep(again).await;
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    self.leases.clock().sleep(self.leases.poll_pause()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn look(&self, tick: u64) -> Result<Result<Turn, NotNow>, Error> {
        let last = Arc::new(Mutex::new(None));
        let (seen, retry) = (Arc::clone(&last), self.retry);
        let request = self.leases.request(&self.name).data(Mark { tick, done: false }.written());
        let request = request.unless(move |data| {
            let mark = data.and_then(|data| Mark::read(data.as_bytes()));
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = mark;
            mark.is_some_and(|mark| mark.uses_up(tick, retry))
        });
        let attempt = request.try_acquire().await?;
        let last: Option<Mark> = *last.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = match attempt {
            Attempt::Acquired(lease) => lease,
            Attempt::Held(by) => return Ok(Err(NotNow::of(&by, last, tick, self.retry))),
        };
        let missed = last.map_or(0, |last| tick.saturating_sub(last.tick).saturating_sub(1));
        // After the answer: the run begins now, and the next one not before `at_least` has passed from here.
        let begun = self.leases.clock().stamp();
        Ok(Ok(Turn { lease, tick: Tick { id: tick, missed }, schedule: self.clone(), begun }))
    }

    fn tick_now(&self) -> u64 {
        let since = u128::from(self.leases.clock().stamp().real).saturating_sub(self.offset.as_nanos());
        u64::try_from(since / self.period.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Until that tick has begun by the wall clock, or it was set back, and a little longer by chance.
    async fn sleep_until(&self, tick: u64) {
        let clock = self.leases.clock();
        let begins = u128::from(tick) * self.period.as_nanos() + self.offset.as_nanos();
        loop {
            let left = begins.saturating_sub(u128::from(clock.stamp().real));
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            if left.is_zero() || left > self.period {
                break;
            }
            clock.sleep(left.min(LOOK)).await;
        }
        clock.sleep(self.leases.poll_pause()).await;
    }
}

impl Turn {
    /// Which tick it is.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// A view of its lease.
    pub fn held(&self) -> Held {
        self.lease.held()
    }

    /// Runs the tick's work under its lease, and closes the record when the work has ended.
    ///
    /// On loss the work is told, may go on for the margin, and is dropped then. On every path the lease is given up only
    /// after the work has ended. Whether the closing was answered changes nothing about the result: the tick is used up by
    /// the claim, and the closing goes on in the background.
    ///
    /// With [`Renewal::Manual`](crate::Renewal::Manual), as in functions, nobody renews: the work must end within the term, or
    /// renew by [`Held::ensure`].
    ///
    /// # Errors
    /// The work's own error first; else the loss, if the lease was lost before it was given up.
    ///
    /// # Cancel safety
    /// Safe: the work is dropped first, then the lease is released in the background, and the tick is as after a crash.
    pub async fn run<T, E, F, Fut>(self, work: F) -> Result<T, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Lost>,
    {
        let Some(output) = self.lease.work(work).await else {
            return Err(E::from(release_lost(self.lease).await));
        };
        let ended = self.end(output.is_err()).await;
        match (output, ended) {
            (Ok(_), Ok(Ended::Lost(lost))) => Err(E::from(lost)),
            (output, _) => output,
        }
    }

    async fn end(self, failed: bool) -> Result<Ended, Error> {
        let Self { lease, tick, schedule, begun } = self;
        if failed && schedule.retry {
            return lease.release().await;
        }
        let done = Data::new(&Mark { tick: tick.id, done: true }.written());
        let since = Duration::from_nanos(schedule.leases.clock().stamp().steady_since(&begun));
        match schedule.at_least.saturating_sub(since) {
            keep if !keep.is_zero() => lease.close(keep, done).await,
            // What the claim has written is enough, unless it must be told from a crash.
            _ if !schedule.retry => lease.release().await,
            _ => {
                let _ = lease.held().set_data(Mark { tick: tick.id, done: true }.written()).await;
                lease.release().await
            }
        }
    }
}

/// Why a tick is not to be had.
enum NotNow {
    /// It is used up.
    Over,
    /// Perhaps later; after so long, if only watching opens it.
    Later(Option<Duration>),
}

impl NotNow {
    /// `last` is the mark of a record that was free: nobody has that one, so no holder shows it.
    fn of(by: &HeldBy, last: Option<Mark>, tick: u64, retry: bool) -> Self {
        match by.data().and_then(Mark::read).or(last) {
            Some(mark) if mark.uses_up(tick, retry) => Self::Over,
            _ => Self::Later(by.of().map(|of| of.saturating_sub(by.unchanged_for()))),
        }
    }
}

/// What a record says of its newest run: readable by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    tick: u64,
    done: bool,
}

impl Mark {
    fn written(self) -> Vec<u8> {
        format!("tick {} {}", self.tick, if self.done { "done" } else { "begun" }).into_bytes()
    }

    fn read(data: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(data).ok()?.split(' ');
        let (Some("tick"), Some(tick), Some(state), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return None;
        };
        Some(Self { tick: tick.parse().ok()?, done: state == "done" })
    }

    /// Whether a node that is in this tick by its own clock must not begin it.
    ///
    /// The next tick counts too: it was begun by a node whose clock is ahead. One that is further off comes from a clock that
    /// is wrong, here or there, and must not stop everybody until its time has come; how often the job runs is then up to
    /// the closing.
    fn uses_up(self, tick: u64, retry: bool) -> bool {
        match self.tick.checked_sub(tick) {
            Some(0) => self.done || !retry,
            Some(ahead) => ahead == 1,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is_one() {
        for mark in [Mark { tick: 0, done: false }, Mark { tick: u64::MAX, done: true }] {
            assert_eq!(Mark::read(&mark.written()), Some(mark));
        }
        for other in [&b""[..], b"tick", b"tick x done", b"tick 7 done now", b"tock 7 done", b"\xff"] {
            assert_eq!(Mark::read(other), None);
        }
    }

    #[test]
    fn a_tick_is_used_up_by_itself_and_by_the_next_but_not_by_a_clock_that_is_wrong() {
        let used_up = |last: u64, done, retry| Mark { tick: last, done }.uses_up(10, retry);
        assert_eq!([8, 9, 10, 11, 12].map(|last| used_up(last, true, false)), [false, false, true, true, false]);
        assert!(used_up(10, false, false), "begun is begun");
        assert!(!used_up(10, false, true), "unless it is to be tried again");
        assert!(used_up(11, false, true));
    }
}
