//! One suite for the recipes, which every store runs: processes that are killed, frozen and cut off, and what must come of it.
//!
//! A process is a client with a way of its own to the store, and tasks that can be frozen. A world has a paused clock, or the
//! machine's where the store is behind a socket.
#![allow(clippy::disallowed_methods, reason = "tests sleep on a paused clock, or in real time where there is a socket")]
#![allow(dead_code, unreachable_pub, reason = "every target uses its own part")]

pub mod all;
pub mod election;
pub mod monitor;
pub mod process;
pub mod schedule;
pub mod semaphore;
pub mod step_down;
pub mod way;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold::testing::TestClock;
use leasehold::{Clock, Leases, LeasesBuilder, Renewal, Sleep, Stamp, Store, SystemClock};
use tokio::time::sleep;

use self::process::Process;
use self::way::{Log, Way};

/// The cases of every store. `$run` is a macro of the target that makes tests of them.
macro_rules! for_each_case {
    ($run:ident) => {
        $run! {
            election: a_leader_and_what_it_publishes_appear_in_one_write,
            election: a_graceful_resign_is_followed_by_the_next_leader_within_one_poll,
            election: a_killed_leader_is_followed_by_one_with_a_higher_token,
            election: a_frozen_leader_is_deposed_its_late_write_is_refused_and_it_campaigns_again,
            election: a_leader_that_is_cut_off_has_stopped_before_another_leads_and_campaigns_again,
            election: the_work_of_a_leader_has_ended_before_it_resigns_however_it_ends,
            election: an_observer_never_sees_an_older_leader_after_a_newer,
            semaphore: never_more_than_n_hold_and_everybody_comes_through,
            semaphore: a_killed_holders_permit_comes_back_and_there_are_as_many_as_before,
            semaphore: a_late_release_changes_nothing,
            all: either_all_are_taken_or_none,
            all: overlapping_sets_do_not_deadlock_and_kills_leave_no_partial_hold,
            all: work_under_all_is_stopped_when_one_is_lost_and_the_rest_is_given_back,
            schedule: a_fleet_whose_wall_clocks_are_apart_runs_each_tick_once,
            schedule: a_tick_whose_run_was_killed_is_skipped_and_the_next_is_run,
            schedule: with_retry_a_tick_whose_run_was_killed_is_begun_again_with_a_higher_token,
            schedule: no_two_runs_begin_closer_than_at_least_whatever_the_wall_clocks_say,
            step_down: a_holder_that_is_asked_finishes_and_the_next_in_line_follows,
            step_down: work_that_does_not_listen_is_dropped_and_only_then_released,
            step_down: nobody_is_asked_where_nobody_holds,
        }
    };
}
pub(crate) use for_each_case;

type Making<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A store, and what its processes are like.
#[derive(Clone)]
pub struct World {
    pub ttl: Duration,
    pub margin: Duration,
    pub poll: Duration,
    /// Paused, or the machine's.
    pub clock: Option<TestClock>,
    /// Whether an ask is an ask and not a revocation.
    pub asks: bool,
    /// A connection as a new process opens one.
    pub open: Arc<dyn Fn() -> Making<Arc<dyn Store>> + Send + Sync>,
    pub log: Log,
    pub seeds: Arc<AtomicU64>,
    /// What keeps the store there.
    pub keeps: Arc<dyn std::any::Any + Send + Sync>,
}

impl World {
    pub fn new<F, Fut>(clock: Option<TestClock>, ttl: Duration, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Arc<dyn Store>> + Send + 'static,
    {
        Self {
            ttl,
            margin: ttl / 10,
            poll: ttl / 30,
            clock,
            asks: true,
            open: Arc::new(move || Box::pin(open())),
            log: Log::default(),
            seeds: Arc::new(AtomicU64::new(2)),
            keeps: Arc::new(()),
        }
    }

    pub async fn process(&self, who: &str) -> Process {
        self.process_with(who, |builder| builder).await
    }

    /// A process whose wall clock is ahead.
    pub async fn ahead(&self, who: &str, by: Duration) -> Process {
        self.build(who, by, |builder| builder).await
    }

    pub async fn process_with(&self, who: &str, options: impl FnOnce(LeasesBuilder) -> LeasesBuilder) -> Process {
        self.build(who, Duration::ZERO, options).await
    }

    async fn build(&self, who: &str, ahead: Duration, options: impl FnOnce(LeasesBuilder) -> LeasesBuilder) -> Process {
        let way = Way::new((self.open)().await, who, self.log.clone());
        let builder = Leases::builder(way.clone()).holder(who).ttl(self.ttl).margin(self.margin).poll(self.poll);
        let builder = options(builder);
        let builder = match &self.clock {
            Some(clock) => {
                let clock = clock.another(self.seeds.fetch_add(1, Ordering::SeqCst));
                clock.set_wall_forward(ahead);
                builder.clock(clock)
            }
            None => builder.clock(Ahead(ahead)),
        };
        Process::new(builder.build().expect("fits"), way)
    }

    /// Longer than a dead holder is in the way of somebody who waits.
    pub async fn outlast_a_term(&self) {
        sleep(self.ttl * 5 / 4).await;
    }

    /// Nothing that must come takes longer than this, whatever the store.
    pub async fn soon<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let patience = if self.clock.is_some() { self.ttl * 50 } else { self.ttl * 4 + Duration::from_secs(60) };
        tokio::time::timeout(patience, work).await.unwrap_or_else(|_| panic!("never happened: {what}"))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// The machine's clocks, with a wall clock that is ahead.
#[derive(Debug)]
struct Ahead(Duration);

impl Clock for Ahead {
    fn stamp(&self) -> Stamp {
        let stamp = SystemClock.stamp();
        Stamp { real: stamp.real + self.0.as_nanos() as u64, ..stamp }
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        SystemClock.sleep(duration)
    }

    fn random(&self) -> u128 {
        SystemClock.random()
    }
}

/// A client for which nobody renews.
pub fn manual(builder: LeasesBuilder) -> LeasesBuilder {
    builder.renewal(Renewal::Manual)
}
