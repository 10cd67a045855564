//! How to make the client that a lease store needs out of the one that the user has, with nothing
//! but what `aws-sdk-dynamodb` exports: no retries, time-outs, and the headers of every answer.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextRef,
};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    Builder, Config, ConfigBag, Intercept, RuntimeComponents, SharedHttpClient,
};
use aws_sdk_dynamodb::error::{BoxError, SdkError};
use aws_sdk_dynamodb::operation::RequestId;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use tokio::runtime::Runtime;

use crate::fixture::{Fixture, claim, io_cause, service_error, update, write};
use crate::support::emulator::{self, retrying_client};
use crate::support::faults::{Answer, Fault, Match};

/// What an answer's headers say, as an interceptor reads them.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) names: Vec<String>,
    pub(crate) date: Option<DateTime>,
    pub(crate) request_id: Option<String>,
}

/// Collects the headers of all answers, of successes and of errors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Mutex<Vec<Answered>>>);

impl Answers {
    pub(crate) fn all(&self) -> Vec<Answered> {
        self.0.lock().unwrap().clone()
    }
}

impl Intercept for Answers {
    fn name(&self) -> &'static str {
        "Answers"
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let date = response.headers().get("date");
        self.0.lock().unwrap().push(Answered {
            status: response.status().as_u16(),
            names: header_names(response),
            date: date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok()),
            request_id: response.request_id().map(str::to_owned),
        });
        Ok(())
    }
}

pub(crate) fn header_names(response: &HttpResponse) -> Vec<String> {
    let mut names: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    names.sort();
    names
}

/// A client with the user's region, endpoint, credentials and interceptors, without retries.
/// It has connections of its own unless the user's configuration names an HTTP client.
pub(crate) fn derived(user: &Client, interceptor: impl Intercept + 'static) -> Client {
    let config = settings(user.config().to_builder(), user.config().timeout_config());
    Client::from_conf(config.interceptor(interceptor).build())
}

/// The same settings for one call on the user's own client, which always shares its connections.
fn call_override(interceptor: impl Intercept + 'static) -> Builder {
    settings(Config::builder(), None).interceptor(interceptor)
}

/// A derived client with an HTTP client of its own in every case, for a thread of its own.
fn derived_apart(user: &Client) -> Client {
    let mut config = settings(user.config().to_builder(), user.config().timeout_config());
    config.set_http_client(None);
    Client::from_conf(config.build())
}

/// Keeps the user's connect and read time-outs: setting the time-outs anew would drop them.
fn settings(config: Builder, user: Option<&TimeoutConfig>) -> Builder {
    let timeouts = user.map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
    let timeouts = timeouts
        .operation_attempt_timeout(Duration::from_millis(200))
        .operation_timeout(Duration::from_secs(20));
    config
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts.build())
}

#[tokio::test]
async fn an_interceptor_reads_date_and_request_id_of_successes_and_errors() {
    let fixture = Fixture::start().await;
    let answers = Answers::default();
    let client = derived(&fixture.client, answers.clone());

    let claimed = claim(&client).await.expect("free");
    let refused = claim(&client).await.expect_err("taken");
    fixture.next_write(Fault::Answer(Answer::internal_error()));
    write(&client).await.expect_err("scripted");

    let all = answers.all();
    let statuses: Vec<_> = all.iter().map(|answered| answered.status).collect();
    assert_eq!(statuses, [200, 400, 500]);
    assert_eq!(all[0].request_id.as_deref(), claimed.request_id());
    assert_eq!(all[1].request_id.as_deref(), refused.request_id());
    assert!(
        all.iter()
            .all(|answered| answered.date.is_some() && answered.request_id.is_some())
    );
}

#[tokio::test]
async fn an_interceptor_sees_no_answer_where_none_came() {
    let fixture = Fixture::start().await;
    let answers = Answers::default();
    fixture.next_write(Fault::LoseAnswer);
    write(&derived(&fixture.client, answers.clone()))
        .await
        .expect_err("reset");
    assert!(answers.all().is_empty());
}

#[tokio::test]
async fn an_interceptor_sees_the_headers_of_a_truncated_answer() {
    let fixture = Fixture::start().await;
    let answers = Answers::default();
    fixture.next_write(Fault::Truncate);
    write(&derived(&fixture.client, answers.clone()))
        .await
        .expect_err("cut");
    assert_eq!(answers.all().len(), 1);
}

#[tokio::test]
async fn a_derived_client_makes_one_attempt_where_the_users_makes_three() {
    let fixture = Fixture::start().await;
    let user = retrying_client(fixture.proxy.addr());
    fixture
        .proxy
        .on(Match::any())
        .fault(Fault::Answer(Answer::internal_error()));

    write(&user).await.expect_err("scripted");
    assert_eq!(fixture.proxy.count("UpdateItem"), 3);

    fixture.proxy.reset_counts();
    let error = write(&derived(&user, Answers::default()))
        .await
        .expect_err("scripted");
    assert_eq!(service_error(&error), Some((500, "InternalServerError")));
    assert_eq!(fixture.proxy.count("UpdateItem"), 1);
}

#[tokio::test]
async fn a_derived_client_gives_up_an_attempt_after_its_own_timeout() {
    let fixture = Fixture::start().await;
    fixture.next_write(Fault::Stall);
    let error = write(&derived(&fixture.client, Answers::default()))
        .await
        .expect_err("stalled");
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
    assert!(
        format!("{error:?}").contains("OperationAttempt"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_derived_client_keeps_the_users_interceptors() {
    let fixture = Fixture::start().await;
    let users = Answers::default();
    let ours = Answers::default();
    let user = derived(&fixture.client, users.clone());
    write(&derived(&user, ours.clone())).await.expect("up");
    assert_eq!((users.all().len(), ours.all().len()), (1, 1));
}

#[tokio::test]
async fn a_derived_client_opens_connections_of_its_own_by_default() {
    let fixture = Fixture::start().await;
    let user = &fixture.client;
    write(user).await.expect("up");
    write(&derived(user, Answers::default())).await.expect("up");
    assert!(
        user.config().http_client().is_none(),
        "the default one is not in the configuration"
    );
    assert_eq!(fixture.proxy.connections_opened(), 2);
}

#[tokio::test]
async fn a_derived_client_shares_connections_if_the_user_named_an_http_client() {
    let fixture = Fixture::start().await;
    let user = with_explicit_http_client(&fixture.client).await;
    write(&user).await.expect("up");
    write(&derived(&user, Answers::default()))
        .await
        .expect("up");
    assert_eq!(fixture.proxy.connections_opened(), 1);
}

#[tokio::test]
async fn another_connect_or_read_timeout_means_other_connections() {
    let fixture = Fixture::start().await;
    let user = with_explicit_http_client(&fixture.client).await;
    write(&user).await.expect("up");
    let connect = TimeoutConfig::builder().connect_timeout(Duration::from_secs(7));
    let read = TimeoutConfig::builder().read_timeout(Duration::from_secs(7));
    for timeouts in [connect, read] {
        let config = user.config().to_builder().timeout_config(timeouts.build());
        write(&Client::from_conf(config.build())).await.expect("up");
    }
    assert_eq!(fixture.proxy.connections_opened(), 3);
}

#[tokio::test]
async fn an_override_for_one_call_shares_the_users_connections() {
    let fixture = Fixture::start().await;
    let user = retrying_client(fixture.proxy.addr());
    let answers = Answers::default();
    write(&user).await.expect("up");
    let call = update(&user)
        .customize()
        .config_override(call_override(answers.clone()));
    call.send().await.expect("up");
    assert_eq!(
        (answers.all().len(), fixture.proxy.connections_opened()),
        (1, 1)
    );
}

#[tokio::test]
async fn an_override_for_one_call_turns_retries_off_and_timeouts_on() {
    let fixture = Fixture::start().await;
    let user = retrying_client(fixture.proxy.addr());
    fixture.next_write(Fault::Stall);
    fixture
        .proxy
        .on(Match::any())
        .fault(Fault::Answer(Answer::internal_error()));
    for _ in 0..2 {
        let call = update(&user)
            .customize()
            .config_override(call_override(Answers::default()));
        call.send().await.expect_err("stalled, then scripted");
    }
    assert_eq!(fixture.proxy.count("UpdateItem"), 2);
}

#[tokio::test]
async fn a_client_apart_shares_no_connection_and_works_on_another_runtime() {
    let fixture = Fixture::start().await;
    let user = with_explicit_http_client(&fixture.client).await;
    write(&user).await.expect("up");
    let apart = derived_apart(&user);

    // Joining blocks this test's only thread, and with it the user's connections.
    let written = thread::spawn(move || runtime().block_on(write(&apart)).is_ok()).join();

    assert!(written.expect("no panic"));
    assert_eq!(fixture.proxy.connections_opened(), 2);
}

#[tokio::test]
async fn a_shared_connection_is_stuck_while_the_runtime_that_opened_it_is_blocked() {
    let fixture = Fixture::start().await;
    let user = with_explicit_http_client(&fixture.client).await;
    write(&user).await.expect("up");
    let shared = derived(&user, Answers::default());

    let timed_out = thread::spawn(move || {
        let written = runtime().block_on(write(&shared));
        matches!(written, Err(SdkError::TimeoutError(_)))
    });

    assert!(
        timed_out.join().expect("no panic"),
        "nobody drives the connection"
    );
}

#[test]
fn a_client_works_on_a_second_runtime_after_the_first_has_ended() {
    let (first, second) = (runtime(), runtime());
    let fixture = first.block_on(Fixture::start());
    first.block_on(write(&fixture.client)).expect("up");
    drop(first);
    second
        .block_on(write(&fixture.client))
        .expect("a new connection");
    assert_eq!(
        (
            second.block_on(fixture.writes()),
            fixture.proxy.connections_opened()
        ),
        (2, 2)
    );
}

#[tokio::test]
async fn a_refused_connection_can_be_told_from_one_that_was_reset() {
    let fixture = Fixture::start().await;
    fixture.next_write(Fault::LoseRequest);
    let reset = write(&fixture.client).await.expect_err("reset");
    fixture.proxy.down();
    let refused = write(&emulator::client(fixture.proxy.addr()))
        .await
        .expect_err("refused");
    let causes = [reset, refused].map(|error| io_cause(&error));
    assert_eq!(
        causes,
        [
            Some(ErrorKind::ConnectionReset),
            Some(ErrorKind::ConnectionRefused)
        ]
    );
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Takes the HTTP client out of the components of a call, which it then fails before anything
/// is sent. The SDK exports no other way to get one to name.
#[derive(Clone, Debug, Default)]
struct Capture(Arc<Mutex<Option<SharedHttpClient>>>);

impl Intercept for Capture {
    fn name(&self) -> &'static str {
        "Capture"
    }

    fn read_before_serialization(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        *self.0.lock().unwrap() = components.http_client();
        Err("only here to look".into())
    }
}

async fn with_explicit_http_client(client: &Client) -> Client {
    let capture = Capture::default();
    let call = client
        .list_tables()
        .customize()
        .interceptor(capture.clone());
    call.send().await.expect_err("the interceptor fails it");
    let http = capture
        .0
        .lock()
        .unwrap()
        .take()
        .expect("every client has one");
    Client::from_conf(client.config().to_builder().http_client(http).build())
}
