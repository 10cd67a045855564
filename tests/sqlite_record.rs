//! What SQLite leaves in the table and answers is what `protocol::record` says: for random records and verbs.
#![cfg(all(feature = "sqlite", feature = "__proptest"))]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use leasehold::protocol::record::{self, Outcome, Stored};
use leasehold::sqlite::SqliteStore;
use leasehold::store::Store;
use leasehold::{
    Ask, Asked, Claim, Claimed, Close, Closed, Data, Expect, FencingToken, Grant, Label, MemberSet, Name, Record,
    Renew, Renewed, Revoke, Revoked, StepDown, Unreadable, Vacate, Vacated, Version, View,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use rusqlite::{Connection, params};

/// A record of another name, that no verb may change.
const BYSTANDER: &str = "leases/b";
const NAME: &str = "leases/a";

#[derive(Clone, Debug)]
enum Verb {
    Claim(Claim),
    Renew(Renew),
    Vacate(Vacate),
    Revoke(Revoke),
    Ask(Ask),
}

#[derive(Clone, Debug, PartialEq)]
enum Answered {
    Claim(Claimed),
    Renew(Renewed),
    Vacate(Vacated),
    Revoke(Revoked),
    Ask(Asked),
}

#[test]
fn sqlite_accepts_writes_and_answers_exactly_as_the_record_says() {
    let _whole = whole();
    let bench = Bench::new("equal");
    let seen = Seen::default();
    let mut runner = TestRunner::new(config(6000));
    let run = runner.run(&case(), |(stored, verb)| {
        seen.of(&verb, &expected(&stored, &verb).0);
        bench.check(&stored, &verb, expected(&stored, &verb))
    });
    run.unwrap_or_else(|found| panic!("{found}"));
    seen.enough();
}

#[test]
fn a_row_that_is_not_readable_is_told_why_and_never_touched() {
    let _whole = whole();
    let bench = Bench::new("hostile");
    let mut runner = TestRunner::new(config(3000));
    let hostile = (held_or_free(), select(hostile_values()));
    let case = hostile.prop_flat_map(|(record, bad)| {
        verb(Stored::Record(record.clone())).prop_map(move |verb| (record.clone(), bad.clone(), verb))
    });
    let run = runner.run(&case, |(record, (change, reason), verb)| {
        bench.put(&Stored::Record(record));
        bench.raw.execute(&format!("UPDATE leasehold SET {change} WHERE name = ?1"), [NAME]).unwrap();
        let before = bench.bytes();
        let view = View::unreadable(reason.clone());
        prop_assert_eq!(bench.run(&verb), refused(&verb, view.clone()));
        prop_assert_eq!(bench.bytes(), before);
        prop_assert_eq!(bench.read(), view);
        Ok(())
    });
    run.unwrap_or_else(|found| panic!("{found}"));
}

#[test]
#[cfg(feature = "__broken")]
fn each_rule_that_is_broken_in_the_sql_is_seen_and_is_broken_in_the_same_way_in_the_record() {
    use leasehold::protocol::broken::Broken;
    let rules = [
        Broken::TokenNotAbove,
        Broken::RenewalUnconditional,
        Broken::RenewalWithoutVersionOrder,
        Broken::RenewalKeepsOldExpiresAt,
        Broken::RenewalShortensTtl,
        Broken::CleanupByName,
        Broken::CleanupWithoutBurn,
        Broken::BurnClearsClosed,
        Broken::AskBumpsVersion,
        Broken::ClosingKeepsPayload,
        Broken::ClaimKeepsData,
        Broken::TakeoverByCounterOnly,
        Broken::ClosedIdentityWithoutToken,
    ];
    let cases = samples(2000);
    let whole = whole();
    let right: Vec<_> = cases.iter().map(|(stored, verb)| expected(stored, verb)).collect();
    drop(whole);
    for rule in rules {
        let _broken = rule.switch_on();
        let bench = Bench::new(&format!("broken-{rule:?}"));
        let mut caught = 0;
        for ((stored, verb), right) in cases.iter().zip(&right) {
            caught += usize::from(bench.check(stored, verb, right.clone()).is_err());
            let same = bench.check(stored, verb, expected(stored, verb));
            same.unwrap_or_else(|found| panic!("{rule:?} is not the same in both: {found}\n{stored:?}\n{verb:?}"));
        }
        println!("{rule:?}: {caught} of {} cases differ", cases.len());
        assert!(caught > 0, "nothing notices {rule:?}");
    }
}

#[cfg(feature = "__broken")]
fn samples(count: usize) -> Vec<(Stored, Verb)> {
    use proptest::strategy::ValueTree;
    let (case, mut runner) = (case(), TestRunner::deterministic());
    (0..count).map(|_| case.new_tree(&mut runner).unwrap().current()).collect()
}

#[cfg(feature = "__broken")]
fn whole() -> leasehold::protocol::broken::switch::Guard {
    leasehold::protocol::broken::switch::Guard::nothing_broken()
}

#[cfg(not(feature = "__broken"))]
fn whole() {}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// How often each verb was accepted, repeated and refused: a run that saw too little proves nothing.
#[derive(Default)]
struct Seen(RefCell<BTreeMap<(&'static str, &'static str), u32>>);

impl Seen {
    fn of(&self, verb: &Verb, outcome: &Outcome) {
        let verb = match verb {
            Verb::Claim(_) => "claim",
            Verb::Renew(_) => "renew",
            Verb::Vacate(_) => "vacate",
            Verb::Revoke(_) => "revoke",
            Verb::Ask(_) => "ask",
        };
        let outcome = match outcome {
            Outcome::Write(_) => "accepted",
            Outcome::Already => "repeated",
            Outcome::Refuse => "refused",
        };
        *self.0.borrow_mut().entry((verb, outcome)).or_default() += 1;
    }

    fn enough(&self) {
        let seen = self.0.borrow();
        println!("{seen:?}");
        for verb in ["claim", "renew", "vacate", "revoke", "ask"] {
            for outcome in ["accepted", "refused"] {
                let count = seen.get(&(verb, outcome)).copied().unwrap_or(0);
                assert!(count >= 100, "only {count} times was {verb} {outcome}");
            }
        }
        for verb in ["claim", "revoke"] {
            let count = seen.get(&(verb, "repeated")).copied().unwrap_or(0);
            assert!(count >= 20, "only {count} times was a {verb} repeated");
        }
    }
}

/// A store, and a connection of our own that looks behind it.
struct Bench {
    runtime: tokio::runtime::Runtime,
    store: SqliteStore,
    raw: Connection,
    folder: PathBuf,
}

impl Bench {
    fn new(what: &str) -> Self {
        let folder = scratch().join(format!("leasehold-record-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("leases.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let store = runtime.block_on(SqliteStore::open(&path)).unwrap();
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "synchronous", "OFF").unwrap();
        Self { runtime, store, raw, folder }
    }

    fn check(&self, stored: &Stored, verb: &Verb, right: (Outcome, Answered)) -> Result<(), TestCaseError> {
        self.put(stored);
        let (outcome, answered) = right;
        prop_assert_eq!(self.run(verb), answered);
        let left = match outcome {
            Outcome::Write(record) => Stored::Record(record),
            Outcome::Already | Outcome::Refuse => stored.clone(),
        };
        prop_assert_eq!(self.read(), left.view());
        prop_assert_eq!(self.read_of(BYSTANDER), stored.view());
        Ok(())
    }

    fn put(&self, stored: &Stored) {
        let transaction = self.raw.unchecked_transaction().unwrap();
        transaction.execute("DELETE FROM leasehold", []).unwrap();
        if let Stored::Record(record) = stored {
            insert(&transaction, NAME, record);
            insert(&transaction, BYSTANDER, record);
        }
        transaction.commit().unwrap();
    }

    fn run(&self, verb: &Verb) -> Answered {
        let store = &self.store;
        self.runtime.block_on(async {
            match verb {
                Verb::Claim(claim) => Answered::Claim(store.claim(claim).await.unwrap().value),
                Verb::Renew(renew) => {
                    let mut answers = store.renew(std::slice::from_ref(renew)).await;
                    Answered::Renew(answers.pop().unwrap().unwrap().value)
                }
                Verb::Vacate(vacate) => Answered::Vacate(store.vacate(vacate).await.unwrap().value),
                Verb::Revoke(revoke) => Answered::Revoke(store.revoke(revoke).await.unwrap().value),
                Verb::Ask(ask) => Answered::Ask(store.ask(ask).await.unwrap().value),
            }
        })
    }

    fn read(&self) -> View {
        self.read_of(NAME)
    }

    fn read_of(&self, name: &str) -> View {
        self.runtime.block_on(self.store.read(&Name::new(name).unwrap())).unwrap().value
    }

    /// Text may not be UTF-8 there, so nothing is decoded.
    fn bytes(&self) -> Vec<String> {
        let mut select = self.raw.prepare_cached("SELECT * FROM leasehold WHERE name = ?1").unwrap();
        let columns = select.column_count();
        select
            .query_row([NAME], |row| (0..columns).map(|column| Ok(format!("{:?}", row.get_ref(column)?))).collect())
            .unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// In memory where the machine has such a place: thousands of commits would each wait for a disk.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn insert(connection: &Connection, name: &str, record: &Record) {
    let sql = r#"INSERT INTO leasehold (name, format, token, "grant", version, holder, ttl_ms, expires_at_ms, closed_ms,
        closed_until_ms, closed_by, revoked, asked_token, asked_grace_ms, asked_by, "set", data)
        VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"#;
    let closed = record.closed.unwrap_or_default();
    let asked = record.asked.as_ref();
    let row = params![
        name,
        record.token as i64,
        record.grant.map(Grant::to_text),
        record.version.map(|n| n as i64),
        record.holder.as_ref().map(Label::as_str),
        record.ttl_ms.map(|n| n as i64),
        record.expires_at_ms.map(|n| n as i64),
        closed.for_ms.map(|n| n as i64),
        closed.until_ms.map(|n| n as i64),
        closed.by.map(|n| n as i64),
        record.revoked.then_some(1),
        asked.map(|asked| asked.token as i64),
        asked.map(|asked| asked.grace_ms as i64),
        asked.and_then(|asked| asked.by.as_ref()).map(Label::as_str),
        record.set.map(|set| set.0.cast_signed()),
        record.data.as_ref().map(Data::as_bytes),
    ];
    connection.prepare_cached(sql).unwrap().execute(row).unwrap();
}

/// What the record says: its outcome, and the answer that follows from it.
fn expected(stored: &Stored, verb: &Verb) -> (Outcome, Answered) {
    let outcome = match verb {
        Verb::Claim(claim) => record::claim(stored, claim),
        Verb::Renew(renew) => record::renew(stored, renew),
        Verb::Vacate(vacate) => record::vacate(stored, vacate),
        Verb::Revoke(revoke) => record::revoke(stored, revoke),
        Verb::Ask(ask) => record::ask(stored, ask),
    };
    let answered = match (&outcome, verb) {
        (Outcome::Refuse, Verb::Revoke(revoke)) => Answered::Revoke(record::revoke_refused(stored, revoke)),
        (Outcome::Refuse, _) => refused(verb, stored.view()),
        (Outcome::Write(left), Verb::Renew(_)) => Answered::Renew(Renewed::Renewed(left.asked.clone())),
        (Outcome::Already, Verb::Renew(_)) => unreachable!("no renewal is sent twice"),
        (_, Verb::Claim(_)) => Answered::Claim(Claimed::Granted),
        (_, Verb::Vacate(_)) => Answered::Vacate(Vacated::Vacated),
        (_, Verb::Revoke(_)) => Answered::Revoke(Revoked::Revoked),
        (_, Verb::Ask(_)) => Answered::Ask(Asked::Asked),
    };
    (outcome, answered)
}

fn refused(verb: &Verb, view: View) -> Answered {
    match verb {
        Verb::Claim(_) => Answered::Claim(Claimed::Refused(view)),
        Verb::Renew(_) => Answered::Renew(Renewed::Refused(view)),
        Verb::Vacate(_) => Answered::Vacate(Vacated::Refused(view)),
        Verb::Revoke(_) => Answered::Revoke(Revoked::Refused(view)),
        Verb::Ask(_) => Answered::Ask(Asked::Refused(view)),
    }
}

/// What makes a held row unreadable, and why.
fn hostile_values() -> Vec<(&'static str, Unreadable)> {
    let held = r#""grant" = '00000000-0000-0000-0000-000000000001', version = 1, ttl_ms = 1000"#;
    let held_without = |missing: &'static str| -> &'static str {
        let text = held.replace(&format!("{missing} = 1000"), &format!("{missing} = NULL"));
        text.replace(&format!("{missing} = 1,"), &format!("{missing} = NULL,")).leak()
    };
    vec![
        ("format = 2", Unreadable::Format),
        ("format = 0", Unreadable::Format),
        ("session = 's'", Unreadable::Session),
        ("token = -1", Unreadable::Field("token")),
        ("token = 9007199254740992", Unreadable::Field("token")),
        (held_without("ttl_ms"), Unreadable::Field("ttl_ms")),
        (held_without("version"), Unreadable::Field("version")),
        (r#""grant" = '00000000-0000-0000-0000-000000000001', version = 0"#, Unreadable::Field("version")),
        ("version = -1", Unreadable::Field("version")),
        ("ttl_ms = 0", Unreadable::Field("ttl_ms")),
        ("ttl_ms = 86400001", Unreadable::Field("ttl_ms")),
        (r#""grant" = '00000000-0000-0000-0000-00000000000A'"#, Unreadable::Field("grant")),
        (r#""grant" = '00000000000000000000000000000001'"#, Unreadable::Field("grant")),
        (r#""grant" = ''"#, Unreadable::Field("grant")),
        (r#""grant" = CAST(x'ff' AS TEXT)"#, Unreadable::Field("grant")),
        ("data = zeroblob(4097)", Unreadable::Field("data")),
        ("holder = printf('%129c', 'x')", Unreadable::Field("holder")),
        ("holder = CAST(x'c3' AS TEXT)", Unreadable::Field("holder")),
        ("expires_at_ms = -5", Unreadable::Field("expires_at_ms")),
        ("closed_ms = -5", Unreadable::Field("closed_ms")),
        ("closed_until_ms = -5", Unreadable::Field("closed_until_ms")),
        ("closed_by = -5", Unreadable::Field("closed_by")),
        ("revoked = 2", Unreadable::Field("revoked")),
        ("asked_token = -1", Unreadable::Field("asked_token")),
        ("asked_token = 3, asked_grace_ms = NULL", Unreadable::Field("asked")),
        ("asked_token = NULL, asked_grace_ms = 3", Unreadable::Field("asked")),
    ]
}

fn case() -> impl Strategy<Value = (Stored, Verb)> {
    stored().prop_flat_map(|stored| verb(stored.clone()).prop_map(move |verb| (stored.clone(), verb)))
}

fn stored() -> impl Strategy<Value = Stored> {
    prop_oneof![1 => Just(Stored::Absent), 9 => held_or_free().prop_map(Stored::Record)]
}

// Small worlds, so that the parts of a verb and a record are often equal, one above or one below.

fn token() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..5u64, 1 => Just(FencingToken::MAX - 1), 1 => Just(FencingToken::MAX)]
}

fn grant() -> impl Strategy<Value = Grant> {
    (1..4u128).prop_map(Grant::from_bits)
}

fn label() -> impl Strategy<Value = Option<Label>> {
    option::of(select(vec!["", "a", "line\nbreak", "Zoë", "nul\0"]).prop_map(|text| Label::new(text).unwrap()))
}

fn data() -> impl Strategy<Value = Option<Data>> {
    option::of(select(vec![0, 1, 4096]).prop_map(|length| Data::new(&vec![7; length]).unwrap()))
}

fn time() -> impl Strategy<Value = Option<u64>> {
    option::of(prop_oneof![0..3u64, Just(1_900_000_000_000)])
}

fn set() -> impl Strategy<Value = Option<MemberSet>> {
    option::of(prop_oneof![Just(1), Just(u64::MAX)].prop_map(MemberSet))
}

fn closed() -> impl Strategy<Value = Option<Closed>> {
    let whole =
        (time(), time(), option::of(token())).prop_map(|(for_ms, until_ms, by)| Closed { for_ms, until_ms, by });
    option::of(whole.prop_filter("closed means a duration", |c| c.for_ms.is_some() || c.until_ms.is_some()))
}

fn asked() -> impl Strategy<Value = Option<StepDown>> {
    option::of((token(), 0..3u64, label()).prop_map(|(token, grace_ms, by)| StepDown { token, grace_ms, by }))
}

fn held_or_free() -> impl Strategy<Value = Record> {
    let who = (token(), option::weighted(0.6, grant()), option::of(1..4u64), label(), option::of(1..4u64));
    let rest = (time(), closed(), any::<bool>(), asked(), set(), data());
    (who, rest).prop_map(
        |((token, grant, version, holder, ttl_ms), (expires_at_ms, closed, revoked, asked, set, data))| {
            let mut record = Record::new();
            record.token = token;
            record.grant = grant;
            record.version = version.or(grant.map(|_| 1));
            record.holder = holder;
            record.ttl_ms = ttl_ms.or(grant.map(|_| 1000));
            record.expires_at_ms = expires_at_ms;
            record.closed = closed;
            record.revoked = revoked;
            record.asked = asked;
            record.set = set;
            record.data = data;
            record
        },
    )
}

/// A verb that often fits the record: of each part, the record's own or another.
fn verb(stored: Stored) -> impl Strategy<Value = Verb> {
    let record = match &stored {
        Stored::Record(record) => record.clone(),
        _ => Record::new(),
    };
    prop_oneof![
        3 => claim(record.clone()).prop_map(Verb::Claim),
        2 => renew(record.clone()).prop_map(Verb::Renew),
        3 => vacate(record.clone()).prop_map(Verb::Vacate),
        2 => revoke(record.clone()).prop_map(Verb::Revoke),
        1 => ask(record).prop_map(Verb::Ask),
    ]
}

fn near(token: u64) -> BoxedStrategy<u64> {
    let above = (token + 1).min(FencingToken::MAX);
    prop_oneof![4 => Just(above), 2 => Just(token), 1 => Just(token.saturating_sub(1)), 1 => self::token()].boxed()
}

fn same_or<T: Clone + std::fmt::Debug + 'static>(
    own: Option<T>,
    other: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    match own {
        Some(own) => prop_oneof![3 => Just(own), 1 => other].boxed(),
        None => other.boxed(),
    }
}

fn claim(record: Record) -> impl Strategy<Value = Claim> {
    let other = (token(), option::of(grant()), option::of(1..4u64));
    let other = other.prop_map(|(token, grant, version)| Version::of_write(token, grant, version));
    let own = Version::of(&record);
    let (token, held, version) = own.as_write().unwrap();
    let almost = prop_oneof![
        Just(Version::of_write(token ^ 1, held, version)),
        Just(Version::of_write(token, None, version)),
        Just(Version::of_write(token, held, version.map(|v| v + 1))),
        Just(Version::of_write(token, held, None)),
        Just(Version::of_tag("etag")),
    ];
    let expect = prop_oneof![
        3 => Just(Expect::Vacant),
        3 => Just(Expect::Expired(own)),
        2 => almost.prop_map(Expect::Expired),
        1 => other.prop_map(Expect::Expired),
        2 => same_or(record.grant, grant()).prop_map(Expect::Handed),
    ];
    let new = (1..6u128).prop_map(Grant::from_bits);
    let mine = prop_oneof![2 => new, 1 => same_or(record.grant, grant())];
    let body = (near(record.token), mine, 1..4u64, time(), label(), data(), set(), expect);
    body.prop_map(|(token, grant, ttl_ms, expires_at_ms, holder, data, set, expect)| {
        let name = Name::new(NAME).unwrap();
        Claim { name, token, grant, ttl_ms, expires_at_ms, holder, data, set, expect }
    })
}

fn renew(record: Record) -> impl Strategy<Value = Renew> {
    let body = (near(record.token), same_or(record.grant, grant()), 1..5u64, 1..4u64, time(), label(), data(), set());
    body.prop_map(|(token, grant, version, ttl_ms, expires_at_ms, holder, data, set)| {
        let name = Name::new(NAME).unwrap();
        Renew { name, token, grant, version, ttl_ms, expires_at_ms, holder, data, set }
    })
}

fn vacate(record: Record) -> impl Strategy<Value = Vacate> {
    let close = (0..3u64, time(), data()).prop_map(|(for_ms, until_ms, data)| Close { for_ms, until_ms, data });
    let body = (near(record.token), same_or(record.grant, grant()), any::<bool>(), option::of(close), time());
    body.prop_map(|(token, grant, burn, close, now_ms)| {
        let name = Name::new(NAME).unwrap();
        Vacate { name, token, grant, burn, close, now_ms }
    })
}

fn revoke(record: Record) -> impl Strategy<Value = Revoke> {
    let token = same_or(Some(record.token), near(record.token));
    let body = (token, same_or(record.grant, grant()), any::<bool>());
    body.prop_map(|(token, fresh, force)| Revoke { name: Name::new(NAME).unwrap(), token, fresh, force })
}

fn ask(record: Record) -> impl Strategy<Value = Ask> {
    let body = (same_or(Some(record.token), near(record.token)), 0..3u64, label());
    body.prop_map(|(token, grace_ms, by)| Ask {
        name: Name::new(NAME).unwrap(),
        step_down: StepDown { token, grace_ms, by },
    })
}
