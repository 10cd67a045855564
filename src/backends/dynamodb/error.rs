//! What a failed call means: whether the write may have happened, and what to do.

use std::error::Error as StdError;
use std::io;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::types::{Applied, StoreError, StoreErrorKind};

type Source = Box<dyn StdError + Send + Sync>;

/// Where a call went, for messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) table: String,
    pub(super) region: Option<String>,
}

impl Place {
    pub(super) fn region(&self) -> &str {
        self.region.as_deref().unwrap_or("(no region)")
    }
}

/// Why the SDK has no answer for us, free of the operation's own error type.
#[derive(Debug)]
pub(super) enum Cause {
    /// The request could not be built, or not be signed.
    Construction(Source),
    TimedOut(Source),
    /// No connection, or it broke.
    Dispatch {
        timed_out: bool,
        source: Source,
    },
    /// There was an answer that nobody could read.
    Garbled {
        status: u16,
    },
    /// The service said no.
    Service {
        status: u16,
        code: Option<String>,
        message: Option<String>,
    },
}

impl<E: ProvideErrorMetadata + StdError + Send + Sync + 'static> From<SdkError<E>> for Cause {
    fn from(error: SdkError<E>) -> Self {
        match &error {
            SdkError::ServiceError(context) => Self::Service {
                status: context.raw().status().as_u16(),
                code: context.err().code().map(str::to_owned),
                message: context.err().message().map(str::to_owned),
            },
            SdkError::ResponseError(context) => Self::Garbled { status: context.raw().status().as_u16() },
            SdkError::TimeoutError(_) => Self::TimedOut(source(error)),
            SdkError::DispatchFailure(failure) => {
                Self::Dispatch { timed_out: failure.is_timeout(), source: source(error) }
            }
            _ => Self::Construction(source(error)),
        }
    }
}

impl Cause {
    /// Whether the client itself could not make a request: for want of credentials, of a region, of an endpoint.
    pub(super) fn is_of_the_client(&self) -> bool {
        match self {
            Self::Construction(_) => true,
            Self::Dispatch { source, .. } => of_credentials(&chain(&**source)),
            _ => false,
        }
    }
}

fn of_credentials(causes: &str) -> bool {
    causes.contains("credential") || causes.contains("identity")
}

/// The cause without the SDK's frame, which can hold the whole answer.
fn source<E: StdError + Send + Sync + 'static>(error: SdkError<E>) -> Source {
    error.into_source().unwrap_or_else(|_| "no cause was given".into())
}

/// The error of a call that failed otherwise than by its condition. `sent` is whether the request was ever handed
/// to the connection: until then nothing has happened, whatever the reason.
pub(super) fn failed(operation: &'static str, place: &Place, cause: Cause, sent: bool) -> StoreError {
    let at = |what: &str| format!("DynamoDB {operation} on table `{}` in {}: {what}", place.table, place.region());
    let unless_sent = if sent { Applied::Unknown } else { Applied::No };
    match cause {
        Cause::Service { status, code, message } => {
            let service = Service { status, code: code.as_deref().unwrap_or(""), text: message.as_deref() };
            let (applied, kind, what) = service.judge(operation, place);
            StoreError::new(kind, applied, at(&what)).caused_by(service.cause())
        }
        Cause::Garbled { status } => {
            let what = format!("the answer (status {status}) could not be read; try again later");
            StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, at(&what))
        }
        Cause::TimedOut(source) => {
            StoreError::new(StoreErrorKind::TimedOut, unless_sent, at("no answer in time; try again later"))
                .caused_by(source)
        }
        Cause::Dispatch { source, .. } if !sent => unsendable(at, source),
        Cause::Construction(source) => StoreError { applied: unless_sent, ..unsendable(at, source) },
        Cause::Dispatch { source, .. } if was_refused(&*source) => {
            let what = "the connection was refused; is the endpoint right, and does it run?";
            StoreError::new(StoreErrorKind::Unavailable, Applied::No, at(what)).caused_by(source)
        }
        Cause::Dispatch { timed_out, source } => {
            let kind = if timed_out { StoreErrorKind::TimedOut } else { StoreErrorKind::Unavailable };
            StoreError::new(kind, Applied::Unknown, at("the connection failed; try again later")).caused_by(source)
        }
    }
}

fn unsendable(at: impl Fn(&str) -> String, source: Source) -> StoreError {
    let causes = chain(&*source);
    // The SDK's own words for a provider that was asked and did not answer, or failed in passing.
    let in_passing = causes.contains("timed out") || causes.contains("an error occurred while loading");
    let (kind, what) = match (of_credentials(&causes), in_passing) {
        (true, true) => {
            let what = "no request was sent, because the credentials could not be fetched; try again later";
            (StoreErrorKind::Unavailable, what)
        }
        (true, false) => {
            (StoreErrorKind::Denied, "no request was sent, because there are no credentials; configure some")
        }
        _ => (StoreErrorKind::Misconfigured, "no request could be made; check the client's region and endpoint"),
    };
    StoreError::new(kind, Applied::No, at(what)).caused_by(source)
}

fn chain(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(|cause| cause.to_string().to_lowercase()).collect::<Vec<_>>().join(": ")
}

/// The kernel says "refused" to connect(2) and to nothing else, and a call makes one attempt: its request was
/// waiting for this connection, so no byte of it has left. (Where a kept connection turns out to be dead, the
/// HTTP client moves on to a new one only with a request of which it has sent nothing.)
fn was_refused(error: &(dyn StdError + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let mut io = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

struct Service<'a> {
    status: u16,
    code: &'a str,
    text: Option<&'a str>,
}

impl Service<'_> {
    /// A code that stands here is one with which the service rejects a request before it writes.
    fn judge(&self, operation: &str, place: &Place) -> (Applied, StoreErrorKind, String) {
        use StoreErrorKind as Kind;
        let (kind, what) = match self.code {
            "ProvisionedThroughputExceededException" | "ThrottlingException" | "RequestLimitExceeded" => {
                (Kind::Throttled, "throttled; send fewer requests, or give the table more capacity".to_owned())
            }
            "ReplicatedWriteConflictException" | "TransactionConflictException" | "TransactionInProgressException" => {
                (Kind::Contended, "another write to the same item was in the way; try again".to_owned())
            }
            "AccessDeniedException" => (Kind::Denied, self.permission(operation)),
            "UnrecognizedClientException"
            | "MissingAuthenticationTokenException"
            | "MissingAuthenticationToken"
            | "IncompleteSignatureException"
            | "InvalidClientTokenId"
            | "ExpiredTokenException"
            | "ExpiredToken" => {
                (Kind::Denied, format!("the credentials are not valid, or no more ({}); renew them", self.code))
            }
            "InvalidSignatureException" | "SignatureDoesNotMatch" | "RequestExpired" => self.signature(),
            "ResourceNotFoundException" => (Kind::Misconfigured, missing(place)),
            "ValidationException" => self.validation(),
            _ => return self.other(),
        };
        (Applied::No, kind, what)
    }

    fn permission(&self, operation: &str) -> String {
        format!("access denied; allow `dynamodb:{operation}` on this table to the role that calls{}", self.said())
    }

    /// After a freeze the first request carries the signature of before it. A secret that is wrong stays wrong.
    /// The service's text is left out: it can quote the request's headers, session token included.
    fn signature(&self) -> (StoreErrorKind, String) {
        let text = self.text.unwrap_or_default();
        if text.contains("does not match") && !text.contains("expired") {
            return (StoreErrorKind::Denied, "the signature is wrong; check the secret access key".into());
        }
        let what = "the signature is too old or too new; try again, and if it stays so set this machine's clock";
        (StoreErrorKind::Unavailable, what.into())
    }

    fn validation(&self) -> (StoreErrorKind, String) {
        let text = self.text.unwrap_or_default();
        let of_the_key = ["key element", "the key", "for key", "Key"].iter().any(|part| text.contains(part));
        if of_the_key {
            let what = "the table's key is not the one that the store was opened with; name its `partition_key` and \
                        `sort_key` as the table has them";
            return (StoreErrorKind::Misconfigured, format!("{what}{}", self.said()));
        }
        (StoreErrorKind::Invalid, format!("the request was rejected{}", self.said()))
    }

    /// Nothing is known of what the service has done.
    fn other(&self) -> (Applied, StoreErrorKind, String) {
        let what = format!("status {} {}; try again later", self.status, self.code);
        let kind = if self.status == 403 { StoreErrorKind::Denied } else { StoreErrorKind::Unavailable };
        (Applied::Unknown, kind, what)
    }

    fn said(&self) -> String {
        const LONGEST: usize = 300;
        match self.text {
            Some(text) => format!(" (the service says: {})", text.chars().take(LONGEST).collect::<String>()),
            None => String::new(),
        }
    }

    /// Only the code. The SDK's own error prints the whole answer, and with it a rival's grant.
    fn cause(&self) -> Source {
        format!("DynamoDB answered {} {}", self.status, self.code).into()
    }
}

fn missing(place: &Place) -> String {
    format!(
        "there is no table `{}` in {}; create it, or check the name, the region and the account",
        place.table,
        place.region()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, message: &str) -> StoreError {
        let place = Place { table: "leases".into(), region: Some("eu-central-1".into()) };
        let (code, message) = (Some(code.to_owned()), Some(message.to_owned()));
        failed("UpdateItem", &place, Cause::Service { status: 400, code, message }, true)
    }

    #[test]
    fn rejections_are_known_not_to_be_applied() {
        for (code, kind) in [
            ("ProvisionedThroughputExceededException", StoreErrorKind::Throttled),
            ("ThrottlingException", StoreErrorKind::Throttled),
            ("RequestLimitExceeded", StoreErrorKind::Throttled),
            ("ReplicatedWriteConflictException", StoreErrorKind::Contended),
            ("TransactionConflictException", StoreErrorKind::Contended),
            ("AccessDeniedException", StoreErrorKind::Denied),
            ("ExpiredTokenException", StoreErrorKind::Denied),
            ("ResourceNotFoundException", StoreErrorKind::Misconfigured),
            ("ValidationException", StoreErrorKind::Invalid),
        ] {
            let error = said(code, "no");
            assert_eq!((error.applied, error.kind), (Applied::No, kind), "{code}");
        }
    }

    #[test]
    fn failures_of_the_service_leave_the_write_unknown() {
        for code in ["InternalServerError", "ServiceUnavailable", "SomethingNew", ""] {
            let error = said(code, "no");
            assert_eq!((error.applied, error.kind), (Applied::Unknown, StoreErrorKind::Unavailable), "{code}");
        }
    }

    #[test]
    fn a_signature_that_is_too_old_is_tried_again_and_a_wrong_one_is_not() {
        let old = said("InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than ..");
        assert_eq!((old.applied, old.kind), (Applied::No, StoreErrorKind::Unavailable));
        let wrong = said("InvalidSignatureException", "The request signature we calculated does not match ..");
        assert_eq!((wrong.applied, wrong.kind), (Applied::No, StoreErrorKind::Denied));
    }

    #[test]
    fn what_the_service_quotes_of_the_request_is_not_repeated() {
        let quoted = "does not match. The canonical string was 'x-amz-security-token:PLANTED'";
        let error = said("InvalidSignatureException", quoted);
        assert!(!format!("{error} {error:?}").contains("PLANTED"));
    }

    #[test]
    fn a_request_that_was_never_sent_is_not_applied() {
        let place = Place { table: "leases".into(), region: None };
        for cause in [
            Cause::TimedOut("slow".into()),
            Cause::Dispatch { timed_out: false, source: "no credentials in the chain".into() },
            Cause::Construction("no region".into()),
        ] {
            assert_eq!(failed("UpdateItem", &place, cause, false).applied, Applied::No);
        }
        let lost = Cause::Dispatch { timed_out: false, source: io::Error::from(io::ErrorKind::ConnectionReset).into() };
        assert_eq!(failed("UpdateItem", &place, lost, true).applied, Applied::Unknown);
    }
}
