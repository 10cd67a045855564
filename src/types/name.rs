//! Names of leases and labels of holders.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::{Error, ErrorKind, Operation};

/// The name of a lease: 1 to 256 bytes of UTF-8 without control characters.
///
/// Two names are the same lease only if they are equal byte for byte. Every store encodes a name so that
/// this stays true there, and so that names with a common prefix keep it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The longest name in bytes, prefix included.
    pub const MAX_BYTES: usize = 256;

    /// Checks and keeps a name.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is empty, longer than 256 bytes, or has a control character.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        Self::checked(name.as_ref()).map_err(|why| Error::new(ErrorKind::Invalid, Operation::Name, why))
    }

    /// The name with the client's prefix before it.
    pub(crate) fn prefixed(prefix: &str, name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Self::new(name);
        }
        Self::new(format!("{prefix}{name}"))
    }

    fn checked(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Err("a lease name must not be empty: give it 1 to 256 bytes".into());
        }
        if name.len() > Self::MAX_BYTES {
            return Err(format!("a lease name has at most 256 bytes with its prefix, this one has {}", name.len()));
        }
        if name.chars().any(char::is_control) {
            return Err("a lease name must not contain control characters".into());
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A label for people: who holds a lease, or who asks for it. At most 128 bytes, kept exactly.
///
/// It is never compared: two clients with the same label are rivals like any others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// The longest label in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Checks and keeps a label.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is longer than 128 bytes.
    pub fn new(label: impl AsRef<str>) -> Result<Self, Error> {
        let label = label.as_ref();
        if label.len() > Self::MAX_BYTES {
            let why = format!("a holder label has at most 128 bytes, this one has {}", label.len());
            return Err(Error::new(ErrorKind::Invalid, Operation::Name, why));
        }
        Ok(Self(label.into()))
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Control characters are shown escaped: a label may come from another machine, and goes into logs.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_default())?,
                false => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_and_say_why() {
        for (name, word) in [("", "empty"), ("a\nb", "control"), (&"x".repeat(257), "256")] {
            let error = Name::new(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(Name::new("x".repeat(256)).is_ok());
    }

    #[test]
    fn the_prefix_counts_towards_the_length_and_does_not_hide_an_empty_name() {
        assert!(Name::prefixed("jobs/", &"x".repeat(252)).is_err());
        assert!(Name::prefixed("jobs/", "").is_err());
        assert_eq!(Name::prefixed("jobs/", "a").unwrap().as_str(), "jobs/a");
    }
}
