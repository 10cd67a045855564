//! Reading a record out of an item. Whatever somebody has put into the table, this neither panics nor guesses.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::protocol::record::Stored;
use crate::types::{Closed, Data, FencingToken, Grant, Label, MAX_TTL_MS, MemberSet, Record, StepDown, Unreadable};

pub(super) type Item = HashMap<String, AttributeValue>;

/// What every attribute of ours starts with.
pub(super) const PREFIX: &str = "lh_";

const TOKENS: RangeInclusive<u64> = 0..=FencingToken::MAX;
const TERMS: RangeInclusive<u64> = 1..=MAX_TTL_MS;
const VERSIONS: RangeInclusive<u64> = 1..=u64::MAX;
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

/// What the item of a lease says; `None` is no item.
pub(super) fn stored(item: Option<&Item>) -> Stored {
    match item.map(record) {
        None => Stored::Absent,
        Some(Ok(record)) => Stored::Record(record),
        Some(Err(reason)) => Stored::Unreadable(reason),
    }
}

pub(super) fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn asked(step_down: &StepDown) -> AttributeValue {
    let mut map = HashMap::from([
        ("token".to_owned(), number(step_down.token)),
        ("grace_ms".to_owned(), number(step_down.grace_ms)),
    ]);
    if let Some(by) = &step_down.by {
        map.insert("by".to_owned(), AttributeValue::S(by.as_str().to_owned()));
    }
    AttributeValue::M(map)
}

fn record(item: &Item) -> Result<Record, Unreadable> {
    if !item.keys().any(|attribute| attribute.starts_with(PREFIX)) {
        return Err(Unreadable::Foreign);
    }
    let fields = Fields(item);
    if fields.number("format", &ANY) != Ok(Some(1)) {
        return Err(Unreadable::Format);
    }
    if fields.get("session").is_some() {
        return Err(Unreadable::Session);
    }
    let record = Record {
        token: fields.number("token", &TOKENS)?.ok_or(Unreadable::Field("token"))?,
        grant: fields.read("grant", |value| Grant::parse(value.as_s().ok()?))?,
        version: fields.number("version", &VERSIONS)?,
        holder: fields.read("holder", label)?,
        ttl_ms: fields.number("ttl_ms", &TERMS)?,
        expires_at_ms: fields.number("expires_at_ms", &ANY)?,
        closed: fields.closed()?,
        revoked: fields.read("revoked", |value| value.as_bool().ok().copied())?.unwrap_or(false),
        asked: fields.read("asked", step_down)?,
        set: fields.number("set", &ANY)?.map(MemberSet),
        data: fields.read("data", |value| Data::new(value.as_b().ok()?.as_ref()))?,
    };
    complete(record)
}

/// A free record may lack everything but format and token; a held one has a version and a term.
fn complete(record: Record) -> Result<Record, Unreadable> {
    match (record.grant, record.version, record.ttl_ms) {
        (Some(_), None, _) => Err(Unreadable::Field("version")),
        (Some(_), _, None) => Err(Unreadable::Field("ttl_ms")),
        _ => Ok(record),
    }
}

struct Fields<'a>(&'a Item);

impl Fields<'_> {
    fn get(&self, field: &str) -> Option<&AttributeValue> {
        self.0.get(&format!("{PREFIX}{field}"))
    }

    /// Absent is `None`; present and not understood is unreadable.
    fn read<T>(
        &self,
        field: &'static str,
        understand: impl FnOnce(&AttributeValue) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        let Some(value) = self.get(field) else { return Ok(None) };
        understand(value).map(Some).ok_or(Unreadable::Field(field))
    }

    fn number(&self, field: &'static str, range: &RangeInclusive<u64>) -> Result<Option<u64>, Unreadable> {
        self.read(field, |value| integer(value).filter(|number| range.contains(number)))
    }

    /// Closed means that either time is there.
    fn closed(&self) -> Result<Option<Closed>, Unreadable> {
        let for_ms = self.number("closed_ms", &ANY)?;
        let until_ms = self.number("closed_until_ms", &ANY)?;
        let by = self.number("closed_by", &ANY)?;
        Ok((for_ms.is_some() || until_ms.is_some()).then_some(Closed { for_ms, until_ms, by }))
    }
}

/// Only the form that DynamoDB gives integers: no sign, no fraction, no exponent, no leading zero.
pub(super) fn integer(value: &AttributeValue) -> Option<u64> {
    let text = value.as_n().ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == *text).then_some(number)
}

fn label(value: &AttributeValue) -> Option<Label> {
    Label::new(value.as_s().ok()?).ok()
}

fn step_down(value: &AttributeValue) -> Option<StepDown> {
    let map = value.as_m().ok()?;
    let token = integer(map.get("token")?).filter(|token| TOKENS.contains(token))?;
    let grace_ms = integer(map.get("grace_ms")?)?;
    let by = match map.get("by") {
        Some(by) => Some(label(by)?),
        None => None,
    };
    Some(StepDown { token, grace_ms, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(fields: &[(&str, AttributeValue)]) -> Item {
        fields.iter().map(|(field, value)| (format!("lh_{field}"), value.clone())).collect()
    }

    fn held() -> Item {
        let grant = Grant::from_bits(7).to_text();
        item(&[
            ("format", number(1)),
            ("token", number(5)),
            ("grant", AttributeValue::S(grant)),
            ("version", number(2)),
            ("ttl_ms", number(30_000)),
        ])
    }

    #[test]
    fn a_burnt_record_of_format_and_token_is_free() {
        let found = stored(Some(&item(&[("format", number(1)), ("token", number(9))])));
        assert_eq!(found, Stored::Record(Record { token: 9, ..Record::new() }));
    }

    #[test]
    fn unknown_further_fields_are_ignored() {
        let mut later = held();
        later.insert("lh_colour".into(), AttributeValue::S("red".into()));
        later.insert("theirs".into(), AttributeValue::Null(true));
        assert_eq!(stored(Some(&later)), stored(Some(&held())));
        assert!(matches!(stored(Some(&later)), Stored::Record(_)));
    }

    #[test]
    fn items_without_a_field_of_ours_are_foreign() {
        let theirs = HashMap::from([("pk".to_owned(), AttributeValue::S("job".into()))]);
        assert_eq!(stored(Some(&theirs)), Stored::Unreadable(Unreadable::Foreign));
    }

    #[test]
    fn each_broken_field_is_named() {
        let bad = |text: &str| AttributeValue::N(text.to_owned());
        let long = AttributeValue::S("x".repeat(129));
        let big = AttributeValue::B(vec![0; 4097].into());
        for (field, value) in [
            ("token", bad("-1")),
            ("token", bad("9007199254740992")),
            ("token", bad("99999999999999999999999999999999999999")),
            ("token", bad("1.5")),
            ("token", AttributeValue::S("5".into())),
            ("grant", AttributeValue::S("nobody".into())),
            ("version", bad("0")),
            ("ttl_ms", bad("0")),
            ("ttl_ms", bad("86400001")),
            ("holder", long),
            ("data", big),
            ("data", AttributeValue::S("text".into())),
            ("asked", AttributeValue::M(HashMap::new())),
            ("revoked", number(1)),
        ] {
            let mut broken = held();
            broken.insert(format!("lh_{field}"), value.clone());
            assert_eq!(stored(Some(&broken)), Stored::Unreadable(Unreadable::Field(field)), "{value:?}");
        }
    }

    #[test]
    fn a_held_record_without_version_term_or_token_is_unreadable() {
        for field in ["version", "ttl_ms", "token"] {
            let mut broken = held();
            broken.remove(&format!("lh_{field}"));
            assert_eq!(stored(Some(&broken)), Stored::Unreadable(Unreadable::Field(field)));
        }
    }

    #[test]
    fn other_formats_and_sessions_are_unreadable() {
        for format in [number(2), AttributeValue::S("1".into()), AttributeValue::N("1.0".into())] {
            let mut later = held();
            later.insert("lh_format".into(), format);
            assert_eq!(stored(Some(&later)), Stored::Unreadable(Unreadable::Format));
        }
        let mut carried = held();
        carried.insert("lh_session".into(), AttributeValue::Null(true));
        assert_eq!(stored(Some(&carried)), Stored::Unreadable(Unreadable::Session));
    }

    #[cfg(feature = "__proptest")]
    mod hostile {
        use proptest::prelude::*;

        use super::*;

        const FIELDS: [&str; 16] = [
            "lh_format",
            "lh_token",
            "lh_grant",
            "lh_version",
            "lh_holder",
            "lh_ttl_ms",
            "lh_expires_at_ms",
            "lh_closed_ms",
            "lh_closed_until_ms",
            "lh_closed_by",
            "lh_revoked",
            "lh_asked",
            "lh_set",
            "lh_data",
            "lh_session",
            "pk",
        ];

        fn value() -> impl Strategy<Value = AttributeValue> {
            let number = prop_oneof![
                "-?[0-9]{1,38}",
                "[0-9]{1,3}\\.[0-9]{1,3}",
                "[0-9]E[+-]?[0-9]{1,3}",
                ".{0,4}",
                (0u64..4).prop_map(|number| number.to_string()),
            ];
            let leaf = prop_oneof![
                3 => number.prop_map(AttributeValue::N),
                2 => ".{0,140}".prop_map(AttributeValue::S),
                2 => any::<u128>().prop_map(|bits| AttributeValue::S(Grant::from_bits(bits).to_text())),
                1 => proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| AttributeValue::B(bytes.into())),
                1 => any::<bool>().prop_map(AttributeValue::Bool),
                1 => Just(AttributeValue::Null(true)),
                1 => Just(AttributeValue::Ss(vec!["a".into()])),
            ];
            leaf.prop_recursive(2, 8, 3, |inner| {
                prop_oneof![
                    proptest::collection::hash_map("token|grace_ms|by", inner.clone(), 0..4)
                        .prop_map(AttributeValue::M),
                    proptest::collection::vec(inner, 0..3).prop_map(AttributeValue::L),
                ]
            })
        }

        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

            #[test]
            fn a_hostile_item_is_a_sound_record_or_unreadable(
                fields in proptest::collection::hash_map(proptest::sample::select(&FIELDS[..]), value(), 0..10),
                formatted in any::<bool>(),
            ) {
                let mut item: Item = fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
                if formatted {
                    item.insert("lh_format".into(), number(1));
                    item.remove("lh_session");
                    item.insert("lh_token".into(), number(3));
                }
                match stored(Some(&item)) {
                    Stored::Record(record) => {
                        prop_assert!(record.token <= FencingToken::MAX);
                        prop_assert!(record.grant.is_none() || (record.version >= Some(1) && record.ttl_ms >= Some(1)));
                        prop_assert!(!item.contains_key("lh_session"));
                    }
                    Stored::Unreadable(_) => {}
                    Stored::Absent => prop_assert!(false, "there was an item"),
                }
            }
        }
    }
}
