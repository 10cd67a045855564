//! A store that answers what it was told to, whatever it is asked, and keeps what it was sent.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use leasehold::testing::TestClock;
use leasehold::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Clock, Description, ExpiryJudge, Grant, Label, Lease, Leases,
    LeasesBuilder, ListPage, Listed, Name, Page, Record, Renew, Renewal, Renewed, Revoke, Revoked, Stamp, Standing,
    Store, StoreError, StoreErrorKind, Timed, Vacate, Vacated, Version, View,
};

/// More than any test sends: after so many it denies everything, so that who asks for ever comes to an end.
const TOO_MANY: usize = 30_000;

/// What a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// A read shows this; every write is refused with it.
    Shows(View),
    /// A write is accepted; a read shows nothing.
    Accepts,
    /// An error.
    Fails(StoreErrorKind, Applied),
    /// No answer.
    Hangs,
}

/// Answers one after the other what it was told; the last for ever.
#[derive(Clone, Debug)]
pub(crate) struct Told(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    description: Description,
    clock: TestClock,
    script: Mutex<VecDeque<Said>>,
    sent: Mutex<Sent>,
}

/// What was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// When each request was sent.
    pub(crate) at: Vec<Stamp>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) renewals: Vec<Renew>,
    /// How many renewals each request carried.
    pub(crate) batches: Vec<usize>,
    pub(crate) vacates: Vec<Vacate>,
    /// The names of the threads that they were sent on.
    pub(crate) threads: BTreeSet<String>,
    /// How many requests are waiting for an answer.
    pub(crate) under_way: usize,
    /// How many were when the newest release was sent.
    pub(crate) under_way_at_release: usize,
}

/// A request that waits for its answer.
struct UnderWay(Arc<Inner>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.sent.lock().unwrap().under_way -= 1;
    }
}

impl Told {
    pub(crate) fn new(description: Description, script: impl IntoIterator<Item = Said>) -> Self {
        let (script, sent) = (Mutex::new(script.into_iter().collect()), Mutex::default());
        Self(Arc::new(Inner { description, clock: TestClock::new(), script, sent }))
    }

    /// A builder of clients of it, on its clock.
    pub(crate) fn builder(&self) -> LeasesBuilder {
        Leases::builder(self.clone()).clock(self.0.clock.clone())
    }

    pub(crate) fn client(&self) -> Leases {
        self.builder().build().unwrap()
    }

    /// From now on.
    pub(crate) fn says(&self, script: impl IntoIterator<Item = Said>) {
        *self.0.script.lock().unwrap() = script.into_iter().collect();
    }

    pub(crate) fn sent(&self) -> Sent {
        self.0.sent.lock().unwrap().clone()
    }

    /// Whether no client has it any more.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn total(&self) -> usize {
        self.sent().at.len()
    }

    async fn next<T>(&self, refused: impl FnOnce(View) -> T, accepted: T) -> Answer<T> {
        let said = {
            let mut sent = self.0.sent.lock().unwrap();
            sent.at.push(self.0.clock.stamp());
            sent.threads.extend(std::thread::current().name().map(str::to_owned));
            sent.under_way += 1;
            let mut script = self.0.script.lock().unwrap();
            match script.len() {
                _ if sent.at.len() > TOO_MANY => Some(Said::Fails(StoreErrorKind::Denied, Applied::No)),
                0 | 1 => script.front().cloned(),
                _ => script.pop_front(),
            }
        };
        let _under_way = UnderWay(Arc::clone(&self.0));
        let dated = |value| Timed::dated(value, self.0.description.has_store_time.then(|| date_ms(&self.0.clock)));
        match said.expect("it was told nothing") {
            Said::Shows(view) => Ok(dated(refused(view))),
            Said::Accepts => Ok(dated(accepted)),
            Said::Fails(kind, applied) => Err(StoreError::new(kind, applied, format!("told: {kind:?}"))),
            Said::Hangs => std::future::pending().await,
        }
    }

    fn keep(&self, what: impl FnOnce(&mut Sent)) {
        what(&mut self.0.sent.lock().unwrap());
    }
}

/// As an HTTP date: whole seconds.
fn date_ms(clock: &TestClock) -> u64 {
    clock.stamp().real / 1_000_000_000 * 1000
}

#[async_trait]
impl Store for Told {
    fn describe(&self) -> Description {
        self.0.description.clone()
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.keep(|sent| sent.claims.push(claim.clone()));
        self.next(Claimed::Refused, Claimed::Granted).await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        self.keep(|sent| {
            sent.renewals.extend_from_slice(renewals);
            sent.batches.push(renewals.len());
        });
        // One answer of the script for the whole batch.
        let answer = self.next(Renewed::Refused, Renewed::Renewed(None)).await;
        let each = |_| match &answer {
            Ok(answer) => Ok(answer.clone()),
            Err(error) => Err(StoreError::new(error.kind, error.applied, error.message.clone())),
        };
        renewals.iter().map(each).collect()
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        self.keep(|sent| {
            sent.vacates.push(vacate.clone());
            sent.under_way_at_release = sent.under_way;
        });
        self.next(Vacated::Refused, Vacated::Vacated).await
    }

    async fn revoke(&self, _: &Revoke) -> Answer<Revoked> {
        self.next(Revoked::Refused, Revoked::Revoked).await
    }

    async fn ask(&self, _: &Ask) -> Answer<Asked> {
        self.next(Asked::Refused, Asked::Asked).await
    }

    async fn read(&self, _: &Name) -> Answer<View> {
        self.next(|view| view, View::absent()).await
    }

    /// Pages of one lease with three skipped items each; there are two.
    async fn list(&self, _: &str, page: Option<Page>) -> Answer<ListPage> {
        let next = page.is_none().then(|| Page("2".to_owned()));
        let empty = ListPage { leases: Vec::new(), skipped: 3, next: next.clone() };
        let listed = |view| Listed { name: Name::new("job").unwrap(), view };
        self.next(|view| ListPage { leases: vec![listed(view)], skipped: 3, next }, empty).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

/// A store like a cloud table: its clients judge, and its answers carry a date.
pub(crate) fn like_a_table() -> Description {
    described(ExpiryJudge::Client, true)
}

/// A store that judges expiry and gives no time.
pub(crate) fn that_judges() -> Description {
    described(ExpiryJudge::Store, false)
}

pub(crate) fn described(judge: ExpiryJudge, has_store_time: bool) -> Description {
    let mut description = Description::new("told", "told:1");
    (description.judge, description.has_store_time) = (judge, has_store_time);
    description
}

/// A free record with that token.
pub(crate) fn free(token: u64) -> Record {
    let mut record = Record::new();
    (record.token, record.version, record.ttl_ms) = (token, Some(1), Some(30_000));
    record
}

/// A record with that token that a rival holds.
pub(crate) fn held(token: u64) -> Record {
    let mut record = free(token);
    (record.grant, record.holder) = (Some(Grant::from_bits(7)), Label::new("rival").ok());
    record
}

/// It as a store shows it whose clients judge.
pub(crate) fn shows(record: Record) -> Said {
    Said::Shows(View::of(record))
}

/// It with what the store says of it.
pub(crate) fn stands(standing: fn(Version) -> Standing, record: Record) -> Said {
    Said::Shows(View { standing: standing(Version::of(&record)), record: Some(record) })
}

/// A lease on a store that has accepted it, and will say this.
pub(crate) async fn leased(renewal: Renewal, script: impl IntoIterator<Item = Said>) -> (Told, Leases, Lease) {
    let store = Told::new(that_judges(), [Said::Accepts]);
    let leases = store.builder().renewal(renewal).build().unwrap();
    let lease = leases.acquire("job").await.unwrap();
    store.says(script);
    (store, leases, lease)
}

/// Leases of so many names.
pub(crate) async fn many(leases: &Leases, count: usize) -> Vec<Lease> {
    let mut held = Vec::new();
    for number in 0..count {
        held.push(leases.acquire(format!("job{number}")).await.unwrap());
    }
    held
}
