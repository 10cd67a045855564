//! The strict service behind a port, for processes that cannot share it.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::support::azure::{Fake, Request, Response};
use crate::support::loopback::Loopback;

/// Answers until it is dropped.
pub(crate) fn serve(fake: Fake) -> Loopback {
    Loopback::start(move |listener| accept(fake.clone(), listener))
}

async fn accept(fake: Fake, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(fake.clone(), stream));
    }
}

async fn connection(fake: Fake, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(fake.clone(), request));
    // It ends with its client, or with a request that is no HTTP.
    let _ = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(fake: Fake, request: hyper::Request<Incoming>) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // A body that breaks off is no request: the service has not seen it.
    let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    let headers = head.headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?.to_owned();
        Some((name.as_str().to_owned(), value))
    });
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let request = Request {
        method: head.method.to_string(),
        scheme: "http".into(),
        host,
        path: head.uri.path().into(),
        query: head.uri.query().unwrap_or_default().into(),
        headers: headers.collect(),
        body,
    };
    let answered = fake.exchange(request).await;
    Ok(plain(answered.unwrap_or_else(|_| unreachable!("nothing is scripted"))))
}

fn plain(response: Response) -> hyper::Response<Full<Bytes>> {
    let mut answer = hyper::Response::builder().status(response.status);
    for (name, value) in response.headers {
        answer = answer.header(name, value);
    }
    answer.body(Full::from(response.body)).expect("valid parts")
}
