//! The verbs as SQL: each is one conditional statement.
//!
//! `protocol/record.rs` says the same in Rust; `tests/sqlite_record.rs` ties the two.

use rusqlite::Transaction;
use rusqlite::types::{ToSqlOutput, Value};

use crate::protocol::broken::Broken;
use crate::protocol::record::Stored;
use crate::types::{Ask, Claim, Expect, Name, Renew, Revoke, Vacate};

/// Every verb's first condition: it is a record that this version of the library knows.
const OURS: &str = "format = 1 AND session IS NULL";

const NO_ASK: &str = "asked_token = NULL, asked_grace_ms = NULL, asked_by = NULL";
const NOT_CLOSED: &str = "closed_ms = NULL, closed_until_ms = NULL, closed_by = NULL";

/// A statement with the values of its parameters.
pub(super) struct Statement {
    sql: String,
    values: Vec<(&'static str, Parameter)>,
}

/// A value, or a number that SQLite has no room for.
type Parameter = rusqlite::Result<Value>;

impl Statement {
    fn of(sql: String) -> Self {
        Self { sql, values: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl IntoParameter) -> Self {
        self.values.push((name, value.parameter()));
        self
    }

    /// Runs it on a readable or absent record, and says whether it changed anything.
    pub(super) fn changes(self, transaction: &Transaction<'_>, stored: &Stored) -> rusqlite::Result<bool> {
        if matches!(stored, Stored::Unreadable(_)) {
            return Ok(false);
        }
        let mut prepared = transaction.prepare_cached(&self.sql)?;
        let mut bound = 0;
        for (name, value) in self.values {
            let value = value?;
            // A statement need not use every value of its verb.
            if let Some(index) = prepared.parameter_index(name)? {
                prepared.raw_bind_parameter(index, ToSqlOutput::Owned(value))?;
                bound += 1;
            }
        }
        debug_assert_eq!(bound, prepared.parameter_count(), "a parameter without a value: {}", self.sql);
        Ok(prepared.raw_execute()? > 0)
    }
}

/// `None` for a claim that expects a version of another kind of store: no row can have it.
pub(super) fn claim(claim: &Claim) -> Option<Statement> {
    let statement = match &claim.expect {
        Expect::Vacant => Statement::of(claim_vacant()),
        Expect::Handed(grant) => Statement::of(claim_known(r#""grant" = :handed"#)).with(":handed", grant.to_text()),
        Expect::Expired(version) => {
            let (token, grant, version) = version.as_write()?;
            Statement::of(claim_known(same_write(grant.is_some())))
                .with(":seen_token", token)
                .with(":seen_grant", grant.map(|grant| grant.to_text()))
                .with(":seen_version", version)
        }
    };
    Some(with_body(statement, claim))
}

fn with_body(statement: Statement, claim: &Claim) -> Statement {
    statement
        .with(":name", &claim.name)
        .with(":token", claim.token)
        .with(":grant", claim.grant.to_text())
        .with(":ttl_ms", claim.ttl_ms)
        .with(":expires_at_ms", claim.expires_at_ms)
        .with(":holder", claim.holder.as_ref().map(|holder| holder.as_str().to_owned()))
        .with(":set", claim.set.map(|set| Value::Integer(set.0.cast_signed())))
        .with(":data", claim.data.as_ref().map(|data| Value::Blob(data.as_bytes().to_vec())))
}

/// An absent record has the token 0.
fn claim_vacant() -> String {
    let (set, below) = (claim_set(), below());
    format!(
        r#"INSERT INTO leasehold (name, format, token, "grant", version, holder, ttl_ms, expires_at_ms, "set", data)
        SELECT :name, 1, :token, :grant, 1, :holder, :ttl_ms, :expires_at_ms, :set, :data
        WHERE 0 {below} :token
        ON CONFLICT (name) DO UPDATE SET {set}
        WHERE {OURS} AND token >= 0 AND token {below} :token
            AND "grant" IS NULL AND closed_ms IS NULL AND closed_until_ms IS NULL"#
    )
}

fn claim_known(expected: &str) -> String {
    let (set, below) = (claim_set(), below());
    format!(
        "UPDATE leasehold SET {set}
        WHERE name = :name AND {OURS} AND token >= 0 AND token {below} :token AND {expected}"
    )
}

/// Writes all that a claim has and removes what it lacks: a stale payload must not survive a takeover.
fn claim_set() -> String {
    let data = if Broken::ClaimKeepsData.on() { "ifnull(:data, data)" } else { ":data" };
    format!(
        r#"token = :token, "grant" = :grant, version = 1, holder = :holder, ttl_ms = :ttl_ms,
        expires_at_ms = :expires_at_ms, "set" = :set, data = {data}, revoked = NULL, {NOT_CLOSED}, {NO_ASK}"#
    )
}

fn below() -> &'static str {
    if Broken::TokenNotAbove.on() { "<=" } else { "<" }
}

/// `IS` compares an absent part as absent.
fn same_write(held: bool) -> &'static str {
    if Broken::TakeoverByCounterOnly.on() {
        "version IS :seen_version"
    } else if Broken::ClosedIdentityWithoutToken.on() && !held {
        r#""grant" IS :seen_grant AND version IS :seen_version"#
    } else {
        r#"token IS :seen_token AND "grant" IS :seen_grant AND version IS :seen_version"#
    }
}

pub(super) fn renew(renew: &Renew) -> Statement {
    let kept = Broken::RenewalKeepsOldExpiresAt.on();
    let expires = if kept { "ifnull(:expires_at_ms, expires_at_ms)" } else { ":expires_at_ms" };
    let ttl = if Broken::RenewalShortensTtl.on() { ", ttl_ms = :ttl_ms" } else { "" };
    let (take, mine) = if Broken::RenewalUnconditional.on() {
        (r#", "grant" = :grant"#, r#""grant" IS NOT NULL"#)
    } else {
        ("", r#""grant" = :grant"#)
    };
    let in_order = if Broken::RenewalWithoutVersionOrder.on() { "TRUE" } else { "version <= :version" };
    let sql = format!(
        "UPDATE leasehold
        SET version = :version, expires_at_ms = {expires}, data = ifnull(:data, data){ttl}{take}
        WHERE name = :name AND {OURS} AND {mine} AND {in_order}"
    );
    Statement::of(sql)
        .with(":name", &renew.name)
        .with(":grant", renew.grant.to_text())
        .with(":version", renew.version)
        .with(":ttl_ms", renew.ttl_ms)
        .with(":expires_at_ms", renew.expires_at_ms)
        .with(":data", renew.data.as_ref().map(|data| Value::Blob(data.as_bytes().to_vec())))
}

pub(super) fn vacate(vacate: &Vacate) -> Statement {
    let sql = if vacate.burn { burn(vacate) } else { release(vacate) };
    let close = vacate.close.as_ref();
    let data = close.and_then(|close| close.data.as_ref());
    Statement::of(sql)
        .with(":name", &vacate.name)
        .with(":token", vacate.token)
        .with(":grant", vacate.grant.to_text())
        .with(":closed_ms", close.map(|close| close.for_ms))
        .with(":closed_until_ms", close.and_then(|close| close.until_ms))
        .with(":data", data.map(|data| Value::Blob(data.as_bytes().to_vec())))
}

fn release(vacate: &Vacate) -> String {
    let set = vacate_set(vacate);
    format!(r#"UPDATE leasehold SET {set} WHERE name = :name AND {OURS} AND "grant" = :grant"#)
}

/// Leaves the caller's token, so that a late copy of its claim is refused.
fn burn(vacate: &Vacate) -> String {
    let set = vacate_set(vacate);
    let (token, raise) = if Broken::CleanupWithoutBurn.on() { ("0", "") } else { (":token", "token = :token, ") };
    let (columns, values) = match vacate.close {
        Some(_) => (", closed_ms, closed_until_ms, closed_by, data", ", :closed_ms, :closed_until_ms, :token, :data"),
        None => ("", ""),
    };
    let owed = if Broken::CleanupByName.on() {
        "TRUE"
    } else {
        r#"("grant" = :grant OR ("grant" IS NULL AND token < :token))"#
    };
    format!(
        "INSERT INTO leasehold (name, format, token{columns}) VALUES (:name, 1, {token}{values})
        ON CONFLICT (name) DO UPDATE SET {raise}{set} WHERE {OURS} AND {owed}"
    )
}

fn vacate_set(vacate: &Vacate) -> String {
    let data = if Broken::ClosingKeepsPayload.on() { "ifnull(:data, data)" } else { ":data" };
    let close = match vacate.close {
        Some(_) => {
            format!(", closed_ms = :closed_ms, closed_until_ms = :closed_until_ms, closed_by = :token, data = {data}")
        }
        None if vacate.burn && Broken::BurnClearsClosed.on() => format!(", {NOT_CLOSED}"),
        None => String::new(),
    };
    format!(r#""grant" = NULL, expires_at_ms = NULL, {NO_ASK}{close}"#)
}

pub(super) fn revoke(revoke: &Revoke) -> Statement {
    let held = r#""grant" IS NOT NULL AND token = :token"#;
    let sql = if revoke.force {
        format!(
            r#"UPDATE leasehold SET revoked = 1, "grant" = NULL, expires_at_ms = NULL, {NO_ASK}
            WHERE name = :name AND {OURS} AND {held}"#
        )
    } else {
        format!(
            r#"UPDATE leasehold SET revoked = 1, "grant" = :fresh
            WHERE name = :name AND {OURS} AND {held} AND ifnull(revoked, 0) = 0"#
        )
    };
    Statement::of(sql).with(":name", &revoke.name).with(":token", revoke.token).with(":fresh", revoke.fresh.to_text())
}

pub(super) fn ask(ask: &Ask) -> Statement {
    let bump = if Broken::AskBumpsVersion.on() { ", version = version + 1" } else { "" };
    let sql = format!(
        r#"UPDATE leasehold SET asked_token = :token, asked_grace_ms = :grace_ms, asked_by = :by{bump}
        WHERE name = :name AND {OURS} AND "grant" IS NOT NULL AND token = :token"#
    );
    let wish = &ask.step_down;
    Statement::of(sql)
        .with(":name", &ask.name)
        .with(":token", wish.token)
        .with(":grace_ms", wish.grace_ms)
        .with(":by", wish.by.as_ref().map(|by| by.as_str().to_owned()))
}

/// What can be bound to a statement.
trait IntoParameter {
    fn parameter(self) -> Parameter;
}

impl IntoParameter for Value {
    fn parameter(self) -> Parameter {
        Ok(self)
    }
}

impl IntoParameter for String {
    fn parameter(self) -> Parameter {
        Ok(Value::Text(self))
    }
}

impl IntoParameter for &Name {
    fn parameter(self) -> Parameter {
        Ok(Value::Text(self.as_str().to_owned()))
    }
}

impl IntoParameter for u64 {
    fn parameter(self) -> Parameter {
        // SQLite's numbers are signed.
        i64::try_from(self).map(Value::Integer).map_err(|cause| rusqlite::Error::ToSqlConversionFailure(cause.into()))
    }
}

impl<T: IntoParameter> IntoParameter for Option<T> {
    fn parameter(self) -> Parameter {
        self.map_or(Ok(Value::Null), T::parameter)
    }
}
