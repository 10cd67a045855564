//! Requests of somebody who does not know of the fence.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::azurite::SAS;

/// The answer: its status, and its headers in lower case.
pub struct Answer {
    pub status: u16,
    head: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(known, _)| known.eq_ignore_ascii_case(name)));
        line.map(|(_, value)| value)
    }
}

pub fn send(method: &str, blob: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let (host, path) = blob.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a URL of Azurite's");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} /{path}?{SAS} HTTP/1.1\r\nhost: {host}\r\nx-ms-version: 2021-12-02\r\nconnection: close\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    );
    let mut connection = TcpStream::connect(host).expect("Azurite listens");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    Answer { status, head }
}
