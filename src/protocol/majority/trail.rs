//! Where one grant has left claims, and whether any may still be sent.

use crate::protocol::broken::Broken;

/// One grant, as far as the members may carry it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trail {
    members: Vec<Copies>,
    granted: bool,
    burnt: bool,
    /// Members that have accepted any renewal: only for a rule that is broken on purpose.
    ever: Vec<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Copies {
    /// How many copies of a claim were sent and not answered definitely.
    open: u8,
    /// Whether one was accepted.
    accepted: bool,
}

impl Trail {
    /// A grant of which nothing was sent.
    pub fn new(members: usize) -> Self {
        Self { members: vec![Copies::default(); members], granted: false, burnt: false, ever: vec![false; members] }
    }

    /// A claim of it, a rejoin too, is about to leave for this member. False: it must not.
    ///
    /// After the first burn the grant is never claimed or rejoined again.
    pub fn send_claim(&mut self, member: usize) -> bool {
        if self.burnt {
            return false;
        }
        let copies = &mut self.members[member];
        copies.open = copies.open.saturating_add(1);
        true
    }

    /// One copy of a claim was answered "accepted".
    pub fn claim_accepted(&mut self, member: usize) {
        let copies = &mut self.members[member];
        copies.open = copies.open.saturating_sub(1);
        copies.accepted = true;
    }

    /// One copy of a claim was definitely refused. Of one without an answer nothing is known, and nothing is called.
    pub fn claim_refused(&mut self, member: usize) {
        let copies = &mut self.members[member];
        copies.open = copies.open.saturating_sub(1);
    }

    /// A majority has accepted it.
    pub fn grant(&mut self) {
        self.granted = true;
    }

    /// Whether it was granted and may still be renewed and rejoined.
    pub fn is_held(&self) -> bool {
        self.granted && !self.burnt
    }

    /// Whether it has come to an end.
    pub fn is_burnt(&self) -> bool {
        self.burnt
    }

    /// From now on it is given up. Where a burn has to go: to every member to which a claim of it was sent that was
    /// not definitely refused.
    pub fn burn(&mut self) -> Vec<usize> {
        self.burnt = true;
        (0..self.members.len()).filter(|member| self.may_carry(*member)).collect()
    }

    /// The same, where an outcome is left: it goes to all members, and as a burn, so that no late copy of a claim is
    /// accepted after it.
    pub fn close(&mut self) -> (Vec<usize>, bool) {
        self.burnt = true;
        ((0..self.members.len()).collect(), !Broken::MajorityClosingWithoutBurn.on())
    }

    /// Where to clean up right after a grant: nowhere. A claim without an answer may be the one that counts later.
    pub fn clean_up_after_grant(&self) -> Vec<usize> {
        if !Broken::MajorityCleanUpWhileHeld.on() {
            return Vec::new();
        }
        (0..self.members.len()).filter(|member| self.may_carry(*member) && self.members[*member].open > 0).collect()
    }

    /// A member has accepted a renewal. Whether it counts in a call in which it did not.
    pub(super) fn renewed(&mut self, member: usize) {
        if Broken::MajorityCountsOverCalls.on() {
            self.ever[member] = true;
        }
    }

    pub(super) fn counts_anyway(&self, member: usize) -> bool {
        Broken::MajorityCountsOverCalls.on() && self.ever[member]
    }

    fn may_carry(&self, member: usize) -> bool {
        let copies = &self.members[member];
        copies.accepted || copies.open > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burn_goes_where_a_claim_was_sent_and_not_definitely_refused() {
        let mut trail = Trail::new(5);
        assert!((0..4).all(|member| trail.send_claim(member)));
        trail.claim_accepted(0);
        trail.claim_refused(1);
        // A second copy is refused while nothing is known of the first.
        assert!(trail.send_claim(3));
        trail.claim_refused(3);
        assert_eq!(trail.burn(), [0, 2, 3]);
    }

    #[test]
    fn after_the_first_burn_nothing_of_the_grant_may_be_sent() {
        let mut trail = Trail::new(3);
        assert!(trail.send_claim(0));
        trail.claim_accepted(0);
        trail.grant();
        assert!(trail.is_held());
        trail.burn();
        assert!(!trail.is_held() && !trail.send_claim(1));
    }

    #[test]
    fn an_outcome_goes_to_all_members_and_after_a_grant_nothing_is_cleaned_up() {
        let mut trail = Trail::new(3);
        assert!(trail.send_claim(0) && trail.send_claim(1));
        trail.claim_accepted(0);
        assert_eq!(trail.clean_up_after_grant(), [0; 0]);
        assert_eq!(trail.close(), (vec![0, 1, 2], true));
    }
}
