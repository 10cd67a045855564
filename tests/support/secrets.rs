//! Secrets that are planted, and all places where users see text of the library's: they must not meet.
#![allow(clippy::disallowed_methods, reason = "the tour waits a little for events, on whatever clock its test has")]

use std::error::Error;
use std::fmt::{Debug, Write};
use std::iter;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leasehold::recipes::{Failed, Once, Outcome};
use leasehold::{Attempt, Data, Ended, ErrorKind, Event, Grant, Leases};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// What the payload says that the tour stores.
pub const PAYLOAD: &str = "planted-payload";

/// What must not be seen, each in all its spellings.
#[derive(Default)]
pub struct Planted(Vec<(&'static str, String)>);

impl Planted {
    /// Plants a payload and starts to collect what is logged.
    pub fn new() -> Self {
        logs();
        let mut planted = Self::default();
        planted.plant("payload", PAYLOAD);
        planted.plant("payload", format!("{:?}", PAYLOAD.as_bytes()).trim_matches(['[', ']']));
        planted
    }

    pub fn plant(&mut self, what: &'static str, text: &str) {
        self.0.push((what, text.to_lowercase()));
    }

    pub fn plant_grant(&mut self, grant: Grant) {
        let hyphenated = grant.to_text();
        self.plant("grant", &hyphenated.replace('-', ""));
        self.plant("grant", &hyphenated);
        self.plant("grant", &grant.bits().to_string());
    }

    /// How many grants are planted.
    pub fn grants(&self) -> usize {
        self.0.iter().filter(|(what, _)| *what == "grant").count() / 3
    }

    pub fn hidden(&self, place: &str, text: &str) {
        let lower = text.to_lowercase();
        for (what, secret) in &self.0 {
            assert!(!lower.contains(secret), "{place} shows the {what}: {text}");
        }
    }

    /// In both forms of `Debug`.
    pub fn debug(&self, place: &str, value: &dyn Debug) {
        self.hidden(place, &format!("{value:?}"));
        self.hidden(place, &format!("{value:#?}"));
    }

    /// In all forms of an error and of its causes.
    pub fn error(&self, place: &str, error: &(dyn Error + 'static)) {
        for cause in iter::successors(Some(error), |&error| error.source()) {
            self.hidden(place, &cause.to_string());
            self.debug(place, &cause);
        }
    }

    /// In all that was logged so far; gives it.
    pub fn logs(&self) -> String {
        let logs = logs().0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.hidden("the log", &logs);
        logs
    }
}

/// Leads two clients of one store through all that shows text; `grant_of` reads the stored grant of a lease.
pub async fn tour(planted: &mut Planted, leases: &Leases, rival: &Leases, grant_of: impl AsyncFn(&str) -> Grant) {
    let mut events = leases.events();
    planted.debug("Leases", leases);
    let request = leases.request("tour").data(PAYLOAD);
    planted.debug("Request", &request);
    let lease = request.acquire().await.expect("free");
    planted.plant_grant(grant_of("tour").await);

    let held = lease.held();
    planted.debug("Lease", &lease);
    planted.debug("Held", &held);
    planted.debug("Proof", &held.proof());
    planted.debug("State", &held.state());
    planted.debug("Watch", &held.watch());
    planted.debug("Stats", &leases.stats());
    let refused = rival.try_acquire("tour").await.expect("answered");
    planted.debug("Attempt", &refused);
    match &refused {
        Attempt::Held(by) => planted.hidden("HeldBy", &by.to_string()),
        Attempt::Acquired(_) => panic!("it is held"),
    }
    let timed_out = rival.acquire_within("tour", Duration::from_millis(50)).await.expect_err("it is held");
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    planted.error("a time-out", &timed_out);
    planted.debug("Inspection", &rival.inspect("tour").await.expect("answered"));
    let mut listing = rival.list("");
    planted.debug("Inspection", &listing.next().await.expect("answered"));
    planted.debug("Inspections", &listing);
    held.set_data(PAYLOAD).await.expect("stored");

    let handover = lease.into_handover().await.expect("held");
    planted.debug("Handover", &handover);
    planted.debug("Ended", &held.state());
    planted.error("a late renewal", &held.ensure(Duration::from_millis(1)).await.expect_err("handed over"));
    let stranger = Leases::builder(leasehold::MemoryStore::new());
    planted.debug("LeasesBuilder", &stranger);
    let lease = rival.resume(handover).await.expect("nobody else has");
    planted.plant_grant(grant_of("tour").await);

    leases.ask("tour", lease.token(), Duration::from_secs(9)).await.expect("held");
    if let Err(lost) = lease.renew().await {
        // Where an ask is a revocation.
        planted.error("an ask", &lost);
    }
    planted.debug("StepDown", &lease.held().asked());
    let wrong = leasehold::FencingToken::new(1).expect("a token");
    planted.error("a refusal", &leases.revoke("tour", wrong).await.expect_err("another token"));
    leases.revoke("tour", lease.token()).await.expect("that token");
    planted.plant_grant(grant_of("tour").await);
    let lost = lease.renew().await.expect_err("revoked");
    assert_eq!(lost.kind(), ErrorKind::Lost);
    planted.error("a loss", &lost);
    planted.error("Lost", lost.lost().expect("a loss"));
    let finished = lease.run_to_end(|_| async {}).await;
    assert!(matches!(finished.ended, Ended::Lost(_)));
    planted.debug("Finished", &finished);
    leases.force("tour", finished_token(&finished.ended)).await.expect("revoked, and not yet free");

    let again = leases.acquire("tour").await.expect("forced free");
    planted.plant_grant(grant_of("tour").await);
    again.release().await.expect("answered");
    remembered(planted, leases, rival, grant_of).await;
    planted.error("a bad name", &leases.acquire("").await.expect_err("empty"));
    let mut told = 0;
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(50), events.next()).await {
        planted.debug("Event", &event);
        told +=
            usize::from(matches!(event, Event::Acquired { .. } | Event::HandedOver { .. } | Event::Released { .. }));
    }
    assert!(told >= 4, "two grants and their ends: {told}");
}

/// Outcomes, and what others are told of closed leases.
async fn remembered(planted: &mut Planted, leases: &Leases, rival: &Leases, grant_of: impl AsyncFn(&str) -> Grant) {
    let hour = Duration::from_secs(3600);
    let lease = leases.acquire("closed").await.expect("free");
    planted.plant_grant(grant_of("closed").await);
    planted.debug("Ended", &lease.close(hour, Data::new(PAYLOAD.as_bytes())).await.expect("answered"));
    let closed = rival.try_acquire("closed").await.expect("answered");
    planted.debug("Attempt", &closed);
    match &closed {
        Attempt::Held(by) if by.data() == Some(PAYLOAD.as_bytes()) => planted.hidden("HeldBy", &by.to_string()),
        _ => panic!("it is closed"),
    }
    planted.debug("Inspection", &rival.inspect("closed").await.expect("answered"));
    for client in [leases, rival] {
        let once = Once::new(client).keep(hour);
        planted.debug("Once", &once);
        let outcome = once.run("once", async |_| Ok::<_, Failed<std::fmt::Error>>(PAYLOAD)).await.expect("remembered");
        assert!(matches!(outcome, Outcome::Done(_) | Outcome::AlreadyDone(_)));
        planted.debug("Outcome", &outcome);
    }
    let large = async |_| Ok::<_, Failed<std::fmt::Error>>(PAYLOAD.repeat(300));
    let error = Once::new(leases).run("large", large).await.expect_err("too large");
    planted.error("OnceError", &error);
    planted.debug("Failed", &Failed::Remember(std::fmt::Error, PAYLOAD.into()));
}

fn finished_token(ended: &Ended) -> leasehold::FencingToken {
    match ended {
        Ended::Lost(lost) => lost.token(),
        ended => panic!("{ended:?}"),
    }
}

/// All that the library and the SDK below it log in this process, at every level.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<String>>);

fn logs() -> &'static Collector {
    static LOGS: OnceLock<Collector> = OnceLock::new();
    LOGS.get_or_init(|| {
        let collector = Collector::default();
        tracing::subscriber::set_global_default(collector.clone()).expect("nobody else collects logs here");
        collector
    })
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["leasehold", "azure", "typespec", "reqwest"].iter().any(|logged| metadata.target().starts_with(logged))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line("  ".into());
        values.record(&mut line);
        self.add(&line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.write(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Collector {
    fn write(&self, metadata: &Metadata<'_>, fields: impl FnOnce(&mut Line)) {
        let mut line = Line(format!("{} {}:", metadata.level(), metadata.target()));
        fields(&mut line);
        self.add(&line.0);
    }

    fn add(&self, line: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line);
        text.push('\n');
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("text takes all");
    }
}
