//! What is seen of each request: when it leaves, and what the service has before and after it.

use std::time::Duration;

use leasehold::{Data, Grant, Name};

use super::support::azure::{Fake, Op, Request, Response, State as LeaseState};
use super::world::{State, World};

/// A request that arrives so much after it was sent is late.
const LATE: Duration = Duration::from_secs(5);

/// One copy of a request.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub number: u64,
    pub process: usize,
    /// True time.
    pub sent: Duration,
    /// Whether it breaks a lease by force.
    pub forced: bool,
    /// Whether the network has made it out of another.
    pub is_second: bool,
}

/// A blob as the service has it.
pub struct Found {
    pub state: LeaseState,
    pub token: u64,
    /// The grant in the metadata.
    written_by: Option<Grant>,
    /// The token of the closing in the metadata.
    closed_by: Option<u64>,
    data: Option<Data>,
}

impl Found {
    pub fn of(service: &Fake, name: &Name) -> Option<Self> {
        // The names of a run are spelt alike as blobs.
        let peek = service.peek(name.as_str())?;
        let field = |field: &str| peek.metadata.get(field).map(String::as_str);
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        Some(Self {
            state: peek.state,
            token: number(field("lh_token")).unwrap_or(0),
            closed_by: number(field("lh_closed_ms").and(field("lh_closed_by"))),
            written_by: field("lh_grant").and_then(Grant::parse),
            data: field("lh_data").and_then(payload),
        })
    }

    /// Whose id the lease that keeps others out has.
    pub fn leased_as(&self) -> Option<Grant> {
        match self.state {
            LeaseState::Leased(id) | LeaseState::Breaking(id) => Some(Grant::from_bits(id.as_u128())),
            _ => None,
        }
    }
}

fn payload(text: &str) -> Option<Data> {
    Data::new(&azure_core::base64::decode_url_safe(text.strip_prefix('_')?).ok()?)
}

/// It leaves its client.
pub fn sent(world: &World, request: &Request, copy: Copy) {
    let call = request.call();
    let grant = grant_of(request);
    world.note(word(call.op), copy.process, copy.number, short(grant));
    let mut state = world.state();
    state.checks.counts.one_more("http requests");
    if let (Some(grant), Ok(name)) = (grant, Name::new(&call.name)) {
        state.checks.must_not_be_silent(grant, word(call.op), &name);
    }
}

/// It arrives.
pub fn apply(world: &World, request: &Request, copy: Copy) -> Response {
    let call = request.call();
    let Ok(name) = Name::new(&call.name) else { return world.state().truth.service.send(request) };
    let longest = world.plan.longest_ttl();
    let mut state = world.state();
    let before = Found::of(&state.truth.service, &name);
    let answer = state.truth.service.send(request);
    let after = Found::of(&state.truth.service, &name);
    state.note_in(applied(call.op), copy.process, copy.number, u64::from(answer.status));
    if !(200..300).contains(&answer.status) {
        return answer;
    }
    let writes = !matches!(call.op, Op::HeadBlob | Op::ListBlobs);
    if writes && copy.is_second {
        state.checks.counts.one_more("second copies applied");
    } else if writes && world.now() > copy.sent + LATE {
        state.checks.counts.one_more("late copies applied");
    }
    match (call.op, &before) {
        (Op::Break, _) => {
            state.checks.counts.one_more("breaks");
            if copy.forced {
                state.checks.counts.one_more("forced");
                let until = world.now() + longest;
                state.checks.two_may_believe.insert(name.clone(), until);
            }
        }
        (Op::Acquire, Some(before)) if matches!(before.state, LeaseState::Expired(_) | LeaseState::Broken(_)) => {
            state.checks.counts.one_more("takeovers");
        }
        _ => {}
    }
    if let Some(after) = after {
        compare(&mut state, &name, before.as_ref(), &after, copy);
        if let Some(grant) = grant_of(request).filter(|_| writes) {
            written_for(&mut state, &name, grant, call.op, before.as_ref(), &after, copy);
        }
    }
    answer
}

/// Whatever the request was.
fn compare(state: &mut State, name: &Name, before: Option<&Found>, after: &Found, copy: Copy) {
    if let Some(before) = before {
        state.checks.token_written(name, before.token, after.token);
    }
    state.checks.closing_written(name, after.closed_by, after.data.as_ref());
    state.note_in(stands(after.state), copy.process, short(after.leased_as()), after.token);
    // Whoever is told that it is over must not keep others out, but for what is left of a term that was broken.
    if let LeaseState::Leased(id) = after.state {
        state.checks.writes(name, Grant::from_bits(id.as_u128()), "lease");
    }
}

/// The request was made on behalf of this grant.
fn written_for(
    state: &mut State,
    name: &Name,
    grant: Grant,
    op: Op,
    before: Option<&Found>,
    after: &Found,
    copy: Copy,
) {
    if op == Op::Release {
        // Frees what nobody counts on, and nothing else.
        return state.checks.writes_at_the_end(name, grant, "release");
    }
    state.checks.writes(name, grant, word(op));
    if !copy.is_second && state.truth.refused.contains(&grant) {
        state.checks.fail(format!("I9: {name}: a request was applied of a claim whose copies were all refused"));
    }
    if after.written_by != Some(grant) {
        return;
    }
    state.checks.granted(name, after.token, grant);
    let is_claim = before.is_none_or(|before| before.written_by != Some(grant));
    if is_claim && state.truth.brought.get(&grant).is_some_and(|brought| *brought != after.data) {
        state.checks.fail(format!("{name}: the payload of an older grant has survived a claim"));
    }
    // What a closing leaves is not a payload of the grant's.
    if after.closed_by.is_none() {
        state.checks.payload_written(name, grant, after.data.as_ref());
    }
}

/// On behalf of whom a request is made.
fn grant_of(request: &Request) -> Option<Grant> {
    let proposed = request.header("x-ms-proposed-lease-id");
    Grant::parse(proposed.or_else(|| request.header("x-ms-lease-id"))?)
}

fn short(grant: Option<Grant>) -> u64 {
    grant.map_or(0, |grant| grant.bits() as u64 % 1_000_000)
}

fn word(op: Op) -> &'static str {
    match op {
        Op::HeadBlob => "look",
        Op::PutBlob => "create",
        Op::Acquire => "acquire",
        Op::Renew => "renew lease",
        Op::Change => "change",
        Op::Release => "give back",
        Op::Break => "break",
        Op::SetMetadata => "write",
        Op::ListBlobs => "list",
        _ => "something else",
    }
}

/// What the blob is like then.
fn stands(state: LeaseState) -> &'static str {
    match state {
        LeaseState::Available => "    free",
        LeaseState::Leased(_) => "    leased",
        LeaseState::Breaking(_) => "    breaking",
        LeaseState::Broken(_) => "    was broken",
        LeaseState::Expired(_) => "    expired",
    }
}

fn applied(op: Op) -> &'static str {
    match op {
        Op::HeadBlob => "  looked",
        Op::PutBlob => "  created",
        Op::Acquire => "  acquired",
        Op::Renew => "  renewed",
        Op::Change => "  changed",
        Op::Release => "  given back",
        Op::Break => "  broken",
        Op::SetMetadata => "  written",
        Op::ListBlobs => "  listed",
        _ => "  something",
    }
}
