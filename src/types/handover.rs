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

#[cfg(all(test, feature = "serde", feature = "__proptest"))]
mod hostile {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const FIELDS: [&str; 6] = ["format", "store", "name", "token", "grant", "data"];

    fn handover() -> impl Strategy<Value = Handover> {
        let data = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
        let parts = (".{0,40}", "[^\\p{Cc}]{1,40}", 1..=FencingToken::MAX, any::<u128>(), data);
        parts.prop_map(|(store, name, token, grant, data)| Handover {
            store,
            name: Name::new(name).expect("short, and without control characters"),
            token: FencingToken::new(token).expect("within the range"),
            grant: Grant::from_bits(grant),
            data: data.and_then(|bytes| Data::new(&bytes)),
        })
    }

    fn nonsense() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (0..3u64).prop_map(Value::from),
            ".{0,300}".prop_map(Value::from),
            "[0-9A-Fa-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".prop_map(Value::from),
            proptest::collection::vec(any::<u8>(), 0..5000).prop_map(Value::from),
            proptest::collection::vec(-2..300i64, 0..4).prop_map(Value::from),
        ]
    }

    fn parts(handover: &Handover) -> (&str, &Name, FencingToken, Grant, &Option<Data>) {
        (&handover.store, &handover.name, handover.token, handover.grant, &handover.data)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn a_hand_over_survives_its_text(handover in handover()) {
            let text = serde_json::to_string(&handover).unwrap();
            let again: Handover = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parts(&again), parts(&handover));
        }

        #[test]
        fn a_damaged_hand_over_is_refused_or_one_that_could_have_been_sent(
            handover in handover(), field in proptest::sample::select(&FIELDS[..]), damage in proptest::option::of(nonsense()),
        ) {
            let mut text = serde_json::to_value(&handover).unwrap();
            match damage {
                Some(value) => text[field] = value,
                None => _ = text.as_object_mut().unwrap().remove(field),
            }
            let missing = text.get(field).is_none() && field != "data";
            let Ok(read) = serde_json::from_value::<Handover>(text.clone()) else { return Ok(()) };
            prop_assert!(!missing, "{} is missing", field);
            // What was read says again exactly what was there: nothing was rounded, cut or made up.
            text.as_object_mut().unwrap().entry("data").or_insert(Value::Null);
            prop_assert_eq!(serde_json::to_value(&read).unwrap(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            prop_assert!(serde_json::from_str::<Handover>(&text).is_err());
        }
    }
}
