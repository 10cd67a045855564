//! Who leads, as a stream.

use std::time::Duration;

use super::step_down::holder;
use crate::lease::{Inspection, Leases, Status};
use crate::types::{Data, Error, FencingToken, Label, Stamp};

/// A leader, as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// Its token: higher than that of every leader before it.
    pub token: FencingToken,
    /// Its client's label.
    pub holder: Option<Label>,
    data: Option<Data>,
}

/// What an observer sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It leads, or publishes something new.
    Leader(Leader),
    /// Nobody is known to lead.
    Nobody,
}

/// A stream of who leads an election; see [`Election::observe`](super::Election::observe).
#[derive(Debug)]
pub struct Observer {
    leases: Leases,
    name: String,
    /// The highest token seen.
    highest: Option<FencingToken>,
    last: Option<Sight>,
    looked: Option<Stamp>,
    pause: Duration,
}

impl Leader {
    /// What it publishes about itself; empty if nothing.
    pub fn data(&self) -> &[u8] {
        self.data.as_ref().map_or(&[], Data::as_bytes)
    }
}

impl Observer {
    pub(super) fn new(leases: &Leases, name: &str) -> Self {
        let leases = leases.clone();
        Self { leases, name: name.to_owned(), highest: None, last: None, looked: None, pause: Duration::ZERO }
    }

    /// The next thing to see that differs from the last; the first call says what is there now.
    ///
    /// One read a poll, at most one poll apart. Terms that are shorter than a poll may be missed, and so may changes of what is
    /// published. A leader is never seen after a newer one: what it says is as of its read, and by the time that you act on
    /// it there may be another leader, so send the token along.
    ///
    /// On Azure Blob a claim leases the blob before it writes who it is: until then, what was last written is seen as if it
    /// led, of the leader before or of a claim that was given up.
    ///
    /// A dead leader is seen until its term is over; on a store without a time of its own (SQLite), and with
    /// [`Takeover::ObservedOnly`](crate::Takeover::ObservedOnly), until somebody has taken over. If the record is deleted or
    /// restored, a new leader with a lower token (SQLite and memory begin again at 1) is not seen: begin a new observer.
    ///
    /// It never ends. As a `Stream`: `futures_util::stream::unfold(observer, async |mut o| Some((o.next().await, o)))`.
    ///
    /// # Errors
    /// As of [`Leases::inspect`], also when the store is away for a moment; and
    /// [`ErrorKind::Unreadable`](crate::ErrorKind::Unreadable). Call again: it goes on, and keeps to its pace.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost, and the pace is kept, so it may stand in a `select!`.
    pub async fn next(&mut self) -> Result<Sight, Error> {
        loop {
            self.keep_pace().await;
            let seen = self.leases.inspect(&self.name).await;
            self.looked = Some(self.leases.clock().stamp());
            self.pause = self.leases.poll_pause();
            if let Some(news) = self.news(seen?)? {
                return Ok(news);
            }
        }
    }

    async fn keep_pace(&self) {
        let Some(looked) = &self.looked else { return };
        let clock = self.leases.clock();
        let since = Duration::from_nanos(clock.stamp().steady_since(looked));
        if let Some(left) = self.pause.checked_sub(since) {
            clock.sleep(left).await;
        }
    }

    fn news(&mut self, seen: Inspection) -> Result<Option<Sight>, Error> {
        if seen.token.is_none() && seen.status == Status::Held {
            return Ok(None); // Members of a majority differ: what one of them has alone was perhaps never granted.
        }
        let leads = holder(&seen)?;
        if seen.token < self.highest {
            return Ok(None); // The record was deleted or put back: what it shows is older than what was seen.
        }
        self.highest = seen.token;
        let sight = match leads {
            Some(token) => Sight::Leader(Leader { token, holder: seen.holder, data: seen.data }),
            None => Sight::Nobody,
        };
        if self.last.as_ref() == Some(&sight) {
            return Ok(None);
        }
        self.last = Some(sight.clone());
        Ok(Some(sight))
    }
}
