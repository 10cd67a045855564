//! Records as items, written a second time so that the store's own encoding is not its own judge.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::Record;

pub(crate) type Item = HashMap<String, AttributeValue>;

pub(crate) const NAME: &str = "jobs/é";

/// An item with a record, and attributes of the user's own.
pub(crate) fn item(record: &Record) -> Item {
    let mut item = foreign();
    let mut put = |field: &str, value: Option<AttributeValue>| {
        if let Some(value) = value {
            item.insert(format!("lh_{field}"), value);
        }
    };
    put("format", Some(n(1)));
    put("token", Some(n(record.token)));
    put("grant", record.grant.map(|grant| s(&grant.to_text())));
    put("version", record.version.map(n));
    put("holder", record.holder.as_ref().map(|holder| s(holder.as_str())));
    put("ttl_ms", record.ttl_ms.map(n));
    put("expires_at_ms", record.expires_at_ms.map(n));
    put("closed_ms", record.closed.and_then(|closed| closed.for_ms).map(n));
    put("closed_until_ms", record.closed.and_then(|closed| closed.until_ms).map(n));
    put("closed_by", record.closed.and_then(|closed| closed.by).map(n));
    put("revoked", record.revoked.then_some(AttributeValue::Bool(true)));
    put("set", record.set.map(|set| n(set.0)));
    put("data", record.data.as_ref().map(|data| AttributeValue::B(data.as_bytes().into())));
    put(
        "asked",
        record.asked.as_ref().map(|asked| {
            let mut map = HashMap::from([("token".into(), n(asked.token)), ("grace_ms".into(), n(asked.grace_ms))]);
            if let Some(by) = &asked.by {
                map.insert("by".into(), s(by.as_str()));
            }
            AttributeValue::M(map)
        }),
    );
    item
}

/// An item that a verb has made where none was.
pub(crate) fn made(record: &Record) -> Item {
    let mut made = item(record);
    made.retain(|attribute, _| attribute == "pk" || attribute.starts_with("lh_"));
    made
}

/// What users keep on such items.
pub(crate) fn foreign() -> Item {
    HashMap::from([
        ("pk".to_owned(), s(NAME)),
        ("owner".to_owned(), s("team-a")),
        ("data".to_owned(), AttributeValue::L(vec![n(1), s("x")])),
        ("lhx".to_owned(), AttributeValue::Null(true)),
    ])
}

pub(crate) fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
