//! What a worker process does: it competes for both leases, writes under them, and says so.

use std::time::{Duration, Instant};

use leasehold::protocol::broken::Broken;
use leasehold::recipes::{Election, Semaphore};
use leasehold::{Attempt, Ended, Error, ErrorKind, Held, Inspection, Lease, Leases, Store};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use tokio::runtime::Builder;

use super::assignment::{Assignment, BadHabit};
use super::counters::{Counters, THINKS};
use super::fake_clock;
use super::journal::Pen;
use super::plan::{COUNTER, Chance, LEADER, LEASES, Options, PERMITS, SEMAPHORE};

/// Goes on until the process is ended.
pub fn work(assignment: &Assignment, store: impl Store) {
    // Even a frozen process ends with a harness that is killed.
    set_pdeathsig(Signal::SIGKILL).expect("Linux");
    assignment.leave_word_of_panics();
    let _broken = assignment.broken.as_deref().map(|name| rule(name).switch_on());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let leases = assignment.client(store).expect("the options fit");
    // In threads of their own, because what they do beside the lease blocks: the renewals go on meanwhile.
    std::thread::scope(|threads| {
        threads.spawn(|| unguarded(&Counters::open(&assignment.folder)));
        if assignment.tells_clocks {
            threads.spawn(|| fake_clock::tell(&assignment.pen("clocks")));
        }
        threads.spawn(|| runtime.block_on(count(assignment, &leases)));
        threads.spawn(|| runtime.block_on(lead(assignment, &leases)));
        threads.spawn(|| runtime.block_on(operate(assignment, &leases)));
        if assignment.role.takes_permits {
            threads.spawn(|| runtime.block_on(take_permits(assignment, &leases)));
        }
    });
}

fn rule(name: &str) -> Broken {
    let all = Broken::ALL.iter().chain(&Broken::ASSUMED).chain(&Broken::AZURE);
    *all.into_iter().find(|rule| format!("{rule:?}") == name).unwrap_or_else(|| panic!("no rule {name}"))
}

fn unguarded(counters: &Counters) {
    loop {
        counters.add_one_unguarded();
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Many short holds; each reads, thinks and writes several times.
async fn count(assignment: &Assignment, leases: &Leases) {
    let (chance, counters, pen) = (assignment.chance(1), Counters::open(&assignment.folder), assignment.pen(COUNTER));
    loop {
        let lease = acquire(leases, COUNTER, None, assignment, &chance, &pen).await;
        let longest = if chance.per_mille(80) { assignment.options.ttl_ms * 2 } else { 1500 };
        let span = assignment.span(chance.between(200, longest), 2);
        let token = lease.token().as_u64();
        under(&lease.held(), span, assignment, &pen, async || {
            let no_fence = assignment.bad_habit == Some(BadHabit::NoFence);
            let Some(value) = counters.read_fenced(token, no_fence) else { return false };
            tokio::time::sleep(THINKS).await;
            counters.write_fenced(token, value + 1, no_fence)
        })
        .await;
        end(lease, assignment, &chance, &pen).await;
        tokio::time::sleep(Duration::from_millis(chance.between(0, 300))).await;
    }
}

/// A few long holds, as of an elected leader. Some are elected by the recipe, and others acquire the same lease.
async fn lead(assignment: &Assignment, leases: &Leases) {
    let (chance, counters, pen) = (assignment.chance(2), Counters::open(&assignment.folder), assignment.pen(LEADER));
    let name = assignment.name();
    let election = assignment.role.elects.then(|| Election::new(leases, LEADER).publish(name.as_str()));
    let in_office = async |held: Held| {
        let span = assignment.span(chance.between(3000, 12_000.max(assignment.options.ttl_ms * 2)), 2);
        let token = held.token().as_u64();
        under(&held, span, assignment, &pen, async || {
            tokio::time::sleep(THINKS).await;
            counters.enter(LEADER, token, &name)
        })
        .await;
    };
    loop {
        match &election {
            // It would end even the work of who never looks.
            Some(election) if chance.per_mille(500) && !assignment.never_looks() => {
                pen.says("begins", 0);
                let _ = election.lead(|held| campaigned(held, &pen, &in_office)).await;
            }
            _ => {
                let lease = acquire(leases, LEADER, election.as_ref(), assignment, &chance, &pen).await;
                in_office(lease.held()).await;
                end(lease, assignment, &chance, &pen).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(chance.between(0, 1000))).await;
    }
}

/// A term of a leader that the recipe ends: after it, the recipe resigns, or campaigns again.
async fn campaigned(held: Held, pen: &Pen, in_office: &impl AsyncFn(Held)) -> Result<(), Error> {
    let token = held.token().as_u64();
    pen.says("granted", token);
    pen.says("elected", token);
    let _leaves = Leaves { pen, token };
    in_office(held.clone()).await;
    if !held.is_held() {
        pen.says("lost", token);
    }
    Ok(())
}

/// Says that it lets go, also where the recipe drops the work.
struct Leaves<'a> {
    pen: &'a Pen,
    token: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.pen.says("releases", self.token);
        self.pen.says("begins", 0);
    }
}

/// Long holds of one of two permits, with few looks.
async fn take_permits(assignment: &Assignment, leases: &Leases) {
    let (chance, counters) = (assignment.chance(4), Counters::open(&assignment.folder));
    let semaphore = Semaphore::new(leases, SEMAPHORE, PERMITS.len() as u32).expect("a name");
    let (name, pens) = (assignment.name(), PERMITS.map(|permit| assignment.pen(permit)));
    let Options { ttl_ms, poll_ms, .. } = assignment.options;
    loop {
        pens.iter().for_each(|pen| pen.says("begins", 0));
        let lease = if chance.per_mille(500) {
            semaphore.acquire().await.ok()
        } else {
            semaphore.try_acquire().await.ok().and_then(Attempt::acquired)
        };
        if let Some(lease) = lease {
            let (permit, token) = (lease.name().as_str().to_owned(), lease.token().as_u64());
            // Not one of the two is for the judge to see, who reads what is said.
            let other;
            let pen = match PERMITS.iter().position(|one| *one == permit) {
                Some(number) => &pens[number],
                None => {
                    other = assignment.pen(&permit);
                    &other
                }
            };
            pen.says("granted", token);
            let span = assignment.span(chance.between(ttl_ms / 4, ttl_ms), 4);
            under(&lease.held(), span, assignment, pen, async || {
                tokio::time::sleep(Duration::from_millis(80)).await;
                counters.enter(&permit, token, &name)
            })
            .await;
            leave(&lease, assignment, &chance, pen).await;
            if chance.per_mille(100) { drop(lease) } else { _ = lease.release().await }
        }
        tokio::time::sleep(Duration::from_millis(chance.between(poll_ms, poll_ms * 6))).await;
    }
}

/// Now and then revokes whoever holds, forces it out, or asks for an end, until the faults are over.
async fn operate(assignment: &Assignment, leases: &Leases) {
    let chance = assignment.chance(3);
    loop {
        // With long terms there would hardly be any in a run.
        let pause_ms = assignment.options.ttl_ms.min(4000);
        tokio::time::sleep(Duration::from_millis(chance.between(pause_ms, pause_ms * 3))).await;
        if assignment.healed().exists() {
            return;
        }
        // Nobody is forced out of a permit: how many then believe that they have one is not promised.
        let of_semaphore = chance.per_mille(300);
        let name = chance.of(if of_semaphore { &PERMITS } else { &LEASES });
        let pen = assignment.pen(name);
        let Ok(Inspection { token: Some(token), .. }) = leases.inspect(name).await else { continue };
        match chance.between(0, 9) {
            0 if !of_semaphore => {
                pen.says("forces", token);
                match leases.force(name, token).await {
                    Ok(()) => pen.says("forced", token),
                    // It was over with that grant before.
                    Err(error) if error.kind() == ErrorKind::Refused => pen.says("spared", token),
                    Err(_) => {}
                }
            }
            0..=2 => {
                if leases.revoke(name, token).await.is_ok() {
                    pen.says("revoked", token);
                }
            }
            _ => {
                if leases.ask(name, token, Duration::from_millis(300)).await.is_ok() {
                    pen.says("asked", token);
                }
            }
        }
    }
}

/// In one of four ways, until it is ours.
async fn acquire(
    leases: &Leases,
    name: &str,
    election: Option<&Election>,
    assignment: &Assignment,
    chance: &Chance,
    pen: &Pen,
) -> Lease {
    let (waits, poll_ms) = (chance.per_mille(500), assignment.options.poll_ms);
    loop {
        pen.says("begins", 0);
        if let Some(handover) = assignment.find_handover(name, chance)
            && let Ok(lease) = leases.resume(handover).await
        {
            pen.says("granted", lease.token());
            pen.says("resumed", lease.token());
            return lease;
        }
        let lease = if let Some(election) = election {
            election.campaign().await.ok()
        } else if waits {
            leases.acquire(name).await.ok()
        } else {
            leases.try_acquire(name).await.ok().and_then(Attempt::acquired)
        };
        if let Some(lease) = lease {
            pen.says("granted", lease.token());
            if election.is_some() {
                pen.says("elected", lease.token());
            }
            return lease;
        }
        tokio::time::sleep(Duration::from_millis(chance.between(poll_ms / 5, poll_ms))).await;
    }
}

/// Writes on and on, each time only after it has seen that it holds the lease.
async fn under(held: &Held, span: Duration, assignment: &Assignment, pen: &Pen, write: impl AsyncFn() -> bool) {
    let (token, began) = (held.token(), Instant::now());
    while began.elapsed() < span {
        pen.says("looks", token);
        if !assignment.never_looks() && (held.asked().is_some() || !held.is_held()) {
            return;
        }
        pen.says("held", token);
        if !write().await {
            pen.says("stale", token);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Says that it lets go of it, and before that if it has lost it.
async fn leave(lease: &Lease, assignment: &Assignment, chance: &Chance, pen: &Pen) {
    if !lease.held().is_held() {
        pen.says("lost", lease.token());
        // Whoever comes next then takes over, instead of finding it released.
        if chance.per_mille(700) {
            tokio::time::sleep(Duration::from_millis(assignment.options.ttl_ms)).await;
        }
    }
    pen.says("releases", lease.token());
}

async fn end(lease: Lease, assignment: &Assignment, chance: &Chance, pen: &Pen) {
    leave(&lease, assignment, chance, pen).await;
    let token = lease.token();
    // What each is worth is seen from outside.
    match chance.between(0, 9) {
        0 => drop(lease),
        1 => {
            let keep_ms = chance.between(300, 1500);
            if let Ok(Ended::Released) = lease.close(Duration::from_millis(keep_ms), None).await {
                pen.says("closed", keep_ms);
            }
        }
        // One that nobody takes up keeps everybody out for a term: not when the run is to show that it goes on.
        2 | 3 if !assignment.healed().exists() => {
            if let Ok(handover) = lease.into_handover().await {
                assignment.leave(&handover);
                pen.says("handed", token);
            }
        }
        _ => _ = lease.release().await,
    }
}
