//! What the cases work with: bodies, calls, and the comparison of what is there with what should be.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub(super) use super::bodies::{ask, closed_by, data, force, freed, label, new_grant, record_of, renewal, revoke};
use super::facts::Facts;
use super::{Checked, Stop, ensure};
use crate::store::Store;
use crate::time::{Clock, SystemClock};
use crate::types::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Close, Data, Expect, MemberSet, Name, Record, Renew, Renewed, Revoke,
    Revoked, Standing, StoreError, StoreErrorKind, Timed, Vacate, Vacated, Version, View,
};

/// A store says "not applied, later": as a client would, the suite asks again so often.
const TRIES: u32 = 40;

/// A store, and names that are this case's own.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) space: String,
    pub(super) facts: Arc<Facts>,
}

/// A body of any verb.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Claim(&'a Claim),
    Renew(&'a Renew),
    Vacate(&'a Vacate),
    Revoke(&'a Revoke),
    Ask(&'a Ask),
}

/// What a store answers to a body of any verb.
#[derive(Debug)]
pub(super) enum Answered {
    Accepted,
    AlreadyRevoked,
    Refused(View),
}

impl Bench {
    pub(super) fn new(store: Arc<dyn Store>, space: String, facts: Arc<Facts>) -> Self {
        Self { store, space, facts }
    }

    pub(super) fn name(&self, tail: &str) -> Name {
        Name::new(format!("{}{tail}", self.space)).expect("the suite's own names are good")
    }

    /// A claim of a vacant record for a long term, with nothing but what it needs.
    pub(super) fn claim(&self, tail: &str, token: u64) -> Claim {
        Claim {
            name: self.name(tail),
            token,
            grant: new_grant(),
            ttl_ms: self.facts.long_ms,
            expires_at_ms: None,
            holder: None,
            data: None,
            set: None,
            expect: Expect::Vacant,
        }
    }

    /// A claim with a label, a payload and, where the store keeps one, an end.
    pub(super) fn full_claim(&self, tail: &str, token: u64) -> Claim {
        Claim {
            holder: label("somebody"),
            data: data(b"payload"),
            expires_at_ms: self.term_end(1),
            ..self.claim(tail, token)
        }
    }

    /// A claim whose term can be waited for where the store judges that it is over.
    pub(super) fn mortal(&self, claim: Claim) -> Claim {
        Claim { ttl_ms: if self.facts.judges() { self.facts.short_ms } else { claim.ttl_ms }, ..claim }
    }

    /// Closed for so long that it can be waited for where the store judges that it is over.
    pub(super) fn mortal_close(&self, data: Option<Data>) -> Close {
        let for_ms = if self.facts.judges() { self.facts.short_ms } else { self.facts.long_ms };
        Close { for_ms, until_ms: self.moment(2), data }
    }

    /// Closed for longer than a case runs.
    pub(super) fn close(&self, data: Option<Data>) -> Close {
        Close { for_ms: self.facts.long_ms, until_ms: self.moment(2), data }
    }

    /// A moment of the store's clock in some years, if the store keeps such.
    pub(super) fn moment(&self, number: u64) -> Option<u64> {
        self.facts.keeps_moments.then_some(1_900_000_000_000 + number)
    }

    /// A member list, if the store keeps one that it is given.
    pub(super) fn set(&self, hash: u64) -> Option<MemberSet> {
        self.facts.keeps_sets.then_some(MemberSet(hash))
    }

    /// The same for the end of a term, if the store keeps that.
    pub(super) fn term_end(&self, number: u64) -> Option<u64> {
        self.moment(number).filter(|_| self.facts.keeps_ends)
    }

    /// What an accepted ask leaves of a held record.
    pub(super) fn asked(&self, held: &Record, body: &Ask) -> Record {
        match self.facts.has_native_leases() {
            true => Record { revoked: true, ..held.clone() },
            false => Record { asked: Some(body.step_down.clone()), ..held.clone() },
        }
    }

    pub(super) fn release_of(&self, claim: &Claim) -> Vacate {
        let now_ms = self.facts.about.has_store_time.then(|| SystemClock.stamp().real / 1_000_000);
        let (name, token, grant) = (claim.name.clone(), claim.token, claim.grant);
        Vacate { name, token, grant, burn: false, close: None, now_ms }
    }

    pub(super) fn burn_of(&self, claim: &Claim) -> Vacate {
        Vacate { burn: true, ..self.release_of(claim) }
    }

    pub(super) async fn sleep_ms(&self, ms: u64) {
        SystemClock.sleep(Duration::from_millis(ms)).await;
    }

    /// Claims, which must be granted. Does not look at what is there then.
    pub(super) async fn granted(&self, claim: &Claim) -> Result<Record, Stop> {
        match self.send(claim).await? {
            Answered::Accepted => Ok(record_of(claim)),
            other => failed(format!("a claim with token {} was answered {other:?}", claim.token)),
        }
    }

    /// The body must be accepted and leave this record.
    pub(super) async fn accepts<'a>(&self, body: impl Into<Body<'a>>, leaves: &Record) -> Checked {
        let body = body.into();
        match self.send(body).await? {
            Answered::Accepted => self.shows_after(body, "accepted", Some(leaves)).await,
            other => failed(format!("{} should be accepted and was answered {other:?}", body.words())),
        }
    }

    /// The body must be refused with a view of what is there, and change nothing.
    pub(super) async fn refuses<'a>(&self, body: impl Into<Body<'a>>, there: Option<&Record>) -> Checked {
        let body = body.into();
        match self.send(body).await? {
            Answered::Refused(view) => {
                let what = format!("the answer to {} that was refused", body.words());
                self.compare(&what, &view, there)?;
                self.shows_after(body, "refused", there).await
            }
            other => failed(format!("{} should be refused and was answered {other:?}", body.words())),
        }
    }

    /// A read must show exactly this.
    pub(super) async fn shows(&self, name: &Name, there: Option<&Record>) -> Checked {
        self.compare("a read", &self.read(name).await?, there)
    }

    pub(super) async fn read(&self, name: &Name) -> Result<View, Stop> {
        Ok(self.call("read", || self.store.read(name)).await?.value)
    }

    /// What a takeover expects, once the store or, where its clients judge, nobody objects to one.
    pub(super) async fn dead(&self, name: &Name) -> Result<Expect, Stop> {
        loop {
            let View { standing, record } = self.read(name).await?;
            // A service that keeps the lease itself knows nothing of a closing.
            let free = record.is_some_and(|record| record.grant.is_none());
            let native = self.facts.has_native_leases();
            match standing {
                Standing::Expired(version) => return Ok(Expect::Expired(version)),
                Standing::Held(version) if !self.facts.judges() || (native && free) => {
                    return Ok(Expect::Expired(version));
                }
                Standing::Held(_) => self.sleep_ms(self.facts.short_ms / 10 + 1).await,
                Standing::Vacant if native && free => return Ok(Expect::Vacant),
                other => return failed(format!("a held or closed record is shown as {other:?}")),
            }
        }
    }

    pub(super) async fn send<'a>(&self, body: impl Into<Body<'a>>) -> Result<Answered, Stop> {
        Ok(self.send_timed(body).await?.value)
    }

    pub(super) async fn send_timed<'a>(&self, body: impl Into<Body<'a>>) -> Result<Timed<Answered>, Stop> {
        let store = &self.store;
        Ok(match body.into() {
            Body::Claim(claim) => self.call("claim", || store.claim(claim)).await?.map(Answered::from),
            Body::Renew(renew) => self.call("renew", || renew_one(store, renew)).await?.map(Answered::from),
            Body::Vacate(vacate) => self.call("vacate", || store.vacate(vacate)).await?.map(Answered::from),
            Body::Revoke(revoke) => self.call("revoke", || store.revoke(revoke)).await?.map(Answered::from),
            Body::Ask(ask) => self.call("ask", || store.ask(ask)).await?.map(Answered::from),
        })
    }

    /// Calls the store, again while it says "not applied, later".
    pub(super) async fn call<T, F>(&self, verb: &str, mut send: impl FnMut() -> F + Send) -> Result<Timed<T>, Stop>
    where
        F: Future<Output = Answer<T>> + Send,
    {
        let mut tries = 0;
        loop {
            match send().await {
                Ok(answer) => return Ok(answer),
                Err(error) if tries < TRIES && may_pass(&error) => tries += 1,
                Err(error) => return failed(format!("{verb} had no answer: {error} ({:?})", error.applied)),
            }
            self.sleep_ms(10 + u64::from(tries) * 5).await;
        }
    }

    /// Compares a view with the record that must be there.
    pub(super) fn compare(&self, what: &str, view: &View, there: Option<&Record>) -> Checked {
        let differences = match (there, &view.record) {
            (None, None) => Vec::new(),
            (Some(expected), Some(found)) => self.differences(expected, found),
            (expected, found) => vec![format!("{found:?} where {expected:?} should be")],
        };
        ensure!(differences.is_empty(), "{what} shows {}", differences.join("; "));
        let standing = &view.standing;
        ensure!(self.stands(standing, there), "{what} shows it as {standing:?}, of {there:?}");
        Ok(())
    }

    async fn shows_after(&self, body: Body<'_>, what: &str, there: Option<&Record>) -> Checked {
        let name = body.name();
        self.compare(&format!("a read after {} was {what}", body.words()), &self.read(name).await?, there)
    }

    fn differences(&self, expected: &Record, found: &Record) -> Vec<String> {
        let mut all = Vec::new();
        let mut field = |name: &str, same: bool, expected: &dyn Debug, found: &dyn Debug| {
            if !same {
                all.push(format!("{name} {found:?} where {expected:?} should be"));
            }
        };
        macro_rules! fields {
            ($($name:ident)*) => {
                $(field(stringify!($name), expected.$name == found.$name, &expected.$name, &found.$name);)*
            };
        }
        fields!(token holder ttl_ms expires_at_ms closed revoked asked set data);
        let version = expected.version == found.version || !self.facts.names_writes;
        field("version", version, &expected.version, &found.version);
        // A grant is a secret, so only its presence is told.
        let other = if found.grant.is_some() { "another grant" } else { "no grant" };
        let wanted = if expected.grant.is_some() { "a certain one" } else { "none" };
        let broken = self.facts.has_native_leases() && expected.revoked && expected.grant.is_some();
        let same = expected.grant == found.grant || (broken && found.grant.is_some());
        field("grant", same, &wanted, &other);
        all
    }

    fn stands(&self, standing: &Standing, there: Option<&Record>) -> bool {
        let Some(record) = there else { return *standing == Standing::Vacant };
        if record.grant.is_none() && record.closed.is_none() {
            return *standing == Standing::Vacant;
        }
        let named = |version: &Version| match version.as_write() {
            Some(_) => *version == Version::of(record),
            None => !self.facts.names_writes,
        };
        match standing {
            Standing::Held(version) => named(version),
            Standing::Expired(version) => self.facts.judges() && self.may_be_over(record) && named(version),
            _ => false,
        }
    }

    fn may_be_over(&self, record: &Record) -> bool {
        let term = if record.grant.is_some() { record.ttl_ms } else { record.closed.and_then(|closed| closed.for_ms) };
        term == Some(self.facts.short_ms)
    }
}

pub(super) fn failed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(why.into()))
}

pub(super) async fn renew_one(store: &Arc<dyn Store>, renew: &Renew) -> Answer<Renewed> {
    let mut answers = store.renew(std::slice::from_ref(renew)).await;
    match (answers.pop(), answers.len()) {
        (Some(answer), 0) => answer,
        _ => {
            let text = "one renewal was not answered exactly once";
            Err(StoreError::new(StoreErrorKind::Invalid, Applied::Unknown, text))
        }
    }
}

pub(super) fn may_pass(error: &StoreError) -> bool {
    error.applied == Applied::No && error.kind.is_transient()
}

impl Body<'_> {
    fn name(&self) -> &Name {
        match self {
            Self::Claim(claim) => &claim.name,
            Self::Renew(renew) => &renew.name,
            Self::Vacate(vacate) => &vacate.name,
            Self::Revoke(revoke) => &revoke.name,
            Self::Ask(ask) => &ask.name,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Claim(claim) => {
                let expect = match claim.expect {
                    Expect::Vacant => "vacant",
                    Expect::Expired(_) => "a certain write",
                    Expect::Handed(_) => "a handed grant",
                };
                format!("a claim with token {} that expects {expect}", claim.token)
            }
            Self::Renew(renew) => format!("a renewal with version {}", renew.version),
            Self::Vacate(vacate) => {
                let closing = if vacate.close.is_some() { "closing " } else { "" };
                let act = if vacate.burn { "burn" } else { "release" };
                format!("a {closing}{act} with token {}", vacate.token)
            }
            Self::Revoke(revoke) if revoke.force => format!("a force of token {}", revoke.token),
            Self::Revoke(revoke) => format!("a revoke of token {}", revoke.token),
            Self::Ask(ask) => format!("an ask of token {}", ask.step_down.token),
        }
    }
}

macro_rules! any_verb {
    ($($body:ident => $answer:ident { $accepted:pat => Accepted $(, $already:pat => AlreadyRevoked)? })*) => {
        $(
            impl<'a> From<&'a $body> for Body<'a> {
                fn from(body: &'a $body) -> Self {
                    Self::$body(body)
                }
            }
            impl From<$answer> for Answered {
                fn from(answer: $answer) -> Self {
                    match answer {
                        $accepted => Self::Accepted,
                        $($already => Self::AlreadyRevoked,)?
                        $answer::Refused(view) => Self::Refused(view),
                    }
                }
            }
        )*
    };
}
any_verb! {
    Claim => Claimed { Claimed::Granted => Accepted }
    Renew => Renewed { Renewed::Renewed(_) => Accepted }
    Vacate => Vacated { Vacated::Vacated => Accepted }
    Revoke => Revoked { Revoked::Revoked => Accepted, Revoked::AlreadyRevoked => AlreadyRevoked }
    Ask => Asked { Asked::Asked => Accepted }
}
