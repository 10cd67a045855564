//! What a holder does: it raises, and then appends to what it has found, one item with each write.

use std::sync::{Arc, Mutex};

use leasehold::fence::{FenceError, Found, Put, Raised, Tagged, raise};
use leasehold::{FencingToken, Written};

use super::object::{NoAnswer, Object};

/// What a holder was told of its items.
pub type Told = Arc<Mutex<Vec<(String, Outcome)>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stored,
    /// Not stored, and it never will be.
    Not,
    Perhaps,
}

/// Where a holder takes the state from that it begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    #[default]
    WithWhatTheRaiseFound,
    /// The mistake that the raise is there to prevent.
    WithARead,
}

pub struct Holder {
    pub token: u64,
    pub items: &'static [&'static str],
    pub begins: Begins,
    /// Whether it knows that others have its token.
    pub shares: bool,
}

impl Holder {
    pub async fn work(self, object: Arc<Object>, told: Told) {
        let token = FencingToken::new(self.token).unwrap();
        let early = match self.begins {
            Begins::WithARead => object.read().await.ok().map(|found| found.seen),
            Begins::WithWhatTheRaiseFound => None,
        };
        let Some(mut raised) = raised(&object, token).await else { return };
        let mut content = early.unwrap_or_else(|| raised.found().clone());
        for item in self.items {
            let tell = |outcome| told.lock().unwrap().push(((*item).to_owned(), outcome));
            let new = format!("{content}{item};");
            match raised.write(&new).await {
                Ok(()) => {
                    tell(Outcome::Stored);
                    content = new;
                }
                Err(FenceError::InDoubt { write, .. }) => {
                    let Some(again) = self::raised(&object, token).await else { return tell(Outcome::Perhaps) };
                    tell(match again.found_is_of() == Some(&write) {
                        true => Outcome::Stored,
                        false if self.shares => Outcome::Perhaps,
                        false => Outcome::Not,
                    });
                    content = again.found().clone();
                    raised = again;
                }
                Err(error) => {
                    tell(if error.written() == Written::No { Outcome::Not } else { Outcome::Perhaps });
                    // The store's own no does not end anything; all else does.
                    if !matches!(error, FenceError::Store(_)) {
                        return;
                    }
                }
            }
        }
    }
}

/// Tries twice, as a holder does whose store has failed.
async fn raised(object: &Arc<Object>, token: FencingToken) -> Option<Raised<Shared>> {
    for _ in 0..2 {
        match raise(Shared(Arc::clone(object)), token).await {
            Ok(raised) => return Some(raised),
            Err(FenceError::Store(NoAnswer)) => {}
            Err(_) => return None,
        }
    }
    None
}

/// One object for several holders.
pub struct Shared(Arc<Object>);

impl Tagged for Shared {
    type Tag = u64;
    type Seen = String;
    type New = str;
    type Error = NoAnswer;

    fn read(&self) -> impl Future<Output = Result<Found<u64, String>, NoAnswer>> + Send {
        self.0.read()
    }

    fn write(
        &self,
        over: &Found<u64, String>,
        fence: &str,
        new: Option<&str>,
    ) -> impl Future<Output = Result<Put<u64>, NoAnswer>> + Send {
        self.0.write(over, fence, new)
    }
}
