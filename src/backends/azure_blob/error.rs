//! What a failed request means: whether it may have been applied, and what to do.

use std::error::Error as StdError;

use azure_core::error::ErrorKind;

use crate::types::{Applied, StoreError, StoreErrorKind};

/// A request to the service. Its name is the service's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    GetProperties,
    GetBlob,
    PutBlob,
    PutContent,
    SetMetadata,
    AcquireLease,
    RenewLease,
    ChangeLease,
    ReleaseLease,
    BreakLease,
    ListBlobs,
    GetContainer,
    CreateContainer,
}

/// Where requests go, for messages: the container's URL without its query.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) container: String,
}

/// Why a request has no answer that means something for the blob. `left` is whether the request was ever handed to
/// the connection.
#[derive(Debug)]
pub(super) enum Failure {
    NoAnswer {
        error: azure_core::Error,
        left: bool,
    },
    TimedOut {
        left: bool,
    },
    /// There was an answer that nobody could read.
    Garbled,
    /// The service, or something on the way, said no.
    Refused {
        status: u16,
        code: String,
        by_the_service: bool,
    },
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Self::GetProperties => "Get Blob Properties",
            Self::GetBlob => "Get Blob",
            Self::PutBlob | Self::PutContent => "Put Blob",
            Self::SetMetadata => "Set Blob Metadata",
            Self::AcquireLease => "Lease Blob (acquire)",
            Self::RenewLease => "Lease Blob (renew)",
            Self::ChangeLease => "Lease Blob (change)",
            Self::ReleaseLease => "Lease Blob (release)",
            Self::BreakLease => "Lease Blob (break)",
            Self::ListBlobs => "List Blobs",
            Self::GetContainer => "Get Container Properties",
            Self::CreateContainer => "Create Container",
        }
    }

    /// Whether it carries what the caller has stored, and takes as long as that is large.
    pub(super) fn moves_content(self) -> bool {
        matches!(self, Self::GetBlob | Self::PutContent)
    }

    /// The action that a role needs for it, and the permission of a shared access signature.
    fn permission(self) -> (&'static str, &'static str) {
        match self {
            Self::GetProperties | Self::GetBlob => ("containers/blobs/read", "read"),
            Self::PutBlob => ("containers/blobs/add/action or containers/blobs/write", "create or write"),
            Self::ListBlobs => ("containers/blobs/read", "list"),
            Self::GetContainer => ("containers/read", "read of an account SAS"),
            Self::CreateContainer => ("containers/write", "create of an account SAS"),
            _ => ("containers/blobs/write", "write"),
        }
    }
}

/// The error of whatever needs the container while there is none.
pub(super) fn no_container(place: &Place) -> StoreError {
    let what = format!("there is no container at {}; create it, or check the URL and the account", place.container);
    StoreError::new(StoreErrorKind::Misconfigured, Applied::No, what)
}

/// The error of a request that has no definite answer.
pub(super) fn failed(op: Op, place: &Place, failure: Failure) -> StoreError {
    let at = |what: &str| format!("Azure Blob {} in {}: {what}", op.name(), place.container);
    match failure {
        Failure::TimedOut { left } => {
            StoreError::new(StoreErrorKind::TimedOut, unless(left), at("no answer in time; try again later"))
        }
        Failure::Garbled => {
            let what = at("the answer could not be read; try again later");
            StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, what)
        }
        Failure::NoAnswer { error, left } => {
            let (kind, applied, what) = unanswered(&error, left);
            StoreError::new(kind, applied, at(what)).caused_by(causes(&error))
        }
        Failure::Refused { status, code, by_the_service } => {
            let (kind, applied, what) = refused(op, status, &code, by_the_service);
            StoreError::new(kind, applied, at(&what)).caused_by(format!("Azure Blob answered {status} {code}"))
        }
    }
}

fn unless(left: bool) -> Applied {
    if left { Applied::Unknown } else { Applied::No }
}

fn unanswered(error: &azure_core::Error, left: bool) -> (StoreErrorKind, Applied, &'static str) {
    match error.kind() {
        ErrorKind::Credential if !left && in_passing(error) => {
            let what = "no request was sent, because the identity service gave no token in time; try again later";
            (StoreErrorKind::Unavailable, Applied::No, what)
        }
        ErrorKind::Credential if !left => {
            let what = "no request was sent, because the credential gave no token; check it, and try again later";
            (StoreErrorKind::Denied, Applied::No, what)
        }
        // The SDK says so only of a connection that was never made.
        ErrorKind::Connection => {
            let what = "there is no connection; is the endpoint right, and does it run?";
            (StoreErrorKind::Unavailable, Applied::No, what)
        }
        ErrorKind::Io => (StoreErrorKind::Unavailable, unless(left), "the connection failed; try again later"),
        _ if !left => {
            let what = "no request could be made; check the container's URL and the credential";
            (StoreErrorKind::Misconfigured, Applied::No, what)
        }
        _ => (StoreErrorKind::Unavailable, Applied::Unknown, "the request failed; try again later"),
    }
}

/// Whether the identity service was out of reach or out of order, so that a token may come later by itself.
fn in_passing(error: &azure_core::Error) -> bool {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let mut kinds = causes.filter_map(|cause| cause.downcast_ref::<azure_core::Error>()).map(azure_core::Error::kind);
    kinds.any(|kind| match kind {
        ErrorKind::Connection | ErrorKind::Io => true,
        ErrorKind::HttpResponse { status, .. } => matches!(u16::from(*status), 408 | 429 | 500..),
        _ => false,
    })
}

/// A status that stands here is one with which the service rejects a request before it writes. What a proxy says, or a
/// service that is out of order, leaves the write unknown.
fn refused(op: Op, status: u16, code: &str, by_the_service: bool) -> (StoreErrorKind, Applied, String) {
    if !by_the_service {
        let what = format!("something on the way answered {status} in the service's place; try again later");
        return (StoreErrorKind::Unavailable, Applied::Unknown, what);
    }
    let (action, letter) = op.permission();
    match (status, code) {
        (403, code) if code.starts_with("Authorization") || code == "InsufficientAccountPermissions" => {
            let otherwise = if op == Op::GetContainer { "; or open the store with `unverified()`" } else { "" };
            let what = format!(
                "access denied ({code}); a role needs `Microsoft.Storage/storageAccounts/blobServices/{action}`, a shared \
                 access signature the permission {letter} (its services, resource types, addresses and protocol must fit \
                 too), a shared key must be the account's, and its network rules must let this machine in{otherwise}"
            );
            (StoreErrorKind::Denied, Applied::No, what)
        }
        (401 | 403, _) => {
            let what =
                format!("the credential is not valid, or no more ({code}); renew it, and look at this machine's clock");
            (StoreErrorKind::Denied, Applied::No, what)
        }
        (_, "ContainerBeingDeleted") => {
            let what = "the container is being deleted; create it again later, or check the URL".to_owned();
            (StoreErrorKind::Misconfigured, Applied::No, what)
        }
        (400, "InvalidResourceName" | "OutOfRangeInput") => {
            let what = "the container's or the blob's name is not one that the service allows; a container's is 3 to 63 \
                        lower-case letters, digits and single hyphens";
            (StoreErrorKind::Misconfigured, Applied::No, what.to_owned())
        }
        (429, _) | (503, "ServerBusy") => {
            let what = format!("throttled ({code}); send fewer requests, or spread the leases over more accounts");
            (StoreErrorKind::Throttled, Applied::Unknown, what)
        }
        // All of 4xx but the time-out: the same request has no other answer later.
        (400..=407 | 409..=499, _) => {
            (StoreErrorKind::Invalid, Applied::No, format!("the request was rejected with {status} {code}"))
        }
        _ => (StoreErrorKind::Unavailable, Applied::Unknown, format!("status {status} {code}; try again later")),
    }
}

/// The error and its causes as text, without what a URL carries after its `?`: the HTTP client names the URL it was
/// asked for, and a shared access signature stands in it.
fn causes(error: &azure_core::Error) -> String {
    let first: &(dyn StdError + 'static) = error;
    let all = std::iter::successors(Some(first), |&cause| cause.source()).map(ToString::to_string);
    without_queries(&all.collect::<Vec<_>>().join(": "))
}

fn without_queries(text: &str) -> String {
    let mut parts = text.split('?');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', ')', '"', '\'']).unwrap_or(part.len());
        kept.push_str("?..");
        kept.push_str(&part[end..]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(op: Op, status: u16, code: &str) -> StoreError {
        let place = Place { container: "https://acct.blob.core.windows.net/leases".into() };
        failed(op, &place, Failure::Refused { status, code: code.into(), by_the_service: true })
    }

    #[test]
    fn rejections_are_known_not_to_be_applied_and_say_what_to_do() {
        let denied = answered(Op::AcquireLease, 403, "AuthorizationPermissionMismatch");
        assert_eq!((denied.kind, denied.applied), (StoreErrorKind::Denied, Applied::No));
        assert!(denied.message.contains("blobs/write") && denied.message.contains("Lease Blob"), "{denied}");
        let expired = answered(Op::SetMetadata, 403, "AuthenticationFailed");
        assert_eq!((expired.kind, expired.applied), (StoreErrorKind::Denied, Applied::No));
    }

    #[test]
    fn a_token_that_may_come_later_is_tried_again_and_one_that_is_refused_is_not() {
        let place = Place { container: "https://acct.blob.core.windows.net/leases".into() };
        for (cause, kind) in [
            (ErrorKind::Io, StoreErrorKind::Unavailable),
            (ErrorKind::Connection, StoreErrorKind::Unavailable),
            (ErrorKind::Other, StoreErrorKind::Denied),
        ] {
            let cause = azure_core::Error::with_message(cause, "why");
            let error = azure_core::Error::with_error(ErrorKind::Credential, cause, "no token");
            let error = failed(Op::RenewLease, &place, Failure::NoAnswer { error, left: false });
            assert_eq!((error.kind, error.applied), (kind, Applied::No));
        }
    }

    #[test]
    fn failures_of_the_service_and_of_proxies_leave_the_write_unknown() {
        for (status, code) in [(500, "InternalError"), (500, "OperationTimedOut"), (503, "ServerBusy"), (408, "")] {
            assert_eq!(answered(Op::SetMetadata, status, code).applied, Applied::Unknown, "{status} {code}");
        }
        let proxy = Failure::Refused { status: 403, code: String::new(), by_the_service: false };
        let place = Place { container: "https://acct.blob.core.windows.net/leases".into() };
        let error = failed(Op::RenewLease, &place, proxy);
        assert_eq!((error.kind, error.applied), (StoreErrorKind::Unavailable, Applied::Unknown));
    }

    #[test]
    fn causes_carry_no_signature() {
        let text = "error sending request for url (https://a.blob/c/b?sv=1&sig=PLANTED): connection reset";
        assert_eq!(without_queries(text), "error sending request for url (https://a.blob/c/b?..): connection reset");
        assert_eq!(without_queries("what? PLANTED?sig=PLANTED"), "what?.. PLANTED?..");
    }
}
