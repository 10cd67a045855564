//! An object store in memory, in which each request waits for its turn and meets the fate that is chosen for it.

use std::fmt;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::task::Poll;

use leasehold::fence::{Found, Put, Tagged};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// It never arrives.
    RequestLost,
    /// It is applied, and nobody hears of it.
    AnswerLost,
    /// Nobody hears of it, and it arrives later, or never.
    Late,
    /// The client has sent it twice by itself, and tells what was answered to the second copy.
    Repeated,
}

impl Fate {
    pub const OF_READS: &[Self] = &[Self::Answered, Self::RequestLost];
    pub const OF_WRITES: &[Self] = &[Self::Answered, Self::RequestLost, Self::AnswerLost, Self::Late];
    pub const OF_REPEATED_WRITES: &[Self] = &[Self::Answered, Self::Repeated];
}

/// In which way the store is no good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    #[default]
    None,
    /// It writes whatever the condition says.
    IgnoresTags,
    /// Its tag is a hash of the content, and the fence is beside it: S3, with the fence in the metadata.
    TagOfContent,
}

#[derive(Debug, Default)]
pub struct Object(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    flaw: Flaw,
    stored: Stored,
    /// Every write that was stored, with what it replaced.
    log: Vec<Accepted>,
    late: Vec<Request>,
    next: Option<Fate>,
    waiting: Option<Kind>,
}

#[derive(Clone, Debug, Default)]
struct Stored {
    revision: u64,
    fence: Option<String>,
    content: String,
}

/// A write as it was stored.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub token: u64,
    pub before: String,
    pub after: String,
}

#[derive(Clone, Debug)]
struct Request {
    over: Option<u64>,
    fence: String,
    content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

#[derive(Debug, PartialEq, Eq)]
pub struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer")
    }
}

impl std::error::Error for NoAnswer {}

impl Object {
    pub fn with(flaw: Flaw) -> Self {
        Self(Mutex::new(Inner { flaw, ..Inner::default() }))
    }

    /// Lets the next request that is polled meet this fate.
    pub fn admit(&self, fate: Fate) {
        self.0.lock().unwrap().next = Some(fate);
    }

    /// What the request that was polled last waits for.
    pub fn waiting(&self) -> Option<Kind> {
        self.0.lock().unwrap().waiting.take()
    }

    pub fn late(&self) -> usize {
        self.0.lock().unwrap().late.len()
    }

    pub fn land(&self, late: usize) {
        let mut inner = self.0.lock().unwrap();
        let request = inner.late.remove(late);
        inner.put(request);
    }

    pub fn log(&self) -> Vec<Accepted> {
        self.0.lock().unwrap().log.clone()
    }

    pub fn content(&self) -> String {
        self.0.lock().unwrap().stored.content.clone()
    }

    /// Somebody's change past the fence.
    pub fn set(&self, fence: Option<&str>, content: &str) {
        let stored = &mut self.0.lock().unwrap().stored;
        let revision = stored.revision + 1;
        *stored = Stored { revision, fence: fence.map(str::to_owned), content: content.to_owned() };
    }

    pub fn delete(&self) {
        self.0.lock().unwrap().stored = Stored::default();
    }

    async fn turn(&self, kind: Kind) -> Fate {
        poll_fn(|_| {
            let mut inner = self.0.lock().unwrap();
            inner.waiting = Some(kind);
            inner.next.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Tagged for Object {
    type Tag = u64;
    type Seen = String;
    type New = str;
    type Error = NoAnswer;

    async fn read(&self) -> Result<Found<u64, String>, NoAnswer> {
        if self.turn(Kind::Read).await != Fate::Answered {
            return Err(NoAnswer);
        }
        let inner = self.0.lock().unwrap();
        let Stored { fence, content, .. } = inner.stored.clone();
        Ok(Found { tag: inner.tag(), fence, seen: content })
    }

    async fn write(&self, over: &Found<u64, String>, fence: &str, new: Option<&str>) -> Result<Put<u64>, NoAnswer> {
        let request =
            Request { over: over.tag, fence: fence.to_owned(), content: new.unwrap_or(&over.seen).to_owned() };
        let fate = self.turn(Kind::Write).await;
        let mut inner = self.0.lock().unwrap();
        match fate {
            Fate::Answered => return Ok(inner.put(request)),
            Fate::Repeated => {
                inner.put(request.clone());
                return Ok(inner.put(request));
            }
            Fate::RequestLost => {}
            Fate::AnswerLost => drop(inner.put(request)),
            Fate::Late => inner.late.push(request),
        }
        Err(NoAnswer)
    }
}

impl Inner {
    fn put(&mut self, request: Request) -> Put<u64> {
        if request.over != self.tag() && self.flaw != Flaw::IgnoresTags {
            return Put::Moved;
        }
        let Request { fence, content, .. } = request;
        let token = fence.split('.').next().and_then(|token| token.parse().ok()).unwrap_or(0);
        self.log.push(Accepted { token, before: self.stored.content.clone(), after: content.clone() });
        self.stored = Stored { revision: self.stored.revision + 1, fence: Some(fence), content };
        Put::Written(self.tag().unwrap_or(0))
    }

    fn tag(&self) -> Option<u64> {
        let Stored { revision, content, .. } = &self.stored;
        match self.flaw {
            _ if *revision == 0 => None,
            Flaw::TagOfContent => {
                let mut hasher = DefaultHasher::new();
                content.hash(&mut hasher);
                Some(hasher.finish())
            }
            _ => Some(*revision),
        }
    }
}
