//! What came of a release, a clean-up, a closing, a revocation or an ask that was sent to several members.

use super::shown::{as_shown, merged};
use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::types::{Standing, View};

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A release: done when a majority is certainly without the grant.
    Release,
    /// The clean-up of a claim with this token: settled when no late copy can be accepted at any member.
    CleanUp(u64),
    /// A closing release of the grant with this token: done when a majority has recorded it.
    Close(u64),
    /// A revocation or an ask: done when a majority has accepted it.
    Vote,
}

/// The answers, by member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ending {
    kind: Kind,
    replies: Vec<Heard>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Heard {
    /// Nothing was sent: the member certainly does not carry the grant.
    NotAsked,
    Waiting,
    Accepted,
    Refused(Box<View>),
    Unknown,
}

/// What it comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It has happened.
    Accepted,
    /// It has not, and will not; this is what is there.
    Refused(View),
    /// Nobody knows.
    Unknown,
    /// It depends on those who have not answered.
    Open,
}

impl Ending {
    /// It is sent to these of so many members now.
    pub fn new(kind: Kind, members: usize, to: &[usize]) -> Self {
        let mut replies = vec![Heard::NotAsked; members];
        to.iter().for_each(|member| replies[*member] = Heard::Waiting);
        Self { kind, replies }
    }

    /// A member has accepted it.
    pub fn accepted(&mut self, member: usize) {
        self.replies[member] = Heard::Accepted;
    }

    /// A member has refused it and shown this.
    pub fn refused(&mut self, member: usize, view: View) {
        self.replies[member] = Heard::Refused(Box::new(view));
    }

    /// Nothing is known of a member.
    pub fn unknown(&mut self, member: usize) {
        self.replies[member] = Heard::Unknown;
    }

    /// Whether a member has not answered yet.
    pub fn waits_for(&self, member: usize) -> bool {
        self.replies[member] == Heard::Waiting
    }

    /// What it comes to.
    pub fn result(&self) -> Ended {
        match self.kind {
            Kind::Release => self.released(),
            Kind::CleanUp(token) => self.cleaned_up(token),
            Kind::Close(token) => self.closed(token),
            Kind::Vote => self.voted(),
        }
    }

    /// Whether no copy of a claim that is cleaned up can be accepted any more.
    pub fn is_settled(&self) -> bool {
        let Kind::CleanUp(token) = self.kind else { return false };
        let open = self.number(&Heard::Waiting) + self.number(&Heard::Unknown);
        open == 0 && self.refusals().all(|view| is_shut_to(view, token))
    }

    fn released(&self) -> Ended {
        let answered = self.replies.len() - self.number(&Heard::Waiting) - self.number(&Heard::Unknown);
        let accepted = self.number(&Heard::Accepted) > 0 || self.asked_nobody();
        match answered >= self.quorum() {
            true if self.refusals().count() >= self.quorum() => Ended::Refused(self.shown()),
            true if accepted => Ended::Accepted,
            _ if self.number(&Heard::Waiting) > 0 => Ended::Open,
            true => Ended::Refused(self.shown()),
            false => Ended::Unknown,
        }
    }

    fn cleaned_up(&self, token: u64) -> Ended {
        if self.number(&Heard::Waiting) > 0 {
            return Ended::Open;
        }
        if self.number(&Heard::Unknown) > 0 {
            return Ended::Unknown;
        }
        // A late copy of the claim could still be accepted there.
        let open = self.refusals().find(|view| !is_shut_to(view, token));
        if let Some(view) = open {
            return Ended::Refused(as_shown(view.clone()));
        }
        let (accepted, shown) = (self.number(&Heard::Accepted), self.shown());
        match accepted > self.refusals().count() || self.asked_nobody() {
            false if accepted == 0 || shown.token() >= token => Ended::Refused(shown),
            _ => Ended::Accepted,
        }
    }

    fn closed(&self, token: u64) -> Ended {
        let accepted = self.number(&Heard::Accepted);
        let shown = self.refusals().filter(|view| is_recorded(view, token)).count();
        let others = self.refusals().count() - shown;
        if Broken::MajorityClosingOkOnAnswers.on() && accepted + shown + others >= self.quorum() {
            return Ended::Accepted;
        }
        match accepted + shown >= self.quorum() {
            true if accepted > 0 => Ended::Accepted,
            _ if self.number(&Heard::Waiting) > 0 => Ended::Open,
            true => Ended::Refused(self.shown()),
            false if accepted + shown == 0 && others >= self.quorum() => Ended::Refused(self.shown()),
            false => Ended::Unknown,
        }
    }

    fn voted(&self) -> Ended {
        let needed = if Broken::MajorityVoteOnMinority.on() { 1 } else { self.quorum() };
        match self.number(&Heard::Accepted) >= needed {
            true => Ended::Accepted,
            false if self.refusals().count() >= self.quorum() => Ended::Refused(self.shown()),
            false if self.number(&Heard::Waiting) > 0 => Ended::Open,
            false => Ended::Unknown,
        }
    }

    fn quorum(&self) -> usize {
        quorum(self.replies.len())
    }

    fn asked_nobody(&self) -> bool {
        self.number(&Heard::NotAsked) == self.replies.len()
    }

    /// How many have accepted it.
    pub fn number_accepted(&self) -> usize {
        self.number(&Heard::Accepted)
    }

    fn number(&self, of: &Heard) -> usize {
        self.replies.iter().filter(|heard| *heard == of).count()
    }

    fn refusals(&self) -> impl Iterator<Item = &View> {
        self.replies.iter().filter_map(|heard| match heard {
            Heard::Refused(view) => Some(&**view),
            _ => None,
        })
    }

    fn shown(&self) -> View {
        let seen = self.replies.iter().map(|heard| match heard {
            Heard::Refused(view) => Some(Seen::unwatched(View::clone(view))),
            _ => None,
        });
        merged(&seen.collect::<Vec<_>>())
    }
}

/// Whether no claim with this token can be accepted there any more.
fn is_shut_to(view: &View, token: u64) -> bool {
    view.token() >= token || matches!(view.standing, Standing::Unreadable(_))
}

/// Whether a member shows that the closing release of this token was accepted there.
fn is_recorded(view: &View, token: u64) -> bool {
    let Some(record) = &view.record else { return false };
    record.grant.is_none() && record.closed.is_some_and(|closed| closed.by == Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Closed, Grant, Record};

    fn free(token: u64) -> View {
        View::of(Record { token, ..Record::new() })
    }

    fn closed_by(token: u64) -> View {
        let closed = Some(Closed { for_ms: Some(1), until_ms: None, by: Some(token) });
        View::of(Record { token, closed, ..Record::new() })
    }

    fn held(token: u64) -> View {
        View::of(Record { token, grant: Some(Grant::from_bits(1)), ttl_ms: Some(1), ..Record::new() })
    }

    #[test]
    fn a_release_is_done_when_a_majority_answered() {
        let mut ending = Ending::new(Kind::Release, 3, &[0, 1, 2]);
        ending.accepted(0);
        assert_eq!(ending.result(), Ended::Open);
        ending.refused(1, held(9));
        assert_eq!(ending.result(), Ended::Accepted);
        let mut ending = Ending::new(Kind::Release, 3, &[0, 1, 2]);
        ending.accepted(0);
        ending.unknown(1);
        ending.unknown(2);
        assert_eq!(ending.result(), Ended::Unknown);
    }

    #[test]
    fn a_clean_up_is_settled_when_every_member_that_was_asked_is_shut_to_the_claim() {
        let mut ending = Ending::new(Kind::CleanUp(5), 3, &[0, 1]);
        ending.accepted(0);
        ending.unknown(1);
        assert_eq!(ending.result(), Ended::Unknown);
        ending.refused(1, held(3));
        assert_eq!(ending.result(), Ended::Refused(held(3)), "the claim could be accepted after that holder");
        assert!(!ending.is_settled());
        ending.refused(1, held(6));
        assert!(ending.is_settled() && matches!(ending.result(), Ended::Refused(view) if view.token() == 6));
        assert_eq!(Ending::new(Kind::CleanUp(5), 3, &[]).result(), Ended::Accepted);
    }

    #[test]
    fn a_closing_is_done_when_a_majority_has_recorded_it_and_not_when_it_has_answered() {
        let mut ending = Ending::new(Kind::Close(5), 3, &[0, 1, 2]);
        ending.accepted(0);
        ending.refused(1, held(9));
        ending.refused(2, free(5));
        assert_eq!(ending.result(), Ended::Unknown);
        ending.refused(2, closed_by(5));
        assert_eq!(ending.result(), Ended::Accepted);
        ending.refused(0, held(9));
        ending.refused(2, free(9));
        assert!(matches!(ending.result(), Ended::Refused(_)), "nowhere recorded");
    }

    #[test]
    fn a_revocation_needs_a_majority_of_acceptances() {
        let mut ending = Ending::new(Kind::Vote, 3, &[0, 1, 2]);
        ending.accepted(0);
        ending.refused(1, free(5));
        assert_eq!(ending.result(), Ended::Open);
        ending.unknown(2);
        assert_eq!(ending.result(), Ended::Unknown);
        ending.accepted(2);
        assert_eq!(ending.result(), Ended::Accepted);
    }
}
