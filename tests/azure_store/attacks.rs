//! What clients do to each other, as scenarios.

use std::sync::Arc;

use leasehold::Grant;

use crate::actors::{Actor, Held};
use crate::schedule::{Explored, Part, Scenario, explore};
use crate::support::azure::{ACCOUNT, CONTAINER, Fake, Request};
use crate::world::{Violation, World};

/// What is there when the clients begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A free lease; its last token was 3.
    Free,
    /// A lease with token 3 that has just been handed over.
    HandedOver,
}

/// Clients, and what may go wrong between them.
pub(crate) struct Attack {
    before: Before,
    parts: Vec<(&'static str, Part)>,
    faults: usize,
    ticks: usize,
}

impl Attack {
    fn on(before: Before) -> Self {
        Self { before, parts: Vec::new(), faults: 1, ticks: 0 }
    }

    fn and(mut self, who: &'static str, part: Part) -> Self {
        self.parts.push((who, part));
        self
    }

    fn faults(self, faults: usize) -> Self {
        Self { faults, ..self }
    }

    fn ticks(self, ticks: usize) -> Self {
        Self { ticks, ..self }
    }

    /// Walks all paths, on a service of either kind. The first violation, with what has led to it.
    pub(crate) fn explore(&self) -> Explored {
        let mut all = Explored::default();
        for lease_first in [false, true] {
            let Self { before, faults, ticks, .. } = *self;
            let scenario = Scenario { parts: self.parts.clone(), faults, ticks, lease_first };
            let explored = explore(&scenario, |world| prepare(before, world));
            all.runs += explored.runs;
            all.grants += explored.grants;
            all.violation = all.violation.or(explored.violation);
        }
        all
    }

    pub(crate) fn assert_harmless(&self) {
        let explored = self.explore();
        println!("{} runs with {} grants", explored.runs, explored.grants);
        if let Some((violation, told)) = explored.violation {
            panic!("{violation:?} after\n{told}");
        }
        assert!(explored.grants > 0, "nobody was ever granted anything");
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.explore().violation.map(|(violation, _)| violation)
    }
}

async fn prepare(before: Before, world: Arc<World>) {
    let fake = world.fake();
    match before {
        Before::Nothing => {}
        Before::Free => fake.put_foreign("job", &[("lh_format", "1"), ("lh_token", "3")]),
        Before::HandedOver => {
            let grant = handed().grant.to_text();
            fake.put_foreign(
                "job",
                &[("lh_format", "1"), ("lh_token", "3"), ("lh_ttl_ms", "15000"), ("lh_grant", &grant)],
            );
            lease(fake, &grant);
        }
    }
}

fn handed() -> Held {
    Held { token: 3, grant: Grant::from_bits(0x3) }
}

fn lease(fake: &Fake, id: &str) {
    let headers = [
        ("x-ms-version", "2021-12-02"),
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "15"),
        ("x-ms-proposed-lease-id", id),
    ];
    let leased = fake.send(&Request {
        method: "PUT".into(),
        scheme: "https".into(),
        host: format!("{ACCOUNT}.blob.core.windows.net"),
        path: format!("/{CONTAINER}/job"),
        query: "comp=lease".into(),
        headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
        body: Vec::new(),
    });
    assert_eq!(leased.status, 201);
}

macro_rules! part {
    ($actor:ident => $work:expr) => {
        |$actor: Actor| {
            Box::pin(async move {
                $work;
            })
        }
    };
}

pub(crate) fn two_contenders() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(2).await)).and("b", part!(b => b.acquires(2).await))
}

pub(crate) fn two_contenders_of_a_name_that_nobody_had_before() -> Attack {
    Attack { before: Before::Nothing, ..two_contenders() }
}

/// A claim is given up as soon as it has no answer, and cleaned up.
pub(crate) fn a_contender_that_gives_up() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(1).await)).and("b", part!(b => b.acquires(2).await))
}

pub(crate) fn a_contender_that_gives_up_alone() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(1).await)).faults(2)
}

pub(crate) fn a_contender_whose_repeated_claims_are_all_late() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(2).await)).faults(3)
}

/// With the time that a term takes: whoever has the lease may lose it before it has written its claim.
pub(crate) fn two_contenders_and_time() -> Attack {
    two_contenders().ticks(2).faults(0)
}

pub(crate) fn a_holder_that_releases() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(2).await { a.releases(held).await });
    Attack::on(Before::Free).and("a", a).and("b", part!(b => b.acquires(2).await))
}

pub(crate) fn a_holder_with_late_copies_of_everything() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(2).await {
        a.renews(held).await;
        a.releases(held).await;
    });
    Attack::on(Before::Free).and("a", a).faults(3)
}

pub(crate) fn a_holder_with_late_payloads() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await {
        a.stores(held, "one").await;
        a.stores(held, "two").await;
    });
    Attack::on(Before::Free).and("a", a).faults(2)
}

pub(crate) fn a_holder_that_closes() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await { a.closes(held).await });
    Attack::on(Before::Free).and("a", a).and("b", part!(b => b.acquires(1).await))
}

pub(crate) fn a_holder_that_closes_alone() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await {
        a.stores(held, "one").await;
        a.closes(held).await;
    });
    Attack::on(Before::Free).and("a", a).faults(2)
}

pub(crate) fn a_holder_that_closes_while_it_is_revoked() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await { a.closes(held).await });
    Attack::on(Before::Free).and("a", a).and("operator", part!(o => o.revokes(5, false).await)).ticks(2)
}

pub(crate) fn a_holder_that_closes_while_it_is_forced_out() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await { a.closes(held).await });
    Attack::on(Before::Free).and("a", a).and("operator", part!(o => o.revokes(5, true).await))
}

/// The holder renews as long as it believes; the others take over when the service says that its term is over.
pub(crate) fn a_takeover() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await {
        a.renews(held).await;
        a.renews(held).await;
    });
    Attack::on(Before::Free).and("a", a).and("b", part!(b => b.acquires(1).await)).ticks(3)
}

/// The holder's release comes when its lease may be somebody else's.
pub(crate) fn a_late_release() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await {
        a.looks().await;
        a.releases(held).await;
    });
    Attack::on(Before::Free).and("a", a).and("b", part!(b => b.acquires(1).await)).ticks(2).faults(0)
}

pub(crate) fn a_revoked_holder() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await { a.renews(held).await });
    Attack::on(Before::Free)
        .and("a", a)
        .and("operator", part!(o => o.revokes(5, false).await))
        .and("b", part!(b => b.acquires(1).await))
        .ticks(2)
        .faults(0)
}

pub(crate) fn a_forced_holder() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await { a.stores(held, "one").await });
    Attack::on(Before::Free)
        .and("a", a)
        .and("operator", part!(o => o.revokes(5, true).await))
        .and("b", part!(b => b.acquires(1).await))
        .faults(0)
}

pub(crate) fn a_hand_over_delivered_twice() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => a.resumes(handed(), 2).await))
        .and("b", part!(b => b.resumes(handed(), 2).await))
}

pub(crate) fn a_hand_over_whose_receiver_gives_up() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => a.resumes(handed(), 1).await))
        .and("b", part!(b => b.resumes(handed(), 2).await))
}

pub(crate) fn a_hand_over_at_the_end_of_its_term() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => a.resumes(handed(), 2).await))
        .and("b", part!(b => b.acquires(1).await))
        .ticks(3)
}

/// The old holder's own payload is under way when its successor takes up.
pub(crate) fn a_hand_over_with_a_late_payload() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(1).await {
        a.stores(held, "one").await;
        a.hands_over(held);
        a.resumes(held, 1).await;
    });
    Attack::on(Before::Free).and("a", a).faults(2)
}

pub(crate) fn a_release_after_a_hand_over() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.resumes(handed(), 2).await { a.releases(held).await });
    Attack::on(Before::HandedOver).and("a", a).and("b", part!(b => b.acquires(2).await))
}
