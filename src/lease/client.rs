//! The client: one store, one set of options, one keeper.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::acquire;
use super::builder::{LeasesBuilder, Options, Renewal, clocks};
use super::core::Core;
use super::debts::Debts;
use super::events::{Events, Teller};
use super::guard::Lease;
use super::keeper::Keeper;
use super::line::Lines;
use super::memory::Memory;
use super::port::Port;
use super::request::{Attempt, Request};
use super::stats::{Losses, Stats};
use crate::protocol::acquire::Dice;
use crate::protocol::hold::Loss;
use crate::protocol::retry::{Retry, Tries};
use crate::protocol::rules::Rules;
use crate::store::Store;
use crate::time::{self, Clock};
use crate::types::{Description, Error, ErrorKind, Grant, Handover, Label, Name, Operation, Stamp};

/// A client of one store. Clones are the same client.
///
/// All leases of a client are renewed by one keeper, and calls that wait for the same name queue in it first-in
/// first-out. Two clients are rivals, even with the same holder label.
#[derive(Clone)]
pub struct Leases {
    pub(super) client: Arc<Client>,
}

/// What all handles of a client share.
pub(super) struct Client {
    pub(super) description: Description,
    pub(super) options: Options,
    pub(super) rules: Arc<Rules>,
    pub(super) holder: Option<Label>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) port: Port,
    pub(super) lines: Lines,
    pub(super) debts: Debts,
    pub(super) keeper: Keeper,
    pub(super) teller: Teller,
    pub(super) losses: Losses,
    pub(super) memory: Memory,
    pub(super) calls: Calls,
    closed: AtomicBool,
}

impl Leases {
    /// Begins a client on a store: by value, as `Arc<S>` or as `Arc<dyn Store>`.
    pub fn builder(store: impl Store) -> LeasesBuilder {
        LeasesBuilder::new(Arc::new(store))
    }

    pub(super) fn new(client: Client) -> Self {
        Self { client: Arc::new(client) }
    }

    /// Waits until the lease is ours.
    ///
    /// Waiters of one client are served first-in first-out by one poller; between clients there is no order.
    ///
    /// # Errors
    /// Only what waiting cannot mend: [`ErrorKind::Invalid`], [`ErrorKind::Denied`], [`ErrorKind::Misconfigured`],
    /// [`ErrorKind::Unreadable`], [`ErrorKind::Closed`]. While the store is away it goes on trying.
    ///
    /// # Cancel safety
    /// Safe: a claim whose answer is not known is cleaned up in the background, or with [`Renewal::Manual`] by the
    /// next call or [`Leases::flush`].
    pub async fn acquire(&self, name: impl AsRef<str>) -> Result<Lease, Error> {
        self.request(name).acquire().await
    }

    /// Waits at most `limit`.
    ///
    /// # Errors
    /// As [`Leases::acquire`], and [`ErrorKind::TimedOut`], whose [`held_by`](Error::held_by) says who has it.
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`].
    pub async fn acquire_within(&self, name: impl AsRef<str>, limit: Duration) -> Result<Lease, Error> {
        self.request(name).acquire_within(limit).await
    }

    /// Tries once and never waits for a holder.
    ///
    /// A name that this client holds, or has waiters for, is answered without a request.
    ///
    /// # Errors
    /// As [`Leases::acquire`], and [`ErrorKind::Unavailable`] after three requests without an answer.
    ///
    /// # Cancel safety
    /// As [`Leases::acquire`].
    pub async fn try_acquire(&self, name: impl AsRef<str>) -> Result<Attempt, Error> {
        self.request(name).try_acquire().await
    }

    /// A request with options of its own.
    pub fn request(&self, name: impl AsRef<str>) -> Request {
        Request::new(Arc::clone(&self.client), name.as_ref())
    }

    /// Takes up a lease that another process has handed over, with a higher token.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the handed grant is not there any more: somebody has resumed it or taken over.
    /// [`ErrorKind::Invalid`] when it comes from another store. Else as [`Leases::try_acquire`].
    ///
    /// # Cancel safety
    /// Safe in that nothing stays locked, but the hand-over is used up if the claim was applied.
    pub async fn resume(&self, handover: Handover) -> Result<Lease, Error> {
        acquire::resume(&self.client, handover).await
    }

    /// Where the recipes get time and chance from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.client.clock
    }

    /// A waiter's pause between two looks, spread by chance.
    pub(crate) fn poll_pause(&self) -> Duration {
        Duration::from_nanos(self.client.rules.poll_pause(self.client.jitter()))
    }

    /// Whether leases of this client are renewed by somebody.
    pub(crate) fn renews(&self) -> bool {
        self.client.options.renewal != Renewal::Manual
    }

    /// The full name, as errors and events have it.
    pub(crate) fn full_name(&self, name: &str) -> Result<Name, Error> {
        self.client.name(name)
    }

    /// What happens to this client's leases from now on.
    pub fn events(&self) -> Events {
        self.client.teller.listen()
    }

    /// What this client has done and holds now.
    pub fn stats(&self) -> Stats {
        let client = &self.client;
        let left =
            client.lines.cores().iter().filter(|core| core.is_held()).map(|core| core.left()).collect::<Vec<_>>();
        Stats {
            held: left.len(),
            waiting: client.lines.waiting(),
            owed: client.debts.count(),
            lost: client.losses.counted(),
            requests: client.port.requests.counted(),
            failures: client.port.failures.counted(),
            smallest_remaining: left.into_iter().min(),
        }
    }

    /// Settles what cancelled acquires and dropped leases owe, and returns when nothing is owed any more: at the
    /// latest when the terms of the debts are over.
    ///
    /// # Cancel safety
    /// Safe: what is not settled stays owed.
    pub async fn flush(&self) {
        self.client.settle_all().await;
    }

    /// Ends the client: no new acquires, every lease released, every debt settled, within `deadline`.
    ///
    /// The work under the leases must have ended before.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with the names of the leases whose release was not answered. The others are
    /// released all the same.
    ///
    /// # Cancel safety
    /// Safe: what is not released then is released in the background or ends with its term.
    pub async fn shutdown(&self, deadline: Duration) -> Result<(), Error> {
        let client = &self.client;
        client.closed.store(true, Ordering::SeqCst);
        client.lines.wake_all();
        client.calls.closing.notify_waiters();
        let (begun, ran_out) = (client.now(), client.debts.ran_out());
        let left = || deadline.saturating_sub(Duration::from_nanos(client.now().steady_since(&begun)));
        // A call that is under way may still be granted: it gives back, or is seen among the leases after it.
        let calls = time::within(&*client.clock, deadline, client.calls.all_ended());
        let (calls_ended, mut failed) = join(calls, client.release_all(deadline)).await;
        failed.extend(client.release_all(left()).await);
        let settled = time::within(&*client.clock, left(), client.settle_all()).await;
        // A release that was not answered at first is owed, and may have been answered since.
        if calls_ended.is_some() && settled.is_some() && (failed.is_empty() || client.debts.ran_out() == ran_out) {
            return Ok(());
        }
        let names = failed.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let why = match failed.is_empty() {
            true if calls_ended.is_none() => "an acquire was still under way at the deadline; it gives back".to_owned(),
            true => "clean-ups were still owed at the deadline; they end with their terms".to_owned(),
            false => format!("the release of these leases was not answered: {names}; they end with their terms"),
        };
        Err(Error::new(ErrorKind::Unavailable, Operation::Shutdown, why).on(client.description.kind))
    }
}

impl Client {
    /// Releases all leases; gives the names of those whose release was not answered within `limit`.
    async fn release_all(&self, limit: Duration) -> BTreeSet<Name> {
        let releases = self.lines.cores().into_iter().map(|core| async move {
            let answered = time::within(&*self.clock, limit, core.release()).await.and_then(Result::ok);
            answered.is_none().then(|| core.name.clone())
        });
        let failed = stream::iter(releases).buffer_unordered(self.options.concurrency);
        failed.filter_map(|failed| async { failed }).collect().await
    }

    pub(super) fn new(
        store: Arc<dyn Store>,
        description: Description,
        options: Options,
        rules: Arc<Rules>,
        holder: Option<Label>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let store = match options.renewal {
            Renewal::Thread => store.isolated().unwrap_or(store),
            _ => store,
        };
        Self {
            port: Port::new(store, Arc::clone(&clock), clocks()),
            keeper: Keeper::new(options.renewal, options.concurrency),
            description,
            options,
            rules,
            holder,
            clock,
            lines: Lines::default(),
            debts: Debts::default(),
            teller: Teller::new(),
            losses: Losses::default(),
            memory: Memory::default(),
            calls: Calls::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> Stamp {
        self.clock.stamp()
    }

    pub(super) fn dice(&self) -> Dice {
        let (grant, more) = (self.clock.random(), self.clock.random());
        let digits = (more % 1000) as u16;
        let jitter = (more / 1000 % 1001) as u16;
        Dice { grant: Grant::from_bits(grant), digits, jitter }
    }

    pub(super) fn jitter(&self) -> u16 {
        (self.clock.random() % 1001) as u16
    }

    /// The time-out of one request.
    pub(super) fn attempt(&self) -> Duration {
        Duration::from_nanos(self.rules.attempt)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Sleeps, but not beyond the client's end.
    pub(super) async fn pause_while_open(&self, pause: Duration) {
        let closing = self.calls.closing.notified();
        tokio::pin!(closing);
        closing.as_mut().enable();
        if !self.is_closed() {
            tokio::select! {
                biased;
                () = closing => {}
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Waits until the next try of a call is due. `false`: there is to be none.
    pub(super) async fn until_next_try(&self, tries: &mut Tries, retry: Retry, rules: &Rules) -> bool {
        let pause = tries.failed(retry, rules, self.jitter());
        if let Some(pause) = pause.filter(|pause| *pause > 0) {
            self.clock.sleep(Duration::from_nanos(pause)).await;
        }
        pause.is_some()
    }

    /// Time-outs and pauses run on the caller's runtime, whoever renews.
    pub(super) fn ensure_runtime(&self, operation: Operation) -> Result<(), Error> {
        match Handle::try_current() {
            Ok(_) => Ok(()),
            Err(_) => {
                let why = "there is no tokio runtime here: call it inside one that has its time enabled";
                Err(Error::new(ErrorKind::Invalid, operation, why))
            }
        }
    }

    pub(super) fn ensure_open(&self, operation: Operation) -> Result<(), Error> {
        if self.is_closed() { Err(closed(operation)) } else { Ok(()) }
    }

    pub(super) fn name(&self, name: &str) -> Result<Name, Error> {
        Name::prefixed(&self.options.prefix, name)
    }

    /// Starts the keeper if there is to be one and none runs, or says why it cannot.
    pub(super) fn start_keeper(self: &Arc<Self>) -> Result<(), Error> {
        self.keeper.start(self)
    }

    /// In thread mode every call runs on the keeper's own runtime, so that no connection is driven by another.
    pub(super) fn ready(self: &Arc<Self>, op: Operation) -> Result<(), Error> {
        self.ensure_runtime(op)?;
        match self.options.renewal {
            Renewal::Thread => self.start_keeper(),
            _ => Ok(()),
        }
    }

    /// A live lease as this client knows it.
    pub(super) fn holds(self: &Arc<Self>, core: &Arc<Core>) {
        self.lines.holds(core);
        if core.background && !self.keeper.watch(self, core) {
            core.lose(Loss::KeeperGone);
        }
    }
}

pub(super) fn closed(operation: Operation) -> Error {
    Error::new(ErrorKind::Closed, operation, "the client was shut down: build a new one")
}

/// The acquires under way: the client's end waits for them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    under_way: AtomicUsize,
    ended: Notify,
    /// Told when the client is closed.
    closing: Notify,
}

impl Calls {
    pub(super) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.under_way.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.keeper.ring();
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("store", &self.client.description.kind)
            .field("prefix", &self.client.options.prefix)
            .field("holder", &self.client.holder)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.description.kind).finish_non_exhaustive()
    }
}
