//! Which payload of a grant is stored, which is on its way, and which the store will never take.

use super::broken::Broken;

/// The payloads of one grant, by their numbers in the order in which the caller has set them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Payload {
    newest: u32,
    accepted: u32,
    refused: u32,
}

impl Payload {
    /// A new one: every body carries it until one was accepted. Returns its number.
    pub fn set(&mut self) -> u32 {
        self.newest += 1;
        self.newest
    }

    /// Whether the next body carries one; `always`: members of a majority may have missed what others have accepted.
    pub fn is_carried(&self, always: bool) -> bool {
        (always && !Broken::MajorityPayloadUntilAccepted.on()) || self.is_new()
    }

    /// The number of the payload that a body carries, or of the one that it leaves as it is.
    pub fn of_body(&self, carried: bool) -> u32 {
        if carried { self.newest } else { self.accepted }
    }

    /// The number of the newest that is known to be stored.
    pub fn accepted(&self) -> u32 {
        self.accepted
    }

    /// A body with this one was accepted.
    pub fn accept(&mut self, number: u32) {
        self.accepted = self.accepted.max(number);
    }

    /// The number of the newest that the store will never take.
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// The store has said that it will never take this one: later bodies do without.
    pub fn refuse(&mut self, number: u32) {
        if number > self.accepted {
            self.refused = self.refused.max(number);
        }
    }

    /// Whether the next body has one to carry.
    pub fn is_new(&self) -> bool {
        self.newest > self.accepted.max(self.refused)
    }
}
