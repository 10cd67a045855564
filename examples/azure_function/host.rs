//! The Functions host's side of a custom handler: it posts each call to `/FUNCTION`, and reads the answer.

use std::convert::Infallible;
use std::env;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Error;

/// A call of a function.
pub struct Call {
    pub function: String,
    body: Value,
}

impl Call {
    /// What the binding of this name brings, from JSON; the host sends a message's text as it is, in a string.
    pub fn trigger<T: DeserializeOwned>(&self, binding: &str) -> Result<T, serde_json::Error> {
        match &self.body["Data"][binding] {
            Value::String(text) => serde_json::from_str(text),
            value => T::deserialize(value),
        }
    }
}

/// Serves the host until the process is ended. An `Err` fails the call: the host looks at nothing but the status then.
pub async fn serve<Run, Fut>(run: Run) -> Result<(), Error>
where
    Run: Fn(Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send,
{
    let port = env::var("FUNCTIONS_CUSTOMHANDLER_PORT").map_err(|_| "FUNCTIONS_CUSTOMHANDLER_PORT is not set")?;
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let run = run.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &run));
            // Whatever ends the connection is the host's affair.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer<Run, Fut>(request: Request<Incoming>, run: &Run) -> Result<Response<Full<Bytes>>, Infallible>
where
    Run: Fn(Call) -> Fut,
    Fut: Future<Output = Result<String, String>>,
{
    if request.method() != Method::POST {
        return Ok(Response::new(Full::default())); // the host asks whether anybody is there
    }
    let (status, log) = match called(request).await {
        Ok(call) => match run(call).await {
            Ok(log) => (StatusCode::OK, log),
            Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        },
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
    };
    println!("{log}");
    let body = json!({ "Outputs": {}, "Logs": [log], "ReturnValue": null });
    let mut response = Response::new(Full::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}

async fn called(request: Request<Incoming>) -> Result<Call, Error> {
    let function = request.uri().path().trim_matches('/').to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Call { function, body: serde_json::from_slice(&body)? })
}

/// How long an invocation may take. The host does not send it, but hands its settings on, and this one also overrides
/// `functionTimeout` of host.json: so both know the same. Five minutes where it is not set, as on the Consumption plan.
pub fn time_out() -> Result<Duration, Error> {
    let Ok(text) = env::var("AzureFunctionsJobHost__functionTimeout") else { return Ok(Duration::from_secs(300)) };
    let parts = text.split(':').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>();
    match parts.as_deref() {
        Ok([hours, minutes, seconds]) => Ok(Duration::from_secs(hours * 3600 + minutes * 60 + seconds)),
        _ => Err(format!("AzureFunctionsJobHost__functionTimeout is not HH:MM:SS but {text}").into()),
    }
}
