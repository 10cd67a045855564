//! What to say when too few members have answered.

use super::Team;
use crate::protocol::majority::quorum;
use crate::types::{Applied, Name, StoreError, StoreErrorKind};

/// The name of the record that marks a store as a member.
pub(super) const RESERVED: &str = "leasehold-majority-incarnation";

/// Why members have not answered.
#[derive(Default)]
pub(super) struct Failures(Vec<(usize, StoreError)>);

impl Failures {
    pub(super) fn add(&mut self, member: usize, error: StoreError) {
        self.0.push((member, error));
    }

    pub(super) fn number(&self) -> usize {
        self.0.len()
    }

    /// Whether the rest of so many members is no majority.
    pub(super) fn leave_no_majority(&self, size: usize) -> bool {
        size.saturating_sub(self.number()) < quorum(size)
    }

    /// The error of a call that has no answer because of them.
    pub(super) fn too_few(self, team: &Team, applied: Applied) -> StoreError {
        let size = team.size();
        let told = self.0.iter().map(|(member, error)| format!("{}: {error}", team.members[*member].about.identity));
        let told = match self.0.is_empty() {
            true => "the others have not answered in time".to_owned(),
            false => told.collect::<Vec<_>>().join("; "),
        };
        let message = format!("{} of {size} members are needed and fewer have answered: {told}", quorum(size));
        let applied =
            if self.0.iter().any(|(_, error)| error.applied == Applied::Unknown) { Applied::Unknown } else { applied };
        StoreError::new(self.kind(size), applied, message)
    }

    /// What does not pass by itself, if so many members say it that the rest is no majority.
    fn kind(&self, size: usize) -> StoreErrorKind {
        let lasting: Vec<_> = self.0.iter().map(|(_, error)| error.kind).filter(|kind| !kind.is_transient()).collect();
        let throttled = self.0.iter().any(|(_, error)| error.kind == StoreErrorKind::Throttled);
        match lasting.first() {
            Some(kind) if size - lasting.len() < quorum(size) => *kind,
            _ if throttled => StoreErrorKind::Throttled,
            _ => StoreErrorKind::Unavailable,
        }
    }
}

/// A request that must not be sent.
pub(super) fn invalid(why: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Applied::No, why)
}

pub(super) fn misconfigured(why: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, Applied::No, why)
}

/// Nobody's lease has the name of the mark.
pub(super) fn not_reserved(name: &Name) -> Result<(), StoreError> {
    match name.as_str() == RESERVED {
        true => Err(invalid(format!("the name {RESERVED} is the majority's own: choose another"))),
        false => Ok(()),
    }
}
