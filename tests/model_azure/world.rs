//! The service that the clients of a run share, what they believe, and the invariants that must hold after each step.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leasehold::Grant;
use leasehold::azure_blob::azure_core::Result;
use leasehold::azure_blob::azure_core::base64;
use leasehold::azure_blob::azure_core::http::headers::Headers;
use leasehold::azure_blob::azure_core::http::{AsyncRawResponse, HttpClient, Request};
use leasehold::testing::TestClock;

use crate::schedule::hash;
use crate::support::azure::{Fake, Metadata, State};

/// How much time passes at once. A holder of a term of 15 seconds believes for 12.2 after it has sent its claim or
/// renewal, so one step is survived and two are not; at the service two steps end a lease.
const STEP: Duration = Duration::from_secs(10);

/// What has gone wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Violation {
    /// I1: a token was granted twice.
    TokenTwice(u64),
    /// I2: a grant that began after another had returned has not the higher token.
    TokenNotHigher { before: u64, after: u64 },
    /// I3: two clients believe at the same time.
    TwoHolders(u64, u64),
    /// I4: a client believes, and the service has not leased it the blob.
    NotLeased(u64),
    /// I5: the stored token has fallen.
    TokenFell { from: u64, to: u64 },
    /// I9, I10: a request of a claim or grant that was settled has changed the blob.
    Afterlife,
    /// A claim or grant was settled, and still has the lease.
    LockedByNobody,
    /// A record was closed, and is open although no time has passed.
    Opened,
    /// A closing release was told to be recorded, and is not; or not to be, and is.
    ClosedWrongly(u64),
    /// A payload that was accepted later has given way to an earlier one.
    OlderPayload,
}

#[derive(Debug)]
pub(crate) struct World {
    fake: Fake,
    service: Arc<dyn HttpClient>,
    clock: TestClock,
    history: Mutex<History>,
    tags: Mutex<Tags>,
}

/// What each ETag stands for. The service gives out other ones on every path.
#[derive(Debug, Default)]
struct Tags {
    meanings: HashMap<String, u64>,
    newest: u64,
}

#[derive(Debug, Default, Hash)]
struct History {
    /// How many steps have passed.
    now: u64,
    /// When the lease was last acquired, renewed or broken.
    leased: u64,
    /// The claim or grant for which each client sends now.
    current: Vec<(usize, u128)>,
    granted: Vec<(u64, u128)>,
    beliefs: Vec<Belief>,
    settled: BTreeSet<u128>,
    stored_token: u64,
    was_closed: bool,
    recorded: BTreeSet<u64>,
    not_recorded: BTreeSet<u64>,
    /// All payloads in the order in which they were sent, and how many had been when the newest one was accepted, under
    /// this token.
    payloads: Vec<String>,
    accepted: Option<(u64, usize)>,
    /// Whether somebody was forced out: for one term I3 and I4 say nothing then.
    forced: bool,
    violation: Option<Violation>,
}

/// What a client believes: it holds, since it has sent what it believes by.
#[derive(Clone, Copy, Debug, Hash)]
struct Belief {
    grant: u128,
    token: u64,
    since: u64,
}

/// A blob, and the lease that keeps others out if there is one.
pub(crate) type Blob = Option<(Option<State>, Metadata, String)>;

impl World {
    pub(crate) fn new(lease_first: bool) -> Self {
        let clock = TestClock::seeded(99);
        let fake = Fake::new(clock.clone());
        fake.set(|knobs| knobs.lease_before_conditions = lease_first);
        let service = fake.http_client();
        Self { fake, service, clock, history: Mutex::default(), tags: Mutex::default() }
    }

    pub(crate) fn fake(&self) -> &Fake {
        &self.fake
    }

    /// A request arrives.
    pub(crate) async fn execute(&self, request: &Request) -> Result<AsyncRawResponse> {
        let answer = self.service.execute_request(request).await?;
        if request.url().query().is_some_and(|query| query.contains("lease")) && answer.status().is_success() {
            let mut history = self.history();
            history.leased = history.now;
        }
        if let Some((_, metadata, tag)) = self.blob() {
            let mut tags = self.tags.lock().unwrap();
            let meaning = hash(&(tags.newest, metadata));
            let mut is_new = false;
            tags.meanings.entry(tag).or_insert_with(|| {
                is_new = true;
                meaning
            });
            if is_new {
                tags.newest = meaning;
            }
        }
        Ok(answer)
    }

    /// Headers that say something, with what their tags mean.
    pub(crate) fn without_tags(&self, headers: &Headers) -> Vec<(String, String)> {
        let tags = self.tags.lock().unwrap();
        let mut said: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| name.starts_with("x-ms-") || matches!(*name, "etag" | "if-match" | "if-none-match"))
            .filter(|(name, _)| !matches!(*name, "x-ms-request-id" | "x-ms-client-request-id" | "x-ms-creation-time"))
            .map(|(name, value)| {
                let meaning = tags.meanings.get(value).map(u64::to_string);
                (name.to_owned(), meaning.unwrap_or_else(|| value.to_owned()))
            })
            .collect();
        said.sort_unstable();
        said
    }

    /// All that matters for what can happen next, but for the clients.
    pub(crate) fn fingerprint(&self) -> u64 {
        let blob = self.fake.peek("job").map(|peek| (format!("{:?}", peek.state), peek.metadata));
        hash(&(blob, self.tags.lock().unwrap().newest, &*self.history()))
    }

    pub(crate) fn blob(&self) -> Blob {
        let peek = self.fake.peek("job")?;
        let leased = matches!(peek.state, State::Leased(_) | State::Breaking(_)).then_some(peek.state);
        Some((leased, peek.metadata, peek.etag))
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.history().violation.clone()
    }

    pub(crate) fn grants(&self) -> usize {
        self.history().granted.len()
    }

    /// How many steps have passed so far.
    pub(crate) fn now(&self) -> u64 {
        self.history().now
    }

    /// What a client goes by besides its answers.
    pub(crate) fn moment(&self) -> (u64, u64) {
        (self.now(), self.highest())
    }

    pub(crate) fn tick(&self) {
        self.clock.suspend(STEP);
        self.history().now += 1;
    }
}

/// What the clients tell.
impl World {
    /// From now on this client sends for this grant.
    pub(crate) fn sends_for(&self, actor: usize, grant: Grant) {
        let mut history = self.history();
        history.current.retain(|(who, _)| *who != actor);
        history.current.push((actor, grant.bits()));
    }

    pub(crate) fn grant_of(&self, actor: usize) -> Option<u128> {
        self.history().current.iter().find(|(who, _)| *who == actor).map(|(_, grant)| *grant)
    }

    /// The highest token that anybody has been granted.
    pub(crate) fn highest(&self) -> u64 {
        self.history().granted.iter().map(|(token, _)| *token).max().unwrap_or(0)
    }

    /// A claim was granted that began when `before` was the highest token, and was first sent at `since`. Whether
    /// enough is left of its term.
    pub(crate) fn granted(&self, token: u64, grant: Grant, before: u64, since: u64) -> bool {
        let mut history = self.history();
        let grant = grant.bits();
        if history.granted.iter().any(|(old, of)| *old == token && *of != grant) {
            history.violates(Violation::TokenTwice(token));
        }
        if token <= before {
            history.violates(Violation::TokenNotHigher { before, after: token });
        }
        history.granted.push((token, grant));
        let useful = history.now == since;
        if useful {
            history.beliefs.push(Belief { grant, token, since });
        }
        useful
    }

    /// A renewal that was sent at `since` was accepted. One that comes after the end changes nothing.
    pub(crate) fn renewed(&self, grant: Grant, since: u64) {
        let mut history = self.history();
        let now = history.now;
        let held = history.beliefs.iter_mut().find(|belief| belief.grant == grant.bits() && belief.holds(now));
        if let Some(belief) = held {
            belief.since = belief.since.max(since);
        }
    }

    pub(crate) fn believes(&self, grant: Grant) -> bool {
        let history = self.history();
        history.beliefs.iter().any(|belief| belief.grant == grant.bits() && belief.holds(history.now))
    }

    /// The client has stopped to believe: it releases, hands over, or was told that it is lost.
    pub(crate) fn ends(&self, grant: Grant) {
        self.history().beliefs.retain(|belief| belief.grant != grant.bits());
    }

    /// Nothing of this claim or grant may change anything any more.
    pub(crate) fn settled(&self, grant: Grant) {
        let blob = self.blob();
        let mut history = self.history();
        if blob.is_some_and(|(state, ..)| matches!(state, Some(State::Leased(id)) if id.as_u128() == grant.bits())) {
            history.violates(Violation::LockedByNobody);
        }
        history.settled.insert(grant.bits());
    }

    pub(crate) fn is_settled(&self, grant: Option<u128>) -> bool {
        grant.is_some_and(|grant| self.history().settled.contains(&grant))
    }

    pub(crate) fn closed(&self, token: u64, recorded: bool) {
        let mut history = self.history();
        let set = if recorded { &mut history.recorded } else { &mut history.not_recorded };
        set.insert(token);
    }

    /// A payload is sent for the first time.
    pub(crate) fn sends_payload(&self, payload: &str) {
        self.history().payloads.push(format!("_{}", base64::encode_url_safe(payload)));
    }

    /// The newest payload was accepted: none that is older may stand in its place.
    pub(crate) fn stored_payload(&self) {
        let mut history = self.history();
        history.accepted = Some((history.stored_token, history.payloads.len()));
    }

    pub(crate) fn forced(&self) {
        self.history().forced = true;
    }
}

/// What must hold.
impl World {
    /// A request has arrived; `settled` is the grant for which it was sent, if that was settled before.
    pub(crate) fn arrived(&self, settled: Option<u128>, before: &Blob) {
        let changed = self.blob() != *before;
        if changed && self.is_settled(settled) {
            self.history().violates(Violation::Afterlife);
        }
        self.check();
    }

    pub(crate) fn check(&self) {
        let Some((leased, metadata, _)) = self.blob() else { return };
        let mut history = self.history();
        history.check_holders(leased);
        history.check_record(&metadata);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }
}

impl Belief {
    fn holds(&self, now: u64) -> bool {
        now <= self.since + 1
    }
}

impl History {
    fn violates(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    fn check_holders(&mut self, leased: Option<State>) {
        let now = self.now;
        let believed: Vec<_> = self.beliefs.iter().copied().filter(|belief| belief.holds(now)).collect();
        if self.forced {
            return;
        }
        if let [one, other, ..] = believed[..] {
            self.violates(Violation::TwoHolders(one.token, other.token));
        }
        let leased = leased.and_then(State::id).map(|id| id.as_u128());
        if let Some(belief) = believed.iter().find(|belief| leased != Some(belief.grant)) {
            self.violates(Violation::NotLeased(belief.token));
        }
    }

    fn check_record(&mut self, metadata: &Metadata) {
        let number = |name: &str| metadata.get(name).and_then(|text| text.parse::<u64>().ok());
        let token = number("lh_token").unwrap_or(0);
        if token < self.stored_token {
            self.violates(Violation::TokenFell { from: self.stored_token, to: token });
        }
        self.stored_token = token;
        let closed_by = number("lh_closed_by");
        if self.was_closed && closed_by.is_none() {
            self.violates(Violation::Opened);
        }
        self.was_closed = closed_by.is_some();
        let lost = self.recorded.iter().copied().find(|by| closed_by != Some(*by));
        let appeared = closed_by.filter(|by| self.not_recorded.contains(by));
        if let Some(token) = lost.or(appeared) {
            self.violates(Violation::ClosedWrongly(token));
        }
        let payload = metadata.get("lh_data");
        let place = self.payloads.iter().position(|sent| Some(sent) == payload).map_or(0, |index| index + 1);
        if self.accepted.is_some_and(|(under, accepted)| under == token && place < accepted) {
            self.violates(Violation::OlderPayload);
        }
    }
}
