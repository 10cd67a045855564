//! The Lambda example behind a queue: MiniStack starts it as a `bootstrap`, keeps it warm, and brings messages twice. Its
//! processes are frozen and killed.
#![allow(clippy::disallowed_methods, reason = "real processes and real terms")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod cloud;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use cloud::{Function, TERM, until};
use support::process;

/// Longer than a term, so that a message does not come back for nothing.
const AGAIN: Duration = Duration::from_secs(7);
/// Time to be stopped in, within the term.
const BANK_MS: u64 = 3000;

fn order(order: &str) -> Value {
    json!({ "order": order })
}

fn slow_order(order: &str) -> Value {
    json!({ "order": order, "bank_takes_ms": BANK_MS })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deliveries_of_one_order_charge_it_once() {
    let function = Function::with_once(AGAIN, 1).await;
    function.queue(&[order("17"), order("17")]);
    function.until_queue_is_empty().await;
    assert_eq!(function.charges("17").await.0, 1);

    function.queue(&[order("17")]);
    function.until_queue_is_empty().await;
    assert_eq!(function.charges("17").await.0, 1, "it is remembered");
}

/// The control: the same deliveries to the same handler without `Once`.
#[tokio::test(flavor = "multi_thread")]
async fn without_once_two_deliveries_of_one_order_charge_it_twice() {
    let function = Function::without_once(AGAIN, 1).await;
    function.queue(&[order("17"), order("17")]);
    function.until_queue_is_empty().await;
    assert_eq!(function.charges("17").await, (2, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_order_is_in_progress_elsewhere_comes_again_and_the_others_of_its_batch_are_done() {
    let function = Function::with_once(AGAIN, 10).await;
    let elsewhere = function.leases.acquire("17").await.unwrap();
    function.queue(&[order("16"), order("17"), order("18")]);
    until("the others are done", async || function.queued() == 1).await;
    assert_eq!((function.charges("16").await.0, function.charges("18").await.0), (1, 1));
    assert_eq!(function.charges("17").await.0, 0);

    let token = elsewhere.token();
    elsewhere.release().await.unwrap();
    function.until_queue_is_empty().await;
    let (charges, under) = function.charges("17").await;
    assert_eq!(charges, 1);
    assert!(under > Some(token.as_u64()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_frozen_between_two_messages_for_longer_than_a_term_goes_on_and_repeats_nothing() {
    let function = Function::with_once(AGAIN, 1).await;
    function.queue(&[order("17")]);
    function.until_queue_is_empty().await;
    let warm = function.process();

    process::freeze(warm);
    tokio::time::sleep(TERM + Duration::from_secs(2)).await;
    function.queue(&[order("18")]);
    process::thaw(warm);
    function.until_queue_is_empty().await;
    function.queue(&[order("17")]);
    function.until_queue_is_empty().await;
    assert_eq!((function.charges("17").await.0, function.charges("18").await.0), (1, 1));
    assert_eq!(function.process(), warm, "it was the same process");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_frozen_in_its_work_knows_its_loss_when_it_wakes_and_the_order_is_charged_by_the_next_only() {
    let function = Arc::new(Function::with_once(AGAIN, 1).await);
    let first = spawn_blocking({
        let function = Arc::clone(&function);
        move || function.invoke("first delivery", &slow_order("17"))
    });
    let token = function.until_at_work("17").await;
    let frozen = function.process();
    process::freeze(frozen);

    let mut told = Vec::new();
    loop {
        let (comes_again, log) = function.invoke("second delivery", &order("17"));
        if !comes_again {
            break;
        }
        told.push(log);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(!told.is_empty() && told.iter().all(|log| log.contains("17: held by ")), "{told:?}");
    let (charges, under) = function.charges("17").await;
    assert_eq!(charges, 1);
    assert!(under > Some(token.as_u64()), "{under:?} is not above {token}");

    process::thaw(frozen);
    let (comes_again, log) = first.await.unwrap();
    assert!(comes_again, "{log}");
    assert!(log.contains("17: ") && log.contains("lost"), "{log}");
    assert_eq!(function.charges("17").await, (1, under), "the late one has not charged");
    assert!(!function.invoke("first delivery", &order("17")).0, "it is done, and this is remembered");
    assert_eq!(function.charges("17").await, (1, under));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_in_its_work_a_later_delivery_charges_the_order_under_a_higher_token() {
    let function = Function::with_once(AGAIN, 1).await;
    function.queue(&[slow_order("17")]);
    let token = function.until_at_work("17").await;
    let killed = function.process();
    process::end(killed);

    function.until_queue_is_empty().await;
    let (charges, under) = function.charges("17").await;
    assert_eq!(charges, 1);
    assert!(under > Some(token.as_u64()), "{under:?} is not above {token}");
    assert_ne!(function.process(), killed);
}
