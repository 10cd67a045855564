//! A piece of work that runs at most once per key, and whose outcome is remembered.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::release_lost;
use crate::lease::{Attempt, Ended, Held, Lease, Leases, Request};
use crate::types::{Data, Error, ErrorKind, HeldBy, Lost, MAX_DATA, Operation};

/// How long an outcome is remembered unless somebody says so; argued in docs/defaults.md.
const DEFAULT_KEEP: Duration = Duration::from_secs(4 * 24 * 60 * 60);

/// Stands before `DONE` or `FAILED` and each outcome, so that a record which was closed for another reason is not read as one.
const MARK: &[u8] = b"once";
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// Runs a piece of work once per key and remembers its outcome: for handlers of queues that deliver at least once.
///
/// While the work runs, its key is a lease: others are answered [`Outcome::InProgress`]. When it is done, the lease's
/// release closes the record with the outcome for a chosen time, in one write: a repeat in that time costs one refused
/// claim and is answered [`Outcome::AlreadyDone`].
///
/// What is promised is one *remembered outcome*, not one run. A run that has crashed, lost its lease or could not
/// record its outcome is run again, with a higher token: so its work may begin twice, and only that token, checked by
/// the resource ([`Held::token`]), keeps the first run's late writes out. And what the first run did before it crashed
/// stays done: let the work look first, or make its effect under a key of its own.
///
/// On a store without a time of its own (SQLite), and with
/// [`Takeover::ObservedOnly`](crate::Takeover::ObservedOnly), a key whose time is over runs again only in a process
/// that has watched it for so long; so there, in short-lived processes, it never does.
///
/// ```
/// use leasehold::recipes::{Failed, Once, Outcome};
/// # use leasehold::{Leases, MemoryStore};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let leases = Leases::builder(MemoryStore::new()).prefix("payments/").build()?;
/// let once = Once::new(&leases);
/// for delivery in 1..=2 {
///     let outcome = once
///         .run("message-17", |held| async move {
///             // charge(held.token()).await? ..
///             Ok::<_, Failed<std::io::Error>>(format!("receipt {}", held.token()))
///         })
///         .await?;
///     match outcome {
///         Outcome::Done(receipt) => assert_eq!((delivery, &receipt[..]), (1, &b"receipt 1"[..])),
///         Outcome::AlreadyDone(receipt) => assert_eq!((delivery, &receipt[..]), (2, &b"receipt 1"[..])),
///         Outcome::AlreadyFailed(_) | Outcome::InProgress(_) => unreachable!(),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Once {
    leases: Leases,
    keep: Duration,
    at_most: Option<Duration>,
}

/// What became of a run. Its `Debug` shows only the lengths of outcomes.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The work has run now, and this is remembered.
    Done(Vec<u8>),
    /// It has run before, with this outcome.
    AlreadyDone(Vec<u8>),
    /// It has run before and failed for good, and this is what was remembered of it.
    AlreadyFailed(Vec<u8>),
    /// Somebody is at it now, or has closed this name for another reason. Deliver the message again later.
    InProgress(HeldBy),
}

/// Why work has failed, and whether that is remembered. Its `Debug` shows only the length of a note.
pub enum Failed<E> {
    /// The next delivery runs it again. `?` makes this of an `E`. Where the work fails with errors of several types, put it
    /// into a function of its own that returns `Result<_, E>`, and let the closure say `Ok(work(held).await?)`.
    Retry(E),
    /// It is remembered for as long as an outcome, with this note of at most [`Once::MAX_OUTCOME`] bytes: repeats are
    /// answered [`Outcome::AlreadyFailed`].
    Remember(E, Vec<u8>),
}

/// Why a run has no outcome. Its `Debug` shows only the length of what was not remembered.
///
/// It can be shown where `E` can, and is a [`std::error::Error`] where `E` is one: a `Box<dyn Error>` is none, so then
/// make a text of it (`.map_err(|error| error.to_string())?`).
#[non_exhaustive]
pub enum OnceError<E> {
    /// The work's own error. It is remembered, or runs again, as the work has said.
    Work(E),
    /// The lease was lost under the work, which was dropped. It may run again, and this run's effects are kept out only
    /// by its token.
    Lost(Lost),
    /// The lease could not be asked for, or not be had in time. The work has not run.
    Lease(Error),
    /// The work has run, and its outcome is not known to be remembered.
    ///
    /// If `error` says [`Written::No`](crate::Written::No) it is not, and a repeat runs the work again. If it says
    /// [`Written::Unknown`](crate::Written::Unknown) it may be, or may be yet: a repeat is answered with it, or runs
    /// the work again when the term is over.
    NotRemembered {
        /// What the work has returned.
        outcome: Result<Vec<u8>, E>,
        /// Why it is not known: [`ErrorKind::Lost`](crate::ErrorKind::Lost) when the lease was lost before,
        /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when it is too large, else as of
        /// [`Lease::close`](crate::Lease::close).
        error: Error,
    },
}

impl Once {
    /// The longest outcome, or note of a failure, in bytes. Keep what is longer elsewhere, and remember where.
    pub const MAX_OUTCOME: usize = MAX_DATA - MARK.len() - 1;

    /// Runs on this client: its prefix, term and renewal. Each key is one lease name.
    ///
    /// With [`Renewal::Manual`](crate::Renewal::Manual), as in functions, nobody renews: the work must end within the
    /// term, or renew by [`Held::ensure`].
    pub fn new(leases: &Leases) -> Self {
        Self { leases: leases.clone(), keep: DEFAULT_KEEP, at_most: None }
    }

    /// How long an outcome is remembered: 1 ms to ten years, longer than a message can come again. Default: 4 days, as
    /// long as a queue of SQS keeps a message unless it is told otherwise.
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// The longest time for a run, counted from the call of [`Once::run`]: of a function, what is left of its
    /// invocation, less a second to answer. The work is told, and its lease is lost, a margin before it; the call
    /// returns half a second after it at the latest, also if the store hangs. See [`Request::at_most`].
    pub fn at_most(mut self, longest: Duration) -> Self {
        self.at_most = Some(longest);
        self
    }

    /// Runs `work` unless the key has an outcome already, or somebody is at it. Tries once, and never waits for another.
    ///
    /// On DynamoDB a first run is two requests, three for a client that does not know the store's time yet, and a repeat is
    /// one; on Azure Blob six for a new key, and one. On loss of the lease the work is told, may go on for the margin, and is
    /// dropped then.
    ///
    /// # Errors
    /// [`OnceError`] says whether the work has run, and whether its outcome is remembered.
    ///
    /// # Cancel safety
    /// Safe: the work is dropped first, then the lease is released in the background, and the work may run again. An
    /// outcome that was being recorded is recorded in the background. With
    /// [`Renewal::Manual`](crate::Renewal::Manual) there is no background: the client's next call, or
    /// [`Leases::flush`], does it, and others wait out the term at most.
    pub async fn run<V, E, F, Fut>(&self, key: impl AsRef<str>, work: F) -> Result<Outcome, OnceError<E>>
    where
        V: Into<Vec<u8>>,
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<V, Failed<E>>>,
    {
        let lease = match self.request(key.as_ref()).try_acquire().await.map_err(OnceError::Lease)? {
            Attempt::Acquired(lease) => lease,
            Attempt::Held(by) => return Ok(remembered(&by).unwrap_or(Outcome::InProgress(by))),
        };
        match lease.work(work).await {
            None => Err(OnceError::Lost(release_lost(lease).await)),
            Some(Ok(value)) => {
                let value = value.into();
                match self.remember(lease, DONE, &value).await {
                    Ok(()) => Ok(Outcome::Done(value)),
                    Err(error) => Err(OnceError::NotRemembered { outcome: Ok(value), error }),
                }
            }
            Some(Err(Failed::Retry(error))) => {
                // Others wait out the term if it is not answered, and that is all.
                let _ = lease.release().await;
                Err(OnceError::Work(error))
            }
            Some(Err(Failed::Remember(work, note))) => match self.remember(lease, FAILED, &note).await {
                Ok(()) => Err(OnceError::Work(work)),
                Err(error) => Err(OnceError::NotRemembered { outcome: Err(work), error }),
            },
        }
    }

    fn request(&self, key: &str) -> Request {
        let request = self.leases.request(key);
        match self.at_most {
            Some(longest) => request.at_most(longest),
            None => request,
        }
    }

    async fn remember(&self, lease: Lease, how: u8, value: &[u8]) -> Result<(), Error> {
        let name = lease.name().clone();
        let Some(data) = Data::new(&[MARK, &[how], value].concat()) else {
            let _ = lease.release().await;
            let (most, is) = (Self::MAX_OUTCOME, value.len());
            let why = format!(
                "an outcome has at most {most} bytes, this one has {is}: keep it elsewhere, and remember where"
            );
            return Err(Error::new(ErrorKind::Invalid, Operation::Close, why).for_name(&name));
        };
        match lease.close(self.keep, Some(data)).await? {
            Ended::Lost(lost) => Err(Error::from(lost).during(Operation::Close)),
            _ => Ok(()),
        }
    }
}

/// The outcome that a closed record keeps.
fn remembered(by: &HeldBy) -> Option<Outcome> {
    let (how, value) = by.data().filter(|_| by.is_closed())?.strip_prefix(MARK)?.split_first()?;
    match *how {
        DONE => Some(Outcome::AlreadyDone(value.to_vec())),
        FAILED => Some(Outcome::AlreadyFailed(value.to_vec())),
        _ => None,
    }
}

/// So that `?` in the work is a failure that is tried again.
impl<E> From<E> for Failed<E> {
    fn from(error: E) -> Self {
        Self::Retry(error)
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(value) => write!(f, "Done({})", Length(value)),
            Self::AlreadyDone(value) => write!(f, "AlreadyDone({})", Length(value)),
            Self::AlreadyFailed(note) => write!(f, "AlreadyFailed({})", Length(note)),
            Self::InProgress(by) => f.debug_tuple("InProgress").field(by).finish(),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Failed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(error) => f.debug_tuple("Retry").field(error).finish(),
            Self::Remember(error, note) => write!(f, "Remember({error:?}, {})", Length(note)),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for OnceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => f.debug_tuple("Work").field(error).finish(),
            Self::Lost(lost) => f.debug_tuple("Lost").field(lost).finish(),
            Self::Lease(error) => f.debug_tuple("Lease").field(error).finish(),
            Self::NotRemembered { outcome, error } => {
                let outcome = outcome.as_ref().map(|value| Length(value));
                f.debug_struct("NotRemembered").field("outcome", &outcome).field("error", error).finish()
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for OnceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => write!(f, "the work has failed: {error}"),
            Self::Lost(lost) => write!(f, "the work was stopped: {lost}"),
            Self::Lease(error) => write!(f, "the work was not begun: {error}"),
            Self::NotRemembered { error, .. } => {
                write!(f, "the work has run and its outcome is not known to be remembered: {error}")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for OnceError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Work(error) => Some(error),
            Self::Lost(lost) => Some(lost),
            Self::Lease(error) | Self::NotRemembered { error, .. } => Some(error),
        }
    }
}

/// As everywhere, what callers keep is not shown.
struct Length<'a>(&'a [u8]);

impl fmt::Display for Length<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Debug for Length<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
