//! A request for one lease with options of its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquire::{self, Spec};
use super::builder::{Options, Renewal};
use super::client::Client;
use super::guard::Lease;
use crate::types::{Data, Error, ErrorKind, HeldBy, MAX_DATA, Operation, View};

/// What came of a try.
#[derive(Debug)]
#[must_use = "an acquired lease is released when it is dropped"]
pub enum Attempt {
    /// It is ours.
    Acquired(Lease),
    /// Somebody else has it, or it is closed.
    Held(HeldBy),
}

impl Attempt {
    /// The lease, if it was acquired.
    pub fn acquired(self) -> Option<Lease> {
        match self {
            Self::Acquired(lease) => Some(lease),
            Self::Held(_) => None,
        }
    }
}

/// A request for one lease; see [`Leases::request`](crate::Leases::request).
#[derive(Clone)]
#[must_use = "a request does nothing until it is acquired"]
pub struct Request {
    client: Arc<Client>,
    name: String,
    ttl: Option<Duration>,
    margin: Option<Duration>,
    data: Option<Vec<u8>>,
    at_most: Option<Duration>,
    renewal: Option<Renewal>,
    look: Look,
}

impl Request {
    pub(super) fn new(client: Arc<Client>, name: &str) -> Self {
        Self {
            client,
            name: name.to_owned(),
            ttl: None,
            margin: None,
            data: None,
            at_most: None,
            renewal: None,
            look: Look::default(),
        }
    }

    /// The term of this lease. Default: the client's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The margin of this lease. Default: the client's, or a tenth of the term and at least 1 s.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// A payload of at most 4 KiB that is stored with the claim.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// The longest hold, counted from the call of an acquire: also the deadline of a function's invocation.
    ///
    /// The lease is Lost([`AtMost`](crate::LostReason::AtMost)) a margin before it, so that it can be released by
    /// then. If that release is lost, others wait out the term. Whenever it is released, or closed, that call returns
    /// by this moment, or half a second after it was begun if that is later: a store that has not answered by then is
    /// sent it again in the background, or by the client's next call.
    pub fn at_most(mut self, longest: Duration) -> Self {
        self.at_most = Some(longest);
        self
    }

    /// Who renews this lease: [`Renewal::Manual`], or the client's own mode. Default: the client's own mode.
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.renewal = Some(renewal);
        self
    }

    /// Looks before it claims: for tries that will hardly succeed, where a read is cheaper than a refused claim.
    pub(crate) fn reading_first(mut self) -> Self {
        self.look.first = true;
        self
    }

    /// Looks first, and claims nothing whose payload says no: a try is then answered [`Attempt::Held`].
    pub(crate) fn unless(mut self, says_no: impl Fn(Option<&Data>) -> bool + Send + Sync + 'static) -> Self {
        self.look = Look { first: true, says_no: Some(Arc::new(says_no)) };
        self
    }

    /// Waits until the lease is ours; see [`Leases::acquire`](crate::Leases::acquire).
    ///
    /// # Errors
    /// As there, [`ErrorKind::Invalid`] for options that do not fit, and with a longest hold
    /// [`ErrorKind::TimedOut`], because a lease that would have to be given up at once is not waited for.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn acquire(self) -> Result<Lease, Error> {
        let spec = self.checked()?;
        acquire::wait(&self.client, spec, None).await
    }

    /// Waits at most `limit`; see [`Leases::acquire_within`](crate::Leases::acquire_within).
    ///
    /// # Errors
    /// As there, and [`ErrorKind::Invalid`] for options that do not fit.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn acquire_within(self, limit: Duration) -> Result<Lease, Error> {
        let spec = self.checked()?;
        acquire::wait(&self.client, spec, Some(limit)).await
    }

    /// Tries once; see [`Leases::try_acquire`](crate::Leases::try_acquire).
    ///
    /// # Errors
    /// As there, and [`ErrorKind::Invalid`] for options that do not fit.
    ///
    /// # Cancel safety
    /// As there.
    pub async fn try_acquire(self) -> Result<Attempt, Error> {
        let spec = self.checked()?;
        acquire::once(&self.client, spec).await
    }

    fn checked(&self) -> Result<Spec, Error> {
        let client = &self.client;
        let invalid = |why: String| Error::new(ErrorKind::Invalid, Operation::Acquire, why);
        let data = match &self.data {
            None => None,
            Some(bytes) => Some(Data::new(bytes).ok_or_else(|| {
                invalid(format!("a payload has at most {MAX_DATA} bytes, this one has {}", bytes.len()))
            })?),
        };
        let renewal = self.renewal.unwrap_or(client.options.renewal);
        if renewal != client.options.renewal && renewal != Renewal::Manual {
            let why = "a request can choose manual renewal or the client's own mode: choose others for the client";
            return Err(invalid(why.to_owned()));
        }
        let rules = match (self.ttl, self.margin) {
            (None, None) if renewal == client.options.renewal => Arc::clone(&client.rules),
            _ => {
                let ttl = self.ttl.unwrap_or(client.options.ttl);
                let margin = self.margin.or(client.options.margin);
                let options = Options { ttl, margin, renewal, ..client.options.clone() };
                options.rules(&client.description).map_err(|error| error.during(Operation::Acquire))?
            }
        };
        let margin = Duration::from_nanos(rules.margin);
        if self.at_most.is_some_and(|longest| longest <= margin) {
            return Err(invalid(format!("at_most has to be longer than the margin of {margin:?}: nothing was sent")));
        }
        let name = client.name(&self.name)?;
        Ok(Spec {
            name,
            rules,
            data,
            at_most: self.at_most,
            background: renewal != Renewal::Manual,
            look: self.look.clone(),
        })
    }
}

/// What is looked at before a claim.
#[derive(Clone, Default)]
pub(super) struct Look {
    pub(super) first: bool,
    says_no: Option<Arc<SaysNo>>,
}

type SaysNo = dyn Fn(Option<&Data>) -> bool + Send + Sync;

impl Look {
    pub(super) fn may_say_no(&self) -> bool {
        self.says_no.is_some()
    }

    /// Whether what was seen is not to be claimed.
    pub(super) fn says_no(&self, seen: Option<&View>) -> bool {
        let Some(says_no) = &self.says_no else { return false };
        says_no(seen.and_then(|view| view.record.as_ref()?.data.as_ref()))
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Look").field("first", &self.first).finish_non_exhaustive()
    }
}

/// Without the payload: as everywhere, only its length is shown.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("name", &self.name)
            .field("ttl", &self.ttl)
            .field("margin", &self.margin)
            .field("data", &self.data.as_ref().map(|data| format!("{} bytes", data.len())))
            .field("at_most", &self.at_most)
            .field("renewal", &self.renewal)
            .finish_non_exhaustive()
    }
}
