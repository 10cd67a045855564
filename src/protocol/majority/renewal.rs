//! What came of one renewal of one grant, in one call.

use super::trail::Trail;
use super::{Seen, quorum};
use crate::protocol::broken::Broken;
use crate::protocol::observer::Judgement;
use crate::types::{Expect, Grant, StepDown, View};

/// The answers to one renewal, by member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    token: u64,
    grant: Grant,
    replies: Vec<Heard>,
    /// A wish that the holder finish, of which a member has told.
    wish: Option<StepDown>,
}

/// What one member said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Heard {
    Waiting,
    Accepted,
    /// It carries another grant, or none.
    Lacks(Box<View>),
    /// It carries this grant with a higher version: a body came late.
    Behind(Box<View>),
    Unknown,
}

/// What a renewal comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Renewed {
    /// A majority has accepted it in this call.
    Accepted,
    /// A majority does not carry the grant any more; this tells why.
    Lost(View),
    /// No majority, and a member carries a newer version.
    Behind(View),
    /// No majority, and nobody knows.
    Failed,
    /// It depends on those who have not answered.
    Open,
}

impl Renewal {
    /// A renewal that is sent to all members now.
    pub fn new(token: u64, grant: Grant, members: usize) -> Self {
        Self { token, grant, replies: vec![Heard::Waiting; members], wish: None }
    }

    /// A member has accepted it.
    pub fn accepted(&mut self, member: usize, trail: &mut Trail) {
        self.replies[member] = Heard::Accepted;
        trail.renewed(member);
    }

    /// What a member that has accepted it tells of a wish. One member is enough, and it counts for this grant only.
    pub fn asked(&mut self, wish: Option<StepDown>) {
        let mine = |wish: &StepDown| wish.token == self.token || Broken::MajorityWishForAnyGrant.on();
        let wish = wish.filter(mine);
        if wish.is_some() || Broken::MajorityWishOfTheLastAnswer.on() {
            self.wish = wish;
        }
    }

    /// The wish, if any member has told of one.
    pub fn wish(&self) -> Option<&StepDown> {
        self.wish.as_ref()
    }

    /// A member has refused it and shown this.
    pub fn refused(&mut self, member: usize, view: &View) {
        let view = Box::new(view.clone());
        self.replies[member] = match view.grant() == Some(self.grant) {
            true => Heard::Behind(view),
            // What cannot be read says nothing of the grant.
            false if matches!(view.standing, crate::types::Standing::Unreadable(_)) => Heard::Unknown,
            false => Heard::Lacks(view),
        };
    }

    /// Nothing is known of a member, or it does not count.
    pub fn unknown(&mut self, member: usize) {
        self.replies[member] = Heard::Unknown;
    }

    /// A member that lacked the grant has been joined again. It never counts in this call: what the member now carries
    /// has version 1, so that an older renewal that comes late is accepted over it, with the older end of its term.
    pub fn rejoined(&mut self, member: usize) {
        if Broken::MajorityRejoinCounts.on() {
            self.replies[member] = Heard::Accepted;
        }
    }

    /// Whether a member has not answered yet.
    pub fn waits_for(&self, member: usize) -> bool {
        self.replies[member] == Heard::Waiting
    }

    /// What it comes to.
    pub fn result(&self, trail: &Trail) -> Renewed {
        let members = self.replies.len();
        let counted = |member: &usize| self.replies[*member] == Heard::Accepted || trail.counts_anyway(*member);
        let accepted = (0..members).filter(counted).count();
        let needed = if Broken::MajorityRenewalOnMinority.on() { 1 } else { quorum(members) };
        let waiting = self.replies.iter().filter(|heard| **heard == Heard::Waiting).count();
        let lacking = self.replies.iter().filter(|heard| matches!(heard, Heard::Lacks(_))).count();
        match accepted {
            _ if accepted >= needed => Renewed::Accepted,
            _ if lacking >= quorum(members) => self.lost(),
            _ if waiting > 0 && accepted + waiting >= needed => Renewed::Open,
            _ if waiting > 0 && lacking + waiting >= quorum(members) => Renewed::Open,
            _ => self.behind().map_or(Renewed::Failed, Renewed::Behind),
        }
    }

    /// Under which expectation a member that lacks the grant may be joined again, by what its observer says.
    ///
    /// Where its token is not below the grant's it stays out until the next grant.
    pub fn rejoin(&self, member: usize, seen: &Seen, trail: &Trail) -> Option<Expect> {
        let lacks = matches!(self.replies[member], Heard::Lacks(_));
        let below = seen.view.token() < self.token;
        let lost = matches!(self.result(trail), Renewed::Lost(_));
        match &seen.judgement {
            Judgement::Claimable(expect) if lacks && below && !lost && trail.is_held() => Some(expect.clone()),
            _ => None,
        }
    }

    /// What tells best how it was lost: the highest token.
    fn lost(&self) -> Renewed {
        let lacking = self.replies.iter().filter_map(|heard| match heard {
            Heard::Lacks(view) => Some(view),
            _ => None,
        });
        let telling = lacking.max_by_key(|view| (view.token(), view.record.is_some()));
        Renewed::Lost(telling.map_or_else(View::absent, |view| View::clone(view)))
    }

    fn behind(&self) -> Option<View> {
        let views = self.replies.iter().filter_map(|heard| match heard {
            Heard::Behind(view) => Some(view),
            _ => None,
        });
        let newest = views.max_by_key(|view| view.record.as_ref().and_then(|record| record.version));
        newest.map(|view| View::clone(view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Record;

    const MINE: Grant = Grant::from_bits(9);

    fn view(token: u64, grant: Option<u128>) -> View {
        let grant = grant.map(Grant::from_bits);
        View::of(Record { token, grant, version: Some(1), ttl_ms: Some(10), ..Record::new() })
    }

    fn held() -> Trail {
        let mut trail = Trail::new(3);
        trail.grant();
        trail
    }

    #[test]
    fn a_renewal_counts_when_a_majority_accepted_it_in_this_call() {
        let (mut trail, mut renewal) = (held(), Renewal::new(5, MINE, 3));
        renewal.accepted(0, &mut trail);
        assert_eq!(renewal.result(&trail), Renewed::Open);
        renewal.unknown(1);
        renewal.rejoined(2);
        assert_eq!(renewal.result(&trail), Renewed::Open);
        renewal.unknown(2);
        assert_eq!(renewal.result(&trail), Renewed::Failed);
        let mut next = Renewal::new(5, MINE, 3);
        next.accepted(1, &mut trail);
        next.unknown(0);
        next.unknown(2);
        assert_eq!(next.result(&trail), Renewed::Failed, "an acceptance of another call does not count");
    }

    #[test]
    fn a_wish_is_heard_from_one_member_and_for_its_own_grant_only() {
        let wish = |token| Some(StepDown { token, grace_ms: 1, by: None });
        let mut renewal = Renewal::new(5, MINE, 3);
        renewal.asked(wish(4));
        assert_eq!(renewal.wish(), None);
        renewal.asked(wish(5));
        renewal.asked(None);
        assert_eq!(renewal.wish(), wish(5).as_ref());
    }

    #[test]
    fn a_grant_that_a_majority_lacks_is_lost_to_the_highest_token() {
        let (trail, mut renewal) = (held(), Renewal::new(5, MINE, 3));
        renewal.refused(0, &view(4, None));
        assert_eq!(renewal.result(&trail), Renewed::Open);
        renewal.refused(1, &view(8, Some(1)));
        assert_eq!(renewal.result(&trail), Renewed::Lost(view(8, Some(1))));
    }

    #[test]
    fn a_member_with_a_lower_token_is_joined_again_and_one_with_another_stays_out() {
        let (mut trail, mut renewal) = (held(), Renewal::new(5, MINE, 3));
        renewal.accepted(0, &mut trail);
        renewal.refused(1, &view(4, None));
        let free = Seen::unwatched(view(4, None));
        assert_eq!(renewal.rejoin(1, &free, &trail), Some(Expect::Vacant));
        assert_eq!(renewal.rejoin(0, &free, &trail), None, "it does not lack it");
        for token in [5, 6] {
            assert_eq!(renewal.rejoin(1, &Seen::unwatched(view(token, None)), &trail), None);
        }
        assert_eq!(renewal.rejoin(1, &Seen::unwatched(view(4, Some(1))), &trail), None, "somebody holds it there");
        trail.burn();
        assert_eq!(renewal.rejoin(1, &free, &trail), None, "it was given up");
    }
}
