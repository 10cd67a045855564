//! Requests without an answer, one at each place of each verb: the verb says what it knows, and its next copy finds out.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::{Applied, Claim, Grant, Renewed, Vacate, Vacated, View};
use tokio::time::sleep;

use crate::ground::{Ground, a, b, burn, claim, closing, error, release, renew, renew_with, resume, value};
use crate::support::azure::{Fault, Op};

/// Applied or not, and without an answer that says so.
const FAULTS: [Fault; 7] = [
    Fault::LoseRequest,
    Fault::LoseAnswer,
    Fault::ApplyThen(500),
    Fault::ApplyThen(503),
    Fault::AnswerForeign,
    Fault::Hang,
    Fault::ApplyThenHang,
];
const OF_A_CLAIM: [Op; 3] = [Op::PutBlob, Op::Acquire, Op::SetMetadata];
const OF_A_HAND_OVER: [Op; 3] = [Op::Change, Op::Renew, Op::SetMetadata];

/// The lease is this grant's and nobody else gets it.
async fn assert_held(ground: &Ground, token: u64, grant: Grant, what: &str) {
    assert_eq!(ground.leased_by(), Some(grant), "{what}");
    assert_eq!(ground.pair("lh_grant"), Some(grant.to_text()), "{what}");
    assert_eq!(ground.pair("lh_token"), Some(token.to_string()), "{what}");
    assert_eq!(ground.another().refused(&claim(token + 1, b())).await.grant(), Some(grant), "{what}");
}

/// Nobody has it, and this claim can get it no more.
async fn assert_burnt(ground: &Ground, token: u64, what: &str) {
    assert_eq!(ground.leased_by(), None, "{what}");
    assert_eq!(ground.pair("lh_token"), Some(token.to_string()), "{what}");
    ground.another().granted(&claim(token + 1, b())).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_an_answer_at_any_place_is_granted_by_its_next_copy() {
    for op in OF_A_CLAIM {
        for fault in FAULTS {
            let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}"));
            let happened = ground.fake.on(op).fault(fault);
            assert_eq!(error(ground.store.claim(&claim(5, a())).await).applied, Applied::Unknown, "{what}");
            ground.store.granted(&claim(5, a())).await;
            assert_eq!(happened.times(), 1, "{what}");
            assert_held(&ground, 5, a(), &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_given_up_at_any_place_is_cleaned_up_at_once() {
    for op in OF_A_CLAIM {
        for fault in FAULTS {
            let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}"));
            ground.fake.on(op).fault(fault);
            error(ground.store.claim(&claim(5, a())).await);
            assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated, "{what}");
            assert_burnt(&ground, 5, &what).await;
        }
    }
}

/// The store that cleans up remembers nothing of the claim.
#[tokio::test(start_paused = true)]
async fn another_process_can_clean_up_as_well() {
    for op in OF_A_CLAIM {
        for fault in FAULTS {
            let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}"));
            ground.fake.on(op).fault(fault);
            error(ground.store.claim(&claim(5, a())).await);
            assert_eq!(ground.another().vacated(&burn(5, a())).await, Vacated::Vacated, "{what}");
            assert_burnt(&ground, 5, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_request_of_a_claim_that_was_cleaned_up_changes_nothing() {
    let late = Duration::from_secs(5);
    for op in OF_A_CLAIM {
        for fault in [Fault::ApplyLate(late), Fault::Twice(late)] {
            for cleans_up_first in [false, true] {
                let (ground, what) = (Ground::new(), format!("{op:?} {fault:?}, clean-up first: {cleans_up_first}"));
                ground.fake.on(op).fault(fault);
                if ground.store.claim(&claim(5, a())).await.is_ok() && !cleans_up_first {
                    ground.store.vacated(&release(5, a())).await;
                } else {
                    assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated, "{what}");
                }
                let before = ground.job();
                sleep(2 * late).await;
                let after = ground.job();
                assert_eq!(
                    (after.state, after.etag, after.metadata),
                    (before.state, before.etag, before.metadata),
                    "{what}"
                );
                ground.another().granted(&claim(6, b())).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_without_an_answer_at_any_place_is_settled_by_its_next_copy() {
    for (landed, ops) in [
        (false, vec![(Op::SetMetadata, 0)]),
        (
            true,
            vec![(Op::SetMetadata, 0), (Op::HeadBlob, 0), (Op::Release, 0), (Op::HeadBlob, 1), (Op::SetMetadata, 1)],
        ),
    ] {
        for (op, nth) in ops {
            for fault in FAULTS {
                let (ground, what) = (Ground::with_a_free_lease().await, format!("{landed} {op:?} {nth} {fault:?}"));
                ground.fake.on(Op::Acquire).fault(if landed { Fault::LoseAnswer } else { Fault::LoseRequest });
                error(ground.store.claim(&claim(5, a())).await);
                let happened = ground.fake.on(op).after(nth).fault(fault);
                error(ground.store.vacate(&burn(5, a())).await);
                assert_eq!(happened.times(), 1, "{what}");
                match ground.store.vacated(&burn(5, a())).await {
                    Vacated::Vacated => {}
                    Vacated::Refused(view) => assert_eq!(view.token(), 5, "settled: {what}"),
                }
                assert_burnt(&ground, 5, &what).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_known_neither_to_be_applied_nor_to_be_lost() {
    for fault in FAULTS {
        let ground = Ground::with_a_free_lease().await;
        ground.store.granted(&claim(5, a())).await;
        ground.fake.on(Op::Renew).fault(fault);
        assert_eq!(error(ground.store.try_renew(&renew(5, a())).await).applied, Applied::Unknown, "{fault:?}");
        assert_eq!(ground.store.renewed(&renew(5, a())).await, Renewed::Renewed(None), "{fault:?}");
        assert_held(&ground, 5, a(), &format!("{fault:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_without_an_answer_is_stored_by_the_next_renewal_that_carries_it() {
    for op in [Op::Renew, Op::SetMetadata] {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            ground.store.granted(&claim(5, a())).await;
            ground.fake.on(op).fault(fault);
            assert_eq!(
                error(ground.store.try_renew(&renew_with(5, a(), "one")).await).applied,
                Applied::Unknown,
                "{what}"
            );
            assert_eq!(ground.store.renewed(&renew_with(5, a(), "two")).await, Renewed::Renewed(None), "{what}");
            let data = ground.store.view().await.record.expect("there").data.expect("stored");
            assert_eq!(data.as_bytes(), b"two", "{what}");
            assert_held(&ground, 5, a(), &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_is_over_by_its_next_copy() {
    for fault in FAULTS {
        let ground = Ground::with_a_free_lease().await;
        ground.store.granted(&claim(5, a())).await;
        ground.fake.on(Op::Release).fault(fault);
        assert_eq!(error(ground.store.vacate(&release(5, a())).await).applied, Applied::Unknown, "{fault:?}");
        match ground.store.vacated(&release(5, a())).await {
            Vacated::Vacated => {}
            Vacated::Refused(view) => assert_eq!((view.token(), view.grant()), (5, None), "{fault:?}"),
        }
        assert_eq!(ground.leased_by(), None, "{fault:?}");
    }
}

/// Whether the view says that the closing release of this token was recorded.
fn records(view: &View, token: u64) -> bool {
    let closed = view.record.as_ref().and_then(|record| record.closed);
    view.grant().is_none() && closed.is_some_and(|closed| closed.by == Some(token))
}

#[tokio::test(start_paused = true)]
async fn a_closing_release_without_an_answer_is_recorded_by_its_next_copy_which_says_so() {
    for op in [Op::SetMetadata, Op::Release] {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            ground.store.granted(&claim(5, a())).await;
            ground.fake.on(op).fault(fault);
            assert_eq!(error(ground.store.vacate(&closing(5, a())).await).applied, Applied::Unknown, "{what}");
            match ground.store.vacated(&closing(5, a())).await {
                Vacated::Vacated => {}
                Vacated::Refused(view) => assert!(records(&view, 5), "{what}: {view:?}"),
            }
            let view = ground.store.view().await;
            assert!(records(&view, 5), "{what}");
            assert_eq!(view.record.expect("there").data.expect("the outcome").as_bytes(), b"outcome", "{what}");
            assert_eq!(ground.leased_by(), None, "{what}");
            assert!(records(&ground.another().refused(&claim(6, b())).await, 5), "nobody opens it: {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_release_that_was_recorded_is_not_undone_by_what_comes_after_it() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.fake.on(Op::Release).fault(Fault::LoseRequest);
    error(ground.store.vacate(&closing(5, a())).await);
    // The lease that was not given back runs out, and the record stays closed.
    sleep(Duration::from_secs(16)).await;
    assert!(records(&ground.another().refused(&claim(6, b())).await, 5));
    assert_eq!(ground.another().vacated(&burn(7, b())).await, Vacated::Vacated);
    let record = ground.store.view().await.record.expect("there");
    assert_eq!((record.token, record.closed.and_then(|closed| closed.by)), (7, Some(5)));
    assert!(record.data.is_some(), "the outcome stays");
}

#[tokio::test(start_paused = true)]
async fn a_closing_release_of_a_grant_that_is_over_records_nothing_and_says_so() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    sleep(Duration::from_secs(16)).await;
    let Vacated::Refused(view) = ground.store.vacated(&closing(5, a())).await else { panic!("recorded") };
    assert!(!records(&view, 5));
    assert_eq!(ground.pair("lh_closed_by"), None);
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_without_an_answer_at_any_place_is_taken_up_by_its_next_copy() {
    for op in OF_A_HAND_OVER {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            ground.another().granted(&claim(5, b())).await;
            let happened = ground.fake.on(op).fault(fault);
            assert_eq!(error(ground.store.claim(&resume(6, a(), b())).await).applied, Applied::Unknown, "{what}");
            assert_eq!(happened.times(), 1, "{what}");
            ground.store.granted(&resume(6, a(), b())).await;
            assert_held(&ground, 6, a(), &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_that_is_given_up_at_any_place_frees_the_lease_or_leaves_it_as_it_was() {
    for op in OF_A_HAND_OVER {
        for fault in FAULTS {
            let (ground, what) = (Ground::with_a_free_lease().await, format!("{op:?} {fault:?}"));
            ground.another().granted(&claim(5, b())).await;
            ground.fake.on(op).fault(fault);
            error(ground.store.claim(&resume(6, a(), b())).await);
            match ground.store.vacated(&burn(6, a())).await {
                Vacated::Vacated => assert_burnt(&ground, 6, &what).await,
                Vacated::Refused(view) => {
                    // Nothing had been applied: it is still there to be taken up, until its term is over.
                    assert_eq!((view.token(), ground.leased_by()), (5, Some(b())), "{what}");
                    ground.another().granted(&resume(7, Grant::from_bits(0xd), b())).await;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_refused_by_a_rival_is_told_what_is_there_although_a_look_had_no_answer() {
    for fault in FAULTS {
        let ground = Ground::with_a_free_lease().await;
        ground.another().granted(&Claim { data: None, ..claim(5, b()) }).await;
        ground.fake.on(Op::HeadBlob).fault(fault);
        let failed = error(ground.store.claim(&claim(6, a())).await);
        assert_eq!(failed.applied, Applied::No, "a look changes nothing: {fault:?}");
        assert_eq!(ground.store.refused(&claim(6, a())).await.grant(), Some(b()), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_follows_one_without_an_answer_leaves_the_next_holder_alone() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.fake.on(Op::Release).fault(Fault::LoseAnswer);
    error(ground.store.vacate(&release(5, a())).await);
    ground.another().granted(&claim(6, b())).await;
    for late in [release(5, a()), closing(5, a()), Vacate { burn: true, ..release(5, a()) }] {
        let Vacated::Refused(view) = ground.store.vacated(&late).await else { panic!("accepted: {late:?}") };
        assert_eq!((view.token(), view.grant()), (6, Some(b())));
    }
    assert!(matches!(ground.store.renewed(&renew(5, a())).await, Renewed::Refused(view) if view.token() == 6));
    assert_held(&ground, 6, b(), "the next holder's").await;
    let page = value(ground.store.list("", None).await);
    assert_eq!(page.leases.len(), 1);
}
