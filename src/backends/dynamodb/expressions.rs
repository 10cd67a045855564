//! Each verb as one `UpdateItem`.
//!
//! Names go by placeholder, because many of them are reserved words and a user's key attributes may be called
//! anything. Only names and values that occur are sent: an unused one is a `ValidationException`.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use super::item::{self, PREFIX, number};
use crate::protocol::broken::Broken;
use crate::types::{
    Ask, Claim, Close, Data, Expect, FencingToken, Grant, Label, MAX_TTL_MS, Proof, Renew, Revoke, Vacate, Version,
};

/// What an `UpdateItem` changes, and when.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) expression: String,
    pub(super) condition: String,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

/// `None` when the claim expects a version that is not one of this store's.
pub(super) fn claim(partition: &str, claim: &Claim) -> Option<Update> {
    let mut draft = Draft::default();
    draft.set("format", number(1));
    draft.set("token", number(claim.token));
    draft.set("grant", grant(claim.grant));
    draft.set("version", number(1));
    draft.set("ttl_ms", number(claim.ttl_ms));
    draft.set_or_remove("holder", claim.holder.as_ref().map(label));
    draft.set_or_remove("expires_at_ms", claim.expires_at_ms.map(number));
    draft.set_or_remove("set", claim.set.map(|set| number(set.0)));
    match &claim.data {
        None if Broken::ClaimKeepsData.on() => {}
        data => draft.set_or_remove("data", data.as_ref().map(bytes)),
    }
    draft.remove(&["closed_ms", "closed_until_ms", "closed_by", "revoked", "asked", "sweep_s"]);
    let condition = match &claim.expect {
        Expect::Vacant => draft.vacant(partition, claim.token),
        Expect::Expired(version) => draft.expired(version, claim.token)?,
        Expect::Handed(handed) => {
            let readable = draft.readable();
            let is_handed = draft.is("grant", "handed", grant(*handed));
            format!("{readable} AND {is_handed} AND {}", draft.below(claim.token))
        }
    };
    Some(draft.under(condition))
}

pub(super) fn renew(renew: &Renew) -> Update {
    let mut draft = Draft::default();
    draft.set("version", number(renew.version));
    match renew.expires_at_ms {
        None if Broken::RenewalKeepsOldExpiresAt.on() => {}
        end => draft.set_or_remove("expires_at_ms", end.map(number)),
    }
    if let Some(data) = &renew.data {
        draft.set("data", bytes(data));
    }
    if Broken::RenewalShortensTtl.on() {
        draft.set("ttl_ms", number(renew.ttl_ms));
    }
    let mut condition = draft.readable();
    if Broken::RenewalUnconditional.on() {
        draft.set("grant", grant(renew.grant));
        condition += &format!(" AND {}", draft.exists("grant"));
    } else {
        condition += &format!(" AND {}", draft.is("grant", "mine", grant(renew.grant)));
    }
    if !Broken::RenewalWithoutVersionOrder.on() {
        condition += &format!(" AND {} <= :version", draft.name("version"));
    }
    draft.under(condition)
}

/// A release or a clean-up; `retention_s` is how long after it a table may sweep the item away.
pub(super) fn vacate(partition: &str, vacate: &Vacate, retention_s: Option<u64>) -> Update {
    let mut draft = Draft::default();
    draft.remove(&["grant", "expires_at_ms", "asked"]);
    if let Some(close) = &vacate.close {
        draft.close(close, vacate.token);
    }
    if let Some(sweep) = retention_s.and_then(|retention| sweep_s(vacate, retention)) {
        draft.sweep(sweep, vacate.burn);
    }
    let condition = if vacate.burn { draft.burn(partition, vacate) } else { draft.release(vacate) };
    draft.under(condition)
}

pub(super) fn revoke(revoke: &Revoke) -> Update {
    let mut draft = Draft::default();
    draft.set("revoked", AttributeValue::Bool(true));
    let mut condition = draft.held_with(revoke.token);
    if revoke.force {
        draft.remove(&["grant", "expires_at_ms", "asked"]);
    } else {
        draft.set("grant", grant(revoke.fresh));
        condition += &format!(" AND {}", draft.not_revoked());
    }
    draft.under(condition)
}

pub(super) fn ask(ask: &Ask) -> Update {
    let mut draft = Draft::default();
    draft.set("asked", item::asked(&ask.step_down));
    let condition = draft.held_with(ask.step_down.token);
    if Broken::AskBumpsVersion.on() {
        let version = draft.name("version");
        draft.set.push(format!("{version} = {version} + :one"));
    }
    draft.under(condition)
}

/// Not a verb: that a lease is still held, for a transaction of the caller's. It changes nothing.
pub(super) fn held(proof: &Proof) -> Update {
    let mut draft = Draft::default();
    let mine = draft.is("grant", "mine", grant(proof.grant()));
    let condition = format!("{} AND {mine} AND {}", draft.held_with(proof.token().as_u64()), draft.not_revoked());
    draft.under(condition)
}

/// When the table may sweep the item away, in epoch seconds; not known without the store's time.
fn sweep_s(vacate: &Vacate, retention_s: u64) -> Option<u64> {
    let now = vacate.now_ms?;
    let closed_end = vacate.close.as_ref().map_or(now, |close| {
        let counted = now.saturating_add(close.for_ms);
        close.until_ms.map_or(counted, |until| until.max(counted))
    });
    Some(closed_end.max(now).div_ceil(1000).saturating_add(retention_s))
}

fn grant(grant: Grant) -> AttributeValue {
    AttributeValue::S(grant.to_text())
}

fn label(label: &Label) -> AttributeValue {
    AttributeValue::S(label.as_str().to_owned())
}

fn bytes(data: &Data) -> AttributeValue {
    AttributeValue::B(Blob::new(data.as_bytes()))
}

/// An update in the making. Its methods note every name and value that they use.
#[derive(Default)]
struct Draft {
    set: Vec<String>,
    remove: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Draft {
    fn under(self, condition: String) -> Update {
        let mut parts = Vec::new();
        if !self.set.is_empty() {
            parts.push(format!("SET {}", self.set.join(", ")));
        }
        if !self.remove.is_empty() {
            parts.push(format!("REMOVE {}", self.remove.join(", ")));
        }
        Update { expression: parts.join(" "), condition, names: self.names, values: self.values }
    }

    fn name(&mut self, field: &str) -> String {
        let placeholder = format!("#{field}");
        self.names.insert(placeholder.clone(), format!("{PREFIX}{field}"));
        placeholder
    }

    fn value(&mut self, called: &str, value: AttributeValue) -> String {
        let placeholder = format!(":{called}");
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    fn set(&mut self, field: &str, value: AttributeValue) {
        let assignment = self.is(field, field, value);
        self.set.push(assignment);
    }

    fn remove(&mut self, fields: &[&str]) {
        for field in fields {
            let name = self.name(field);
            self.remove.push(name);
        }
    }

    fn set_or_remove(&mut self, field: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.set(field, value),
            None => self.remove(&[field]),
        }
    }

    fn close(&mut self, close: &Close, by: u64) {
        self.set("closed_ms", number(close.for_ms));
        self.set("closed_by", number(by));
        self.set_or_remove("closed_until_ms", close.until_ms.map(number));
        match &close.data {
            None if Broken::ClosingKeepsPayload.on() => {}
            data => self.set_or_remove("data", data.as_ref().map(bytes)),
        }
    }

    fn sweep(&mut self, at_s: u64, keep_older: bool) {
        let (name, value) = (self.name("sweep_s"), self.value("sweep_s", number(at_s)));
        let value = if keep_older { format!("if_not_exists({name}, {value})") } else { value };
        self.set.push(format!("{name} = {value}"));
    }
}

/// The conditions.
impl Draft {
    fn is(&mut self, field: &str, called: &str, value: AttributeValue) -> String {
        format!("{} = {}", self.name(field), self.value(called, value))
    }

    fn absent(&mut self, field: &str) -> String {
        format!("attribute_not_exists({})", self.name(field))
    }

    fn exists(&mut self, field: &str) -> String {
        format!("attribute_exists({})", self.name(field))
    }

    /// A token below this one, and not a broken one.
    fn below(&mut self, token: u64) -> String {
        let below = if Broken::TokenNotAbove.on() { token } else { token.saturating_sub(1) };
        self.value("zero", number(0));
        format!("{} BETWEEN :zero AND {}", self.name("token"), self.value("below", number(below)))
    }

    /// The item is a record that this version reads: no verb touches any other (protocol section 1).
    ///
    /// What an expression cannot say, and `item` alone knows: fractions, the form of a grant, the length of a
    /// label or of data, and what is inside `asked`.
    fn readable(&mut self) -> String {
        self.value("one", number(1));
        let text = self.value("type_S", AttributeValue::S("S".into()));
        let (version, ttl_ms) = (self.exists("version"), self.exists("ttl_ms"));
        let grant = self.name("grant");
        let free = self.absent("grant");
        let mut all = vec![
            format!("{} = :one", self.name("format")),
            self.absent("session"),
            self.between("token", 0, FencingToken::MAX),
            format!("({free} OR (attribute_type({grant}, {text}) AND {version} AND {ttl_ms}))"),
        ];
        for (field, least, most) in NUMBERS {
            let (absent, between) = (self.absent(field), self.between(field, least, most));
            all.push(format!("({absent} OR {between})"));
        }
        for (field, kind) in [("holder", "S"), ("data", "B"), ("revoked", "BOOL"), ("asked", "M")] {
            let (absent, name) = (self.absent(field), self.name(field));
            let kind = self.value(&format!("type_{kind}"), AttributeValue::S(kind.into()));
            all.push(format!("({absent} OR attribute_type({name}, {kind}))"));
        }
        all.join(" AND ")
    }

    fn between(&mut self, field: &str, least: u64, most: u64) -> String {
        let least = self.value(&format!("from_{least}"), number(least));
        let most = self.value(&format!("to_{most}"), number(most));
        format!("{} BETWEEN {least} AND {most}", self.name(field))
    }

    fn no_item(&mut self, partition: &str) -> String {
        self.names.insert("#pk".into(), partition.to_owned());
        "attribute_not_exists(#pk)".into()
    }

    fn vacant(&mut self, partition: &str, token: u64) -> String {
        let (none, readable) = (self.no_item(partition), self.readable());
        let free = ["grant", "closed_ms", "closed_until_ms"].map(|field| self.absent(field)).join(" AND ");
        format!("{none} OR ({readable} AND {free} AND {})", self.below(token))
    }

    fn expired(&mut self, version: &Version, token: u64) -> Option<String> {
        let (seen_token, seen_grant, seen_version) = version.as_write()?;
        let readable = self.readable();
        let by_counter = Broken::TakeoverByCounterOnly.on();
        let without_token = by_counter || (seen_grant.is_none() && Broken::ClosedIdentityWithoutToken.on());
        let mut identity = vec![self.is_or_absent("version", seen_version.map(number))];
        if !by_counter {
            identity.push(self.is_or_absent("grant", seen_grant.map(grant)));
        }
        if !without_token {
            identity.push(self.is("token", "seen_token", number(seen_token)));
        }
        Some(format!("{readable} AND {} AND {}", identity.join(" AND "), self.below(token)))
    }

    /// An absent part of an identity is compared as absent, never skipped.
    fn is_or_absent(&mut self, field: &str, value: Option<AttributeValue>) -> String {
        match value {
            Some(value) => self.is(field, &format!("seen_{field}"), value),
            None => self.absent(field),
        }
    }

    fn held_with(&mut self, token: u64) -> String {
        let (readable, held) = (self.readable(), self.exists("grant"));
        format!("{readable} AND {held} AND {}", self.is("token", "named", number(token)))
    }

    /// A record says `false` only if somebody has put it there, and it then means what it says.
    fn not_revoked(&mut self) -> String {
        format!("({} OR {})", self.absent("revoked"), self.is("revoked", "no", AttributeValue::Bool(false)))
    }

    fn release(&mut self, vacate: &Vacate) -> String {
        format!("{} AND {}", self.readable(), self.is("grant", "mine", grant(vacate.grant)))
    }

    /// Leaves the caller's token, so that a late copy of the claim finds no lower one.
    fn burn(&mut self, partition: &str, vacate: &Vacate) -> String {
        self.set("format", number(1));
        if Broken::CleanupWithoutBurn.on() {
            self.value("zero", number(0));
            self.set.push("#token = if_not_exists(#token, :zero)".into());
        } else {
            self.set("token", number(vacate.token));
        }
        if Broken::BurnClearsClosed.on() && vacate.close.is_none() {
            self.remove(&["closed_ms", "closed_until_ms", "closed_by"]);
        }
        let (none, readable) = (self.no_item(partition), self.readable());
        if Broken::CleanupByName.on() {
            return format!("{none} OR ({readable})");
        }
        let (mine, free) = (self.is("grant", "mine", grant(vacate.grant)), self.absent("grant"));
        let lower = format!("{} < {}", self.name("token"), self.value("token", number(vacate.token)));
        format!("{none} OR ({readable} AND ({mine} OR ({free} AND {lower})))")
    }
}

/// The optional numbers and their ranges.
const NUMBERS: [(&str, u64, u64); 7] = [
    ("version", 1, u64::MAX),
    ("ttl_ms", 1, MAX_TTL_MS),
    ("expires_at_ms", 0, u64::MAX),
    ("closed_ms", 0, u64::MAX),
    ("closed_until_ms", 0, u64::MAX),
    ("closed_by", 0, u64::MAX),
    ("set", 0, u64::MAX),
];
