//! Many clients, many kills: nobody is let in twice, nothing is lost, nothing drifts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::recipes::{Semaphore, acquire_all};
use leasehold::{Attempt, Error, Held, State};
use tokio::time::{Instant, sleep, timeout};

use crate::recipes::World;
use crate::recipes::monitor::Stretches;
use crate::recipes::process::Process;
use crate::{POLL, TTL, judge, table};

const N: u32 = 5;

/// Everybody who ever held a permit, to ask each of them at every moment.
#[derive(Clone, Default)]
struct Register(Arc<Mutex<Vec<Holder>>>);

struct Holder {
    who: String,
    permit: String,
    held: Held,
    begun: Instant,
    killed: Option<Instant>,
    over: bool,
}

impl Register {
    fn enter(&self, who: &str, held: Held) {
        let (who, permit) = (who.to_owned(), held.name().to_string());
        self.0.lock().unwrap().push(Holder { who, permit, held, begun: Instant::now(), killed: None, over: false });
    }

    /// How many believe at this moment. The dead are dead, whatever their clocks say.
    fn valid(&self) -> usize {
        let believes = |holder: &mut Holder| {
            let held = holder.killed.is_none() && !holder.over && holder.held.is_held();
            holder.over |= !held && matches!(holder.held.state(), State::Ended(_));
            held
        };
        self.0.lock().unwrap().iter_mut().map(believes).filter(|held| *held).count()
    }

    /// The dead permits' times until somebody else began with them.
    fn came_back(&self) -> Vec<Option<Duration>> {
        let all = self.0.lock().unwrap();
        let next = |dead: &Holder, killed: Instant| {
            let after = all.iter().filter(|holder| holder.permit == dead.permit && holder.begun >= killed);
            after.map(|holder| holder.begun - killed).min()
        };
        all.iter().filter_map(|dead| dead.killed.map(|killed| next(dead, killed))).collect()
    }
}

/// Comes for a permit again and again.
async fn client(world: &World, register: &Register, n: usize) -> Process {
    let process = world.process(&format!("client-{n}")).await;
    let semaphore = Semaphore::new(&process.leases, "permits", N).unwrap();
    let (register, who) = (register.clone(), process.who().to_owned());
    process.spawn(async move {
        for round in 0.. {
            let lease = semaphore.acquire().await.unwrap();
            register.enter(&who, lease.held());
            let hold = Duration::from_millis(2000 + (n as u64 * 7919 + round * 104_729) % 9000);
            lease
                .run(async |_| {
                    sleep(hold).await;
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
        }
    });
    process
}

async fn fifty_clients_and_thirty_kills(world: World, longest: Duration) {
    let register = Register::default();
    let mut crowd = Vec::new();
    for n in 0..50 {
        crowd.push(client(&world, &register, n).await);
    }
    let (mut most, mut kills) = (0, 0);
    for step in 0..5_000 {
        sleep(Duration::from_millis(200)).await;
        let valid = register.valid();
        assert!(valid <= N as usize, "{valid} at once");
        most = most.max(valid);
        if step % 150 == 149 && kills < 30 {
            let victim = {
                let mut all = register.0.lock().unwrap();
                let holder = all.iter_mut().find(|holder| holder.killed.is_none() && holder.held.is_held());
                let holder = holder.expect("somebody holds");
                holder.killed = Some(Instant::now());
                holder.who.clone()
            };
            let place = crowd.iter().position(|process| process.who() == victim).expect("it lives");
            crowd.swap_remove(place).kill();
            crowd.push(client(&world, &register, 50 + kills).await);
            kills += 1;
        }
    }
    assert_eq!((most, kills), (N as usize, 30), "they are all used");
    let came_back = register.came_back();
    assert_eq!(came_back.len(), 30);
    for after in came_back {
        let after = after.expect("every permit comes back");
        assert!(after <= longest, "{after:?}, not {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_clients_on_five_permits_are_never_more_than_five_and_the_killed_ones_come_back_after_a_term_and_a_poll()
{
    fifty_clients_and_thirty_kills(judge().0, TTL + POLL).await;
}

#[tokio::test(start_paused = true)]
async fn where_clients_judge_they_come_back_after_a_hundredth_of_a_term_more() {
    fifty_clients_and_thirty_kills(table().0, TTL + TTL / 100 + POLL).await;
}

/// The control: the sweep sees six when there are six.
#[tokio::test(start_paused = true)]
async fn the_sweep_sees_one_too_many() {
    let (world, _store) = judge();
    let register = Register::default();
    let mut all = Vec::new();
    for n in 0..=N {
        let process = world.process("any").await;
        all.push(process.leases.acquire(format!("permits/{n}")).await.unwrap());
        register.enter("any", all.last().unwrap().held());
    }
    assert_eq!(register.valid(), 6);
}

/// How many permits can be had, by somebody who gives them back.
async fn to_be_had(process: &Process) -> u32 {
    let semaphore = Semaphore::new(&process.leases, "permits", N).unwrap();
    let mut had = Vec::new();
    while let Attempt::Acquired(lease) = semaphore.try_acquire().await.unwrap() {
        had.push(lease);
    }
    let count = had.len();
    for lease in had {
        lease.release().await.unwrap();
    }
    count.try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn after_a_thousand_kills_there_are_as_many_permits_as_before() {
    let (world, _store) = judge();
    let (observer, mut counter) = (world.process("observer").await, 1000);
    let (mut kills, mut round) = (0, 0);
    while kills < 1000 {
        // Wherever they happen to be: some hold, some have given back.
        for n in 0..N {
            let process = world.process(&format!("dies-{n}")).await;
            let semaphore = Semaphore::new(&process.leases, "permits", N).unwrap();
            counter -= 1;
            let works = process.spawn(async move {
                let lease = semaphore.acquire().await.unwrap();
                let short = Duration::from_millis(u64::from(n) * 10);
                lease
                    .run(async |_| {
                        sleep(short).await;
                        Ok::<_, Error>(())
                    })
                    .await
                    .unwrap();
            });
            sleep(Duration::from_millis((round * 3 + u64::from(n) * 11) % 40)).await;
            match works.is_finished() {
                true => counter += 1,
                false => {
                    process.kill();
                    kills += 1;
                }
            }
        }
        sleep(TTL + POLL).await;
        round += 1;
        if round % 20 == 0 {
            assert_eq!(to_be_had(&observer).await, N, "after {kills} kills");
        }
    }
    assert_eq!(to_be_had(&observer).await, N);
    // The control: a bare counter, taken down by whoever comes and up by whoever goes, has forgotten those who died.
    assert!(counter <= 0, "{counter} of 1000 are left");
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Three of six names, not in order.
fn set(n: usize) -> [&'static str; 3] {
    [(n * 5 + 3) % 6, (n * 5 + n / 6 + 1) % 6, (n * 5 + 2) % 6].map(|place| NAMES[place])
}

#[tokio::test(start_paused = true)]
async fn twenty_clients_with_overlapping_sets_come_through_although_a_quarter_is_killed_anywhere() {
    for (world, _store) in [judge(), table()] {
        let worked: [Stretches; 6] = Default::default();
        let mut crowd = Vec::new();
        for n in 0..20 {
            let process = world.process(&format!("client-{n}")).await;
            let (leases, who, worked) = (process.leases.clone(), process.who().to_owned(), worked.clone());
            let works = process.spawn(async move {
                for _ in 0..4 {
                    let all = acquire_all(&leases, set(n)).await.unwrap();
                    let ran = all.run(async |held| {
                        let begin = |lease: &Held| {
                            let place = NAMES.iter().position(|name| *name == lease.name().as_str()).unwrap();
                            worked[place].begin(&who, lease.token())
                        };
                        let _working: Vec<_> = held.iter().map(begin).collect();
                        sleep(Duration::from_millis(700)).await;
                        Ok::<_, Error>(())
                    });
                    ran.await.unwrap();
                }
            });
            crowd.push((process, works));
        }
        // Wherever they happen to be: with none, some, or all in their hands.
        for n in [3, 7, 11, 15, 19] {
            sleep(Duration::from_millis(1300)).await;
            crowd[n].0.kill();
        }
        let mut through = 0;
        for (_process, works) in crowd {
            match world.soon("no deadlock", works).await {
                Ok(()) => through += 1,
                Err(killed) => assert!(killed.is_cancelled()),
            }
        }
        assert!(through >= 15, "{through}");
        for one in &worked {
            assert!(one.tokens_rise() && one.most_at_once() == 1);
        }
        let late = world.process("late").await;
        let all = world.soon("nothing is left", acquire_all(&late.leases, NAMES)).await.unwrap();
        assert!(all.held().is_held());
    }
}

/// The control: taken in the order in which each has named them, two wait for each other.
#[tokio::test(start_paused = true)]
async fn without_the_order_two_clients_wait_for_each_other_for_ever() {
    let (world, _store) = judge();
    let processes = [world.process("one").await, world.process("other").await];
    let take = |process: &Process, names: [&'static str; 2]| {
        let leases = process.leases.clone();
        process.spawn(async move {
            let first = leases.acquire(names[0]).await.unwrap();
            sleep(POLL).await;
            let second = leases.acquire(names[1]).await.unwrap();
            (first, second)
        })
    };
    let (one, other) = (take(&processes[0], ["a", "b"]), take(&processes[1], ["b", "a"]));
    let both = futures_util::future::join(one, other);
    assert!(timeout(TTL * 20, both).await.is_err(), "there was a deadlock to be had");
}
