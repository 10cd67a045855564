//! The Azure Functions example on Azurite: its processes get calls in the host's form, the same ones twice, and are frozen
//! and killed.
#![allow(clippy::disallowed_methods, reason = "real processes and real terms")]
#![allow(unreachable_pub, reason = "modules of one test")]

#[path = "../support/mod.rs"]
mod support;

mod app;
mod stopped;

use serde_json::{Value, json};

use app::{App, Container};

fn order(order: &str) -> Value {
    json!({ "order": order })
}

fn slow_order(order: &str) -> Value {
    json!({ "order": order, "bank_takes_ms": 4000 })
}

#[test]
fn two_deliveries_of_one_order_charge_it_once() {
    let container = Container::new("twice");
    let (one, other) = (App::with_once(&container), App::with_once(&container));
    let first = one.call(&order("17")).unwrap();
    assert!(first.done && first.log.starts_with("17: charged under token "), "{first:?}");
    for app in [&one, &other] {
        let again = app.call(&order("17")).unwrap();
        assert_eq!((again.done, again.log), (true, first.log.clone()), "it is remembered");
    }
    assert_eq!(container.charges("17").len(), 1);
}

/// The control: the same deliveries to the same handler without `Once`.
#[test]
fn without_once_two_deliveries_of_one_order_charge_it_twice() {
    let container = Container::new("unguarded");
    let app = App::unguarded(&container);
    for _ in 0..2 {
        let called = app.call(&order("17")).unwrap();
        assert!(called.done, "{called:?}");
    }
    assert_eq!(container.charges("17"), [1, 1]);
}

#[test]
fn a_delivery_whose_order_is_in_progress_in_another_process_fails_so_that_it_comes_again() {
    let container = Container::new("elsewhere");
    let (one, other) = (App::with_once(&container), App::with_once(&container));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| one.call(&slow_order("17")));
        container.until_at_work("17");
        let second = other.call(&slow_order("17")).unwrap();
        assert!(!second.done && second.log.starts_with("17: held by "), "{second:?}");
        let first = first.join().unwrap().unwrap();
        assert!(first.done, "{first:?}");
    });
    assert!(other.call(&order("17")).unwrap().done);
    assert_eq!(container.charges("17").len(), 1);
}

#[test]
fn a_message_that_is_no_order_fails() {
    let container = Container::new("nonsense");
    let called = App::with_once(&container).call(&json!("17")).unwrap();
    assert!(!called.done, "{called:?}");
}
