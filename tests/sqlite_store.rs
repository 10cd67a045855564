//! The SQLite store where it differs from others: its file, its table, its errors.
#![cfg(feature = "sqlite")]

use std::path::{Path, PathBuf};

use leasehold::sqlite::SqliteStore;
use leasehold::store::Store;
use leasehold::{
    Applied, Claim, Claimed, Error, ErrorKind, Expect, Grant, Name, Page, Renew, Renewed, StoreError, StoreErrorKind,
    Unreadable, Vacate, View,
};
use rusqlite::Connection;

#[tokio::test]
async fn a_lease_is_still_there_when_the_file_is_opened_again_and_it_is_the_same_store() {
    let file = File::new("again");
    let store = file.open().await;
    assert_eq!(claim(&store, "a", 1).await, Claimed::Granted);
    let identity = store.describe().identity;
    drop(store);
    let again = file.open().await;
    assert_eq!(again.describe().identity, identity);
    assert_eq!(read(&again, "a").await.token(), 1);
    let isolated = again.isolated().unwrap();
    assert_eq!(isolated.describe().identity, identity);
    assert_eq!(isolated.read(&name("a")).await.unwrap().value.token(), 1);
}

#[tokio::test]
async fn names_that_differ_in_case_form_or_wildcards_are_different_leases() {
    let file = File::new("names");
    let store = file.open().await;
    let names = ["a", "A", "é", "e\u{301}", "%", "_", "*", "a/../b", "b", "a//b", "a%2fb", " a", "a.", "\u{10FFFF}"];
    for (index, text) in names.iter().enumerate() {
        assert_eq!(claim(&store, text, index as u64 + 1).await, Claimed::Granted, "{text}");
    }
    for (index, text) in names.iter().enumerate() {
        assert_eq!(read(&store, text).await.token(), index as u64 + 1, "{text}");
    }
}

#[tokio::test]
async fn a_listing_takes_the_prefix_byte_for_byte() {
    let file = File::new("prefix");
    let store = file.open().await;
    let names = ["a%b", "a%c", "axb", "A%b", "a_b", "a*b", "a", "b", "é1", "É1", "\u{10FFFF}x", "[a]1", "a1"];
    for text in names {
        claim(&store, text, 1).await;
    }
    for prefix in ["", "a", "a%", "a_", "a*", "A", "é", "\u{10FFFF}", "[a]", "c", "a%b", "a%bb"] {
        let mut right: Vec<_> = names.iter().filter(|name| name.starts_with(prefix)).map(|n| n.to_string()).collect();
        right.sort();
        assert_eq!(listed(&store, prefix).await, (right, 0), "{prefix}");
    }
}

#[tokio::test]
async fn a_listing_of_many_pages_shows_each_lease_once_and_counts_what_is_not_readable() {
    let file = File::new("pages");
    let store = file.open().await;
    // More than a page of unreadable rows in the middle, and names that are none.
    file.raw()
        .execute_batch(
            "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 3999)
            INSERT INTO leasehold (name, format, token)
                SELECT printf('p/%04d', i), iif(i BETWEEN 900 AND 2999, 2, 1), i FROM n;
            INSERT INTO leasehold (name, format, token) VALUES ('', 1, 1), ('q', 1, 1),
                (CAST(x'702f39ff' AS TEXT), 1, 1), ('p/' || char(10), 1, 1), (printf('p/%300c', 'x'), 1, 1)",
        )
        .unwrap();
    let (names, skipped) = listed(&store, "p/").await;
    let right: Vec<_> = (0..900).chain(3000..4000).map(|i| format!("p/{i:04}")).collect();
    assert_eq!(names, right);
    assert_eq!(skipped, 2100 + 3);
    let bad = store.list("p/", Some(Page("zz".into()))).await.unwrap_err();
    assert_eq!((bad.kind, bad.applied), (StoreErrorKind::Invalid, Applied::No));
}

#[tokio::test]
async fn while_another_process_writes_a_verb_is_contended_and_not_applied_and_reads_go_on() {
    let file = File::new("busy");
    let store = file.open().await;
    let raw = file.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.claim(&body("a", 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (StoreErrorKind::Contended, Applied::No), "{error}");
    let renewed = store.renew(&[renewal("a", 1), renewal("b", 1)]).await;
    for answer in renewed {
        let error = answer.unwrap_err();
        assert_eq!((error.kind, error.applied), (StoreErrorKind::Contended, Applied::No), "{error}");
    }
    assert_eq!(read(&store, "a").await, View::absent());
    raw.execute_batch("ROLLBACK").unwrap();
    assert_eq!(claim(&store, "a", 1).await, Claimed::Granted);
}

#[tokio::test]
async fn each_renewal_of_a_batch_has_its_own_answer() {
    let file = File::new("batch");
    let store = file.open().await;
    claim(&store, "a", 1).await;
    claim(&store, "c", 1).await;
    let answers = store.renew(&[renewal("a", 2), renewal("b", 2), renewal("c", 2), renewal("c", 1)]).await;
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().value).collect();
    assert_eq!(answers[0], Renewed::Renewed(None));
    assert_eq!(answers[1], Renewed::Refused(View::absent()));
    assert_eq!(answers[2], Renewed::Renewed(None));
    assert_eq!(answers[3], Renewed::Refused(read(&store, "c").await));
}

#[tokio::test]
async fn when_the_commit_of_a_batch_fails_no_renewal_is_known_to_be_stored() {
    let file = File::new("commit");
    let store = file.open().await;
    claim(&store, "a", 1).await;
    // A deferred foreign key fails at the commit and not before.
    file.raw()
        .execute_batch(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TRIGGER trap AFTER UPDATE ON leasehold BEGIN INSERT INTO child VALUES (7); END",
        )
        .unwrap();
    for answer in store.renew(&[renewal("a", 2), renewal("b", 2)]).await {
        assert_eq!(answer.unwrap_err().applied, Applied::Unknown);
    }
    file.raw().execute_batch("DROP TRIGGER trap").unwrap();
    let answers = store.renew(&[renewal("a", 3)]).await;
    assert_eq!(answers[0].as_ref().unwrap().value, Renewed::Renewed(None));
}

#[tokio::test]
async fn a_statement_that_fails_alone_takes_no_other_renewal_with_it_and_a_rollback_takes_all() {
    let file = File::new("trigger");
    let store = file.open().await;
    claim(&store, "a", 1).await;
    claim(&store, "b", 1).await;
    let trap = |how: &str| {
        let sql = format!(
            "DROP TRIGGER IF EXISTS trap;
            CREATE TRIGGER trap BEFORE UPDATE ON leasehold WHEN old.name = 'b' BEGIN SELECT raise({how}, 'no'); END"
        );
        file.raw().execute_batch(&sql).unwrap();
    };
    trap("ABORT");
    let answers = store.renew(&[renewal("a", 2), renewal("b", 2)]).await;
    assert_eq!(answers[0].as_ref().unwrap().value, Renewed::Renewed(None));
    assert_eq!(answers[1].as_ref().unwrap_err().applied, Applied::No);
    trap("ROLLBACK");
    for answer in store.renew(&[renewal("a", 3), renewal("b", 3)]).await {
        assert!(answer.is_err());
    }
    assert_eq!(read(&store, "a").await.record.unwrap().version, Some(2));
}

#[tokio::test]
async fn a_file_that_was_removed_or_replaced_is_noticed_before_anything_is_written() {
    let file = File::new("replaced");
    let store = file.open().await;
    claim(&store, "a", 1).await;
    std::fs::remove_dir_all(&file.0).unwrap();
    misconfigured(store.claim(&body("b", 1)).await.unwrap_err(), "gone");
    std::fs::create_dir_all(&file.0).unwrap();
    let other = file.open().await;
    misconfigured(store.claim(&body("b", 1)).await.unwrap_err(), "replaced");
    misconfigured(store.isolated().unwrap().claim(&body("b", 1)).await.unwrap_err(), "replaced");
    assert_eq!(claim(&other, "b", 1).await, Claimed::Granted);
}

#[tokio::test]
async fn what_cannot_be_opened_says_what_was_found() {
    let file = File::new("bad");
    let missing = SqliteStore::open(file.0.join("none").join("leases.db")).await.unwrap_err();
    expect_error(&missing, ErrorKind::Misconfigured, "directory");
    expect_error(&SqliteStore::open("").await.unwrap_err(), ErrorKind::Misconfigured, "does not name a file");
    std::fs::write(file.path(), [b'x'; 8192]).unwrap();
    expect_error(&file.try_open().await.unwrap_err(), ErrorKind::Misconfigured, "not a database");
    std::fs::remove_file(file.path()).unwrap();
    std::fs::create_dir(file.path()).unwrap();
    expect_error(&file.try_open().await.unwrap_err(), ErrorKind::Misconfigured, "unable to open");
}

#[tokio::test]
async fn a_table_of_another_shape_is_refused_by_name_and_left_alone() {
    let shape = sql_of_a_new_table().await;
    let cases = [
        ("CREATE TABLE leasehold (id INTEGER)".to_owned(), "no column name"),
        (shape.replace("token INTEGER", "token TEXT"), "column token is TEXT"),
        (shape.replace("closed_by INTEGER,", ""), "no column closed_by"),
        (shape.replace("name TEXT NOT NULL", "name TEXT NOT NULL COLLATE NOCASE"), "byte for byte"),
        (shape.replace("STRICT, WITHOUT ROWID", "STRICT"), "STRICT, WITHOUT ROWID"),
        (shape.replace("STRICT, WITHOUT ROWID", "WITHOUT ROWID"), "STRICT, WITHOUT ROWID"),
        (shape.replace("data BLOB", "data BLOB, mine TEXT NOT NULL"), "column mine"),
        (format!("PRAGMA encoding = 'UTF-16'; {shape}"), "UTF-16"),
    ];
    for (sql, found) in cases {
        let file = File::new("shape");
        file.raw().execute_batch(&sql).unwrap();
        expect_error(&file.try_open().await.unwrap_err(), ErrorKind::Misconfigured, found);
        let tables: i64 = file
            .raw()
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1, "a table was left in a file that was refused");
    }
}

#[tokio::test]
async fn the_callers_own_columns_and_tables_survive() {
    let file = File::new("columns");
    let shape = sql_of_a_new_table().await;
    let mine = shape.replace("data BLOB", "data BLOB, mine TEXT, noted TEXT NOT NULL DEFAULT 'x'");
    file.raw().execute_batch(&format!("CREATE TABLE jobs (id INTEGER); {mine}")).unwrap();
    let store = file.open().await;
    claim(&store, "a", 1).await;
    file.raw().execute("UPDATE leasehold SET mine = 'kept'", []).unwrap();
    store.renew(&[renewal("a", 2)]).await.remove(0).unwrap();
    let release = Vacate { name: name("a"), token: 1, grant: grant("a"), burn: true, close: None, now_ms: None };
    store.vacate(&release).await.unwrap();
    assert_eq!(claim(&store, "a", 2).await, Claimed::Granted);
    let kept: String = file.raw().query_row("SELECT mine FROM leasehold", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "kept");
}

#[tokio::test]
async fn a_number_that_sqlite_has_no_room_for_is_refused_and_not_written() {
    let file = File::new("range");
    let store = file.open().await;
    let error = store.claim(&body("a", u64::MAX)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (StoreErrorKind::Invalid, Applied::No));
    assert_eq!(read(&store, "a").await, View::absent());
}

#[tokio::test]
async fn a_record_of_a_newer_format_is_a_view_and_not_an_error() {
    let file = File::new("format");
    let store = file.open().await;
    file.raw().execute("INSERT INTO leasehold (name, format, token) VALUES ('a', 2, 1)", []).unwrap();
    assert_eq!(claim(&store, "a", 9).await, Claimed::Refused(View::unreadable(Unreadable::Format)));
}

#[tokio::test]
async fn calls_that_are_begun_and_not_polled_keep_nobody_from_the_connection() {
    let file = File::new("parked");
    let store = file.open().await;
    let names = ["a", "b"].map(name);
    let mut parked = names.each_ref().map(|name| store.read(name));
    for call in &mut parked {
        let waker = std::task::Waker::noop();
        assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    for token in 1..20 {
        assert_eq!(claim(&store, &format!("job/{token}"), token).await, Claimed::Granted);
    }
    drop(parked);
}

#[test]
fn outside_of_a_runtime_a_call_is_an_error_and_not_a_panic() {
    let file = File::new("runtime");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = runtime.block_on(file.try_open()).unwrap();
    drop(runtime);
    let error = futures_util::FutureExt::now_or_never(store.claim(&body("a", 1))).unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (StoreErrorKind::Unavailable, Applied::No), "{error}");
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(other.block_on(claim(&store, "a", 1)), Claimed::Granted);
}

#[tokio::test]
async fn neither_debug_nor_errors_show_a_grant() {
    let file = File::new("secrets");
    let store = file.open().await;
    claim(&store, "a", 1).await;
    file.raw().execute_batch("DROP TABLE leasehold").unwrap();
    let error = store.claim(&body("a", 2)).await.unwrap_err();
    misconfigured(error, "leasehold");
    let error = store.claim(&body("a", 2)).await.unwrap_err();
    for text in [format!("{store:?}"), format!("{error} {error:?}")] {
        assert!(!text.contains(&grant("a").to_text()), "{text}");
    }
}

async fn sql_of_a_new_table() -> String {
    let file = File::new("template");
    file.open().await;
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'leasehold'";
    file.raw().query_row(sql, [], |row| row.get(0)).unwrap()
}

fn expect_error(error: &Error, kind: ErrorKind, text: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

fn misconfigured(error: StoreError, text: &str) {
    assert_eq!((error.kind, error.applied), (StoreErrorKind::Misconfigured, Applied::No), "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

async fn listed(store: &SqliteStore, prefix: &str) -> (Vec<String>, usize) {
    let (mut names, mut skipped, mut page) = (Vec::new(), 0, None);
    loop {
        let answer = store.list(prefix, page).await.unwrap().value;
        names.extend(answer.leases.iter().map(|lease| lease.name.as_str().to_owned()));
        skipped += answer.skipped;
        page = answer.next;
        if page.is_none() {
            return (names, skipped);
        }
    }
}

async fn claim(store: &SqliteStore, text: &str, token: u64) -> Claimed {
    store.claim(&body(text, token)).await.unwrap().value
}

async fn read(store: &SqliteStore, text: &str) -> View {
    store.read(&name(text)).await.unwrap().value
}

fn body(text: &str, token: u64) -> Claim {
    Claim {
        name: name(text),
        token,
        grant: grant(text),
        ttl_ms: 1000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
        expect: Expect::Vacant,
    }
}

fn renewal(text: &str, version: u64) -> Renew {
    Renew {
        name: name(text),
        token: 1,
        grant: grant(text),
        version,
        ttl_ms: 1000,
        expires_at_ms: None,
        holder: None,
        data: None,
        set: None,
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn grant(text: &str) -> Grant {
    Grant::from_bits(0x1234_5678_9abc + text.len() as u128)
}

/// A database in a folder of its own.
struct File(PathBuf);

impl File {
    fn new(what: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = base.join(format!("leasehold-store-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("leases.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    async fn try_open(&self) -> Result<SqliteStore, Error> {
        SqliteStore::open(self.path()).await
    }

    async fn open(&self) -> SqliteStore {
        self.try_open().await.unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
