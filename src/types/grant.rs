//! Grant ids.

use std::fmt;

/// The random id of one acquisition. Whoever knows it can renew or release the lease: it is a secret.
///
/// Written as a lower-case hyphenated UUID; its `Debug` shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant(u128);

impl Grant {
    /// A grant from its 128 bits.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its 128 bits.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Reads the form that [`Grant::to_text`] writes, and only that one.
    pub fn parse(text: &str) -> Option<Self> {
        let grant = Self(uuid::Uuid::try_parse(text).ok()?.as_u128());
        (grant.to_text() == text).then_some(grant)
    }

    /// The lower-case hyphenated form that stores keep. Do not log it.
    pub fn to_text(self) -> String {
        uuid::Uuid::from_u128(self.0).hyphenated().to_string()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grant(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_survives_its_text_and_other_spellings_are_refused() {
        let grant = Grant::from_bits(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(Grant::parse(&grant.to_text()), Some(grant));
        assert_eq!(Grant::parse(&grant.to_text().to_uppercase()), None);
        assert_eq!(Grant::parse("0123456789abcdef0123456789abcdef"), None);
    }

    #[test]
    fn debug_shows_no_grant() {
        assert_eq!(format!("{:?}", Grant::from_bits(77)), "Grant(..)");
    }
}
