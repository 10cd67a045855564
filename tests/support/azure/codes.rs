//! The errors of the Blob service that the fake knows, as documented in "Blob service error codes" and "Status and
//! error codes".

/// A refusal: the HTTP status and the `x-ms-error-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    pub code: &'static str,
}

const fn refused(status: u16, code: &'static str) -> Refused {
    Refused { status, code }
}

// Of lease operations.
pub const LEASE_ALREADY_PRESENT: Refused = refused(409, "LeaseAlreadyPresent");
pub const LEASE_ID_MISMATCH_WITH_LEASE_OPERATION: Refused = refused(409, "LeaseIdMismatchWithLeaseOperation");
pub const LEASE_NOT_PRESENT_WITH_LEASE_OPERATION: Refused = refused(409, "LeaseNotPresentWithLeaseOperation");
pub const LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED: Refused = refused(409, "LeaseIsBreakingAndCannotBeAcquired");
pub const LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED: Refused = refused(409, "LeaseIsBreakingAndCannotBeChanged");
pub const LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED: Refused = refused(409, "LeaseIsBrokenAndCannotBeRenewed");

// Of reads and writes that meet a lease.
pub const LEASE_ID_MISSING: Refused = refused(412, "LeaseIdMissing");
pub const LEASE_ID_MISMATCH_WITH_BLOB_OPERATION: Refused = refused(412, "LeaseIdMismatchWithBlobOperation");
pub const LEASE_NOT_PRESENT_WITH_BLOB_OPERATION: Refused = refused(412, "LeaseNotPresentWithBlobOperation");
pub const LEASE_LOST: Refused = refused(412, "LeaseLost");

// Of conditions.
pub const CONDITION_NOT_MET: Refused = refused(412, "ConditionNotMet");
pub const NOT_MODIFIED: Refused = refused(304, "ConditionNotMet");
pub const BLOB_ALREADY_EXISTS: Refused = refused(409, "BlobAlreadyExists");
pub const MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED: Refused = refused(400, "MultipleConditionHeadersNotSupported");

// Of what is not there, or already is.
pub const BLOB_NOT_FOUND: Refused = refused(404, "BlobNotFound");
pub const CONTAINER_NOT_FOUND: Refused = refused(404, "ContainerNotFound");
pub const CONTAINER_ALREADY_EXISTS: Refused = refused(409, "ContainerAlreadyExists");
pub const CONTAINER_BEING_DELETED: Refused = refused(409, "ContainerBeingDeleted");

// Of requests that are not right.
pub const INVALID_HEADER_VALUE: Refused = refused(400, "InvalidHeaderValue");
pub const MISSING_REQUIRED_HEADER: Refused = refused(400, "MissingRequiredHeader");
pub const INVALID_METADATA: Refused = refused(400, "InvalidMetadata");
pub const METADATA_TOO_LARGE: Refused = refused(400, "MetadataTooLarge");
pub const INVALID_RESOURCE_NAME: Refused = refused(400, "InvalidResourceName");
pub const OUT_OF_RANGE_QUERY_PARAMETER_VALUE: Refused = refused(400, "OutOfRangeQueryParameterValue");
pub const INVALID_QUERY_PARAMETER_VALUE: Refused = refused(400, "InvalidQueryParameterValue");
/// What the fake does not know. The service would know it: a test that meets this has to teach the fake first.
pub const UNKNOWN_TO_THE_FAKE: Refused = refused(400, "UnknownToTheFake");
pub const INVALID_RANGE: Refused = refused(416, "InvalidRange");

// Of credentials.
pub const AUTHENTICATION_FAILED: Refused = refused(403, "AuthenticationFailed");
