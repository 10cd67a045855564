//! How many requests each verb makes, and which.

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::store::Store;
use leasehold::testing::TestClock;
use leasehold::{Asked, Claim, Claimed, Expect, Renewed, Revoked, Standing, Vacated};
use tokio::time::sleep;

use crate::ground::{
    Ground, TERM, a, ask, b, burn, claim, closing, force, release, renew, renew_with, resume, revoke, value,
};
use crate::support::azure::Op::{
    Acquire, Break, Change, CreateContainer, GetContainer, HeadBlob, ListBlobs, PutBlob, Release, Renew, SetMetadata,
};
use crate::support::azure::{Fake, Fault};

#[tokio::test(start_paused = true)]
async fn the_first_acquire_ever_of_a_name_is_four_requests() {
    let ground = Ground::new();
    ground.store.granted(&claim(5, a())).await;
    assert_eq!(ground.asked(), [HeadBlob, PutBlob, Acquire, SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_of_a_free_lease_is_three_requests() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_after_a_release_or_a_read_of_the_same_store_is_two_requests() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.view().await;
    ground.forget();
    ground.store.granted(&claim(5, a())).await;
    assert_eq!(ground.asked(), [Acquire, SetMetadata], "after a read");
    ground.store.vacated(&release(5, a())).await;
    ground.forget();
    ground.store.granted(&claim(6, b())).await;
    assert_eq!(ground.asked(), [Acquire, SetMetadata], "after a release");
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_before_and_is_not_so_any_more_costs_one_request_and_no_right() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.view().await;
    let rival = ground.another();
    rival.granted(&claim(5, b())).await;
    ground.forget();
    assert_eq!(ground.store.refused(&claim(6, a())).await.grant(), Some(b()));
    assert_eq!(ground.asked(), [Acquire, HeadBlob], "held by now");
    rival.vacated(&release(5, b())).await;
    ground.forget();
    ground.store.granted(&claim(6, a())).await;
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata], "held when it was seen last");
}

#[tokio::test(start_paused = true)]
async fn a_refused_try_is_one_request() {
    let ground = Ground::with_a_free_lease().await;
    ground.another().granted(&claim(5, b())).await;
    ground.forget();
    ground.store.refused(&claim(6, a())).await;
    assert_eq!(ground.asked(), [HeadBlob]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request_and_one_with_a_payload_two() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.forget();
    assert_eq!(ground.store.renewed(&renew(5, a())).await, Renewed::Renewed(None));
    assert_eq!(ground.asked(), [Renew]);
    for payload in ["one", "two"] {
        assert_eq!(ground.store.renewed(&renew_with(5, a(), payload)).await, Renewed::Renewed(None));
        assert_eq!(ground.asked(), [Renew, SetMetadata], "{payload}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_one_request_and_a_closing_one_two() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.store.renewed(&renew(5, a())).await;
    ground.forget();
    assert_eq!(ground.store.vacated(&release(5, a())).await, Vacated::Vacated);
    assert_eq!(ground.asked(), [Release]);
    ground.store.granted(&claim(6, b())).await;
    ground.store.renewed(&renew_with(6, b(), "one")).await;
    ground.forget();
    assert_eq!(ground.store.vacated(&closing(6, b())).await, Vacated::Vacated);
    assert_eq!(ground.asked(), [SetMetadata, Release]);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_three_requests_with_the_look_that_says_it_can_succeed() {
    let ground = Ground::with_a_free_lease().await;
    ground.another().granted(&claim(5, b())).await;
    sleep(TERM).await;
    ground.forget();
    let Standing::Expired(version) = ground.store.refused(&claim(6, a())).await.standing else { panic!("not over") };
    ground.store.granted(&Claim { expect: Expect::Expired(version), ..claim(6, a()) }).await;
    assert_eq!(ground.asked(), [HeadBlob, Acquire, SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_four_requests() {
    let ground = Ground::with_a_free_lease().await;
    ground.another().granted(&claim(5, b())).await;
    ground.forget();
    ground.store.granted(&resume(6, a(), b())).await;
    assert_eq!(ground.asked(), [HeadBlob, Change, Renew, SetMetadata]);
}

#[tokio::test(start_paused = true)]
async fn revoke_force_and_ask_are_two_requests_and_one_where_nothing_is_to_be_done() {
    let ground = Ground::with_a_free_lease().await;
    ground.another().granted(&claim(5, b())).await;
    ground.forget();
    assert!(matches!(value(ground.store.revoke(&revoke(4)).await), Revoked::Refused(view) if view.token() == 5));
    assert_eq!(ground.asked(), [HeadBlob], "another token");
    assert_eq!(value(ground.store.ask(&ask(5)).await), Asked::Asked);
    assert_eq!(ground.asked(), [HeadBlob, Break]);
    assert_eq!(value(ground.store.revoke(&revoke(5)).await), Revoked::AlreadyRevoked);
    assert_eq!(ground.asked(), [HeadBlob], "it is breaking already");
    assert_eq!(value(ground.store.revoke(&force(5)).await), Revoked::Revoked);
    assert_eq!(ground.asked(), [HeadBlob, Break]);
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_is_one_request_for_each_thing_that_is_to_be_done() {
    let ground = Ground::with_a_free_lease().await;
    let lost = ground.fake.on(Acquire).fault(Fault::LoseRequest);
    ground.store.claim(&claim(5, a())).await.expect_err("lost");
    ground.forget();
    assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated);
    assert_eq!(ground.asked(), [SetMetadata], "the acquire has not landed");
    let applied = ground.fake.on(Acquire).fault(Fault::LoseAnswer);
    ground.store.claim(&claim(6, b())).await.expect_err("lost");
    ground.forget();
    assert_eq!(ground.store.vacated(&burn(6, b())).await, Vacated::Vacated);
    assert_eq!(ground.asked(), [SetMetadata, HeadBlob, Release, HeadBlob, SetMetadata], "it has landed");
    assert_eq!((lost.times(), applied.times()), (1, 1));
    let elsewhere = Ground::new();
    assert_eq!(elsewhere.store.vacated(&burn(5, a())).await, Vacated::Vacated);
    assert_eq!(elsewhere.asked(), [HeadBlob, PutBlob], "there is no blob");
}

#[tokio::test(start_paused = true)]
async fn a_read_and_a_page_of_a_listing_are_one_request_each() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.view().await;
    assert_eq!(ground.asked(), [HeadBlob]);
    value(ground.store.list("", None).await);
    assert_eq!(ground.asked(), [ListBlobs]);
}

#[tokio::test(start_paused = true)]
async fn opening_is_one_request_and_creating_the_container_one_more() {
    let fake = Fake::without_container(TestClock::new());
    let builder = || {
        AzureBlobStore::builder(fake.container_url(), Credential::shared_key("acct", "a2V5"))
            .http_client(fake.http_client())
    };
    let asked = || {
        let asked: Vec<_> = fake.requests().iter().map(|seen| seen.op).collect();
        fake.forget_requests();
        asked
    };
    builder().unverified().expect("good");
    assert_eq!(asked(), []);
    builder().open().await.expect_err("there is no container");
    assert_eq!(asked(), [GetContainer]);
    builder().create_container().open().await.expect("created");
    assert_eq!(asked(), [GetContainer, CreateContainer]);
    builder().create_container().open().await.expect("there by now");
    assert_eq!(asked(), [GetContainer]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_repeated_for_nothing_is_one_request() {
    let ground = Ground::with_a_free_lease().await;
    ground.store.granted(&claim(5, a())).await;
    ground.forget();
    assert_eq!(ground.store.claimed(&claim(5, a())).await, Claimed::Granted);
    assert_eq!(ground.asked(), [HeadBlob]);
}
