//! What walking all paths has found, each as the one path that shows it.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::{Claimed, Vacated};

use crate::ground::{Ground, a, b, burn, c, claim, error, renew_with, resume};
use crate::support::azure::{Auth, Fake, Fault, Op, Request};

/// The last request of this kind, to be sent once more.
fn copy_of(fake: &Fake, op: Op) -> Request {
    fake.requests().into_iter().rfind(|seen| seen.op == op).expect("it was sent").request
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_lands_whole_between_a_clean_ups_release_and_its_look_is_freed_again() {
    let ground = Ground::with_a_free_lease().await;
    // Its acquire is applied, then everything of it is late: the write, a second acquire, and a first release.
    ground.fake.on(Op::SetMetadata).fault(Fault::LoseRequest);
    error(ground.store.claim(&claim(5, a())).await);
    let write = copy_of(&ground.fake, Op::SetMetadata);
    ground.fake.on(Op::Acquire).fault(Fault::LoseRequest);
    error(ground.store.claim(&claim(5, a())).await);
    let acquire = copy_of(&ground.fake, Op::Acquire);
    ground.fake.on(Op::Release).fault(Fault::LoseRequest);
    error(ground.store.vacate(&burn(5, a())).await);
    let release = copy_of(&ground.fake, Op::Release);

    ground.fake.on(Op::Release).before(move |fake| assert_eq!(fake.send(&release).status, 200));
    ground.fake.on(Op::Release).then(move |fake| {
        assert_eq!(fake.send(&acquire).status, 201);
        assert_eq!(fake.send(&write).status, 200);
    });
    assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated);
    assert_eq!(ground.leased_by(), None, "the lease was held by nobody");
    ground.another().granted(&claim(6, b())).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_copy_of_an_acquire_whose_lease_was_over_before_its_record_was_written_is_refused() {
    let ground = Ground::with_a_free_lease().await;
    let clock = ground.clock.clone();
    ground.fake.on(Op::SetMetadata).before(move |_| clock.suspend(Duration::from_secs(20)));
    ground.store.refused(&claim(5, a())).await;
    let acquire = copy_of(&ground.fake, Op::Acquire);
    assert_eq!(ground.fake.send(&acquire).status, 412);
    assert_eq!(ground.leased_by(), None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_lost_its_lease_to_a_rival_before_its_record_was_written_is_owed_a_clean_up() {
    let ground = Ground::with_a_free_lease().await;
    let clock = ground.clock.clone();
    ground.fake.on(Op::SetMetadata).before(move |fake| {
        clock.suspend(Duration::from_secs(20));
        fake.require(Auth::None);
        assert_eq!(fake.acquire("job", uuid::Uuid::from_u128(0x717a), 15).status, 201);
    });
    let failed = error(ground.store.claim(&claim(5, a())).await);
    assert_eq!(failed.applied, leasehold::Applied::Unknown, "the rival may end without having written");
    let acquire = copy_of(&ground.fake, Op::Acquire);
    ground.clock.suspend(Duration::from_secs(20));
    assert_eq!(ground.store.vacated(&burn(5, a())).await, Vacated::Vacated);
    assert_eq!(ground.fake.send(&acquire).status, 412);
}

#[tokio::test(start_paused = true)]
async fn a_late_change_of_a_hand_over_that_was_given_up_is_waited_for_although_the_tag_has_moved() {
    let ground = Ground::with_a_free_lease().await;
    let holder = ground.another();
    holder.granted(&claim(5, b())).await;
    ground.fake.on(Op::SetMetadata).fault(Fault::LoseRequest);
    error(holder.try_renew(&renew_with(5, b(), "late")).await);
    let payload = copy_of(&ground.fake, Op::SetMetadata);
    ground.fake.on(Op::Change).fault(Fault::LoseRequest);
    error(ground.store.claim(&resume(6, a(), b())).await);
    let change = copy_of(&ground.fake, Op::Change);
    assert_eq!(ground.fake.send(&payload).status, 200);
    let Vacated::Refused(view) = ground.store.vacated(&burn(6, a())).await else { panic!("settled too early") };
    assert!(view.token() < 6, "so the clean-up goes on");
    assert_eq!(ground.fake.send(&change).status, 200);
    assert_eq!(ground.store.vacated(&burn(6, a())).await, Vacated::Vacated);
    assert_eq!(ground.leased_by(), None);
    assert_eq!(ground.another().claimed(&claim(7, c())).await, Claimed::Granted);
}
