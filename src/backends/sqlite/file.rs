//! The file, its tables, and the connections to it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error;
use crate::time::{Clock, SystemClock};
use crate::types::{StoreError, StoreErrorKind};

/// How long a call waits for another process's write. It holds a thread meanwhile, and attempts are timed.
const BUSY: Duration = Duration::from_millis(500);

/// A new process that opens the file while others create it may be told "busy" without any waiting.
const OPENING_TRIES: u32 = 20;

const STATEMENTS_KEPT: usize = 32;

/// `name` is compared byte for byte. `set` holds all 64 bits of a hash. Whatever else a record must be is checked
/// when it is read, so that a row of a newer version can stand in the same table.
const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS leasehold (
    name TEXT NOT NULL PRIMARY KEY,
    format INTEGER NOT NULL,
    token INTEGER NOT NULL,
    "grant" TEXT,
    version INTEGER,
    holder TEXT,
    ttl_ms INTEGER,
    expires_at_ms INTEGER,
    closed_ms INTEGER,
    closed_until_ms INTEGER,
    closed_by INTEGER,
    revoked INTEGER,
    asked_token INTEGER,
    asked_grace_ms INTEGER,
    asked_by TEXT,
    "set" INTEGER,
    session TEXT,
    data BLOB
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leasehold_store (id TEXT NOT NULL) STRICT;
"#;

const COLUMNS: [(&str, &str); 18] = [
    ("name", "TEXT"),
    ("format", "INTEGER"),
    ("token", "INTEGER"),
    ("grant", "TEXT"),
    ("version", "INTEGER"),
    ("holder", "TEXT"),
    ("ttl_ms", "INTEGER"),
    ("expires_at_ms", "INTEGER"),
    ("closed_ms", "INTEGER"),
    ("closed_until_ms", "INTEGER"),
    ("closed_by", "INTEGER"),
    ("revoked", "INTEGER"),
    ("asked_token", "INTEGER"),
    ("asked_grace_ms", "INTEGER"),
    ("asked_by", "TEXT"),
    ("set", "INTEGER"),
    ("session", "TEXT"),
    ("data", "BLOB"),
];

/// Which database a store is on.
pub(super) struct Place {
    path: PathBuf,
    /// Drawn when the tables were made: tells this database from a later one under the same path.
    id: String,
}

/// An open connection, and the file that it is to.
pub(super) struct Link {
    connection: Connection,
    inode: Inode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

/// Opens the file at `path`, and makes it and the tables where they are missing. Blocks.
pub(super) fn open(path: &Path) -> Result<(Place, Link), StoreError> {
    let path = absolute(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(&path, flags)?;
    let id = prepare(&mut connection)?;
    // Only now is there a file whose links can be followed.
    let path = path.canonicalize().unwrap_or(path);
    let inode = Inode::of(&path)?;
    Ok((Place { path, id }, Link { connection, inode }))
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A copy of the file has the same id and another path.
    pub(super) fn identity(&self) -> String {
        format!("sqlite:{}:{}", self.path.display(), self.id)
    }

    /// The connection of a lane, opened if there is none that can be used. Blocks.
    pub(super) fn connected<'lane>(&self, lane: &'lane mut Option<Link>) -> Result<&'lane mut Connection, StoreError> {
        let inode = Inode::of(&self.path)?;
        let link = match lane.take() {
            // A file that was removed or replaced is still open here: what is written to it nobody else sees. And
            // a transaction that could not be rolled back must not go on in the next call.
            Some(link) if link.inode == inode && link.connection.is_autocommit() => link,
            _ => self.reopen(inode)?,
        };
        Ok(&mut lane.insert(link).connection)
    }

    fn reopen(&self, inode: Inode) -> Result<Link, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&self.path, flags)?;
        if stored_id(&connection).map_err(error::of_read)?.as_ref() != Some(&self.id) {
            return Err(error::misconfigured(format!(
                "{} is another database than the one that was opened: it was replaced; open the store again",
                self.path.display()
            )));
        }
        Ok(Link { connection, inode })
    }
}

impl Inode {
    fn of(path: &Path) -> Result<Self, StoreError> {
        let found = path.metadata().map_err(|cause| {
            error::misconfigured(format!("the SQLite file {} is gone or cannot be seen", path.display()))
                .caused_by(cause)
        })?;
        Ok(Self { device: found.dev(), number: found.ino() })
    }
}

/// Absolute, so that SQLite gives no meaning to names like `:memory:`.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let Some(name) = path.file_name() else {
        return Err(error::misconfigured(format!("{path:?} does not name a file: give the path of the database")));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|cause| {
        error::misconfigured(format!("the directory {} cannot be used", parent.display())).caused_by(cause)
    })?;
    Ok(parent.join(name))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags).map_err(error::of_read)?;
    connection.busy_timeout(BUSY).map_err(error::of_read)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // A commit that is answered must survive a power cut, else a token could be granted twice (P1).
    // <https://www.sqlite.org/pragma.html#pragma_synchronous>; fullfsync matters on macOS only.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON").map_err(error::of_read)?;
    Ok(connection)
}

/// Tables, shape, WAL; answers the database's id.
fn prepare(connection: &mut Connection) -> Result<String, StoreError> {
    let mut tried = 0;
    loop {
        match make_tables(connection).and_then(|id| write_ahead(connection).map(|()| id)) {
            Err(error) if error.kind == StoreErrorKind::Contended && tried < OPENING_TRIES => tried += 1,
            done => break done,
        }
    }
}

fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    let mode: String = pragma(connection, "journal_mode = WAL")?;
    if mode != "wal" {
        return Err(error::misconfigured(format!(
            "the file cannot be put into WAL mode (it is in {mode}): use a file on a local disk"
        )));
    }
    Ok(())
}

fn pragma(connection: &Connection, text: &str) -> Result<String, StoreError> {
    connection.query_row(&format!("PRAGMA {text}"), [], |row| row.get(0)).map_err(error::of_read)
}

fn make_tables(connection: &mut Connection) -> Result<String, StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(error::of_read)?;
    transaction.execute_batch(TABLES).map_err(error::of_read)?;
    checked_shape(&transaction)?;
    let id = id_of(&transaction).map_err(error::of_read)?;
    transaction.commit().map_err(error::of_read)?;
    Ok(id)
}

fn id_of(connection: &Connection) -> rusqlite::Result<String> {
    if let Some(id) = stored_id(connection)? {
        return Ok(id);
    }
    let id = format!("{:032x}", SystemClock.random());
    connection.execute("INSERT INTO leasehold_store (id) VALUES (?1)", [&id])?;
    Ok(id)
}

fn stored_id(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare("SELECT id FROM leasehold_store LIMIT 1")?;
    let mut rows = select.query([])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

fn checked_encoding(connection: &Connection) -> Result<(), StoreError> {
    let encoding: String = pragma(connection, "encoding")?;
    if encoding != "UTF-8" {
        return Err(error::misconfigured(format!(
            "the database keeps text as {encoding}, and names must be ordered as UTF-8: use another file"
        )));
    }
    Ok(())
}

struct Column {
    name: String,
    kind: String,
    required: bool,
    key: bool,
}

/// Our columns with their types and key; more columns are the caller's, as long as they need no value.
fn checked_shape(connection: &Connection) -> Result<(), StoreError> {
    checked_encoding(connection)?;
    let columns = columns(connection).map_err(error::of_read)?;
    for (name, kind) in COLUMNS {
        match columns.iter().find(|column| column.name == name) {
            None => return Err(wrong_shape(&format!("it has no column {name}"))),
            Some(column) if column.kind != kind => {
                return Err(wrong_shape(&format!("its column {name} is {}, not {kind}", column.kind)));
            }
            Some(column) if column.key != (name == "name") => return Err(wrong_shape("its key is not name alone")),
            Some(_) => {}
        }
    }
    let ours = |column: &Column| COLUMNS.iter().any(|(name, _)| *name == column.name);
    match columns.iter().find(|column| !ours(column) && (column.required || column.key)) {
        Some(column) => Err(wrong_shape(&format!("its column {} needs a value that no lease gives", column.name))),
        None => checked_table(connection),
    }
}

fn columns(connection: &Connection) -> rusqlite::Result<Vec<Column>> {
    let sql = r#"SELECT name, type, "notnull" AND dflt_value IS NULL, pk FROM pragma_table_xinfo('leasehold')"#;
    let mut select = connection.prepare(sql)?;
    let found = select.query_map([], |row| {
        Ok(Column { name: row.get(0)?, kind: row.get(1)?, required: row.get(2)?, key: row.get::<_, i64>(3)? > 0 })
    })?;
    found.collect()
}

/// Strict, without a rowid, and names compared byte for byte: NOCASE would make two names one lease.
fn checked_table(connection: &Connection) -> Result<(), StoreError> {
    let sql = r#"SELECT
        (SELECT strict AND wr AND type = 'table' FROM pragma_table_list('leasehold') WHERE schema = 'main'),
        (SELECT part.coll FROM pragma_index_list('leasehold') AS key, pragma_index_xinfo(key.name) AS part
            WHERE key.origin = 'pk' AND part.seqno = 0)"#;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<bool>>(0)?, row.get::<_, Option<String>>(1)?));
    match connection.query_row(sql, [], read).map_err(error::of_read)? {
        (Some(true), Some(collation)) if collation == "BINARY" => Ok(()),
        (Some(true), _) => Err(wrong_shape("its column name is not compared byte for byte (COLLATE BINARY)")),
        _ => Err(wrong_shape("it is not a STRICT, WITHOUT ROWID table")),
    }
}

fn wrong_shape(found: &str) -> StoreError {
    error::misconfigured(format!(
        "there is a table leasehold of another shape: {found}; use another file, or rename that table"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_waits_for_the_disk_and_for_others_not_longer_than_half_a_second() {
        let folder = std::env::temp_dir().join(format!("leasehold-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (place, first) = open(&folder.join("leases.db")).unwrap();
        let mut lane = Some(first);
        let number = |connection: &Connection, what: &str| -> i64 {
            connection.query_row(&format!("PRAGMA {what}"), [], |row| row.get(0)).unwrap()
        };
        for _ in 0..2 {
            let connection = place.connected(&mut lane).unwrap();
            assert_eq!(pragma(connection, "journal_mode").unwrap(), "wal");
            assert_eq!(number(connection, "synchronous"), 2, "2 is FULL");
            assert_eq!(number(connection, "busy_timeout"), 500);
            lane = None; // the next one is opened anew
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
