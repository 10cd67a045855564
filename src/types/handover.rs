//! A held lease on its way to another process.

use std::fmt;

use super::{Data, FencingToken, Grant, Name};

/// A held lease on its way to another process: whoever resumes it first gets the lease with a higher token.
///
/// It is a secret, because it names the grant. Its `Debug` hides it, and it is not `Clone`. With the feature
/// `serde` it can be serialised, in a versioned form.
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(try_from = "wire::Wire"))]
pub struct Handover {
    pub(crate) store: String,
    pub(crate) name: Name,
    pub(crate) token: FencingToken,
    pub(crate) grant: Grant,
    pub(crate) data: Option<Data>,
}

impl Handover {
    /// The lease's full name, prefix included.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The token of the lease that was handed over; the one who resumes it gets a higher one.
    pub fn token(&self) -> FencingToken {
        self.token
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").field("name", &self.name).field("token", &self.token).finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
mod wire {
    use super::{Data, FencingToken, Grant, Handover, Name};

    const FORMAT: u32 = 1;

    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct Wire {
        format: u32,
        store: String,
        name: String,
        token: FencingToken,
        grant: String,
        data: Option<Vec<u8>>,
    }

    impl serde::Serialize for Handover {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let wire = Wire {
                format: FORMAT,
                store: self.store.clone(),
                name: self.name.as_str().to_owned(),
                token: self.token,
                grant: self.grant.to_text(),
                data: self.data.as_ref().map(|data| data.as_bytes().to_vec()),
            };
            wire.serialize(serializer)
        }
    }

    impl TryFrom<Wire> for Handover {
        type Error = String;

        fn try_from(wire: Wire) -> Result<Self, String> {
            if wire.format != FORMAT {
                return Err(format!("a hand-over of format {} is not known to this version", wire.format));
            }
            let data = match wire.data {
                Some(bytes) => Some(Data::new(&bytes).ok_or("the payload of a hand-over has at most 4096 bytes")?),
                None => None,
            };
            Ok(Handover {
                store: wire.store,
                name: Name::new(&wire.name).map_err(|error| error.to_string())?,
                token: wire.token,
                grant: Grant::parse(&wire.grant).ok_or("the hand-over is damaged: it names no grant")?,
                data,
            })
        }
    }
}
