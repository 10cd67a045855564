//! Listing: a scan of the whole table, filtered by the service. Costs what reading the table costs.

use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::types::AttributeValue;

use super::client::{Filter, Link};
use super::invalid;
use super::item::{self, Item};
use super::keys::{Keys, SortKey};
use crate::protocol::record::Stored;
use crate::types::{Answer, ListPage, Listed, Page};

pub(super) async fn page(link: &Link, keys: &Keys, prefix: &str, from: Option<&Page>) -> Answer<ListPage> {
    let start = match from {
        Some(page) => Some(start(keys, page).ok_or_else(|| invalid("this page token is not from this store"))?),
        None => None,
    };
    let scanned = link.scan(filter(keys, prefix), start).await?;
    Ok(scanned.map(|scanned| listed(keys, &scanned)))
}

fn listed(keys: &Keys, scanned: &ScanOutput) -> ListPage {
    let (mut leases, mut skipped) = (Vec::new(), 0);
    for item in scanned.items() {
        match (keys.name_of(item), item::stored(Some(item))) {
            (Some(name), stored @ Stored::Record(_)) => leases.push(Listed { name, view: stored.view() }),
            _ => skipped += 1,
        }
    }
    ListPage { leases, skipped, next: scanned.last_evaluated_key().and_then(|last| next(keys, last)) }
}

/// What cannot be a lease of this store is left out by the service, and is not counted as skipped.
fn filter(keys: &Keys, prefix: &str) -> Option<Filter> {
    let mut filter = Filter::default();
    let mut conditions = Vec::new();
    if !prefix.is_empty() {
        conditions.push("begins_with(#pk, :prefix)");
        filter.values.insert(":prefix".into(), AttributeValue::S(prefix.to_owned()));
        filter.names.insert("#pk".into(), keys.partition.clone());
    }
    if let Some(sort) = &keys.sort {
        filter.names.insert("#sk".into(), sort.attribute().to_owned());
        if let SortKey::Constant { value, .. } = sort {
            conditions.push("#sk = :sk");
            filter.values.insert(":sk".into(), AttributeValue::S(value.clone()));
        } else {
            conditions.push("#sk = #pk");
            filter.names.insert("#pk".into(), keys.partition.clone());
        }
    }
    filter.expression = conditions.join(" AND ");
    (!conditions.is_empty()).then_some(filter)
}

/// `<bytes of the partition key>:<partition key><sort key>` of the last item that was looked at.
fn next(keys: &Keys, last: &Item) -> Option<Page> {
    let text = |attribute: &str| last.get(attribute).and_then(|value| value.as_s().ok()).map(String::as_str);
    let partition = text(&keys.partition)?;
    let sort = keys.sort.as_ref().map_or(Some(""), |sort| text(sort.attribute()))?;
    Some(Page(format!("{}:{partition}{sort}", partition.len())))
}

fn start(keys: &Keys, page: &Page) -> Option<Item> {
    let (length, rest) = page.0.split_once(':')?;
    let (partition, sort) = rest.split_at_checked(length.parse().ok()?)?;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut key = Item::from([(keys.partition.clone(), text(partition))]);
    match &keys.sort {
        Some(attribute) => _ = key.insert(attribute.attribute().to_owned(), text(sort)),
        None if !sort.is_empty() => return None,
        None => {}
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_token_survives_any_keys_and_nonsense_is_refused() {
        let keys = Keys { partition: "pk".into(), sort: Some(SortKey::constant("sk", "LEASE")) };
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let last = Item::from([("pk".into(), text("7:ä:")), ("sk".into(), text(":3"))]);
        let page = next(&keys, &last).unwrap();
        assert_eq!(start(&keys, &page), Some(last));
        for nonsense in ["", ":", "x:y", "99:a", "1:ä", "-1:a"] {
            assert_eq!(start(&keys, &Page(nonsense.into())), None, "{nonsense}");
        }
    }
}
