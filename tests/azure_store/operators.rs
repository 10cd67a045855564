//! Operators, and rivals that have got the lease and not yet said so.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::{Asked, Claim, Expect, Grant, Label, Renewed, Revoked, Standing, Vacated};
use tokio::time::sleep;
use uuid::Uuid;

use crate::ground::{Ground, TERM, a, ask, b, burn, claim, closing, force, release, renew, renew_with, revoke, value};
use crate::support::azure::{Auth, Fault, Op, State};

const RIVAL: Uuid = Uuid::from_u128(0x717a);

/// A rival leases the blob and has not written its claim yet.
fn rival_leases(ground: &Ground) {
    ground.fake.require(Auth::None);
    assert_eq!(ground.fake.acquire("job", RIVAL, 15).status, 201);
}

fn somebody() -> Option<Grant> {
    Some(Grant::from_bits(0))
}

#[tokio::test(start_paused = true)]
async fn a_revoked_holder_keeps_its_term_learns_it_with_its_next_renewal_and_nobody_gets_in_before_its_end() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&Claim { holder: Label::new("a").ok(), ..claim(5, a()) }).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(value(ground.another().revoke(&revoke(5)).await), Revoked::Revoked);
    let Renewed::Refused(view) = ground.store.renewed(&renew(5, a())).await else { panic!("renewed") };
    let record = view.record.expect("there");
    assert_eq!((record.token, record.revoked), (5, true));
    assert_eq!(record.holder.as_ref().map(Label::as_str), Some("a"));
    assert_ne!(record.grant, Some(a()), "it is not the holder's any more");
    sleep(Duration::from_millis(9_900)).await;
    assert_eq!(ground.another().refused(&claim(6, b())).await.token(), 5, "its term is not over");
    sleep(Duration::from_millis(200)).await;
    ground.another().granted(&claim(6, b())).await;
}

#[tokio::test(start_paused = true)]
async fn a_revoked_holder_can_still_release_and_close() {
    for vacate in [release(5, a()), closing(5, a())] {
        let ground = Ground::with_a_free_lease().await;
        ground.store.granted(&claim(5, a())).await;
        value(ground.another().revoke(&revoke(5)).await);
        assert_eq!(ground.store.vacated(&vacate).await, Vacated::Vacated);
        assert_eq!(ground.job().state, State::Available);
    }
}

#[tokio::test(start_paused = true)]
async fn with_another_token_an_operator_changes_nothing() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    let before = ground.job();
    for token in [4, 6] {
        for operator in [revoke(token), force(token)] {
            let answer = value(ground.another().revoke(&operator).await);
            assert!(matches!(answer, Revoked::Refused(view) if view.token() == 5));
        }
        assert!(matches!(value(ground.another().ask(&ask(token)).await), Asked::Refused(_)));
    }
    let after = ground.job();
    assert_eq!((after.state, after.etag), (before.state, before.etag));
    assert_eq!(ground.store.renewed(&renew(5, a())).await, Renewed::Renewed(None));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_revoked_that_nobody_holds() {
    let ground = Ground::new();
    assert!(matches!(value(ground.store.revoke(&revoke(5)).await), Revoked::Refused(view) if view.record.is_none()));
    ground.store.granted(&claim(5, a())).await;
    ground.store.vacated(&release(5, a())).await;
    for operator in [revoke(5), force(5)] {
        assert!(
            matches!(value(ground.store.revoke(&operator).await), Revoked::Refused(view) if view.grant().is_none())
        );
    }
    ground.store.granted(&claim(6, b())).await;
    ground.store.vacated(&closing(6, b())).await;
    assert!(matches!(value(ground.store.revoke(&force(6)).await), Revoked::Refused(_)), "closed, and not held");
}

#[tokio::test(start_paused = true)]
async fn force_frees_at_once_also_what_was_revoked_and_the_next_token_is_higher() {
    for revoked_before in [false, true] {
        let ground = Ground::with_a_free_lease().await;
        ground.store.granted(&claim(5, a())).await;
        if revoked_before {
            value(ground.another().revoke(&revoke(5)).await);
        }
        assert_eq!(value(ground.another().revoke(&force(5)).await), Revoked::Revoked);
        let rival = ground.another();
        assert_eq!(rival.refused(&claim(5, b())).await.token(), 5, "not with the same token");
        rival.granted(&claim(6, b())).await;
        assert!(matches!(ground.store.renewed(&renew(5, a())).await, Renewed::Refused(view) if view.token() == 6));
        assert!(matches!(ground.store.vacated(&release(5, a())).await, Vacated::Refused(_)));
        assert_eq!(ground.leased_by(), Some(b()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_revocation_without_an_answer_can_be_sent_again() {
    for operator in [revoke(5), force(5)] {
        for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::ApplyThen(500)] {
            let ground = Ground::with_a_free_lease().await;
            ground.another().granted(&claim(5, a())).await;
            ground.fake.on(Op::Break).fault(fault);
            ground.store.revoke(&operator).await.expect_err("no answer");
            match value(ground.store.revoke(&operator).await) {
                Revoked::Revoked | Revoked::AlreadyRevoked => {}
                Revoked::Refused(view) => {
                    let record = view.record.expect("there");
                    assert_eq!((record.grant, record.revoked, record.token), (None, true, 5), "it is over: {fault:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_by_a_lease_that_has_run_out_is_broken_so_that_its_holder_cannot_revive_it() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    sleep(TERM).await;
    assert_eq!(value(ground.another().revoke(&revoke(5)).await), Revoked::Revoked);
    assert!(matches!(ground.store.renewed(&renew(5, a())).await, Renewed::Refused(_)));
    ground.another().granted(&claim(6, b())).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_holder_learns_that_it_is_over_while_a_rival_has_not_yet_said_who_it_is() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&Claim { holder: Label::new("a").ok(), ..claim(5, a()) }).await;
    sleep(TERM).await;
    rival_leases(&ground);
    for refused in [ground.store.renewed(&renew(5, a())).await, ground.store.renewed(&renew_with(5, a(), "x")).await] {
        let Renewed::Refused(view) = refused else { panic!("renewed") };
        assert!(matches!(view.standing, Standing::Held(_)));
        let record = view.record.expect("there");
        assert_eq!((record.grant, record.token, record.revoked), (somebody(), 5, false), "somebody holds it");
        assert_eq!(record.holder, None, "and it is not known who");
    }
    for vacate in [release(5, a()), closing(5, a())] {
        let Vacated::Refused(view) = ground.store.vacated(&vacate).await else { panic!("{vacate:?}") };
        assert_eq!(view.grant(), somebody());
    }
    assert_eq!(ground.job().state, State::Leased(RIVAL));
    assert_eq!(ground.pair("lh_closed_by"), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_blob_that_says_nothing_of_a_grant_is_held_by_somebody() {
    let ground = Ground::new();
    ground.fake.put_foreign("job", &[("lh_format", "1"), ("lh_token", "3")]);
    rival_leases(&ground);
    let view = ground.store.view().await;
    assert!(matches!(view.standing, Standing::Held(_)));
    assert_eq!((view.grant(), view.token()), (somebody(), 3));
    assert_eq!(ground.store.refused(&claim(5, a())).await.grant(), somebody());
    // A clean-up waits for it: its token is not there yet.
    assert!(matches!(ground.store.vacated(&burn(5, a())).await, Vacated::Refused(view) if view.token() == 3));
    assert_eq!(ground.job().state, State::Leased(RIVAL));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_that_hits_a_rival_before_it_has_written_lets_it_finish_and_keeps_others_out() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    sleep(TERM).await;
    let rival = ground.another();
    let Standing::Expired(version) = rival.refused(&claim(6, b())).await.standing else { panic!("not over") };
    // The operator has looked before the rival, and its break comes between the rival's lease and its record.
    let operator = ground.another();
    let (looked, leased) = (ground.fake.on(Op::Break).pause_before(), ground.fake.on(Op::SetMetadata).pause_before());
    let revoking = tokio::spawn(async move { value(operator.revoke(&revoke(5)).await) });
    looked.reached().await;
    let claiming = tokio::spawn(async move {
        rival.granted(&Claim { expect: Expect::Expired(version), ..claim(6, b()) }).await;
        rival
    });
    leased.reached().await;
    looked.open();
    assert_eq!(revoking.await.unwrap(), Revoked::Revoked);
    leased.open();
    let rival = claiming.await.unwrap();
    assert_eq!(ground.leased_by(), Some(b()));
    assert!(matches!(ground.another().refused(&claim(7, a())).await.standing, Standing::Held(_)), "nobody else");
    let Renewed::Refused(view) = rival.renewed(&renew(6, b())).await else { panic!("renewed") };
    assert_eq!(view.record.map(|record| (record.token, record.revoked)), Some((6, true)), "it learns it");
    sleep(TERM).await;
    ground.another().granted(&claim(7, a())).await;
}
