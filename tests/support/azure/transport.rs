//! The fake as the transport of `azure_core`: no sockets, so that it works on a paused clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, Body, HttpClient, StatusCode, Transport};

use super::Fake;
use super::faults::Broken;
use super::http::{Request, Response};

impl Fake {
    /// For `ClientOptions::transport`.
    pub fn transport(&self) -> Transport {
        Transport::new(self.http_client())
    }

    pub fn http_client(&self) -> Arc<dyn HttpClient> {
        Arc::new(InProcess(self.clone()))
    }
}

#[derive(Debug)]
struct InProcess(Fake);

#[async_trait]
impl HttpClient for InProcess {
    async fn execute_request(&self, request: &azure_core::http::Request) -> azure_core::Result<AsyncRawResponse> {
        answered(self.0.exchange(plain(request)?).await)
    }
}

/// An answer, or why there is none, as the SDK tells it.
pub fn answered(outcome: Result<Response, Broken>) -> azure_core::Result<AsyncRawResponse> {
    match outcome {
        Ok(response) => Ok(raw(response)),
        // As `reqwest` tells them: a connection that was not made, and one that broke.
        Err(Broken::NotConnected) => Err(error(ErrorKind::Connection, "the fake takes no connection")),
        Err(Broken::Lost) => Err(error(ErrorKind::Io, "the connection to the fake broke")),
    }
}

/// A request of the SDK as the fake takes it.
pub fn plain(request: &azure_core::http::Request) -> azure_core::Result<Request> {
    let Body::Bytes(body) = request.body() else {
        return Err(error(ErrorKind::Other, "the fake takes no streamed body"));
    };
    let url = request.url();
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_lowercase(), value.as_str().to_owned()));
    Ok(Request {
        method: request.method().to_string(),
        scheme: url.scheme().to_owned(),
        host: url.host_str().unwrap_or_default().to_owned() + &port,
        path: url.path().to_owned(),
        query: url.query().unwrap_or_default().to_owned(),
        headers: headers.collect::<BTreeMap<_, _>>(),
        body: body.to_vec(),
    })
}

fn raw(response: Response) -> AsyncRawResponse {
    let mut headers = Headers::new();
    for (name, value) in response.headers {
        headers.insert(name, value);
    }
    AsyncRawResponse::from_bytes(StatusCode::from(response.status), headers, response.body)
}

fn error(kind: ErrorKind, message: &'static str) -> azure_core::Error {
    azure_core::Error::with_message(kind, message)
}
