//! Once on Azure Blob, on a service that keeps to the documentation: the service judges the lease, and clients judge a
//! closed blob, by the service's time or by watching.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock")]

mod support;

use std::time::Duration;

use leasehold::azure_blob::{AzureBlobStore, Credential};
use leasehold::recipes::{Failed, Once, OnceError, Outcome};
use leasehold::testing::TestClock;
use leasehold::{Ended, ErrorKind, Leases, LostReason, Renewal, Status, Takeover, Written};
use tokio::time::{Instant, sleep};

use crate::support::azure::{ACCOUNT, Fake, Fault, Op, State};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const TTL: Duration = Duration::from_secs(30);

type Ran = Result<Outcome, OnceError<std::fmt::Error>>;

struct Ground {
    fake: Fake,
    clock: TestClock,
}

impl Ground {
    fn new() -> Self {
        let clock = TestClock::new();
        Self { fake: Fake::new(clock.another(99)), clock }
    }

    /// A process as it begins.
    fn process(&self, seed: u64, takeover: Takeover, renewal: Renewal) -> Leases {
        self.on_clock(&self.clock.another(seed), takeover, renewal)
    }

    fn on_clock(&self, clock: &TestClock, takeover: Takeover, renewal: Renewal) -> Leases {
        let store = AzureBlobStore::builder(self.fake.container_url(), Credential::shared_key(ACCOUNT, "a2V5"));
        let store = store.http_client(self.fake.http_client()).unverified().unwrap();
        let builder = Leases::builder(store).ttl(TTL).takeover(takeover).renewal(renewal);
        builder.clock(clock.clone()).build().unwrap()
    }

    fn fresh(&self, seed: u64) -> Leases {
        self.process(seed, Takeover::StoreTime, Renewal::Task)
    }

    /// What the service was asked since the last time.
    fn asked(&self) -> Vec<Op> {
        let asked = self.fake.requests().iter().map(|seen| seen.op).collect();
        assert_eq!(self.fake.invalid().len(), 0, "{:?}", self.fake.invalid().first());
        self.fake.forget_requests();
        asked
    }
}

async fn receive(once: &Once) -> Ran {
    let work = |held: leasehold::Held| async move { Ok::<_, Failed<std::fmt::Error>>(format!("by {}", held.token())) };
    once.run("message", work).await
}

fn done(ran: Ran) -> Vec<u8> {
    match ran {
        Ok(Outcome::Done(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_run_and_a_repeat_cost_what_the_docs_say() {
    let ground = Ground::new();
    let leases = ground.fresh(2);
    leases.inspect("some other").await.unwrap();
    ground.asked();
    let value = done(receive(&Once::new(&leases)).await);
    let first = [Op::HeadBlob, Op::PutBlob, Op::Acquire, Op::SetMetadata, Op::SetMetadata, Op::Release];
    assert_eq!(ground.asked(), first, "looked for, created, leased and written; closed and given back");
    let just_begun = ground.fresh(4);
    let other = async |_| Ok::<_, Failed<std::fmt::Error>>("done");
    done(Once::new(&just_begun).run("other", other).await);
    assert_eq!(ground.asked().len(), 6, "a client that has just begun finds the time where it looks for the blob");
    for again in [&leases, &ground.fresh(3)] {
        assert_eq!(receive(&Once::new(again)).await.unwrap(), Outcome::AlreadyDone(value.clone()));
        assert_eq!(ground.asked(), [Op::HeadBlob]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_runs_it_again_when_its_time_is_over_by_the_services_clock_and_not_before() {
    let ground = Ground::new();
    let first = done(receive(&Once::new(&ground.fresh(2)).keep(HOUR)).await);
    let begun = Instant::now();
    for seed in 10.. {
        match receive(&Once::new(&ground.fresh(seed))).await.unwrap() {
            Outcome::AlreadyDone(told) => assert_eq!(told, first),
            Outcome::Done(second) => {
                assert_ne!(second, first);
                break;
            }
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < 2 * HOUR, "never again");
        sleep(SECOND).await;
    }
    let again = begun.elapsed();
    assert!((HOUR..=HOUR + 6 * SECOND).contains(&again), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_only_watches_runs_it_again_when_it_has_watched_for_as_long() {
    let ground = Ground::new();
    let first = done(receive(&Once::new(&ground.fresh(2)).keep(HOUR)).await);
    sleep(2 * HOUR).await;
    let watches = ground.process(3, Takeover::ObservedOnly, Renewal::Task);
    for wait in [Duration::ZERO, HOUR] {
        sleep(wait).await;
        assert_eq!(receive(&Once::new(&watches)).await.unwrap(), Outcome::AlreadyDone(first.clone()));
    }
    sleep(HOUR / 100).await;
    assert_ne!(done(receive(&Once::new(&watches)).await), first);
}

#[tokio::test(start_paused = true)]
async fn a_closing_that_is_over_is_shown_as_free_to_whoever_believes_the_services_time() {
    let ground = Ground::new();
    ground.fresh(2).acquire("job").await.unwrap().close(HOUR, None).await.unwrap();
    let watches = ground.process(3, Takeover::ObservedOnly, Renewal::Task);
    let fresh = ground.fresh(4);
    for leases in [&watches, &fresh] {
        assert_eq!(leases.inspect("job").await.unwrap().status, Status::Closed);
    }
    sleep(HOUR + 6 * SECOND).await;
    assert_eq!(watches.inspect("job").await.unwrap().status, Status::Closed);
    assert_eq!(fresh.inspect("job").await.unwrap().status, Status::Free);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_done_once_whichever_answer_of_its_two_requests_was_lost() {
    // B3, B5
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::ApplyThen(500), Fault::Hang, Fault::ApplyThenHang] {
        for op in [Op::SetMetadata, Op::Release] {
            let ground = Ground::new();
            let leases = ground.fresh(2);
            // The first set of metadata is the claim's.
            let lost = ground.fake.on(op).after(usize::from(op == Op::SetMetadata)).fault(fault);
            let value = done(receive(&Once::new(&leases)).await);
            assert_eq!((lost.times(), leases.stats().owed), (1, 0), "{op:?}, {fault:?}");
            let (blob, told) = (ground.fake.peek("message").unwrap(), receive(&Once::new(&ground.fresh(3))).await);
            assert_eq!(told.unwrap(), Outcome::AlreadyDone(value), "{op:?}, {fault:?}");
            assert_eq!(blob.state, State::Available, "{op:?}, {fault:?}: nobody waits for the term");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_written_is_remembered_although_the_lease_was_never_given_back() {
    let ground = Ground::new();
    let leases = ground.process(2, Takeover::StoreTime, Renewal::Manual);
    let lost = ground.fake.on(Op::Release).always().fault(Fault::LoseRequest);
    let ran = receive(&Once::new(&leases).keep(HOUR)).await;
    let Err(OnceError::NotRemembered { outcome: Ok(value), error }) = ran else { panic!("{ran:?}") };
    assert_eq!((error.kind(), error.written(), lost.times()), (ErrorKind::Unavailable, Written::Unknown, 3));
    let (believes, watches) = (ground.fresh(3), ground.process(4, Takeover::ObservedOnly, Renewal::Task));
    for others in [&believes, &watches] {
        let busy = receive(&Once::new(others)).await;
        assert!(matches!(busy, Ok(Outcome::InProgress(_))), "the lease is still there: {busy:?}");
    }
    sleep(TTL).await;
    for others in [&believes, &watches] {
        assert_eq!(receive(&Once::new(others)).await.unwrap(), Outcome::AlreadyDone(value.clone()));
    }
    // They have seen it under the lease, whose end does not move the blob's tag; it opens for them all the same.
    sleep(HOUR + HOUR / 100).await;
    ground.fake.heal();
    for others in [&watches, &believes] {
        let lease = others.try_acquire("message").await.unwrap().acquired().expect("its time is over");
        lease.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_crashed_run_is_taken_over_when_its_term_is_over() {
    let ground = Ground::new();
    let dead = ground.process(2, Takeover::StoreTime, Renewal::Manual).acquire("message").await.unwrap();
    let (others, begun) = (ground.fresh(3), Instant::now());
    let value = loop {
        match receive(&Once::new(&others)).await.unwrap() {
            Outcome::Done(value) => break value,
            Outcome::InProgress(_) => sleep(SECOND).await,
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < 3 * TTL, "never taken over");
    };
    assert!((TTL..=TTL + 2 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let ended = dead.close(HOUR, None).await.unwrap();
    assert!(matches!(ended, Ended::Lost(_)), "{ended:?}");
    assert_eq!(receive(&Once::new(&ground.fresh(4))).await.unwrap(), Outcome::AlreadyDone(value));
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_frozen_run_that_was_replaced_is_not_recorded() {
    // C1, I10: none of its clocks has seen the freeze, so only the service knows.
    let ground = Ground::new();
    let clock = ground.clock.another(2);
    let (zombie, others) = (ground.on_clock(&clock, Takeover::StoreTime, Renewal::Manual), ground.fresh(3));
    let recorded = std::sync::Mutex::new(None);
    let freezes = async |_| {
        clock.freeze();
        sleep(TTL + SECOND).await;
        *recorded.lock().unwrap() = Some(done(receive(&Once::new(&others)).await));
        clock.thaw();
        Ok::<_, Failed<std::fmt::Error>>("the zombie's")
    };
    let ran = Once::new(&zombie).run("message", freezes).await;
    let Err(OnceError::NotRemembered { error, .. }) = ran else { panic!("{ran:?}") };
    assert_eq!((error.kind(), error.written()), (ErrorKind::Lost, Written::No), "{error}");
    assert!(matches!(error.lost().unwrap().reason(), LostReason::Taken { .. }), "{error}");
    let told = receive(&Once::new(&ground.fresh(4))).await.unwrap();
    assert_eq!(Some(told), recorded.into_inner().unwrap().map(Outcome::AlreadyDone));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lease_was_broken_is_recorded_in_the_rest_of_its_term_and_not_after_it() {
    // A7: the service ends a broken lease with its term, and lets its holder write until then.
    for frozen in [false, true] {
        let ground = Ground::new();
        let clock = ground.clock.another(2);
        let (run, operator) = (ground.on_clock(&clock, Takeover::StoreTime, Renewal::Manual), ground.fresh(3));
        let revoked = async |held: leasehold::Held| {
            operator.revoke("message", held.token()).await.unwrap();
            if frozen {
                clock.freeze();
                sleep(TTL).await;
                clock.thaw();
            }
            Ok::<_, Failed<std::fmt::Error>>("by the revoked")
        };
        let ran = Once::new(&run).run("message", revoked).await;
        let after = receive(&Once::new(&operator)).await.unwrap();
        if !frozen {
            assert_eq!(
                (done(ran), after),
                (b"by the revoked".to_vec(), Outcome::AlreadyDone(b"by the revoked".to_vec()))
            );
            continue;
        }
        let Err(OnceError::NotRemembered { error, .. }) = ran else { panic!("{ran:?}") };
        assert_eq!(error.lost().unwrap().reason(), &LostReason::Revoked, "{error}");
        assert!(matches!(after, Outcome::Done(_)), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_opens_a_closed_blob_by_removing_three_pairs() {
    // As docs/operations.md says it.
    let ground = Ground::new();
    let first = done(receive(&Once::new(&ground.fresh(2))).await);
    ground.fake.edit_metadata("message", |pairs| {
        pairs.retain(|name, _| !["lh_closed_ms", "lh_closed_until_ms", "lh_closed_by"].contains(&name.as_str()));
    });
    assert_ne!(done(receive(&Once::new(&ground.fresh(3))).await), first);
}
