//! Rows that somebody has written by hand, and names that are easily confused, in SQLite.

mod support;

use std::cell::Cell;

use leasehold::sqlite::SqliteStore;
use leasehold::store::Store;
use leasehold::{
    Ask, Asked, Claim, Claimed, Expect, FencingToken, Grant, Name, Renew, Renewed, Revoke, Revoked, Standing, StepDown,
    Vacate, Vacated, View,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use rusqlite::Connection;
use rusqlite::types::Value;
use support::names::{are_distinct_leases, confusing_names};

const COLUMNS: [&str; 17] = [
    "format",
    "token",
    "grant",
    "version",
    "holder",
    "ttl_ms",
    "expires_at_ms",
    "closed_ms",
    "closed_until_ms",
    "closed_by",
    "revoked",
    "asked_token",
    "asked_grace_ms",
    "asked_by",
    "set",
    "session",
    "data",
];

/// In a folder of its own, that goes with it.
struct Bench {
    runtime: tokio::runtime::Runtime,
    store: SqliteStore,
    raw: Connection,
    folder: std::path::PathBuf,
}

impl Bench {
    fn new(what: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leasehold-hostile-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("leases.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let store = runtime.block_on(SqliteStore::open(&path)).unwrap();
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "synchronous", "OFF").unwrap();
        Self { runtime, store, raw, folder }
    }

    fn put(&self, row: &[Content]) {
        self.raw.execute("DELETE FROM leasehold", []).unwrap();
        let names: Vec<_> = COLUMNS.iter().map(|column| format!("\"{column}\"")).collect();
        let places: Vec<_> = row.iter().zip(2..).map(|(cell, number)| cell.place(number)).collect();
        let sql = format!("INSERT INTO leasehold (name, {}) VALUES (?1, {})", names.join(", "), places.join(", "));
        let values = [Value::Text("job".into())].into_iter().chain(row.iter().map(Content::value));
        self.raw.prepare_cached(&sql).unwrap().execute(rusqlite::params_from_iter(values)).unwrap();
    }

    /// Text may not be UTF-8 there, so nothing is decoded.
    fn row(&self) -> Vec<String> {
        let mut select = self.raw.prepare_cached("SELECT * FROM leasehold WHERE name = 'job'").unwrap();
        let columns = select.column_count();
        let shown = |row: &rusqlite::Row<'_>| (0..columns).map(|at| Ok(format!("{:?}", row.get_ref(at)?))).collect();
        select.query_row([], shown).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a column has: the table is strict, so the type is always the column's own.
#[derive(Clone, Debug)]
enum Content {
    Null,
    Number(i64),
    /// Perhaps not UTF-8.
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Content {
    fn place(&self, number: usize) -> String {
        match self {
            Self::Text(_) => format!("CAST(?{number} AS TEXT)"),
            _ => format!("?{number}"),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Integer(*number),
            Self::Text(bytes) | Self::Bytes(bytes) => Value::Blob(bytes.clone()),
        }
    }
}

fn number() -> BoxedStrategy<Content> {
    let edges = vec![-1, 0, 1, 2, 86_400_000, 86_400_001, (1 << 53) - 1, 1 << 53, i64::MAX, i64::MIN];
    prop_oneof![prop::sample::select(edges), 0..4i64, any::<i64>()].prop_map(Content::Number).boxed()
}

fn text() -> BoxedStrategy<Content> {
    let bytes = prop_oneof![
        3 => any::<u128>().prop_map(|bits| Grant::from_bits(bits).to_text().into_bytes()),
        1 => any::<u128>().prop_map(|bits| Grant::from_bits(bits).to_text().to_uppercase().into_bytes()),
        1 => ".{0,140}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ];
    bytes.prop_map(Content::Text).boxed()
}

fn cell(column: &str) -> BoxedStrategy<Content> {
    match column {
        "grant" | "holder" | "asked_by" | "session" => text(),
        "data" => prop_oneof![vec(any::<u8>(), 0..9), vec(Just(7), 4095..4098)].prop_map(Content::Bytes).boxed(),
        _ => number(),
    }
}

/// A row that is a sound held record, a sound free one or empty, with some columns overwritten.
fn hostile() -> impl Strategy<Value = Vec<Content>> {
    let broken = (0..COLUMNS.len()).prop_flat_map(|at| (Just(at), option::weighted(0.8, cell(COLUMNS[at]))));
    (any::<bool>(), vec(broken, 0..5)).prop_map(|(held, broken)| {
        let mut row = vec![Content::Null; COLUMNS.len()];
        (row[0], row[1]) = (Content::Number(1), Content::Number(3));
        if held {
            row[2] = Content::Text(Grant::from_bits(9).to_text().into_bytes());
            (row[3], row[5]) = (Content::Number(1), Content::Number(1000));
        }
        for (at, value) in broken {
            // The first two must not be null.
            row[at] = value.unwrap_or(if at < 2 { Content::Number(-7) } else { Content::Null });
        }
        row
    })
}

fn job() -> Name {
    Name::new("job").unwrap()
}

fn claim() -> Claim {
    Claim {
        name: job(),
        token: FencingToken::MAX,
        grant: Grant::from_bits(77),
        ttl_ms: 1000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}

async fn every_verb_refuses(store: &SqliteStore, view: &View) -> TestCaseResult {
    let (name, grant) = (job(), Grant::from_bits(9));
    prop_assert_eq!(store.claim(&claim()).await.unwrap().value, Claimed::Refused(view.clone()));
    let Claim { token, ttl_ms, .. } = claim();
    let renew = Renew {
        name: name.clone(),
        token: 3,
        grant,
        version: 9,
        ttl_ms,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    };
    let renewed = store.renew(&[renew]).await.remove(0).unwrap().value;
    prop_assert_eq!(renewed, Renewed::Refused(view.clone()));
    for burn in [false, true] {
        let vacate = Vacate { name: name.clone(), token, grant, burn, close: None, now_ms: None };
        prop_assert_eq!(store.vacate(&vacate).await.unwrap().value, Vacated::Refused(view.clone()));
    }
    for force in [false, true] {
        let revoke = Revoke { name: name.clone(), token: 3, fresh: Grant::from_bits(5), force };
        prop_assert_eq!(store.revoke(&revoke).await.unwrap().value, Revoked::Refused(view.clone()));
    }
    let ask = Ask { name, step_down: StepDown { token: 3, grace_ms: 1, by: None } };
    prop_assert_eq!(store.ask(&ask).await.unwrap().value, Asked::Refused(view.clone()));
    Ok(())
}

fn is_null(row: &[Content], column: &str) -> bool {
    let at = COLUMNS.iter().position(|other| *other == column).unwrap();
    matches!(row[at], Content::Null)
}

// G3
#[test]
fn whatever_a_row_says_nothing_panics_and_what_is_unreadable_is_left_alone_and_never_free() {
    let (bench, unreadable, free) = (Bench::new("rows"), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(3000) });
    let ran = runner.run(&hostile(), |row| {
        bench.put(&row);
        let before = bench.row();
        let view = bench.runtime.block_on(bench.store.read(&job())).unwrap().value;
        let page = bench.runtime.block_on(bench.store.list("", None)).unwrap().value;
        prop_assert_eq!(page.leases.len() + page.skipped, 1);
        match view.standing {
            Standing::Unreadable(_) => {
                unreadable.set(unreadable.get() + 1);
                prop_assert_eq!(page.skipped, 1);
                bench.runtime.block_on(every_verb_refuses(&bench.store, &view))?;
                prop_assert_eq!(bench.row(), before);
            }
            Standing::Vacant => {
                free.set(free.get() + 1);
                let held = ["grant", "closed_ms", "closed_until_ms", "session"];
                prop_assert!(held.iter().all(|column| is_null(&row, column)), "taken for free");
                prop_assert!(view.token() <= FencingToken::MAX);
            }
            _ => {
                let claimed = bench.runtime.block_on(bench.store.claim(&claim())).unwrap().value;
                prop_assert_eq!(claimed, Claimed::Refused(view));
                prop_assert_eq!(bench.row(), before);
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(unreadable.get() > 500 && free.get() > 100, "{unreadable:?} {free:?}");
}

// G6
#[test]
fn whatever_two_names_are_they_are_two_leases_and_listed_by_their_prefixes() {
    let (bench, case) = (Bench::new("names"), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(300) });
    let ran = runner.run(&confusing_names(), |(names, cut)| {
        case.set(case.get() + 1);
        bench.runtime.block_on(are_distinct_leases(&bench.store, case.get(), &names, cut));
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}
