//! Requests of somebody who does not know of the fence.

use crate::support::azurite::SAS;
use crate::support::http;

pub fn send(method: &str, blob: &str, headers: &[(&str, &str)], body: &str) -> http::Answer {
    let headers = [&[("x-ms-version", "2021-12-02")], headers].concat();
    http::send(method, &format!("{blob}?{SAS}"), &headers, body.as_bytes()).expect("Azurite answers")
}
