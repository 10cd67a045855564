//! The record in a blob's metadata, and what it says together with the state of the blob's lease.
//!
//! Held or free comes from the lease's state alone: a release does not touch the metadata. Whatever somebody has put
//! into them, reading neither panics nor guesses.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use azure_core::base64;

use super::content::Kept;
use crate::protocol::broken::Broken;
use crate::types::{
    Claim, Close, Closed, Data, FencingToken, Grant, Label, MAX_TTL_MS, MemberSet, Record, Standing, Unreadable,
    Version, View,
};

/// What every pair of ours starts with. The service keeps the case of names but does not tell them apart by it.
const PREFIX: &str = "lh_";

/// What a claim leaves nothing of. Other fields, of a newer version perhaps, stay.
const REPLACED: [&str; 11] = [
    "grant",
    "version",
    "holder",
    "ttl_ms",
    "expires_at_ms",
    "closed_ms",
    "closed_until_ms",
    "closed_by",
    "revoked",
    "set",
    "data",
];

/// Stands before encoded bytes, because a pair without a value does not survive every way to the service.
const MARK: char = '_';

/// "Somebody": the lease is held and nobody has shown by whom. No random grant is nil.
const SOMEBODY: u128 = 0;

/// The most bytes that names and values may have together.
/// <https://learn.microsoft.com/rest/api/storageservices/setting-and-retrieving-properties-and-metadata-for-blob-resources>
pub(super) const LARGEST: usize = 8 * 1024;

const TOKENS: RangeInclusive<u64> = 0..=FencingToken::MAX;
const TERMS: RangeInclusive<u64> = 1..=MAX_TTL_MS;
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

/// A blob's metadata, names in lower case.
pub(super) type Pairs = BTreeMap<String, String>;

/// The state of a blob's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    Available,
    Leased,
    /// Somebody has ended the lease; what is left of its term still runs.
    Breaking,
    Broken,
    Expired,
}

/// A blob as the service showed it. The tag names exactly these pairs; the state may change without it.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) tag: Arc<str>,
    pub(super) state: LeaseState,
    pub(super) pairs: Pairs,
    pub(super) kept: Kept,
}

impl LeaseState {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "available" => Self::Available,
            "leased" => Self::Leased,
            "breaking" => Self::Breaking,
            "broken" => Self::Broken,
            "expired" => Self::Expired,
            _ => return None,
        })
    }

    /// Whether others are kept out.
    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Leased | Self::Breaking)
    }
}

impl Found {
    /// The record as the metadata have it, with the grant of its last claim also when that is over.
    pub(super) fn record(&self) -> Result<Record, Unreadable> {
        record(&self.pairs)
    }

    /// What a store answers of it.
    pub(super) fn view(&self) -> View {
        let record = match self.record() {
            Ok(record) => record,
            Err(reason) => return View::unreadable(reason),
        };
        let tag = Version::of_tag(&self.tag);
        let closed = record.closed.is_some();
        let somebody = record.grant.or(Some(Grant::from_bits(SOMEBODY)));
        let revoked = matches!(self.state, LeaseState::Breaking | LeaseState::Broken);
        let (standing, grant) = match self.state {
            LeaseState::Leased | LeaseState::Breaking => (Standing::Held(tag), somebody),
            // The service does not know of the closing; the clients judge it.
            _ if closed => (Standing::Held(tag), None),
            LeaseState::Available | LeaseState::Broken => (Standing::Vacant, None),
            LeaseState::Expired => (Standing::Expired(tag), somebody),
        };
        View { standing, record: Some(Record { grant, revoked, ..record }) }
    }

    /// The same for somebody who knows that the lease is not his: a rival may have got it and not yet have said so.
    pub(super) fn view_without(&self, grant: Grant) -> View {
        let mut view = self.view();
        if let Some(record) = view.record.as_mut().filter(|record| record.grant == Some(grant)) {
            record.grant = Some(Grant::from_bits(SOMEBODY));
            record.holder = if record.revoked { record.holder.take() } else { None };
        }
        view
    }

    /// Whether the metadata carry exactly this claim.
    pub(super) fn carries(&self, grant: Grant, token: u64) -> bool {
        self.record().is_ok_and(|record| record.grant == Some(grant) && record.token == token)
    }
}

/// A record that was never granted; with a token, the mark of a claim that was given up.
pub(super) fn fresh(token: u64) -> Pairs {
    Pairs::from([field("format", 1), field("token", token)])
}

/// What an accepted claim leaves: all it has, nothing of what an earlier one had, and all that is not ours.
pub(super) fn claimed(before: &Pairs, claim: &Claim) -> Pairs {
    let mut pairs = before.clone();
    REPLACED.iter().for_each(|field| _ = pairs.remove(&name(field)));
    pairs.extend(fresh(claim.token));
    pairs.extend([text("grant", claim.grant.to_text()), field("ttl_ms", claim.ttl_ms)]);
    pairs.extend(claim.holder.as_ref().map(|holder| bytes("holder", holder.as_str().as_bytes())));
    if Broken::ClaimKeepsData.on() {
        pairs.extend(before.get_key_value(&name("data")).map(|(name, data)| (name.clone(), data.clone())));
    }
    pairs.extend(claim.data.as_ref().map(|data| bytes("data", data.as_bytes())));
    pairs.extend(claim.set.map(|set| field("set", set.0)));
    pairs
}

/// The same record with another payload.
pub(super) fn with_data(before: &Pairs, data: Option<&Data>) -> Pairs {
    let mut pairs = before.clone();
    pairs.remove(&name("data"));
    pairs.extend(data.map(|data| bytes("data", data.as_bytes())));
    pairs
}

/// The same record, closed by the grant with this token.
pub(super) fn closed(before: &Pairs, close: &Close, by: u64) -> Pairs {
    let keeps = close.data.is_none() && Broken::ClosingKeepsPayload.on();
    let mut pairs = if keeps { before.clone() } else { with_data(before, close.data.as_ref()) };
    pairs.remove(&name("closed_until_ms"));
    pairs.extend([field("closed_ms", close.for_ms), field("closed_by", by)]);
    pairs.extend(close.until_ms.map(|until| field("closed_until_ms", until)));
    pairs
}

/// The same record with the token of a claim that was given up, so that no late copy of it is accepted.
pub(super) fn burnt(before: &Pairs, token: u64) -> Pairs {
    let mut pairs = before.clone();
    if Broken::BurnClearsClosed.on() {
        pairs.retain(|pair, _| ![name("closed_ms"), name("closed_until_ms"), name("closed_by")].contains(pair));
    }
    pairs.extend([field("token", token)]);
    pairs
}

/// How many bytes the pairs have, and how many of them are not ours.
pub(super) fn size(pairs: &Pairs) -> (usize, usize) {
    let size = |(name, value): (&String, &String)| name.len() + value.len();
    let foreign = pairs.iter().filter(|(name, _)| !name.starts_with(PREFIX));
    (pairs.iter().map(size).sum(), foreign.map(size).sum())
}

fn record(pairs: &Pairs) -> Result<Record, Unreadable> {
    if !pairs.keys().any(|name| name.starts_with(PREFIX)) {
        return Err(Unreadable::Foreign);
    }
    let fields = Fields(pairs);
    if fields.number("format", &ANY) != Ok(Some(1)) {
        return Err(Unreadable::Format);
    }
    if fields.get("session").is_some() {
        return Err(Unreadable::Session);
    }
    let record = Record {
        token: fields.number("token", &TOKENS)?.ok_or(Unreadable::Field("token"))?,
        grant: fields.read("grant", Grant::parse)?,
        holder: fields.read("holder", |text| Label::new(String::from_utf8(decoded(text)?).ok()?).ok())?,
        ttl_ms: fields.number("ttl_ms", &TERMS)?,
        closed: fields.closed()?,
        set: fields.number("set", &ANY)?.map(MemberSet),
        data: fields.read("data", |text| Data::new(&decoded(text)?))?,
        ..Record::new()
    };
    match (record.grant, record.ttl_ms) {
        (Some(_), None) => Err(Unreadable::Field("ttl_ms")),
        _ => Ok(record),
    }
}

struct Fields<'a>(&'a Pairs);

impl Fields<'_> {
    fn get(&self, field: &str) -> Option<&str> {
        self.0.get(&name(field)).map(String::as_str)
    }

    /// Absent is `None`; present and not understood is unreadable.
    fn read<T>(
        &self,
        field: &'static str,
        understand: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        let Some(value) = self.get(field) else { return Ok(None) };
        understand(value).map(Some).ok_or(Unreadable::Field(field))
    }

    /// Only the one form that this writes: no sign, no fraction, no leading zero.
    fn number(&self, field: &'static str, range: &RangeInclusive<u64>) -> Result<Option<u64>, Unreadable> {
        self.read(field, |text| {
            let number: u64 = text.parse().ok()?;
            (number.to_string() == text && range.contains(&number)).then_some(number)
        })
    }

    /// Closed means that either time is there.
    fn closed(&self) -> Result<Option<Closed>, Unreadable> {
        let for_ms = self.number("closed_ms", &ANY)?;
        let until_ms = self.number("closed_until_ms", &ANY)?;
        let by = self.number("closed_by", &ANY)?;
        Ok((for_ms.is_some() || until_ms.is_some()).then_some(Closed { for_ms, until_ms, by }))
    }
}

fn name(field: &str) -> String {
    format!("{PREFIX}{field}")
}

fn text(field: &str, value: String) -> (String, String) {
    (name(field), value)
}

fn field(field: &str, number: u64) -> (String, String) {
    text(field, number.to_string())
}

fn bytes(field: &str, bytes: &[u8]) -> (String, String) {
    text(field, format!("{MARK}{}", base64::encode_url_safe(bytes)))
}

/// Only the one form that this writes, here too.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix(MARK)?;
    let bytes = base64::decode_url_safe(text).ok()?;
    (base64::encode_url_safe(&bytes) == text).then_some(bytes)
}
