//! Looking at leases, and an operator's means against them. Nothing here can renew or release.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, Leases};
use crate::protocol::retry::{Retry, Tries};
use crate::types::{
    Ask, Asked, Data, Error, ErrorKind, ExpiryJudge, FencingToken, Grant, Label, Name, Operation, Page, Record, Revoke,
    Revoked, Stamp, Standing, StepDown, StoreError, Unreadable, View,
};

/// What is stored under a name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The lease's full name, prefix included.
    pub name: Name,
    /// How it stands.
    pub status: Status,
    /// The label of the holder, or of the last one.
    pub holder: Option<Label>,
    /// The token of the newest grant; `None` when it was never granted, or when no majority of the members of a
    /// [`MajorityStore`](crate::majority::MajorityStore) shows who holds it.
    pub token: Option<FencingToken>,
    /// The term.
    pub ttl: Option<Duration>,
    /// Whether an operator has revoked the grant.
    pub revoked: bool,
    /// A wish that the holder finish.
    pub asked: Option<StepDown>,
    /// The payload: what the holder publishes, or of a closed lease what its last holder has left.
    pub data: Option<Data>,
}

/// How a lease stands, as far as one look can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nobody holds it.
    Free,
    /// Held: its term is not over.
    Held,
    /// Held, and its term may be over: where clients judge and the store's time does not tell, only watching does.
    NotKnownToHaveExpired,
    /// Its term is over and nobody has taken it yet.
    Expired,
    /// Nobody holds it, and its last holder has closed it for a while. Where neither the store nor its time tells,
    /// that while may be over: only watching tells.
    Closed,
    /// It is not a record that this version may touch.
    Unreadable(Unreadable),
}

/// A listing under way; see [`Leases::list`].
#[derive(Debug)]
pub struct Inspections {
    client: Arc<Client>,
    prefix: String,
    found: std::vec::IntoIter<Inspection>,
    page: Option<Page>,
    begun: bool,
    skipped: usize,
}

impl Leases {
    /// Looks at one lease. What it says may be over by the time it is read.
    ///
    /// # Errors
    /// As of the store. A record that is not readable is no error: see [`Status::Unreadable`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, Error> {
        let client = &self.client;
        client.ready(Operation::Inspect)?;
        let name = client.name(name.as_ref())?;
        let sent = client.now();
        let answer = client.port.read(client.attempt(), name.clone()).await;
        let (view, _) = answer.map_err(|error| client.error(Operation::Inspect, Some(&name), error))?;
        Ok(client.inspection(name, view, &sent))
    }

    /// Looks at all leases of this client's prefix whose names go on with `prefix`, in no particular order.
    ///
    /// On a large table this is slow and costs what a scan costs; see the store's page.
    pub fn list(&self, prefix: impl AsRef<str>) -> Inspections {
        let client = Arc::clone(&self.client);
        let prefix = format!("{}{}", client.options.prefix, prefix.as_ref());
        Inspections { client, prefix, found: Vec::new().into_iter(), page: None, begun: false, skipped: 0 }
    }

    /// Ends the grant with that token: its holder's next renewal is refused, and others take over when its term is
    /// over, as after any death. With another token nothing happens.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when it is not held with that token. Else as of the store; it may be sent again.
    ///
    /// # Cancel safety
    /// Not known to be written then; call again.
    pub async fn revoke(&self, name: impl AsRef<str>, token: FencingToken) -> Result<(), Error> {
        self.end_grant(Operation::Revoke, name.as_ref(), token, false).await
    }

    /// Frees the lease at once although its holder may still believe in it: for one term two holders may believe,
    /// and only the fencing token keeps them apart. For emergencies.
    ///
    /// # Errors
    /// As [`Leases::revoke`].
    ///
    /// # Cancel safety
    /// As [`Leases::revoke`].
    pub async fn force(&self, name: impl AsRef<str>, token: FencingToken) -> Result<(), Error> {
        self.end_grant(Operation::Force, name.as_ref(), token, true).await
    }

    /// Asks the holder with that token to finish within `grace`. It sees it on its next renewal:
    /// [`Held::asked`](crate::Held::asked).
    ///
    /// On Azure Blob nobody but the holder can write to the record, so an ask is a revocation there: the holder learns on
    /// its next renewal that the lease is lost, and `grace` is the rest of its term.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when it is not held with that token. Else as of the store; it may be sent again.
    ///
    /// # Cancel safety
    /// Not known to be written then; call again.
    pub async fn ask(&self, name: impl AsRef<str>, token: FencingToken, grace: Duration) -> Result<(), Error> {
        let client = &self.client;
        client.ready(Operation::Ask)?;
        let name = client.name(name.as_ref())?;
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX).min(crate::types::MAX_TTL_MS);
        let step_down = StepDown { token: token.as_u64(), grace_ms, by: client.holder.clone() };
        let ask = Ask { name: name.clone(), step_down };
        let mut failed = None;
        let mut tries = Tries::default();
        loop {
            match client.port.ask(client.attempt(), ask.clone()).await {
                Ok((Asked::Asked, _)) => return Ok(()),
                // The lost answer was of an accepted copy, and the grant has ended by now.
                Ok((Asked::Refused(view), _)) if failed.is_some() && has_ended(&view, token) => return Ok(()),
                Ok((Asked::Refused(view), _)) => return Err(client.refused(Operation::Ask, &name, token, &view)),
                Err(error) if client.until_next_try(&mut tries, Retry::after(error.kind), &client.rules).await => {
                    failed = Some(error)
                }
                Err(error) => return Err(client.error(Operation::Ask, Some(&name), error)),
            }
        }
    }

    async fn end_grant(&self, op: Operation, name: &str, token: FencingToken, force: bool) -> Result<(), Error> {
        let client = &self.client;
        client.ready(op)?;
        let name = client.name(name)?;
        let fresh = Grant::from_bits(client.clock.random());
        let revoke = Revoke { name: name.clone(), token: token.as_u64(), fresh, force };
        let mut failed: Option<StoreError> = None;
        let mut tries = Tries::default();
        loop {
            match client.port.revoke(client.attempt(), revoke.clone()).await {
                Ok((Revoked::Revoked | Revoked::AlreadyRevoked, _)) => return Ok(()),
                // The lost answer was of an accepted copy, or its grant has ended otherwise by now.
                Ok((Revoked::Refused(view), _)) if failed.is_some() && has_ended(&view, token) => return Ok(()),
                Ok((Revoked::Refused(view), _)) => return Err(client.refused(op, &name, token, &view)),
                Err(error) if client.until_next_try(&mut tries, Retry::after(error.kind), &client.rules).await => {
                    failed = Some(error)
                }
                Err(error) => return Err(client.error(op, Some(&name), error)),
            }
        }
    }
}

impl Inspections {
    /// The next lease; `None` after the last one.
    ///
    /// # Errors
    /// As of the store. Calling again tries the same page again.
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn next(&mut self) -> Result<Option<Inspection>, Error> {
        loop {
            if let Some(found) = self.found.next() {
                return Ok(Some(found));
            }
            if self.begun && self.page.is_none() {
                return Ok(None);
            }
            let client = &self.client;
            client.ready(Operation::List)?;
            let sent = client.now();
            let answer = client.port.list(client.attempt(), self.prefix.clone(), self.page.clone()).await;
            let (page, _) = answer.map_err(|error| client.error(Operation::List, None, error))?;
            let found: Vec<_> =
                page.leases.into_iter().map(|listed| client.inspection(listed.name, listed.view, &sent)).collect();
            (self.begun, self.page, self.found) = (true, page.next, found.into_iter());
            self.skipped += page.skipped;
        }
    }

    /// All the rest.
    ///
    /// # Errors
    /// As [`Inspections::next`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn all(mut self) -> Result<Vec<Inspection>, Error> {
        let mut all = Vec::new();
        while let Some(found) = self.next().await? {
            all.push(found);
        }
        Ok(all)
    }

    /// How many items were skipped so far because they are not leases or not readable.
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

impl Client {
    /// `sent`: before the request was. An answer that was long on its way tells nothing of what came after it, so a term
    /// that ended meanwhile is not known to have ended: it may have been renewed.
    fn inspection(&self, name: Name, view: View, sent: &Stamp) -> Inspection {
        let status = self.status(&view, sent);
        let told = !is_untold(&view);
        let record = view.record.unwrap_or_default();
        Inspection {
            name,
            status,
            holder: record.holder,
            token: FencingToken::new(record.token).filter(|_| told),
            ttl: record.ttl_ms.map(Duration::from_millis),
            revoked: record.revoked,
            asked: record.asked.filter(|asked| asked.token == record.token),
            data: record.data,
        }
    }

    fn status(&self, view: &View, sent: &Stamp) -> Status {
        let record = view.record.as_ref();
        match &view.standing {
            Standing::Unreadable(reason) => Status::Unreadable(reason.clone()),
            Standing::Vacant => Status::Free,
            Standing::Expired(_) if record.is_some_and(|record| record.grant.is_none()) => Status::Free,
            Standing::Expired(_) => Status::Expired,
            Standing::Held(_) if is_untold(view) => Status::Held,
            Standing::Held(_) if record.is_some_and(|record| record.grant.is_none()) => self.closed(record, sent),
            Standing::Held(_) if self.description.judge == ExpiryJudge::Store => Status::Held,
            Standing::Held(_) => {
                record.map_or(Status::NotKnownToHaveExpired, |record| self.by_store_time(record, sent))
            }
        }
    }

    fn closed(&self, record: Option<&Record>, sent: &Stamp) -> Status {
        let clocks = &self.rules.clocks;
        let time = self.port.time().early(sent, clocks).filter(|_| self.rules.trusts_store_time);
        let until = record.and_then(|record| record.closed?.until_ms).map(|ms| clocks.units(ms));
        match (until, time) {
            (Some(until), Some(early)) if early > until => Status::Free,
            _ => Status::Closed,
        }
    }

    fn by_store_time(&self, record: &Record, sent: &Stamp) -> Status {
        let clocks = &self.rules.clocks;
        let time = self.port.time();
        let interval = time.interval(&self.now(), clocks).zip(time.early(sent, clocks));
        match (record.expires_at_ms.map(|ms| clocks.units(ms)), interval) {
            (Some(end), Some((_, early))) if early > end => Status::Expired,
            (Some(end), Some(((_, late), _))) if late <= end => Status::Held,
            _ => Status::NotKnownToHaveExpired,
        }
    }

    fn error(&self, operation: Operation, name: Option<&Name>, error: StoreError) -> Error {
        let error = Error::of_store(operation, self.description.kind, error);
        match name {
            Some(name) => error.for_name(name),
            None => error,
        }
    }

    fn refused(&self, operation: Operation, name: &Name, token: FencingToken, view: &View) -> Error {
        let why = match (&view.standing, &view.record) {
            (Standing::Unreadable(reason), _) => {
                let why = format!("the record is left alone: {reason}");
                return Error::new(ErrorKind::Unreadable, operation, why).for_name(name).on(self.description.kind);
            }
            (_, None) => format!("there is no such lease: nothing with token {token} to end"),
            (_, Some(record)) if record.grant.is_none() => "nobody holds it now".to_owned(),
            (_, Some(record)) => format!("it is held with token {}, not {token}: look again first", record.token),
        };
        Error::new(ErrorKind::Refused, operation, why).for_name(name).on(self.description.kind)
    }
}

/// Whether it may be held, and nobody can say by whom: no majority of several stores shows the same.
fn is_untold(view: &View) -> bool {
    let nobodys = |record: &Record| record.grant.is_none() && record.closed.is_none();
    matches!(view.standing, Standing::Held(_)) && view.record.as_ref().is_some_and(nobodys)
}

/// Whether the grant with that token was forced free, or others have come after it.
fn has_ended(view: &View, token: FencingToken) -> bool {
    let Some(record) = &view.record else { return false };
    let forced = record.grant.is_none() && record.revoked && record.token == token.as_u64();
    forced || record.token > token.as_u64()
}
