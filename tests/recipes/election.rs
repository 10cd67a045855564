//! Elections: what becomes of a leader that is killed, frozen, cut off, or whose lease is deleted.

use std::time::Duration;

use leasehold::recipes::{Election, Observer, Sight};
use leasehold::{Ended, Error, FencingToken, Held};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::World;
use super::monitor::{Resource, Stretches, given_up_early};
use super::process::Process;

const NAME: &str = "leader";

/// Candidates that lead until they are told to resign.
#[derive(Clone, Default)]
struct Parliament {
    terms: Stretches,
    resource: Resource,
}

impl Parliament {
    /// Leads again and again, until its sender says so. While it leads it writes.
    fn candidate(&self, world: &World, process: &Process) -> (watch::Sender<bool>, JoinHandle<Option<FencingToken>>) {
        let (resign, resigned) = watch::channel(false);
        let (of, who, beat) = (self.clone(), process.who().to_owned(), world.ttl / 60);
        let election = Election::new(&process.leases, NAME).publish(who.clone());
        let leads = process.spawn(async move {
            let led = election.lead(|held| of.clone().term(who.clone(), held, beat, resigned.clone())).await;
            led.expect("nothing fails").inspect(|token| assert!(token.as_u64() > 0))
        });
        (resign, leads)
    }

    async fn term(
        self,
        who: String,
        held: Held,
        beat: Duration,
        mut resigned: watch::Receiver<bool>,
    ) -> Result<FencingToken, Error> {
        let _working = self.terms.begin(&who, held.token());
        while self.resource.write(held.token()) {
            tokio::select! {
                _ = resigned.wait_for(|resigned| *resigned) => return Ok(held.token()),
                () = sleep(beat) => {}
            }
        }
        std::future::pending().await // It is late, and waits for its end.
    }
}

pub async fn a_leader_and_what_it_publishes_appear_in_one_write(world: World) {
    let (a, o) = (world.process("a").await, world.process("o").await);
    let mut observer = Election::new(&o.leases, NAME).observe();
    assert_eq!(observer.next().await.unwrap(), Sight::Nobody);
    let lease = Election::new(&a.leases, NAME).publish("10.0.0.7").campaign().await.unwrap();
    let seen = world.soon("it is seen", leader(&mut observer)).await;
    assert_eq!((seen.token, seen.data()), (lease.token(), &b"10.0.0.7"[..]), "never without its address");
    assert_eq!(seen.holder.as_ref().map(|holder| holder.as_str()), Some("a"));
    lease.held().set_data("10.0.0.8").await.unwrap();
    let seen = world.soon("its news are seen", leader(&mut observer)).await;
    assert_eq!((seen.token, seen.data()), (lease.token(), &b"10.0.0.8"[..]));
    lease.release().await.unwrap();
    assert_eq!(world.soon("it has resigned", observer.next()).await.unwrap(), Sight::Nobody);
}

async fn leader(observer: &mut Observer) -> leasehold::recipes::Leader {
    loop {
        if let Sight::Leader(leader) = observer.next().await.unwrap() {
            return leader;
        }
    }
}

pub async fn a_graceful_resign_is_followed_by_the_next_leader_within_one_poll(world: World) {
    let (a, b) = (world.process("a").await, world.process("b").await);
    let first = Election::new(&a.leases, NAME).campaign().await.unwrap();
    let token = first.token();
    let election = Election::new(&b.leases, NAME);
    let next = b.spawn(async move { election.campaign().await.unwrap() });
    sleep(world.ttl / 2).await;
    assert!(!next.is_finished());
    assert_eq!(first.release().await.unwrap(), Ended::Released);
    let (resigned, reads) = (Instant::now(), world.log.count("b", "read"));
    let next = world.soon("the next leads", next).await.unwrap();
    assert!(next.token() > token);
    // One that was under way when the first resigned, and the next one.
    let reads = world.log.count("b", "read") - reads;
    assert!(reads <= 2, "{reads} looks");
    if world.clock.is_some() {
        assert!(resigned.elapsed() <= world.poll, "{:?}", resigned.elapsed());
    }
}

pub async fn a_killed_leader_is_followed_by_one_with_a_higher_token(world: World) {
    let parliament = Parliament::default();
    let mut processes = Vec::new();
    for who in ["a", "b", "c"] {
        let process = world.process(who).await;
        let candidate = parliament.candidate(&world, &process);
        processes.push((process, candidate));
    }
    for n in 1..=2 {
        let leads = world.soon("somebody leads", parliament.terms.nth(n)).await;
        sleep(world.ttl / 2).await;
        processes.iter().find(|(process, _)| process.who() == leads.who).unwrap().0.kill();
    }
    let last = world.soon("the third leads", parliament.terms.nth(3)).await;
    let who: Vec<_> = parliament.terms.all().into_iter().map(|term| term.who).collect();
    assert_eq!(who.len(), 3, "{who:?}");
    assert!(who[0] != who[1] && who[1] != who[2] && who[0] != who[2], "the dead do not lead: {who:?}");
    assert!(parliament.terms.tokens_rise() && parliament.terms.most_at_once() == 1);
    // It can still resign.
    let (_, (resign, leads)) = processes.into_iter().find(|(process, _)| process.who() == last.who).unwrap();
    resign.send(true).unwrap();
    assert_eq!(world.soon("it resigns", leads).await.unwrap(), Some(last.token));
}

pub async fn a_frozen_leader_is_deposed_its_late_write_is_refused_and_it_campaigns_again(world: World) {
    let parliament = Parliament::default();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _a_leads = parliament.candidate(&world, &a);
    let first = world.soon("a leads", parliament.terms.nth(1)).await;
    a.freeze();
    let (resign, b_leads) = parliament.candidate(&world, &b);
    let second = world.soon("b leads", parliament.terms.nth(2)).await;
    a.thaw();
    // Its work was between its check and its write when it froze.
    world.soon("its late write is refused", until(|| parliament.resource.refused() == [first.token])).await;
    sleep(world.ttl / 2).await;
    resign.send(true).unwrap();
    assert_eq!(world.soon("b resigns", b_leads).await.unwrap(), Some(second.token));
    let third = world.soon("a leads again, by itself", parliament.terms.nth(3)).await;
    assert_eq!((&first.who[..], &second.who[..], &third.who[..]), ("a", "b", "a"));
    assert!(parliament.terms.tokens_rise());
    assert!(parliament.terms.all()[0].ended.unwrap() <= third.begun, "the late work has ended first");
}

pub async fn a_leader_that_is_cut_off_has_stopped_before_another_leads_and_campaigns_again(world: World) {
    let parliament = Parliament::default();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _a_leads = parliament.candidate(&world, &a);
    world.soon("a leads", parliament.terms.nth(1)).await;
    let (resign, b_leads) = parliament.candidate(&world, &b);
    sleep(world.ttl / 2).await;
    a.cut_off();
    let second = world.soon("b leads", parliament.terms.nth(2)).await;
    let ended = parliament.terms.all()[0].ended.expect("a has stopped");
    assert!(ended <= second.begun && parliament.resource.refused().is_empty(), "in time, without a fence");
    a.heal();
    sleep(world.ttl / 2).await;
    resign.send(true).unwrap();
    world.soon("b resigns", b_leads).await.unwrap();
    let third = world.soon("a leads again, by itself", parliament.terms.nth(3)).await;
    assert_eq!((&second.who[..], &third.who[..]), ("b", "a"));
    assert!(parliament.terms.tokens_rise() && parliament.terms.most_at_once() == 1);
}

/// `delete` acts as an operator with a slip of the hand.
pub async fn a_leader_whose_lease_was_deleted_is_deposed_and_the_next_has_a_higher_token<F>(
    world: World,
    delete: impl FnOnce() -> F,
) where
    F: Future<Output = ()>,
{
    let parliament = Parliament::default();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _a_leads = parliament.candidate(&world, &a);
    let first = world.soon("a leads", parliament.terms.nth(1)).await;
    let (_stay, _b_leads) = parliament.candidate(&world, &b);
    sleep(world.ttl / 2).await; // b has seen its token
    delete().await;
    let second = world.soon("somebody leads", parliament.terms.nth(2)).await;
    assert!(second.token > first.token);
    world.soon("a has stopped", until(|| parliament.terms.all()[0].ended.is_some())).await;
    sleep(world.ttl).await;
    let terms = parliament.terms.all();
    assert!(
        parliament.terms.tokens_rise() && terms.iter().filter(|term| term.ended.is_none()).count() == 1,
        "{terms:?}"
    );
}

pub async fn the_work_of_a_leader_has_ended_before_it_resigns_however_it_ends(world: World) {
    for how in ["returns", "fails", "panics", "is cancelled"] {
        let who = format!("one that {how}");
        let a = world.process(&who).await;
        let (terms, log, name) = (Stretches::default(), world.log.clone(), who.clone());
        let led = terms.clone();
        let election = Election::new(&a.leases, how);
        let beat = world.ttl / 60;
        let leads = a.spawn(async move {
            let work = |held: Held| {
                let working = terms.begin(&name, held.token()).noting(&log);
                async move {
                    let _working = working;
                    sleep(beat).await;
                    match how {
                        "returns" => Ok(()),
                        "fails" => Err(failure()),
                        "panics" => panic!("as it was told to"),
                        _ => std::future::pending().await,
                    }
                }
            };
            election.lead(work).await
        });
        if how == "is cancelled" {
            world.soon("it leads", led.nth(1)).await;
            leads.abort();
        }
        match (how, world.soon("it ends", leads).await) {
            ("returns", Ok(Ok(Some(())))) | ("fails", Ok(Err(_))) => {}
            ("panics", Err(panicked)) if panicked.is_panic() => {}
            ("is cancelled", Err(cancelled)) if cancelled.is_cancelled() => {}
            (_, other) => panic!("{how}: {other:?}"),
        }
        world.soon("it is given up", until(|| world.log.count(&who, "release") > 0)).await;
        assert!(!given_up_early(&world.log, &who), "{how}: {:?}", world.log.of(&who));
    }
    // The control: one that gives its lease up first is seen.
    let a = world.process("hasty").await;
    let lease = Election::new(&a.leases, "hasty").campaign().await.unwrap();
    let working = Stretches::default().begin("hasty", lease.token()).noting(&world.log);
    lease.release().await.unwrap();
    drop(working);
    assert!(given_up_early(&world.log, "hasty"));
}

fn failure() -> Error {
    leasehold::Name::new("").unwrap_err()
}

pub async fn an_observer_never_sees_an_older_leader_after_a_newer(world: World) {
    let o = world.process("o").await;
    let mut observer = Election::new(&o.leases, NAME).observe();
    let watches = o.spawn(async move {
        let mut seen = Vec::new();
        loop {
            match observer.next().await.unwrap() {
                Sight::Leader(leader) if leader.data() == b"the last" => return (seen, leader.token),
                Sight::Leader(leader) => seen.push(leader.token),
                Sight::Nobody => {}
            }
        }
    });
    let (mut led, pause) = (Vec::new(), world.poll * 3);
    let candidates = [world.process("a").await, world.process("b").await];
    for n in 0..8 {
        let lease = Election::new(&candidates[n % 2].leases, NAME).campaign().await.unwrap();
        led.push(lease.token());
        // Some terms are shorter than a poll.
        sleep(if n % 4 == 3 { world.poll / 20 } else { pause }).await;
        lease.release().await.unwrap();
    }
    let last = Election::new(&candidates[0].leases, NAME).publish("the last").campaign().await.unwrap();
    let (seen, token) = world.soon("it sees the last", watches).await.unwrap();
    assert_eq!(token, last.token());
    assert!(seen.len() >= 2 && seen.iter().all(|token| led.contains(token)), "{seen:?} of {led:?}");
    assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(20)).await;
    }
}
