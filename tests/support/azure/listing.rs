//! List Blobs, in XML.

use std::fmt::Write as _;
use std::ops::Bound;

use super::codes::{INVALID_QUERY_PARAMETER_VALUE, OUT_OF_RANGE_QUERY_PARAMETER_VALUE, Refused, UNKNOWN_TO_THE_FAKE};
use super::http::{Request, Response, xml};
use super::leases::Term;
use super::service::{Blob, Container, Now, http_date};

/// A page of the blobs in the order of their names.
pub fn list(
    container: &Container,
    name: &str,
    request: &Request,
    longest_page: usize,
    now: Now,
) -> Result<Response, Refused> {
    let prefix = request.parameter("prefix").unwrap_or_default();
    let marker = request.parameter("marker").unwrap_or_default();
    let with_metadata = match request.parameter("include").as_deref() {
        None | Some("") => false,
        Some("metadata") => true,
        Some(_) => return Err(UNKNOWN_TO_THE_FAKE),
    };
    let asked = request.parameter("maxresults").map(|text| text.parse::<usize>()).transpose();
    let asked = asked.map_err(|_| INVALID_QUERY_PARAMETER_VALUE)?;
    if asked == Some(0) {
        return Err(OUT_OF_RANGE_QUERY_PARAMETER_VALUE);
    }
    let size = asked.unwrap_or(longest_page).min(longest_page);
    let begin = if marker.is_empty() { prefix.clone() } else { name_of(&marker)? };

    let from = (Bound::Included(begin.as_str()), Bound::Unbounded);
    let mut rest = container.blobs.range::<str, _>(from).filter(|(blob, _)| blob.starts_with(&prefix));
    let mut blobs = String::new();
    for (name, blob) in rest.by_ref().take(size) {
        write_blob(&mut blobs, name, blob, with_metadata, now);
    }
    let next = rest.next().map_or_else(String::new, |(name, _)| marker_of(name));

    let (name, prefix, marker) = (xml(name), xml(&prefix), xml(&marker));
    let endpoint = xml(&format!("{}://{}/", request.scheme, request.host));
    let mut page = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <EnumerationResults ServiceEndpoint=\"{endpoint}\" ContainerName=\"{name}\">"
    );
    for (element, text) in [("Prefix", &prefix), ("Marker", &marker)] {
        if !text.is_empty() {
            let _ = write!(page, "<{element}>{text}</{element}>");
        }
    }
    if let Some(asked) = asked {
        let _ = write!(page, "<MaxResults>{asked}</MaxResults>");
    }
    let next = if next.is_empty() { "<NextMarker />".to_owned() } else { format!("<NextMarker>{next}</NextMarker>") };
    let blobs = if blobs.is_empty() { "<Blobs />".to_owned() } else { format!("<Blobs>{blobs}</Blobs>") };
    let _ = write!(page, "{blobs}{next}</EnumerationResults>");
    let mut answer = Response::new(200).with("content-type", "application/xml");
    answer.body = page.into_bytes();
    Ok(answer)
}

fn write_blob(out: &mut String, name: &str, blob: &Blob, with_metadata: bool, now: Now) {
    let state = blob.lease.state(now.steady);
    // Without its quotes here, unlike in a header.
    let etag = blob.etag.trim_matches('"');
    let properties = [
        ("Creation-Time", http_date(blob.created)),
        ("Last-Modified", http_date(blob.modified)),
        ("Etag", etag.to_owned()),
        ("Content-Length", blob.body.len().to_string()),
        ("Content-Type", xml(&blob.content_type)),
        ("BlobType", "BlockBlob".to_owned()),
        ("LeaseStatus", state.status().to_owned()),
        ("LeaseState", state.word().to_owned()),
    ];
    let _ = write!(out, "<Blob><Name>{}</Name><Properties>", xml(name));
    for (element, text) in properties {
        let _ = write!(out, "<{element}>{text}</{element}>");
    }
    match blob.lease.term(now.steady) {
        Some(Term::Fixed(_)) => out.push_str("<LeaseDuration>fixed</LeaseDuration>"),
        Some(Term::Infinite) => out.push_str("<LeaseDuration>infinite</LeaseDuration>"),
        None => {}
    }
    out.push_str("</Properties>");
    if with_metadata {
        out.push_str("<Metadata>");
        for (name, value) in &blob.metadata {
            let _ = write!(out, "<{name}>{}</{name}>", xml(value));
        }
        out.push_str("</Metadata>");
    }
    out.push_str("</Blob>");
}

/// "The marker value may be opaque to the client."
fn marker_of(name: &str) -> String {
    name.bytes().fold("2!".to_owned(), |marker, byte| marker + &format!("{byte:02X}"))
}

fn name_of(marker: &str) -> Result<String, Refused> {
    let hex = marker.strip_prefix("2!").ok_or(INVALID_QUERY_PARAMETER_VALUE)?;
    let bytes: Option<Vec<u8>> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(INVALID_QUERY_PARAMETER_VALUE)
}
