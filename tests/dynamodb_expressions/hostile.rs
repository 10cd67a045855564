//! Items that are not sound records are never written to, by any verb.

use std::cell::Cell;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::protocol::record::Stored;
use leasehold::{Asked, Claimed, Renewed, Revoked, Standing, Vacated, View};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::cases::{Answered, record, verb};
use crate::items::{item, n};
use crate::table::Table;
use crate::{same, whole};

const FIELDS: [&str; 13] = [
    "format",
    "token",
    "grant",
    "version",
    "holder",
    "ttl_ms",
    "expires_at_ms",
    "closed_ms",
    "closed_by",
    "revoked",
    "asked",
    "set",
    "data",
];

#[test]
fn an_item_that_is_not_a_sound_record_is_refused_by_every_verb_and_left_as_it_is() {
    let _whole = whole();
    let (table, unreadable) = (Table::start(), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1500) });
    let field = prop::sample::select(&FIELDS[..]);
    let cases = record().prop_flat_map(move |record| {
        (verb(&Stored::Record(record.clone())), Just(record), field.clone(), prop::option::of(nonsense()))
    });
    let ran = runner.run(&cases, |(verb, record, field, nonsense)| {
        let mut broken = item(&record);
        match nonsense {
            Some(value) => _ = broken.insert(format!("lh_{field}"), value),
            None => _ = broken.remove(&format!("lh_{field}")),
        }
        let view = table.read_of(broken.clone());
        if !matches!(view.standing, Standing::Unreadable(_)) {
            return Ok(());
        }
        unreadable.set(unreadable.get() + 1);
        let (answer, left) = table.run_on(broken.clone(), &verb);
        same(&broken, &left)?;
        same(Some(&view), refused(&answer))
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(unreadable.get() > 500, "only {} items were unreadable", unreadable.get());
}

#[test]
fn an_item_of_a_session_or_of_somebody_else_is_refused_by_every_verb_and_left_as_it_is() {
    let _whole = whole();
    let table = Table::start();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(300) });
    let cases = record().prop_flat_map(|record| (verb(&Stored::Record(record.clone())), Just(record), any::<bool>()));
    let ran = runner.run(&cases, |(verb, record, session)| {
        let mut theirs = item(&record);
        if session {
            theirs.insert("lh_session".into(), AttributeValue::Null(true));
        } else {
            theirs.retain(|attribute, _| !attribute.starts_with("lh_"));
        }
        let (answer, left) = table.run_on(theirs.clone(), &verb);
        same(&theirs, &left)?;
        same(true, refused(&answer).is_some_and(|view| matches!(view.standing, Standing::Unreadable(_))))
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

/// Not fractions, nor anything inside `asked`: expressions cannot tell, and the guide says so.
fn nonsense() -> impl Strategy<Value = AttributeValue> {
    let number = |text: &str| AttributeValue::N(text.into());
    let values = vec![
        number("-1"),
        number("-99999999999999999999999999999999999999"),
        number("99999999999999999999999999999999999999"),
        n(0),
        n(2),
        AttributeValue::Bool(false),
        AttributeValue::Null(true),
        AttributeValue::L(vec![]),
        AttributeValue::Ss(vec!["x".into()]),
        AttributeValue::B(vec![1].into()),
        AttributeValue::N("18446744073709551616".into()),
        AttributeValue::N("9007199254740992".into()),
        AttributeValue::N("86400001".into()),
    ];
    prop::sample::select(values)
}

fn refused(answer: &Answered) -> Option<&View> {
    match answer {
        Answered::Claim(Claimed::Refused(view))
        | Answered::Renew(Renewed::Refused(view))
        | Answered::Vacate(Vacated::Refused(view))
        | Answered::Revoke(Revoked::Refused(view))
        | Answered::Ask(Asked::Refused(view)) => Some(view),
        _ => None,
    }
}
