//! A process that is killed in its work, one that is frozen in it, and one that is frozen between two calls. All at the
//! same time, because a term is 15 s at the least.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::app::{App, Called, Container, TERM};
use crate::{order, slow_order};

static SEEN: LazyLock<Seen> = LazyLock::new(play);

/// What was seen of the three.
struct Seen {
    killed: Worked,
    frozen: Worked,
    idle: Idle,
}

/// One that was stopped in its work, and another process that its message was brought to.
struct Worked {
    order: &'static str,
    token: u64,
    /// What the other was told before it could charge.
    told: Vec<Called>,
    /// The tokens of the charges when the other had charged.
    charges: Vec<u64>,
    /// What the stopped one answered in the end, if anything.
    late: Option<Called>,
    /// And the charges then.
    charges_then: Vec<u64>,
}

struct Idle {
    next: Called,
    repeat: Called,
    charges: [usize; 2],
}

#[test]
fn after_a_kill_in_its_work_a_later_delivery_charges_the_order_under_a_higher_token() {
    let killed = &SEEN.killed;
    is_charged_by_the_next_only(killed);
    assert!(killed.late.is_none(), "{:?}", killed.late);
}

#[test]
fn a_function_frozen_in_its_work_knows_its_loss_when_it_wakes_and_the_order_is_charged_by_the_next_only() {
    let frozen = &SEEN.frozen;
    is_charged_by_the_next_only(frozen);
    let late = frozen.late.as_ref().expect("it wakes");
    assert!(!late.done && late.log.contains("was lost"), "{late:?}");
}

#[test]
fn a_function_frozen_between_two_calls_for_longer_than_a_term_goes_on_and_repeats_nothing() {
    let idle = &SEEN.idle;
    assert!(idle.next.done, "{:?}", idle.next);
    assert!(idle.repeat.done, "{:?}", idle.repeat);
    assert_eq!(idle.charges, [1, 1]);
}

fn is_charged_by_the_next_only(seen: &Worked) {
    assert!(!seen.told.is_empty(), "it was not free at once");
    assert!(seen.told.iter().all(|called| called.log.contains(": held by ")), "{:?}", seen.told);
    assert!(matches!(seen.charges[..], [under] if under > seen.token), "{:?}, {}", seen.charges, seen.token);
    assert_eq!(seen.charges_then, seen.charges);
}

fn play() -> Seen {
    let container = Container::new("stopped");
    let [killed, frozen, idle, next] = [(); 4].map(|()| App::with_once(&container));
    assert!(idle.call(&order("before")).unwrap().done);
    std::thread::scope(|scope| {
        let dies = scope.spawn(|| killed.call(&slow_order("killed")));
        let sleeps = scope.spawn(|| frozen.call(&slow_order("frozen")));
        let (mut of_killed, mut of_frozen) = (Worked::begun(&container, "killed"), Worked::begun(&container, "frozen"));
        killed.kill();
        frozen.freeze();
        idle.freeze();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| of_killed.is_brought_to(&next, &container));
            scope.spawn(|| of_frozen.is_brought_to(&next, &container));
        });
        std::thread::sleep((TERM + Duration::from_secs(2)).saturating_sub(begun.elapsed()));
        frozen.thaw();
        idle.thaw();
        of_killed.ends(dies.join().unwrap().ok(), &container);
        of_frozen.ends(sleeps.join().unwrap().ok(), &container);
        let (next, repeat) = (idle.call(&order("after")).unwrap(), idle.call(&order("before")).unwrap());
        let charges = ["before", "after"].map(|order| container.charges(order).len());
        Seen { killed: of_killed, frozen: of_frozen, idle: Idle { next, repeat, charges } }
    })
}

impl Worked {
    fn begun(container: &Container, order: &'static str) -> Self {
        let token = container.until_at_work(order).as_u64();
        Self { order, token, told: Vec::new(), charges: Vec::new(), late: None, charges_then: Vec::new() }
    }

    /// Again and again, as a queue does it, until it is done.
    fn is_brought_to(&mut self, app: &App, container: &Container) {
        loop {
            let called = app.call(&order(self.order)).unwrap();
            if called.done {
                break self.charges = container.charges(self.order);
            }
            self.told.push(called);
            assert!(self.told.len() < 90, "it is never done: {:?}", self.told.last());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn ends(&mut self, late: Option<Called>, container: &Container) {
        self.late = late;
        self.charges_then = container.charges(self.order);
    }
}
