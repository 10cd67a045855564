//! HTTP messages as the proxy holds them: whole, so that they can be kept, repeated and cut.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub type WholeRequest = Request<Full<Bytes>>;
pub type WholeResponse = Response<Full<Bytes>>;

/// The way to the emulator, with the connections that are free for the next request.
pub struct Upstream {
    addr: SocketAddr,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Upstream {
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, idle: Mutex::default() }
    }

    /// Sends once: a request is repeated only if no byte of it was sent.
    pub async fn send(&self, mut request: WholeRequest) -> io::Result<WholeResponse> {
        loop {
            let mut connection = self.connection().await?;
            match connection.try_send_request(request).await {
                Ok(response) => {
                    let response = whole(response).await?;
                    self.idle.lock().unwrap().push(connection);
                    return Ok(response);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(io::Error::other(failed.into_error())),
                },
            }
        }
    }

    async fn connection(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        while let Some(mut idle) = self.take_idle() {
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        let stream = TcpStream::connect(self.addr).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        self.idle.lock().unwrap().pop()
    }
}

async fn whole(response: Response<hyper::body::Incoming>) -> io::Result<WholeResponse> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Response::from_parts(head, Full::new(body)))
}

/// The bytes of a response up to the middle of its body, or of its head where it has none.
pub async fn first_half(response: WholeResponse) -> Vec<u8> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("a full body cannot fail").to_bytes();
    let mut bytes = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    if body.is_empty() {
        bytes.truncate(bytes.len() / 2);
    }
    bytes.extend_from_slice(&body[..body.len() / 2]);
    bytes
}
