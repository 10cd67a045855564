//! The metadata of a blob, within the service's limits.

use std::collections::BTreeMap;

use super::codes::{INVALID_METADATA, METADATA_TOO_LARGE, Refused};
use super::http::Request;

pub type Metadata = BTreeMap<String, String>;

/// All names and values together.
pub const LARGEST: usize = 8 * 1024;

/// The metadata that a request carries.
///
/// "Setting and retrieving properties and metadata": names are C# identifiers, names and values are ASCII. The service
/// may take an empty value, or blanks at an end, but they do not come back as they were sent, so the fake takes none.
pub fn of(request: &Request) -> Result<Metadata, Refused> {
    let pairs = request.headers.iter();
    let pairs = pairs.filter_map(|(name, value)| Some((name.strip_prefix("x-ms-meta-")?, value)));
    let metadata: Metadata = pairs.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    if !metadata.iter().all(|(name, value)| is_identifier(name) && is_value(value)) {
        return Err(INVALID_METADATA);
    }
    let size: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > LARGEST { Err(METADATA_TOO_LARGE) } else { Ok(metadata) }
}

fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

fn is_value(value: &str) -> bool {
    let printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    printable && !value.is_empty() && value.trim() == value
}
