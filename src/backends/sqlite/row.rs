//! A record as a row of the table `leasehold`.
//!
//! Every value is checked: whoever edits the table by hand can leave anything there.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error;
use crate::protocol::record::Stored;
use crate::types::{
    Applied, Closed, Data, FencingToken, Grant, Label, ListPage, Listed, MAX_DATA, MAX_TTL_MS, MemberSet, Name, Page,
    Record, StepDown, StoreError, StoreErrorKind, Unreadable,
};

const PAGE: usize = 1000;

const COLUMNS: &str = r#"name, format, session, token, "grant", version, holder, ttl_ms, expires_at_ms, closed_ms,
    closed_until_ms, closed_by, revoked, asked_token, asked_grace_ms, asked_by, "set", data"#;

type Checked<T> = Result<T, Unreadable>;

/// What is stored under a name.
pub(super) fn read(connection: &Connection, name: &Name) -> rusqlite::Result<Stored> {
    let mut select = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM leasehold WHERE name = ?1"))?;
    let stored = select.query_row([name.as_str()], |row| Ok(stored(row))).optional()?;
    Ok(stored.unwrap_or(Stored::Absent))
}

/// One page of the records whose names start with `prefix`.
///
/// Names are ordered by their bytes, so those with the prefix stand together from the prefix on; LIKE and GLOB
/// would give some characters of it a meaning.
pub(super) fn list(connection: &Connection, prefix: &str, page: Option<&Page>) -> Result<ListPage, StoreError> {
    let after = page.map(|page| from_hex(&page.0).ok_or_else(bad_page)).transpose()?;
    rows(connection, prefix, after.as_deref()).map_err(error::of_read)
}

fn rows(connection: &Connection, prefix: &str, after: Option<&[u8]>) -> rusqlite::Result<ListPage> {
    // A name that was put there by hand may not be UTF-8: the page's end travels as bytes.
    let start = after.unwrap_or(prefix.as_bytes());
    let compare = if after.is_some() { ">" } else { ">=" };
    let mut select = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM leasehold WHERE name {compare} CAST(?1 AS TEXT) ORDER BY name LIMIT ?2"
    ))?;
    let mut found = select.query(params![start, PAGE as i64 + 1])?;
    let mut listing = Listing::default();
    while let Some(row) = found.next()? {
        let name = row.get_ref("name")?.as_bytes().unwrap_or_default();
        if !name.starts_with(prefix.as_bytes()) {
            break;
        }
        if listing.seen == PAGE {
            listing.page.next = Some(Page(to_hex(&listing.last)));
            break;
        }
        listing.add(name, row);
    }
    Ok(listing.page)
}

struct Listing {
    page: ListPage,
    seen: usize,
    last: Vec<u8>,
}

impl Default for Listing {
    fn default() -> Self {
        let page = ListPage { leases: Vec::new(), skipped: 0, next: None };
        Self { page, seen: 0, last: Vec::new() }
    }
}

impl Listing {
    fn add(&mut self, name: &[u8], row: &Row<'_>) {
        self.seen += 1;
        self.last = name.to_vec();
        let readable = std::str::from_utf8(name).ok().and_then(|name| Name::new(name).ok());
        match (readable, stored(row)) {
            (Some(name), stored @ Stored::Record(_)) => self.page.leases.push(Listed { name, view: stored.view() }),
            _ => self.page.skipped += 1,
        }
    }
}

fn stored(row: &Row<'_>) -> Stored {
    record(row).map_or_else(Stored::Unreadable, Stored::Record)
}

fn record(row: &Row<'_>) -> Checked<Record> {
    if value(row, "format") != ValueRef::Integer(1) {
        return Err(Unreadable::Format);
    }
    if value(row, "session") != ValueRef::Null {
        return Err(Unreadable::Session);
    }
    let record = Record {
        token: number(row, "token", 0..=FencingToken::MAX)?.ok_or(Unreadable::Field("token"))?,
        grant: text(row, "grant")?.map(|text| Grant::parse(text).ok_or(Unreadable::Field("grant"))).transpose()?,
        version: any_number(row, "version")?,
        holder: label(row, "holder")?,
        ttl_ms: number(row, "ttl_ms", 1..=MAX_TTL_MS)?,
        expires_at_ms: any_number(row, "expires_at_ms")?,
        closed: closed(row)?,
        revoked: number(row, "revoked", 0..=1)? == Some(1),
        asked: asked(row)?,
        set: set(row)?,
        data: data(row)?,
    };
    held_is_whole(record)
}

/// A held record has a version and a term; without them nobody could tell when it is over.
fn held_is_whole(record: Record) -> Checked<Record> {
    if record.grant.is_some() && record.version.unwrap_or(0) == 0 {
        return Err(Unreadable::Field("version"));
    }
    if record.grant.is_some() && record.ttl_ms.is_none() {
        return Err(Unreadable::Field("ttl_ms"));
    }
    Ok(record)
}

/// Either duration closes a record; the token of whoever closed it does not.
fn closed(row: &Row<'_>) -> Checked<Option<Closed>> {
    let closed = Closed {
        for_ms: any_number(row, "closed_ms")?,
        until_ms: any_number(row, "closed_until_ms")?,
        by: number(row, "closed_by", 0..=FencingToken::MAX)?,
    };
    Ok((closed.for_ms.is_some() || closed.until_ms.is_some()).then_some(closed))
}

fn asked(row: &Row<'_>) -> Checked<Option<StepDown>> {
    let token = number(row, "asked_token", 0..=FencingToken::MAX)?;
    match (token, any_number(row, "asked_grace_ms")?, label(row, "asked_by")?) {
        (Some(token), Some(grace_ms), by) => Ok(Some(StepDown { token, grace_ms, by })),
        (None, None, None) => Ok(None),
        _ => Err(Unreadable::Field("asked")),
    }
}

/// All 64 bits, as SQLite's signed number.
fn set(row: &Row<'_>) -> Checked<Option<MemberSet>> {
    match value(row, "set") {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(bits) => Ok(Some(MemberSet(bits.cast_unsigned()))),
        _ => Err(Unreadable::Field("set")),
    }
}

fn data(row: &Row<'_>) -> Checked<Option<Data>> {
    match value(row, "data") {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) if bytes.len() <= MAX_DATA => Ok(Data::new(bytes)),
        _ => Err(Unreadable::Field("data")),
    }
}

fn label(row: &Row<'_>, column: &'static str) -> Checked<Option<Label>> {
    let label = text(row, column)?.map(Label::new).transpose();
    label.map_err(|_| Unreadable::Field(column))
}

fn text<'row>(row: &'row Row<'_>, column: &'static str) -> Checked<Option<&'row str>> {
    match value(row, column) {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| Unreadable::Field(column)),
        _ => Err(Unreadable::Field(column)),
    }
}

fn any_number(row: &Row<'_>, column: &'static str) -> Checked<Option<u64>> {
    number(row, column, 0..=u64::MAX)
}

fn number(row: &Row<'_>, column: &'static str, range: std::ops::RangeInclusive<u64>) -> Checked<Option<u64>> {
    match value(row, column) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => {
            let number = u64::try_from(number).ok().filter(|number| range.contains(number));
            number.map(Some).ok_or(Unreadable::Field(column))
        }
        _ => Err(Unreadable::Field(column)),
    }
}

/// Every column is in the SELECT, so it is there.
fn value<'row>(row: &'row Row<'_>, column: &'static str) -> ValueRef<'row> {
    row.get_ref(column).unwrap_or(ValueRef::Null)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn bad_page() -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Applied::No, "this is not a page of a SQLite listing")
}
