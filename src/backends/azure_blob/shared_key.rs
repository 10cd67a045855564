//! Authorisation by an account's shared key, which the SDK leaves out.
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;
use azure_core::http::headers::Headers;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request, Url};
use azure_core::time::{OffsetDateTime, to_rfc7231};

use crate::time::{Clock, SystemClock};

/// Signs each request of an account. `Debug` shows no key.
pub(super) struct SharedKey {
    account: String,
    key: Secret,
}

impl SharedKey {
    pub(super) fn new(account: &str, key: Secret) -> Result<Self, String> {
        hmac_sha256("", &key).map_err(|_| "the shared key is not base64".to_owned())?;
        Ok(Self { account: account.to_owned(), key })
    }

    fn authorization(&self, request: &Request) -> azure_core::Result<String> {
        let length = request.body().len().unwrap_or(0);
        let text = string_to_sign(&self.account, request.method(), request.url(), request.headers(), length);
        Ok(format!("SharedKey {}:{}", self.account, hmac_sha256(&text, &self.key)?))
    }
}

#[async_trait]
impl Policy for SharedKey {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let now = i64::try_from(SystemClock.stamp().real / 1_000_000_000).unwrap_or(0);
        let now = OffsetDateTime::from_unix_timestamp(now).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        request.insert_header("x-ms-date", to_rfc7231(&now));
        let authorization = self.authorization(request)?;
        request.insert_header("authorization", authorization);
        next[0].send(context, request, &next[1..]).await
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("account", &self.account).finish_non_exhaustive()
    }
}

/// `Date` is left empty, because `x-ms-date` is there; a length of 0 is written as nothing.
fn string_to_sign(account: &str, method: Method, url: &Url, headers: &Headers, length: u64) -> String {
    let header = |name: &'static str| headers.get_optional_str(&name.into()).unwrap_or_default();
    let length = if length == 0 { String::new() } else { length.to_string() };
    let mut text = format!("{}\n", method.as_ref());
    for value in [
        header("content-encoding"),
        header("content-language"),
        &length,
        header("content-md5"),
        header("content-type"),
        "",
        header("if-modified-since"),
        header("if-match"),
        header("if-none-match"),
        header("if-unmodified-since"),
        header("range"),
    ] {
        _ = writeln!(text, "{value}");
    }
    let mut of_the_service: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    of_the_service.retain(|(name, _)| name.starts_with("x-ms-"));
    of_the_service.sort_by(|(one, _), (other, _)| in_the_services_order(one, other));
    for (name, value) in of_the_service {
        _ = writeln!(text, "{name}:{}", value.trim());
    }
    _ = write!(text, "/{account}{}", url.path());
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in url.query_pairs() {
        parameters.entry(name.to_lowercase()).or_default().push(value.into_owned());
    }
    for (name, mut values) in parameters {
        values.sort();
        _ = write!(text, "\n{name}:{}", values.join(","));
    }
    text
}

/// The service sorts header names as .NET sorts words: an underscore before digits before letters, and by hyphens only
/// what is equal without them. The documentation says "lexicographically"; the official clients do it like this.
fn in_the_services_order(one: &str, other: &str) -> Ordering {
    let weights = |name: &str| -> Vec<u8> {
        let words = name.bytes().filter(|byte| *byte != b'-');
        words.map(|byte| if byte == b'_' { 0 } else { byte }).collect()
    };
    weights(one).cmp(&weights(other)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_string_to_sign_is_that_of_the_documentation() {
        let url = Url::parse("http://127.0.0.1:10000/acct/box/a/b?timeout=20&restype=container&comp=metadata").unwrap();
        let mut headers = Headers::new();
        for (name, value) in [
            ("x-ms-version", "2021-12-02"),
            ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
            ("if-match", "\"0x8\""),
            ("x-ms-meta-lh_token", "7"),
        ] {
            headers.insert(name, value);
        }
        let text = string_to_sign("acct", Method::Put, &url, &headers, 0);
        let expected = "PUT\n\n\n\n\n\n\n\n\"0x8\"\n\n\n\n\
                        x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-meta-lh_token:7\nx-ms-version:2021-12-02\n\
                        /acct/acct/box/a/b\ncomp:metadata\nrestype:container\ntimeout:20";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_underscore_sorts_before_a_digit() {
        let mut names = ["x-ms-meta-a1", "x-ms-meta-ab", "x-ms-meta-a_b", "x-ms-meta-a"];
        names.sort_by(|one, other| in_the_services_order(one, other));
        assert_eq!(names, ["x-ms-meta-a", "x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-ab"]);
    }

    #[test]
    fn debug_shows_no_key() {
        let key = SharedKey::new("acct", Secret::new("UExBTlRFRA==")).unwrap();
        assert!(!format!("{key:?}").contains("UExBTlRFRA"));
        assert!(SharedKey::new("acct", Secret::new("not base64!")).is_err());
    }
}
