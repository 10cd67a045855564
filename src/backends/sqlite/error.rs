//! What SQLite's errors mean for a verb.
//!
//! Their texts carry statements without values, so no grant gets into them.

use rusqlite::ErrorCode;

use crate::types::{Applied, StoreError, StoreErrorKind};

/// The write lock was not had: nothing was written.
pub(super) fn at_begin(cause: rusqlite::Error) -> StoreError {
    of(cause, Applied::No)
}

/// A statement before the commit has failed.
pub(super) fn in_transaction(cause: rusqlite::Error) -> StoreError {
    let applied = match kind(&cause) {
        StoreErrorKind::Unavailable => Applied::Unknown,
        _ => Applied::No,
    };
    of(cause, applied)
}

/// The commit has failed. What of it is on the disk is seen only after the file is next recovered.
pub(super) fn at_commit(cause: rusqlite::Error) -> StoreError {
    of(cause, Applied::Unknown)
}

/// A read has failed, or the opening of a connection.
pub(super) fn of_read(cause: rusqlite::Error) -> StoreError {
    of(cause, Applied::No)
}

/// SQLite has given up a transaction without saying why.
pub(super) fn rolled_back() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, "SQLite has rolled the transaction back")
}

/// The file is not what it has to be.
pub(super) fn misconfigured(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, Applied::No, message)
}

/// Nothing can run the call.
pub(super) fn no_runtime(cause: tokio::runtime::TryCurrentError) -> StoreError {
    let text = "the SQLite store needs a tokio runtime, and the call was made outside of one";
    StoreError::new(StoreErrorKind::Unavailable, Applied::No, text).caused_by(cause)
}

/// The thread that ran the call has ended before its answer.
pub(super) fn interrupted(cause: tokio::task::JoinError) -> StoreError {
    let text = "the call was cut short by the end of the runtime, or by a panic";
    StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, text).caused_by(cause)
}

/// The same error once more, for the next renewal of the same batch. The cause stays with the text.
pub(super) fn copy_of(error: &StoreError) -> StoreError {
    StoreError::new(error.kind, error.applied, error.message.clone())
}

fn of(cause: rusqlite::Error, applied: Applied) -> StoreError {
    let kind = kind(&cause);
    let text = match kind {
        StoreErrorKind::Contended => "another process is writing to the SQLite file; try again soon".to_owned(),
        StoreErrorKind::Denied => format!("the SQLite file, or its directory, may not be written: {cause}"),
        StoreErrorKind::Misconfigured => format!("the SQLite file cannot be used: {cause}"),
        StoreErrorKind::Invalid => format!("SQLite cannot store this value: {cause}"),
        _ => format!("SQLite has failed: {cause}"),
    };
    StoreError::new(kind, applied, text).caused_by(cause)
}

/// <https://www.sqlite.org/rescode.html>
fn kind(cause: &rusqlite::Error) -> StoreErrorKind {
    use rusqlite::Error as Sql;
    match cause {
        Sql::ToSqlConversionFailure(_) => StoreErrorKind::Invalid,
        Sql::SqlInputError { .. } => StoreErrorKind::Misconfigured,
        _ => cause.sqlite_error_code().map_or(StoreErrorKind::Unavailable, kind_of_code),
    }
}

fn kind_of_code(code: ErrorCode) -> StoreErrorKind {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreErrorKind::Contended,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            StoreErrorKind::Denied
        }
        // `Unknown` is SQLITE_ERROR: a missing table or column.
        ErrorCode::NotADatabase
        | ErrorCode::CannotOpen
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::SchemaChanged
        | ErrorCode::Unknown => StoreErrorKind::Misconfigured,
        ErrorCode::TooBig => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    }
}
