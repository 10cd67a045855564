//! What a request has to carry to be let in.
//!
//! The signature is computed here from "Authorize with Shared Key", for versions 2015-02-21 and later, and not with the
//! client's code, so that one checks the other. The rule that a request is at most 15 minutes old is left out.

use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;

use super::codes::{AUTHENTICATION_FAILED, Refused};
use super::http::Request;

/// The credential that the service asks for.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    #[default]
    None,
    /// The account's key, in base64.
    SharedKey {
        account: String,
        key: String,
    },
    /// The query of a shared access signature.
    Sas(String),
    Bearer(String),
}

/// Standard headers in the order in which they are signed.
const SIGNED: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

pub fn check(auth: &Auth, request: &Request) -> Result<(), Refused> {
    let good = match auth {
        Auth::None => true,
        Auth::SharedKey { account, key } => {
            let expected = signature(request, account, key).map(|signature| format!("SharedKey {account}:{signature}"));
            expected.is_some_and(|expected| request.header("authorization") == Some(&expected))
        }
        Auth::Sas(query) => {
            let wanted = Request { query: query.clone(), ..Request::default() }.pairs();
            let carried = request.pairs();
            !wanted.is_empty() && wanted.iter().all(|pair| carried.contains(pair))
        }
        Auth::Bearer(token) => request.header("authorization") == Some(&format!("Bearer {token}")),
    };
    if good { Ok(()) } else { Err(AUTHENTICATION_FAILED) }
}

/// None if the request has no date, or the key is no base64.
fn signature(request: &Request, account: &str, key: &str) -> Option<String> {
    request.header("x-ms-date").or_else(|| request.header("date"))?;
    hmac_sha256(&string_to_sign(request, account), &Secret::new(key.to_owned())).ok()
}

/// The verb, eleven standard headers, the `x-ms-` headers and the resource.
pub fn string_to_sign(request: &Request, account: &str) -> String {
    let mut lines = vec![request.method.to_uppercase()];
    lines.extend(SIGNED.iter().map(|name| standard_header(request, name)));
    lines.join("\n") + "\n" + &canonical_headers(request) + &canonical_resource(request, account)
}

/// "If the content length is zero, it's an empty string"; "if x-ms-date is set, the date is empty".
fn standard_header(request: &Request, name: &str) -> String {
    match name {
        // What the transport would send, if the client left it to the transport.
        "content-length" if request.body.is_empty() => String::new(),
        "content-length" => request.body.len().to_string(),
        "date" if request.header("x-ms-date").is_some() => String::new(),
        _ => request.header(name).unwrap_or_default().to_owned(),
    }
}

fn canonical_headers(request: &Request) -> String {
    let mut names: Vec<&String> = request.headers.keys().filter(|name| name.starts_with("x-ms-")).collect();
    names.sort_by_key(|name| weight(name));
    let line = |name: &String| format!("{name}:{}\n", request.header(name).unwrap_or_default());
    names.into_iter().map(line).collect()
}

/// The service does not order by code points: hyphens count only between names that are otherwise equal, and an
/// underscore comes before digits and letters. The official clients have the same order (`SharedKeyComparator`).
fn weight(name: &str) -> (Vec<u8>, String) {
    let weigh = |byte: u8| if byte == b'_' { 1 } else { byte };
    (name.bytes().filter(|byte| *byte != b'-').map(weigh).collect(), name.to_owned())
}

/// The path as it was sent, so an emulator's has the account twice; then every parameter, decoded, in order.
fn canonical_resource(request: &Request, account: &str) -> String {
    let mut pairs: Vec<(String, String)> =
        request.pairs().into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    pairs.sort();
    let path = if request.path.is_empty() { "/" } else { &request.path };
    pairs
        .into_iter()
        .fold(format!("/{account}{path}"), |resource, (name, value)| resource + &format!("\n{name}:{value}"))
}
