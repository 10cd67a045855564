//! A process's way to its store: it can be cut, and it writes down what went over it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use leasehold::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Description, ListPage, Name, Page, Renew, Renewed, Revoke, Revoked,
    Store, StoreError, StoreErrorKind, Vacate, Vacated, View,
};
use tokio::sync::watch;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Open,
    /// It fails at once and is not applied.
    Cut,
    /// It waits to be sent: its process is frozen, or dead.
    Still,
}

/// What happened, in order: requests, and what the tests note beside them.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Entry>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub who: String,
    /// A verb, or what a test has noted.
    pub what: String,
    pub name: String,
}

impl Log {
    pub fn note(&self, who: &str, what: &str, name: &str) {
        let entry = Entry { who: who.to_owned(), what: what.to_owned(), name: name.to_owned() };
        self.0.lock().unwrap().push(entry);
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    /// How often somebody did this.
    pub fn count(&self, who: &str, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|entry| entry.who == who && entry.what == what).count()
    }

    /// What somebody did, in order.
    pub fn of(&self, who: &str) -> Vec<String> {
        self.entries().into_iter().filter(|entry| entry.who == who).map(|entry| entry.what).collect()
    }
}

/// A process's way to its store. Clones are the same.
#[derive(Clone, Debug)]
pub struct Way {
    store: Arc<dyn Store>,
    who: Arc<str>,
    log: Log,
    mode: Arc<watch::Sender<Mode>>,
}

impl Way {
    pub fn new(store: Arc<dyn Store>, who: &str, log: Log) -> Self {
        Self { store, who: who.into(), log, mode: Arc::new(watch::Sender::new(Mode::Open)) }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn who(&self) -> &str {
        &self.who
    }

    async fn begin(&self, verb: &str, name: &str) -> Result<(), StoreError> {
        let mut mode = self.mode.subscribe();
        let mode = *mode.wait_for(|mode| *mode != Mode::Still).await.expect("the way is there");
        if mode == Mode::Cut {
            return Err(cut());
        }
        self.log.note(&self.who, verb, name);
        Ok(())
    }
}

#[async_trait]
impl Store for Way {
    fn describe(&self) -> Description {
        self.store.describe()
    }

    async fn claim(&self, claim: &Claim) -> Answer<Claimed> {
        self.begin("claim", claim.name.as_str()).await?;
        self.store.claim(claim).await
    }

    async fn renew(&self, renewals: &[Renew]) -> Vec<Answer<Renewed>> {
        for renew in renewals {
            if self.begin("renew", renew.name.as_str()).await.is_err() {
                return renewals.iter().map(|_| Err(cut())).collect();
            }
        }
        self.store.renew(renewals).await
    }

    async fn vacate(&self, vacate: &Vacate) -> Answer<Vacated> {
        let verb = match (vacate.burn, &vacate.close) {
            (true, _) => "burn",
            (_, Some(_)) => "close",
            _ => "release",
        };
        self.begin(verb, vacate.name.as_str()).await?;
        self.store.vacate(vacate).await
    }

    async fn revoke(&self, revoke: &Revoke) -> Answer<Revoked> {
        self.begin("revoke", revoke.name.as_str()).await?;
        self.store.revoke(revoke).await
    }

    async fn ask(&self, ask: &Ask) -> Answer<Asked> {
        self.begin("ask", ask.name.as_str()).await?;
        self.store.ask(ask).await
    }

    async fn read(&self, name: &Name) -> Answer<View> {
        self.begin("read", name.as_str()).await?;
        self.store.read(name).await
    }

    async fn list(&self, prefix: &str, page: Option<Page>) -> Answer<ListPage> {
        self.begin("list", prefix).await?;
        self.store.list(prefix, page).await
    }

    fn isolated(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

fn cut() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Applied::No, "the way is cut")
}
