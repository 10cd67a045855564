//! Counting the answers to one claim, in one call.

use super::quorum;

/// What is known of one member's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Nothing was sent to it in this call.
    NotAsked,
    /// It was asked and has not answered yet.
    Waiting,
    /// It has accepted.
    Accepted,
    /// It has not, and no copy of the request can still arrive there.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// The answers of one call, by member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    replies: Vec<Reply>,
}

/// What a count says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A majority has accepted.
    Reached,
    /// None can any more.
    Missed,
    /// It depends on those who have not answered.
    Open,
}

impl Tally {
    /// Nobody was asked yet.
    pub fn new(members: usize) -> Self {
        Self { replies: vec![Reply::NotAsked; members] }
    }

    /// What is known of a member's answer now.
    pub fn hear(&mut self, member: usize, reply: Reply) {
        self.replies[member] = reply;
    }

    /// What is known of a member's answer.
    pub fn reply(&self, member: usize) -> Reply {
        self.replies[member]
    }

    /// How many have answered so.
    pub fn number(&self, reply: Reply) -> usize {
        self.replies.iter().filter(|known| **known == reply).count()
    }

    /// Whether a majority of the members has accepted; those that were not asked count as members.
    pub fn count(&self) -> Count {
        let needed = quorum(self.replies.len());
        let accepted = self.number(Reply::Accepted);
        match accepted + self.number(Reply::Waiting) {
            _ if accepted >= needed => Count::Reached,
            possible if possible < needed => Count::Missed,
            _ => Count::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(replies: &[Reply]) -> Count {
        Tally { replies: replies.to_vec() }.count()
    }

    #[test]
    fn a_majority_of_all_members_is_needed_and_not_of_those_who_answered() {
        use Reply::*;
        assert_eq!(tally(&[Accepted, Accepted, Waiting]), Count::Reached);
        assert_eq!(tally(&[Accepted, NotAsked, NotAsked]), Count::Missed);
        assert_eq!(tally(&[Accepted, Waiting, Refused]), Count::Open);
        assert_eq!(tally(&[Accepted, Unknown, Refused]), Count::Missed);
        assert_eq!(tally(&[Accepted, Accepted, Refused, Unknown, Waiting]), Count::Open);
        assert_eq!(tally(&[Accepted, Accepted, Accepted, Refused, Unknown]), Count::Reached);
    }
}
