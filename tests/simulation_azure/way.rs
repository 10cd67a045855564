//! The way of each request to the service and back. A request travels in a task of its own, so that it arrives also
//! when its sender has stopped waiting for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::{AsyncRawResponse, HttpClient};
use tokio::sync::oneshot;

use super::chance::Chance;
use super::machine::MachineClock;
use super::observed::{self, Copy};
use super::setting::Fault;
use super::support::azure::service::http_date;
use super::support::azure::transport::{answered, plain};
use super::support::azure::{Broken, Fake, Op, Request, Response};
use super::world::World;

/// The fleet's clocks differ from true time by so much at the most.
const SKEW: Duration = Duration::from_secs(1);
/// The service's clock at the beginning, since 1970: that of the test clock.
const BEGIN: Duration = Duration::from_secs(1_790_000_000);

/// The connections of one process.
pub struct Way {
    world: Arc<World>,
    client: usize,
    process: usize,
    clock: MachineClock,
    forces: Arc<AtomicBool>,
    service: Fake,
}

/// What happens to one request.
struct Fate {
    before: Duration,
    arrives: bool,
    after: Duration,
    reply: Reply,
    again: Option<Duration>,
}

/// What its sender is told.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// What the service says.
    Answer,
    /// Nothing ever.
    Silence,
    /// That the connection broke, without waiting for anything.
    Broken,
    NotConnected,
    /// The service answers something that means nothing for the blob.
    Status(u16, &'static str),
    /// A proxy answers in its place.
    Foreign,
}

impl Way {
    pub fn new(
        world: &Arc<World>,
        client: usize,
        process: usize,
        clock: MachineClock,
        forces: &Arc<AtomicBool>,
    ) -> Self {
        let service = world.state().truth.service.clone();
        Self { world: Arc::clone(world), client, process, clock, forces: Arc::clone(forces), service }
    }

    pub fn service(&self) -> &Fake {
        &self.service
    }

    fn fate(&self, op: Op) -> Fate {
        let (world, chance) = (&self.world, &self.world.network);
        let way = || chance.up_to(world.plan.latency);
        let calm = Fate { before: way(), arrives: true, after: way(), reply: Reply::Answer, again: None };
        if world.is_healed() {
            return calm;
        }
        let often = self.how_often(op);
        let happens = |fault| chance.per_mille(world.plan.often(fault) * often / 100);
        let term = world.plan.longest_ttl();
        let delay = || match happens(Fault::Delay) {
            true => chance.up_to(term * chance.of(&[1, 5, 50]) as u32 / 10),
            false => Duration::ZERO,
        };
        let slow = match happens(Fault::SlowAnswer) {
            true => chance.up_to(world.plan.shortest_ttl() / 6),
            false => Duration::ZERO,
        };
        let late = || chance.up_to(chance.of(&[Duration::from_secs(3), term, term * 5]));
        let again = happens(Fault::Duplicate).then(late);
        let fate = Fate { before: calm.before + delay(), after: calm.after + delay() + slow, again, ..calm };
        let lost = |fate| Fate { arrives: false, again: None, ..fate };
        let broken = if chance.per_mille(500) { Reply::Silence } else { Reply::Broken };
        let or_not = chance.per_mille(500);
        match () {
            () if world.is_away() => Fate { reply: broken, ..lost(fate) },
            () if world.is_cut_off(self.client) => match chance.per_mille(world.plan.lost_when_cut_off()) {
                true => Fate { reply: broken, ..lost(fate) },
                false => Fate { reply: broken, ..fate },
            },
            () if happens(Fault::RequestLost) => Fate { reply: broken, arrives: false, ..fate },
            () if happens(Fault::AnswerLost) => Fate { reply: broken, ..fate },
            () if happens(Fault::Late) => Fate { before: fate.before + late(), reply: broken, ..fate },
            () if happens(Fault::Throttle) => Fate { reply: Reply::Status(503, "ServerBusy"), ..lost(fate) },
            () if happens(Fault::Denied) => Fate { reply: Reply::Status(403, "AuthenticationFailed"), ..lost(fate) },
            () if happens(Fault::FailBefore) => Fate { reply: Reply::Status(500, "InternalError"), ..lost(fate) },
            () if happens(Fault::FailAfter) => Fate { reply: Reply::Status(500, "InternalError"), ..fate },
            () if happens(Fault::Foreign) => Fate { reply: Reply::Foreign, arrives: or_not, ..fate },
            () if happens(Fault::Hang) => Fate { reply: Reply::Silence, arrives: or_not, ..fate },
            () if happens(Fault::Refused) => Fate { reply: Reply::NotConnected, ..lost(fate) },
            () => fate,
        }
    }

    /// In hundredths. Most requests only look, and a fault of such a one shows little.
    fn how_often(&self, op: Op) -> u64 {
        let looks = matches!(op, Op::HeadBlob | Op::ListBlobs);
        match self.world.plan.setting.focus {
            Some(focus) if focus == op => 300,
            Some(_) => 0,
            None if looks => 30,
            None => 100,
        }
    }

    /// Sends it on its way. What its sender is told comes back on the channel, if anything.
    fn send(&self, op: Op, request: Request, copy: Copy) -> oneshot::Receiver<Result<Response, Broken>> {
        let fate = self.fate(op);
        let (tell, told) = oneshot::channel();
        let (world, service) = (Arc::clone(&self.world), self.service.clone());
        let name = if fate.again.is_some() { "sent twice" } else { "sent" };
        world.note(name, self.process, copy.number, fate.before.as_millis() as u64);
        world.travels(1);
        tokio::spawn(async move {
            // A connection that broke is noticed at once, whatever becomes of the request.
            let (mut tell, mut told_early) = (Some(tell), None);
            if matches!(fate.reply, Reply::Broken | Reply::NotConnected) {
                told_early = tell.take();
            }
            let early = async {
                tokio::time::sleep(fate.after).await;
                let why = if matches!(fate.reply, Reply::NotConnected) { Broken::NotConnected } else { Broken::Lost };
                let _ = told_early.map(|tell| tell.send(Err(why)));
            };
            let late = async {
                tokio::time::sleep(fate.before).await;
                let answer = fate.arrives.then(|| observed::apply(&world, &request, copy));
                world.travels(-1);
                if let Some(again) = fate.again {
                    again_later(&world, &request, copy, again);
                }
                world.sample();
                let Some(tell) = tell else { return };
                let answer = match (fate.reply, answer) {
                    (Reply::Answer, Some(answer)) => skewed(&world, answer),
                    (Reply::Status(status, code), _) => service.answer_with(&request, status, code),
                    (Reply::Foreign, _) => service.foreign(502),
                    _ => return,
                };
                tokio::time::sleep(fate.after).await;
                let _ = tell.send(Ok(answer));
            };
            tokio::join!(early, late);
        });
        told
    }
}

fn again_later(world: &Arc<World>, request: &Request, copy: Copy, again: Duration) {
    let (world, request) = (Arc::clone(world), request.clone());
    world.travels(1);
    tokio::spawn(async move {
        tokio::time::sleep(again).await;
        observed::apply(&world, &request, Copy { is_second: true, ..copy });
        world.travels(-1);
        world.sample();
    });
}

/// The date is that of one machine of the fleet.
fn skewed(world: &World, answer: Response) -> Response {
    let chance: &Chance = &world.network;
    if world.plan.often(Fault::FleetSkew) == 0 {
        return answer;
    }
    let skew = chance.of(&[Duration::ZERO, SKEW * 2, chance.up_to(SKEW * 2)]);
    answer.with("date", http_date(BEGIN + world.now() + skew - SKEW))
}

#[async_trait]
impl HttpClient for Way {
    async fn execute_request(&self, request: &azure_core::http::Request) -> azure_core::Result<AsyncRawResponse> {
        if self.world.is_dead(self.process) {
            std::future::pending::<()>().await;
        }
        self.clock.gate().pass().await;
        let request = plain(request)?;
        let op = request.call().op;
        let forced = op == Op::Break && self.forces.load(Ordering::Relaxed);
        let copy = Copy {
            number: self.world.next_id(),
            process: self.process,
            sent: self.world.now(),
            forced,
            is_second: false,
        };
        observed::sent(&self.world, &request, copy);
        let answer = match self.send(op, request, copy).await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        };
        self.clock.gate().pass().await;
        self.world.sample();
        answered(answer)
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Way({})", self.process)
    }
}
