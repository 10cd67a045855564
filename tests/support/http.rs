//! HTTP requests of somebody who has no client of the service: one connection each.

use std::io::{Read, Write};
use std::net::TcpStream;

/// What was answered.
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(known, _)| known.eq_ignore_ascii_case(name)));
        line.map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

/// Sends it to an `http://` URL. Fails where nobody listens, or the other side ends before it has answered.
pub fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<Answer> {
    let (host, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("http://HOST:PORT/PATH");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    let mut connection = TcpStream::connect(host)?;
    connection.write_all(head.as_bytes())?;
    connection.write_all(body)?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| std::io::Error::other("no answer"))
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: answer[end + 4..].to_vec() };
    if answer.header("transfer-encoding").is_some() {
        answer.body = joined(&answer.body)?;
    }
    Some(answer)
}

/// The content of chunks.
fn joined(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let end = chunks.windows(2).position(|bytes| bytes == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).ok()?.trim(), 16).ok()?;
        let chunk = &chunks[end + 2..];
        if length == 0 {
            return Some(content);
        }
        content.extend_from_slice(chunk.get(..length)?);
        chunks = chunk.get(length + 2..)?;
    }
}
