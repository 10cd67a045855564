//! What clients do to each other, as scenarios.

use std::sync::Arc;

use leasehold::Grant;
use uuid::Uuid;

use crate::actors::{Actor, Held};
use crate::schedule::{Explored, Part, Scenario, explore};
use crate::world::{Violation, World};

/// What is there when the clients begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A free lease; its last token was 3.
    Free,
    /// A lease with token 5 that a client holds.
    Held,
    /// The same, and it has just been handed over.
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
        Before::Held | Before::HandedOver => {
            let (held, since) = (held(), world.now());
            let (token, grant) = (held.token.to_string(), held.grant.to_text());
            let pairs = [("lh_format", "1"), ("lh_token", &*token), ("lh_ttl_ms", "15000"), ("lh_grant", &*grant)];
            fake.put_foreign("job", &pairs);
            assert_eq!(fake.acquire("job", Uuid::from_u128(held.grant.bits()), 15).status, 201);
            assert!(world.granted(held.token, held.grant, 0, since));
            if before == Before::HandedOver {
                world.ends(held.grant);
            }
        }
    }
}

/// What is held, or was handed over, when the clients begin.
fn held() -> Held {
    Held { token: 5, grant: Grant::from_bits(5) }
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
    Attack { before: Before::Nothing, faults: 0, ..two_contenders() }
}

pub(crate) fn a_contender_of_a_name_that_nobody_had_before() -> Attack {
    Attack { before: Before::Nothing, ..a_contender_that_gives_up_alone() }
}

/// With the time that a term takes: whoever has the lease may lose it before it has written its claim.
pub(crate) fn two_contenders_and_time() -> Attack {
    two_contenders().ticks(2).faults(0)
}

/// A claim is given up as soon as it has no answer, and cleaned up; another comes and goes meanwhile.
pub(crate) fn a_contender_that_gives_up() -> Attack {
    let b: Part = part!(b => if let Some(held) = b.proposes(9, 1).await { b.releases(held).await });
    Attack::on(Before::Free).and("a", part!(a => a.acquires(1).await)).and("b", b)
}

pub(crate) fn a_contender_that_gives_up_alone() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(1).await)).faults(2)
}

pub(crate) fn a_contender_whose_repeated_claims_are_late() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(2).await)).faults(2)
}

/// Its lease can be over before its claim is written.
pub(crate) fn a_contender_that_stalls() -> Attack {
    Attack::on(Before::Free).and("a", part!(a => a.acquires(1).await)).ticks(2)
}

pub(crate) fn a_holder_that_releases() -> Attack {
    let a: Part = part!(a => a.releases(a.goes_on(held())).await);
    Attack::on(Before::Held).and("a", a).and("b", part!(b => b.acquires(2).await))
}

pub(crate) fn a_holder_with_late_copies_of_everything() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.acquires(2).await {
        a.renews(held).await;
        a.releases(held).await;
    });
    Attack::on(Before::Free).and("a", a).faults(2)
}

pub(crate) fn a_holder_with_late_payloads() -> Attack {
    let a: Part = part!(a => {
        let held = a.goes_on(held());
        a.stores(held, "one").await;
        a.stores(held, "two").await;
        a.stores(held, "three").await;
    });
    Attack::on(Before::Held).and("a", a).faults(2)
}

pub(crate) fn a_holder_that_closes() -> Attack {
    let a: Part = part!(a => a.closes(a.goes_on(held())).await);
    Attack::on(Before::Held).and("a", a).and("b", part!(b => b.acquires(1).await))
}

pub(crate) fn a_holder_that_closes_after_a_payload() -> Attack {
    let a: Part = part!(a => {
        let held = a.goes_on(held());
        a.stores(held, "one").await;
        a.closes(held).await;
    });
    Attack::on(Before::Held).and("a", a).faults(2)
}

pub(crate) fn a_holder_that_closes_while_it_is_revoked() -> Attack {
    let a: Part = part!(a => a.closes(a.goes_on(held())).await);
    Attack::on(Before::Held).and("a", a).and("operator", part!(o => o.revokes(5, false).await))
}

pub(crate) fn a_holder_that_closes_while_it_is_forced_out() -> Attack {
    let a: Part = part!(a => a.closes(a.goes_on(held())).await);
    Attack::on(Before::Held).and("a", a).and("operator", part!(o => o.revokes(5, true).await))
}

pub(crate) fn a_holder_that_closes_when_its_term_may_be_over() -> Attack {
    let a: Part = part!(a => a.closes(a.goes_on(held())).await);
    Attack::on(Before::Held).and("a", a).and("b", part!(b => b.acquires(1).await)).ticks(2).faults(0)
}

/// The holder renews as long as it believes; the others take over when the service says that its term is over.
pub(crate) fn a_takeover() -> Attack {
    let a: Part = part!(a => {
        let held = a.goes_on(held());
        a.renews(held).await;
        a.renews(held).await;
    });
    Attack::on(Before::Held).and("a", a).and("b", part!(b => b.acquires(1).await)).ticks(2)
}

/// The holder's release comes when its lease may be somebody else's.
pub(crate) fn a_late_release() -> Attack {
    let a: Part = part!(a => {
        a.looks().await;
        a.releases(a.goes_on(held())).await;
    });
    Attack::on(Before::Held).and("a", a).and("b", part!(b => b.acquires(1).await)).ticks(2).faults(0)
}

pub(crate) fn a_revoked_holder() -> Attack {
    let a: Part = part!(a => a.renews(a.goes_on(held())).await);
    Attack::on(Before::Held)
        .and("a", a)
        .and("operator", part!(o => o.revokes(5, false).await))
        .and("b", part!(b => b.acquires(1).await))
        .ticks(2)
        .faults(0)
}

pub(crate) fn a_forced_holder() -> Attack {
    let a: Part = part!(a => a.stores(a.goes_on(held()), "one").await);
    Attack::on(Before::Held)
        .and("a", a)
        .and("operator", part!(o => o.revokes(5, true).await))
        .and("b", part!(b => b.acquires(1).await))
        .faults(0)
}

/// A late break can hit whoever comes next.
pub(crate) fn a_revocation_that_comes_late() -> Attack {
    let a: Part = part!(a => a.releases(a.goes_on(held())).await);
    Attack::on(Before::Held)
        .and("a", a)
        .and("operator", part!(o => o.revokes(5, false).await))
        .and("b", part!(b => b.acquires(1).await))
        .faults(0)
}

pub(crate) fn a_hand_over_delivered_twice() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => a.resumes(held(), 2).await))
        .and("b", part!(b => b.resumes(held(), 2).await))
}

pub(crate) fn a_hand_over_whose_receiver_gives_up() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => a.resumes(held(), 1).await))
        .and("b", part!(b => b.resumes(held(), 2).await))
}

pub(crate) fn a_hand_over_at_the_end_of_its_term() -> Attack {
    Attack::on(Before::HandedOver)
        .and("a", part!(a => { a.looks().await; a.resumes(held(), 2).await }))
        .and("b", part!(b => b.acquires(1).await))
        .ticks(2)
        .faults(0)
}

/// The old holder's own payload is under way when its successor takes up.
pub(crate) fn a_hand_over_with_a_late_payload() -> Attack {
    let a: Part = part!(a => {
        let held = a.goes_on(held());
        a.stores(held, "one").await;
        a.hands_over(held);
        a.resumes(held, 1).await;
    });
    Attack::on(Before::Held).and("a", a).faults(2)
}

pub(crate) fn a_release_after_a_hand_over() -> Attack {
    let a: Part = part!(a => if let Some(held) = a.resumes(held(), 2).await { a.releases(held).await });
    Attack::on(Before::HandedOver).and("a", a).and("b", part!(b => b.acquires(2).await))
}
