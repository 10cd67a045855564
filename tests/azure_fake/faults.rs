//! What the script does to a request on its way.

use std::time::Duration;

use leasehold::testing::TestClock;

use crate::ground::{A, B, BLOB, refusal};
use crate::support::azure::{Broken, Fake, Fault, Op, Request, Response, State};

/// Longer than any fault here.
const LONG: Duration = Duration::from_secs(3600);
const LATE: Duration = Duration::from_secs(7);

fn fake() -> Fake {
    let fake = Fake::new(TestClock::new());
    fake.put_blob(BLOB, None, &[("lh_token", "1")]);
    fake
}

fn acquire(fake: &Fake) -> Request {
    let request = fake.lease_request(BLOB, "acquire").with("x-ms-lease-duration", "60");
    request.with("x-ms-proposed-lease-id", &A.to_string())
}

fn state(fake: &Fake) -> State {
    fake.peek(BLOB).unwrap().state
}

/// None if there is no answer for a long time.
async fn exchange(fake: &Fake, request: Request) -> Option<Result<Response, Broken>> {
    tokio::time::timeout(LONG, fake.exchange(request)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_does_not_arrive() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::LoseRequest);
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap_err(), Broken::Lost);
    assert_eq!((state(&fake), fake.count(Op::Acquire)), (State::Available, 1));
    assert_eq!(fake.requests()[0].answered, None);
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_takes_no_request() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::RefuseConnection);
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap_err(), Broken::NotConnected);
    assert_eq!(state(&fake), State::Available);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_was_applied() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::LoseAnswer);
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap_err(), Broken::Lost);
    assert_eq!(state(&fake), State::Leased(A));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_applied_late_is_lost_to_its_client_at_once() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::ApplyLate(LATE));
    let begun = tokio::time::Instant::now();
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap_err(), Broken::Lost);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(state(&fake), State::Available);
    tokio::time::sleep(LATE + Duration::from_millis(1)).await;
    assert_eq!(state(&fake), State::Leased(A));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_request_arrives_late_if_its_client_waits() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::Delay(LATE));
    let begun = tokio::time::Instant::now();
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap().status, 201);
    assert!(begun.elapsed() >= LATE);

    fake.release(BLOB, A);
    fake.on(Op::Acquire).fault(Fault::Delay(LATE));
    let impatient = tokio::time::timeout(LATE / 2, fake.exchange(acquire(&fake)));
    impatient.await.unwrap_err();
    tokio::time::sleep(LATE).await;
    assert_eq!(state(&fake), State::Available);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_was_applied_in_time() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::AnswerLate(LATE));
    let impatient = tokio::time::timeout(LATE / 2, fake.exchange(acquire(&fake)));
    impatient.await.unwrap_err();
    assert_eq!(state(&fake), State::Leased(A));

    fake.on(Op::Acquire).fault(Fault::AnswerLate(LATE));
    let begun = tokio::time::Instant::now();
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap().status, 201);
    assert!(begun.elapsed() >= LATE);
}

#[tokio::test(start_paused = true)]
async fn a_second_copy_is_applied_late() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::Twice(LATE));
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap().status, 201);
    fake.release(BLOB, A);
    tokio::time::sleep(LATE + Duration::from_millis(1)).await;
    assert_eq!(state(&fake), State::Leased(A));
    assert_eq!(fake.count(Op::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_request_is_never_answered_nor_applied() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::Hang);
    assert!(exchange(&fake, acquire(&fake)).await.is_none());
    assert_eq!(state(&fake), State::Available);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_after_it_was_applied_is_never_answered() {
    let fake = fake();
    fake.on(Op::Break).fault(Fault::ApplyThenHang);
    fake.acquire(BLOB, A, -1);
    assert!(exchange(&fake, fake.lease_request(BLOB, "break")).await.is_none());
    assert_eq!(state(&fake), State::Broken(A));
}

#[tokio::test(start_paused = true)]
async fn a_scripted_answer_is_the_services_and_nothing_is_applied() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::Answer(503, "ServerBusy"));
    let answer = fake.exchange(acquire(&fake)).await.unwrap();
    assert_eq!(refusal(&answer), (503, "ServerBusy"));
    assert!(answer.header("x-ms-request-id").is_some() && answer.header("date").is_some());
    assert_eq!(state(&fake), State::Available);
    assert_eq!(fake.requests()[0].answered, Some((503, Some("ServerBusy".to_owned()))));
}

#[tokio::test(start_paused = true)]
async fn a_request_may_be_applied_and_answered_with_an_error() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::ApplyThen(500));
    let answer = fake.exchange(acquire(&fake)).await.unwrap();
    assert_eq!(refusal(&answer), (500, "InternalError"));
    assert_eq!(state(&fake), State::Leased(A));
}

#[tokio::test(start_paused = true)]
async fn a_proxys_own_answer_has_no_request_id_no_code_and_another_clock() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::AnswerForeign);
    fake.on(Op::Renew).fault(Fault::AnswerForeignStatus(404));
    let answer = fake.exchange(acquire(&fake)).await.unwrap();
    assert_eq!((answer.status, answer.code(), answer.header("x-ms-request-id")), (502, None, None));
    assert_eq!(answer.header("date"), Some("Mon, 21 Sep 2026 15:13:20 GMT"));
    assert_eq!(state(&fake), State::Available);
    let renew = fake.lease_request(BLOB, "renew").with_lease(Some(A));
    let answer = fake.exchange(renew).await.unwrap();
    assert_eq!((answer.status, answer.code(), answer.header("x-ms-request-id")), (404, None, None));
}

#[tokio::test(start_paused = true)]
async fn a_fault_hits_the_requests_it_was_scripted_for() {
    let fake = fake();
    let lost = fake.on(Op::HeadBlob).of(BLOB).after(1).times(2).fault(Fault::LoseRequest);
    let head = |name: &str| fake.exchange(fake.request("HEAD", name, ""));
    assert!(head("other").await.is_ok());
    assert!(fake.exchange(fake.request("GET", BLOB, "")).await.is_ok());
    let outcomes = [head(BLOB).await, head(BLOB).await, head("other").await, head(BLOB).await, head(BLOB).await];
    assert_eq!(outcomes.each_ref().map(Result::is_ok), [true, false, true, false, true]);
    assert_eq!(lost.times(), 2);
}

#[tokio::test(start_paused = true)]
async fn faults_come_in_the_order_in_which_they_were_scripted() {
    let fake = fake();
    fake.on(Op::HeadBlob).fault(Fault::LoseRequest);
    fake.on(Op::HeadBlob).fault(Fault::RefuseConnection);
    let head = || fake.exchange(fake.request("HEAD", BLOB, ""));
    assert_eq!(head().await.unwrap_err(), Broken::Lost);
    assert_eq!(head().await.unwrap_err(), Broken::NotConnected);
    assert!(head().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn healing_forgets_the_script() {
    let fake = fake();
    fake.on(Op::HeadBlob).always().fault(Fault::LoseRequest);
    assert!(fake.exchange(fake.request("HEAD", BLOB, "")).await.is_err());
    fake.heal();
    assert!(fake.exchange(fake.request("HEAD", BLOB, "")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_rival_acts_before_the_request_is_applied() {
    let fake = fake();
    let acted = fake.on(Op::Acquire).before(|fake| assert_eq!(fake.acquire(BLOB, B, 15).status, 201));
    let answer = fake.exchange(acquire(&fake)).await.unwrap();
    assert_eq!(refusal(&answer), (409, "LeaseAlreadyPresent"));
    assert_eq!((state(&fake), acted.times()), (State::Leased(B), 1));
}

#[tokio::test(start_paused = true)]
async fn a_rival_acts_between_the_request_and_its_answer() {
    let fake = fake();
    fake.on(Op::Acquire).then(|fake| {
        fake.release(BLOB, A);
        fake.acquire(BLOB, B, 15);
    });
    assert_eq!(fake.exchange(acquire(&fake)).await.unwrap().status, 201);
    assert_eq!(state(&fake), State::Leased(B));
}

#[tokio::test(start_paused = true)]
async fn a_rival_acts_even_if_the_answer_is_lost() {
    let fake = fake();
    fake.on(Op::Acquire).fault(Fault::LoseAnswer);
    fake.on(Op::Acquire).then(|fake| {
        fake.break_lease(BLOB, Some(0));
    });
    assert!(fake.exchange(acquire(&fake)).await.is_err());
    assert_eq!(state(&fake), State::Broken(A));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_at_a_gate_before_it_is_applied() {
    let fake = fake();
    let gate = fake.on(Op::Acquire).pause_before();
    let waiting = tokio::spawn({
        let fake = fake.clone();
        async move { fake.exchange(acquire(&fake)).await }
    });
    gate.reached().await;
    assert_eq!(state(&fake), State::Available);
    fake.acquire(BLOB, B, 15);
    gate.open();
    assert_eq!(refusal(&waiting.await.unwrap().unwrap()), (409, "LeaseAlreadyPresent"));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_at_a_gate_before_it_is_answered() {
    let fake = fake();
    let gate = fake.on(Op::Acquire).pause_after();
    let waiting = tokio::spawn({
        let fake = fake.clone();
        async move { fake.exchange(acquire(&fake)).await }
    });
    gate.reached().await;
    assert_eq!(state(&fake), State::Leased(A));
    assert!(!waiting.is_finished());
    drop(gate);
    assert_eq!(waiting.await.unwrap().unwrap().status, 201);
}
