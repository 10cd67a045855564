//! What the answers to a release mean.

use super::broken::Broken;
use crate::types::{Applied, Vacated, View};

/// One release being sent, perhaps several times with the same body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Release {
    /// Whether it closes the record, so that an outcome hangs on it.
    closing: bool,
    /// Whether a copy of it may have been applied unseen.
    doubt: bool,
}

/// What an answer to a release means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// Done: the grant is over and, if it closes, the outcome is recorded.
    Done,
    /// Send the same body again.
    Again,
    /// A closing release whose grant was gone before: nothing was recorded.
    NotRecorded,
    /// A closing release of which nobody can say any more whether it was recorded.
    Unknown,
}

impl Release {
    /// A release; `closing` when it closes the record.
    pub fn new(closing: bool) -> Self {
        Self { closing, doubt: false }
    }

    /// The store has answered the release of the grant with this token.
    pub fn answered(&self, answer: &Vacated, token: u64) -> Released {
        match answer {
            Vacated::Vacated => Released::Done,
            // "Not mine" or "gone": whatever was, this grant holds nothing any more.
            Vacated::Refused(_) if !self.closing => Released::Done,
            Vacated::Refused(_) if Broken::ClosingNotMineIsSuccess.on() => Released::Done,
            Vacated::Refused(view) if recorded(view, token) => Released::Done,
            Vacated::Refused(_) if self.doubt => Released::Unknown,
            Vacated::Refused(_) => Released::NotRecorded,
        }
    }

    /// Whether no copy of it can have been accepted so far.
    pub fn is_beyond_doubt(&self) -> bool {
        !self.doubt
    }

    /// The store has not.
    pub fn failed(&mut self, applied: Applied) -> Released {
        self.doubt |= applied == Applied::Unknown;
        Released::Again
    }
}

/// Whether the record shows that the closing release of this token was accepted.
fn recorded(view: &View, token: u64) -> bool {
    let Some(record) = &view.record else { return false };
    if Broken::ClosingJudgedByToken.on() {
        return record.grant.is_none() && record.token == token;
    }
    record.grant.is_none() && record.closed.is_some_and(|closed| closed.by == Some(token))
}
