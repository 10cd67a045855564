//! What happens to the leases of a client, as a stream.

use tokio::sync::broadcast;

use crate::types::{FencingToken, Lost, Name};

/// How many events a slow reader may fall behind before it misses some.
const BACKLOG: usize = 256;

/// Something that has happened to a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// It was acquired.
    Acquired {
        /// The lease.
        name: Name,
        /// Its token.
        token: FencingToken,
    },
    /// A renewal has failed or a clock has jumped. It is still ours; the deadline is ahead.
    Jeopardy {
        /// The lease.
        name: Name,
        /// Its token.
        token: FencingToken,
        /// What failed, if a renewal did.
        cause: Option<String>,
    },
    /// A renewal has succeeded after a failure.
    Recovered {
        /// The lease.
        name: Name,
        /// Its token.
        token: FencingToken,
    },
    /// It was lost.
    Lost(Lost),
    /// Its owner has released it: the store has answered, or the first try was not answered and it goes on in the
    /// background.
    Released {
        /// The lease.
        name: Name,
        /// Its token.
        token: FencingToken,
    },
    /// Its owner has handed it over to another process.
    HandedOver {
        /// The lease.
        name: Name,
        /// Its token.
        token: FencingToken,
    },
    /// This reader was more than 256 events behind and has missed so many.
    Missed(u64),
}

/// A stream of [`Event`]s, from the moment it was asked for.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// The next event; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Where events are told.
#[derive(Debug)]
pub(super) struct Teller(broadcast::Sender<Event>);

impl Teller {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }

    pub(super) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.0.receiver_count() > 0 {
            // It fails only if the last reader has just gone.
            let _ = self.0.send(event());
        }
    }

    pub(super) fn listen(&self) -> Events {
        Events(self.0.subscribe())
    }
}
