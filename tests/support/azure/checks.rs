//! What the service requires of the parts of a request.

use std::time::Duration;

use uuid::Uuid;

use super::codes::{
    CONDITION_NOT_MET, INVALID_HEADER_VALUE, INVALID_RANGE, INVALID_RESOURCE_NAME,
    MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED, NOT_MODIFIED, Refused,
};
use super::http::{Op, Request, decoded};
use super::leases::Term;

/// `exists` is the answer to If-None-Match when it matches.
pub fn check_conditions(request: &Request, etag: Option<&str>, exists: Refused) -> Result<(), Refused> {
    let (wanted, unwanted) = (request.header("if-match"), request.header("if-none-match"));
    for tag in wanted.iter().chain(&unwanted) {
        let is_quoted = tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"') && tag.matches('"').count() == 2;
        if *tag != "*" && !is_quoted {
            return Err(INVALID_HEADER_VALUE);
        }
    }
    let matches = |tag: &str| etag.is_some_and(|etag| tag == "*" || tag == etag);
    match (wanted, unwanted) {
        (Some(_), Some(_)) => Err(MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED),
        (Some(wanted), None) if !matches(wanted) => Err(CONDITION_NOT_MET),
        (None, Some("*")) if matches("*") => Err(exists),
        (None, Some(unwanted)) if matches(unwanted) => {
            Err(if exists == NOT_MODIFIED { exists } else { CONDITION_NOT_MET })
        }
        _ => Ok(()),
    }
}

/// 3 to 63 lower-case letters, digits and single hyphens, a letter or digit at both ends.
pub fn check_container_name(name: &str) -> Result<(), Refused> {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let good = (3..=63).contains(&name.len())
        && name.bytes().all(known)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if good { Ok(()) } else { Err(INVALID_RESOURCE_NAME) }
}

/// 1 to 1024 characters. Names that clients or proxies normalise on the way are refused, so that a test sees them:
/// dot segments, empty segments, a dot or slash at the end, and slashes that are escaped twice.
pub fn check_blob_name(raw: &str) -> Result<(), Refused> {
    let name = decoded(raw);
    let length = name.chars().count();
    let lower = name.to_ascii_lowercase();
    let is_fragile = name.ends_with(['.', '/'])
        || name.contains(['\\', '\u{fffd}'])
        || name.chars().any(char::is_control)
        || lower.contains("%2f")
        || lower.contains("%5c")
        || name.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    if (1..=1024).contains(&length) && !is_fragile { Ok(()) } else { Err(INVALID_RESOURCE_NAME) }
}

pub fn check_content_length(request: &Request) -> Result<(), Refused> {
    let said = request.header("content-length").map(str::parse::<usize>);
    if said.is_none_or(|said| said == Ok(request.body.len())) { Ok(()) } else { Err(INVALID_HEADER_VALUE) }
}

pub fn guid(request: &Request, header: &str) -> Result<Option<Uuid>, Refused> {
    let parsed = request.header(header).map(|text| {
        // `Uuid` also reads a URN, which a .NET Guid is not.
        Uuid::parse_str(text).ok().filter(|_| !text.starts_with("urn")).ok_or(INVALID_HEADER_VALUE)
    });
    parsed.transpose()
}

/// 15 to 60 seconds, or -1 for a lease without end; on acquire only.
pub fn term(request: &Request, op: Op) -> Result<Option<Term>, Refused> {
    let Some(text) = request.header("x-ms-lease-duration") else { return Ok(None) };
    match text.parse::<i64>() {
        _ if op != Op::Acquire => Err(INVALID_HEADER_VALUE),
        Ok(-1) => Ok(Some(Term::Infinite)),
        Ok(seconds @ 15..=60) => Ok(Some(Term::Fixed(Duration::from_secs(seconds.unsigned_abs())))),
        _ => Err(INVALID_HEADER_VALUE),
    }
}

pub fn break_period(request: &Request) -> Result<Option<Duration>, Refused> {
    let Some(text) = request.header("x-ms-lease-break-period") else { return Ok(None) };
    match text.parse::<u64>() {
        Ok(seconds @ 0..=60) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(INVALID_HEADER_VALUE),
    }
}

/// The bytes that a request asks for, and how they are announced.
pub fn part_of<'a>(body: &'a [u8], request: &Request) -> Result<(u16, &'a [u8], Option<String>), Refused> {
    let Some(range) = request.header("range") else { return Ok((200, body, None)) };
    let bounds = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).ok_or(INVALID_HEADER_VALUE)?;
    let first: usize = bounds.0.parse().map_err(|_| INVALID_HEADER_VALUE)?;
    let last: usize =
        if bounds.1.is_empty() { usize::MAX } else { bounds.1.parse().map_err(|_| INVALID_HEADER_VALUE)? };
    if first >= body.len() || last < first {
        return Err(INVALID_RANGE);
    }
    let last = last.min(body.len() - 1);
    Ok((206, &body[first..=last], Some(format!("bytes {first}-{last}/{}", body.len()))))
}
