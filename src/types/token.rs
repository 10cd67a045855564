//! Fencing tokens.

use std::fmt;

/// A number that every grant of a lease gets, higher than that of any grant before it.
///
/// Send it with every write that the lease guards, and let the resource refuse a write whose token is lower
/// than the highest it has seen: then a holder that was paused past its term cannot undo its successor's work.
///
/// Tokens are 1 to 2^53 - 1, exact in JSON and JavaScript. They rise, but they are not consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "u64", into = "u64"))]
pub struct FencingToken(u64);

impl FencingToken {
    /// The highest token there can be.
    pub const MAX: u64 = (1 << 53) - 1;

    /// A token from its number, or `None` outside 1 to 2^53 - 1.
    pub fn new(number: u64) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// The token as a number.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The token as a signed number, for SQL columns and the like. Never negative.
    pub fn as_i64(self) -> i64 {
        // At most 2^53 - 1, so the cast keeps it.
        self.0 as i64
    }

    /// For numbers that a store has checked. One from a store that has not is brought into the range, so that what
    /// is documented of tokens stays true.
    pub(crate) fn of_checked(number: u64) -> Self {
        Self(number.clamp(1, Self::MAX))
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> u64 {
        token.0
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        Self::new(number).ok_or("a fencing token is 1 to 9007199254740991")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_outside_their_range_do_not_exist() {
        assert_eq!(FencingToken::new(0), None);
        assert_eq!(FencingToken::new(1 << 53), None);
        assert_eq!(FencingToken::new(FencingToken::MAX).map(FencingToken::as_i64), Some((1 << 53) - 1));
    }
}
