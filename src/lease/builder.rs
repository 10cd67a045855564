//! The options of a client, and whether they fit each other and the store.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, Leases};
use crate::protocol::rules::{Clocks, Rules};
use crate::store::Store;
use crate::time::{Clock, RHO_PERCENT, SystemClock};
use crate::types::{Description, Error, ErrorKind, ExpiryJudge, Label, Operation};

/// The default term.
const TTL: Duration = Duration::from_secs(30);
const SHORTEST_DEFAULT_MARGIN: Duration = Duration::from_secs(1);
const LONGEST_DEFAULT_POLL: Duration = Duration::from_secs(1);
const CONCURRENCY: usize = 64;
const TRIES: u8 = 3;
/// The longest time-out of one request, however long the term.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(10);

/// Who renews the leases of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Renewal {
    /// One task for all leases, on the runtime of the first acquire.
    #[default]
    Task,
    /// One thread of its own with its own runtime and connections: goes on while the caller's runtime is blocked.
    Thread,
    /// Nobody. The caller calls [`Lease::renew`](crate::Lease::renew); there is no task, thread or timer. For
    /// functions that are frozen between two calls.
    Manual,
}

/// How a client judges that a rival is dead, where the store does not judge it, and that a closed record opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Takeover {
    /// By the store's time in the record, or by watching it for a term.
    #[default]
    StoreTime,
    /// Only by watching it unchanged for a term. Needs no store time, and a fresh process must watch a whole term.
    ///
    /// Not for processes that may be frozen with all of their clocks, such as functions: no answer's date tells them of it.
    ObservedOnly,
}

/// Builds a client; see [`Leases::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until build() is called"]
pub struct LeasesBuilder {
    store: Arc<dyn Store>,
    options: Options,
    clock: Arc<dyn Clock>,
}

/// The options of a client.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) prefix: String,
    pub(super) holder: Option<String>,
    pub(super) ttl: Duration,
    pub(super) margin: Option<Duration>,
    pub(super) poll: Option<Duration>,
    pub(super) renewal: Renewal,
    pub(super) takeover: Takeover,
    pub(super) concurrency: usize,
}

impl LeasesBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let options = Options {
            prefix: String::new(),
            holder: None,
            ttl: TTL,
            margin: None,
            poll: None,
            renewal: Renewal::Task,
            takeover: Takeover::StoreTime,
            concurrency: CONCURRENCY,
        };
        Self { store, options, clock: Arc::new(SystemClock) }
    }

    /// Put before every name that this client is given, as it is: a separator is yours. Default: none. Counts towards
    /// the 256 bytes of a name. What names a lease elsewhere (errors, events, other clients) is the full name.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.options.prefix = prefix.into();
        self
    }

    /// A label for people, at most 128 bytes: who holds. Default: none. It is never compared.
    pub fn holder(mut self, holder: impl Into<String>) -> Self {
        self.options.holder = Some(holder.into());
        self
    }

    /// The term of a lease, 1 ms to one day and within the store's range, in whole milliseconds. Default: 30 s.
    ///
    /// A dead holder is replaced after about this time; a renewal is sent every third of it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// The time from the stop signal to the first moment that a rival may hold. Default: a tenth of the term, at
    /// least 1 s.
    ///
    /// It has to cover what lies between your last check and the effect of your write. At most about three tenths of
    /// the term, so that two renewals can fail before it; [`build`](Self::build) checks that.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.options.margin = Some(margin);
        self
    }

    /// The longest time between two reads of a waiter. Default: 1 s. Brought into 1 ms to a third of the term.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.options.poll = Some(poll);
        self
    }

    /// Who renews. Default: [`Renewal::Task`].
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.options.renewal = renewal;
        self
    }

    /// How a rival is judged dead. Default: [`Takeover::StoreTime`].
    pub fn takeover(mut self, takeover: Takeover) -> Self {
        self.options.takeover = takeover;
        self
    }

    /// How many renewals and clean-ups may be under way at once, at least 1. Default: 64. One clean-up is always
    /// let through.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.options.concurrency = concurrency;
        self
    }

    /// Where time and chance come from.
    #[cfg(any(test, feature = "testing"))]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks the options and builds the client. Sends nothing and starts nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the term is outside the store's range, when the term does not leave room for two
    /// renewals that fail before the margin, or for a bad prefix or label; the message says what to change.
    pub fn build(self) -> Result<Leases, Error> {
        let description = self.store.describe();
        let rules = self.options.rules(&description)?;
        let label = self.options.holder.as_deref().map(Label::new).transpose()?;
        if self.options.concurrency == 0 {
            return Err(invalid("concurrency must be at least 1"));
        }
        if self.options.prefix.chars().any(char::is_control) || self.options.prefix.len() >= 256 {
            return Err(invalid("a prefix has at most 255 bytes and no control characters"));
        }
        Ok(Leases::new(Client::new(self.store, description, self.options, rules, label, self.clock)))
    }
}

impl Options {
    /// The rules for a lease with these options on that store, if they fit.
    pub(super) fn rules(&self, store: &Description) -> Result<Arc<Rules>, Error> {
        self.check_ttl(store)?;
        if self.renewal == Renewal::Manual && store.goes_on {
            let why = format!(
                "with manual renewal nothing may go on after a call, and {} leaves its slowest requests behind in tasks: \
                 build it so that it waits for all of its members (MajorityStoreBuilder::wait_for_all)",
                store.kind
            );
            return Err(invalid(why));
        }
        let margin = self.margin.unwrap_or((self.ttl / 10).max(SHORTEST_DEFAULT_MARGIN));
        let poll = self.poll.unwrap_or(LONGEST_DEFAULT_POLL).min(self.ttl / 3).max(Duration::from_millis(1));
        let trusts_store_time = store.has_store_time && self.takeover == Takeover::StoreTime;
        let rules = Rules {
            clocks: clocks(),
            ttl: nanos(self.ttl),
            margin: nanos(margin),
            attempt: nanos((self.ttl / 6).min(LONGEST_ATTEMPT)),
            renew_every: nanos(self.ttl) / 3,
            poll: nanos(poll),
            use_store_time: trusts_store_time && store.judge == ExpiryJudge::Client,
            trusts_store_time,
            has_store_time: store.has_store_time,
            manual: self.renewal == Renewal::Manual,
            native: store.judge == ExpiryJudge::Store && store.grain >= Duration::from_secs(1),
            data_in_every_renewal: store.data_in_every_renewal,
            tries: TRIES,
        };
        if rules.renew_every + 2 * rules.attempt >= rules.term() {
            let most = rules.usable().saturating_sub(rules.renew_every + 2 * rules.attempt);
            return Err(invalid(format!(
                "a term of {:?} with a margin of {margin:?} leaves no room for a renewal and two failures: \
                 make the term longer, or the margin less than {:?}",
                self.ttl,
                Duration::from_millis(most / 1_000_000)
            )));
        }
        Ok(Arc::new(rules))
    }

    fn check_ttl(&self, store: &Description) -> Result<(), Error> {
        if !store.ttl.contains(&self.ttl) {
            let (least, most) = (store.ttl.start(), store.ttl.end());
            let why = format!("a term on {} is {least:?} to {most:?}, not {:?}", store.kind, self.ttl);
            return Err(invalid(why));
        }
        let grain = store.grain.as_nanos().max(1);
        if !self.ttl.as_nanos().is_multiple_of(grain) {
            let why = format!("a term on {} is a multiple of {:?}, not {:?}", store.kind, store.grain, self.ttl);
            return Err(invalid(why));
        }
        Ok(())
    }
}

/// What is assumed of clocks.
pub(super) fn clocks() -> Clocks {
    Clocks::of_machines(RHO_PERCENT)
}

/// A duration in the protocol's unit.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn invalid(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, Operation::Build, why)
}
