//! What must hold of closing releases: an outcome is kept for as long as it was asked for, and told as it went.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::{Data, Ended, Error, Grant, Name, Vacate, Vacated, Written};

use super::checks::Checks;

/// The closing releases of a run.
#[derive(Debug, Default)]
pub struct Closings {
    /// By how much a freeze that no clock has seen may shorten a closing.
    pub unseen: Duration,
    sent: BTreeMap<Grant, Closing>,
    /// Whose closing each record carries now.
    pub carried: BTreeMap<Name, Grant>,
}

#[derive(Debug)]
struct Closing {
    name: Name,
    token: u64,
    data: Option<Data>,
    /// Nobody may claim before.
    opens: Duration,
    recorded: Option<Duration>,
    /// Whether its owner was told that it is recorded.
    told: bool,
    /// Whether the newest answer to it showed that it is.
    shown: bool,
}

/// What the owner of a lease was told of its closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Recorded,
    NotRecorded,
    NotKnown,
}

impl Told {
    pub fn of(done: &Result<Ended, Error>) -> Self {
        match done {
            Ok(Ended::Released) => Self::Recorded,
            Ok(_) => Self::NotRecorded,
            Err(error) => Self::by(error),
        }
    }

    pub fn by(error: &Error) -> Self {
        match error.written() {
            Written::No => Self::NotRecorded,
            Written::Unknown => Self::NotKnown,
        }
    }
}

impl Closing {
    fn is_kept_beside(&self, other: &Closing) -> bool {
        let begins_in = |one: &Closing, other: &Closing| {
            one.recorded.is_some_and(|at| other.recorded.is_some_and(|begun| begun <= at) && at < other.opens)
        };
        self.name == other.name && (begins_in(self, other) || begins_in(other, self))
    }
}

impl Checks {
    /// A copy of it leaves its client. Its time counts from the first.
    pub fn closing_sent(&mut self, vacate: &Vacate) {
        let Some(close) = &vacate.close else { return };
        let opens = (self.now + Duration::from_millis(close.for_ms)).saturating_sub(self.closings.unseen);
        self.closings.sent.entry(vacate.grant).or_insert_with(|| Closing {
            name: vacate.name.clone(),
            token: vacate.token,
            data: close.data.clone(),
            opens,
            recorded: None,
            told: false,
            shown: false,
        });
    }

    /// Its client has the store's answer.
    pub fn closing_answered(&mut self, vacate: &Vacate, answer: &Vacated) {
        let Some(closing) = self.closings.sent.get_mut(&vacate.grant).filter(|_| vacate.close.is_some()) else {
            return;
        };
        closing.shown = match answer {
            Vacated::Vacated => true,
            Vacated::Refused(view) => view.record.as_ref().is_some_and(|record| {
                record.grant.is_none() && record.closed.is_some_and(|closed| closed.by == Some(vacate.token))
            }),
        };
    }

    /// Whether the release of this token has closed the record.
    pub fn has_closed(&self, name: &Name, token: u64) -> bool {
        let closing = self.grant_of(name, token).and_then(|grant| self.closings.sent.get(&grant));
        closing.is_some_and(|closing| closing.recorded.is_some())
    }

    /// Any write to a record, which is closed by the grant with this token now, or by none.
    pub fn closing_written(&mut self, name: &Name, by: Option<u64>, data: Option<&Data>) {
        let now = self.now;
        if let Some(grant) = self.closings.carried.get(name).copied()
            && let Some(kept) = self.closings.sent.get(&grant)
            && (by != Some(kept.token) || data != kept.data.as_ref())
        {
            let (token, early) = (kept.token, kept.opens.saturating_sub(now));
            self.closings.carried.remove(name);
            match early.is_zero() {
                true => self.counts.one_more("closed records opened"),
                false => self.fail(format!("{name}: what {token} has left is gone {early:?} before its time")),
            }
        }
        let Some(grant) = by.and_then(|token| self.grant_of(name, token)) else { return };
        let Some(closing) = self.closings.sent.get_mut(&grant) else { return };
        closing.recorded.get_or_insert(now);
        let (token, replaced) = (closing.token, closing.data.as_ref() == data);
        if self.closings.carried.insert(name.clone(), grant).is_none() {
            self.counts.one_more("records closed");
        }
        if !replaced {
            self.fail(format!("{name}: the closing of {token} has left another payload than its own"));
        }
    }

    /// Its owner was told what has become of it.
    pub fn closing_told(&mut self, name: &Name, token: u64, told: Told) {
        let grant = self.grant_of(name, token);
        let closing = grant.and_then(|grant| self.closings.sent.get_mut(&grant));
        let recorded = closing.as_ref().is_some_and(|closing| closing.recorded.is_some());
        let shown = closing.as_ref().is_some_and(|closing| closing.shown);
        if let Some(closing) = closing {
            closing.told |= told == Told::Recorded;
        }
        match told {
            Told::Recorded if !recorded => {
                self.fail(format!("{name}: the closing of {token} is told and not recorded"))
            }
            Told::NotRecorded if recorded => {
                self.fail(format!("{name}: the closing of {token} is recorded and denied"))
            }
            Told::NotKnown if shown => {
                self.fail(format!("{name}: the closing of {token} is said not to be known, and the record shows it"));
            }
            Told::NotKnown => self.counts.one_more("closings not known"),
            Told::Recorded | Told::NotRecorded => {}
        }
        let told = || self.closings.sent.values().filter(|closing| closing.told);
        let mine = told().find(|closing| closing.name == *name && closing.token == token);
        if let Some(mine) = mine
            && let Some(other) = told().find(|other| other.token != token && other.is_kept_beside(mine))
        {
            let other = other.token;
            self.fail(format!("{name}: two outcomes are remembered at once, of {token} and {other}"));
        }
    }

    /// A repeat was told that this is what was remembered.
    pub fn outcome_told(&mut self, name: &Name, value: &[u8]) {
        let ends_so = |closing: &&Closing| closing.data.as_ref().is_some_and(|data| data.as_bytes().ends_with(value));
        let recorded = |closing: &&Closing| closing.name == *name && closing.recorded.is_some();
        if !self.closings.sent.values().filter(recorded).any(|closing| ends_so(&closing)) {
            self.fail(format!("{name}: an outcome is told that nobody has left: {value:?}"));
        }
        self.counts.one_more("outcomes told again");
    }
}
