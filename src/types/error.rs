//! The one public error.

use std::fmt;

use super::{Applied, HeldBy, Lost, Name, StoreError, StoreErrorKind};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a call failed: its [`kind`](Error::kind) says what to do.
///
/// "Held by another" is not an error; see [`Attempt`](crate::Attempt).
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Operation,
    store: Option<&'static str>,
    name: Option<Name>,
    written: Written,
    held_by: Option<HeldBy>,
    lost: Option<Lost>,
    message: String,
    source: Option<Source>,
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is wrong: change it. Nothing was written.
    Invalid,
    /// The time that the caller gave is over. Try again, or give more.
    TimedOut,
    /// The store is away, slow, or asks for fewer requests. Try again later.
    Unavailable,
    /// The credentials lack a permission, or have expired. Mend them.
    Denied,
    /// The table or container is missing or has another shape. Mend it, or the options.
    Misconfigured,
    /// What is stored under this name is not a record of this library, or of a newer version. It is left alone.
    Unreadable,
    /// The store has answered no: the record is not what the call expected. Look again.
    Refused,
    /// The lease is lost: stop the work that it guarded.
    Lost,
    /// The client was shut down. Build a new one.
    Closed,
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Checking a name, a label or a payload.
    Name,
    /// Opening a store.
    Open,
    /// Building a client.
    Build,
    /// Acquiring.
    Acquire,
    /// Taking up a hand-over.
    Resume,
    /// Renewing, or making sure that the lease is held.
    Renew,
    /// Storing a payload.
    SetData,
    /// Releasing.
    Release,
    /// Releasing, and closing the record for a while.
    Close,
    /// Handing over.
    Handover,
    /// Running work under a lease.
    Run,
    /// Looking at one record.
    Inspect,
    /// Looking at many records.
    List,
    /// Revoking.
    Revoke,
    /// Forcing a record free.
    Force,
    /// Asking the holder to finish.
    Ask,
    /// Shutting the client down.
    Shutdown,
    /// Writing something of the caller's own under a fence, or making the condition for it.
    Fence,
}

/// Whether the call has changed the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// No.
    No,
    /// Perhaps, or it may yet. The library cleans up what it can.
    Unknown,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, operation: Operation, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            store: None,
            name: None,
            written: Written::No,
            held_by: None,
            lost: None,
            message: message.into(),
            source: None,
        }))
    }

    /// A failed call to a store.
    pub(crate) fn of_store(operation: Operation, store: &'static str, error: StoreError) -> Self {
        let kind = match error.kind {
            StoreErrorKind::Denied => ErrorKind::Denied,
            StoreErrorKind::Misconfigured => ErrorKind::Misconfigured,
            StoreErrorKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        };
        let written = match error.applied {
            Applied::No => Written::No,
            Applied::Unknown => Written::Unknown,
        };
        let mut made = Self::new(kind, operation, error.message.clone()).on(store).written_if(written);
        made.0.source = Some(Box::new(error));
        made
    }

    pub(crate) fn on(mut self, store: &'static str) -> Self {
        self.0.store = Some(store);
        self
    }

    pub(crate) fn for_name(mut self, name: &Name) -> Self {
        self.0.name = Some(name.clone());
        self
    }

    pub(crate) fn during(mut self, operation: Operation) -> Self {
        self.0.operation = operation;
        self
    }

    pub(crate) fn written_if(mut self, written: Written) -> Self {
        self.0.written = written;
        self
    }

    pub(crate) fn seen_held_by(mut self, held_by: Option<HeldBy>) -> Self {
        self.0.held_by = held_by;
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What to do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The kind of store, where one was asked: `"dynamodb"`.
    pub fn store(&self) -> Option<&'static str> {
        self.0.store
    }

    /// The lease's full name, where there is one.
    pub fn lease(&self) -> Option<&Name> {
        self.0.name.as_ref()
    }

    /// Whether the call has changed the store.
    pub fn written(&self) -> Written {
        self.0.written
    }

    /// Who held the lease when the time ran out.
    pub fn held_by(&self) -> Option<&HeldBy> {
        self.0.held_by.as_ref()
    }

    /// The loss, where the kind is [`ErrorKind::Lost`].
    pub fn lost(&self) -> Option<&Lost> {
        self.0.lost.as_ref()
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        let mut error = Self::new(ErrorKind::Lost, Operation::Renew, lost.to_string()).for_name(lost.name());
        error.0.lost = Some(lost);
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.operation)?;
        if let Some(name) = &self.0.name {
            write!(f, " {name}")?;
        }
        if let Some(store) = self.0.store {
            write!(f, " on {store}")?;
        }
        write!(f, ": {}", self.0.message)?;
        if self.0.written == Written::Unknown {
            f.write_str(" (whether it was written is not known)")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("store", &self.0.store)
            .field("lease", &self.0.name)
            .field("written", &self.0.written)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Open => "open",
            Self::Build => "build",
            Self::Acquire => "acquire",
            Self::Resume => "resume",
            Self::Renew => "renew",
            Self::SetData => "set_data",
            Self::Release => "release",
            Self::Close => "close",
            Self::Handover => "handover",
            Self::Run => "run",
            Self::Inspect => "inspect",
            Self::List => "list",
            Self::Revoke => "revoke",
            Self::Force => "force",
            Self::Ask => "ask",
            Self::Shutdown => "shutdown",
            Self::Fence => "fence",
        })
    }
}
