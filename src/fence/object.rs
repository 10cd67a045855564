//! The guard at objects of the caller's own, in any store that writes on condition of a tag.
//!
//! The token is stored with the content, and every write names the tag of what it replaces. So the token that was
//! compared is still the stored one when the write is applied: check and effect are one step, by the store's own doing.

use std::fmt;
use std::future::Future;

use super::error::FenceError;
use super::write_id::{Fenced, WriteId};
use crate::protocol::broken::Broken;
use crate::time::{Clock, SystemClock};
use crate::types::{FencingToken, Stale};

/// How often one call looks again after others have written in between.
const ROUNDS: u32 = 16;

/// An object of the caller's own, in a store that can write on condition of a tag: two operations, and [`raise`] and
/// [`Raised::write`] make a fenced object of it.
///
/// The tag is whatever changes with every write and can be a condition of the next one: an ETag with `If-Match`, a
/// generation, a revision. The fence is a short text that is stored with the content.
///
/// # What both operations must keep to
///
/// - **The tag covers the fence.** A write that changes the fence and nothing else must change the tag. Amazon's S3 and
///   what is like it compute the ETag from the content alone: there metadata are no place for the fence, and it has to
///   stand in the content. (A raise that leaves the tag as it was fails with [`FenceError::TagNotMoved`].)
/// - **The store checks the condition in the same step as it writes**, and refuses the write otherwise. Not all emulators
///   and few compatible stores do; `fence::verify` (feature `conformance`) tries it out.
/// - **`Moved` is a definite no.** A client that repeats a request by itself, after an answer was lost, gets a no for
///   its own success. That is noticed here as long as nobody else writes; then a holder can be told "stale, nothing
///   written" of a write that was stored before its successor came. So turn repetitions off.
/// - **A read is as consistent as the store can make it.** An old answer does no harm to the object: it costs a round, or
///   an error.
///
/// # Examples
///
/// An object store of twenty lines, and what a late writer meets there:
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Mutex;
///
/// use leasehold::FencingToken;
/// use leasehold::fence::{FenceError, Found, Put, Tagged, raise};
///
/// /// Revision, fence and content.
/// #[derive(Default)]
/// struct Object(Mutex<(u64, Option<String>, String)>);
///
/// impl Tagged for Object {
///     type Tag = u64;
///     type Seen = String;
///     type New = str;
///     type Error = Infallible;
///
///     async fn read(&self) -> Result<Found<u64, String>, Infallible> {
///         let (revision, fence, content) = self.0.lock().unwrap().clone();
///         Ok(Found { tag: (revision > 0).then_some(revision), fence, seen: content })
///     }
///
///     async fn write(&self, over: &Found<u64, String>, fence: &str, new: Option<&str>) -> Result<Put<u64>, Infallible> {
///         let mut stored = self.0.lock().unwrap();
///         if stored.0 != over.tag.unwrap_or(0) {
///             return Ok(Put::Moved); // a real store says it: 412
///         }
///         *stored = (stored.0 + 1, Some(fence.to_owned()), new.unwrap_or(&over.seen).to_owned());
///         Ok(Put::Written(stored.0))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let object = Object::default();
/// let [first, second] = [7, 8].map(|number| FencingToken::new(number).unwrap()); // lease.token()
///
/// let mut old = raise(&object, first).await?;
/// old.write("half of it").await?;
///
/// // The holder is paused past its term. The next one raises, and what it finds nobody can change any more.
/// let mut new = raise(&object, second).await?;
/// assert_eq!(new.found(), "half of it");
///
/// let late = old.write("all of it").await.unwrap_err();
/// assert!(matches!(late, FenceError::Stale { .. }));
/// new.write("half of it, and the rest").await?;
/// # Ok(())
/// # }
/// ```
pub trait Tagged: Sync {
    /// What changes with every write, and can be the condition of the next one.
    type Tag: PartialEq + Send + Sync;
    /// What a read brings besides tag and fence: the content, say, or only its properties.
    type Seen: Send + Sync;
    /// What a write stores.
    type New: ?Sized + Sync;
    /// Why an operation has failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Reads what is there. An object that does not exist is no error: it has no tag and no fence.
    fn read(&self) -> impl Future<Output = Result<Found<Self::Tag, Self::Seen>, Self::Error>> + Send;

    /// Stores `fence` and `new`, on condition that the object still has the tag of `over`; where that is `None`, that
    /// there is still no object (`If-None-Match: *`).
    ///
    /// Without `new` only the fence changes, and the content stays: it is what `over` has seen. (An empty object, where
    /// there was none.) With `new` only the tag of `over` is sure to be the newest; the rest is as the raise has found it.
    ///
    /// An error leaves open whether it was written, unless [`is_definite`](Self::is_definite) says otherwise.
    fn write(
        &self,
        over: &Found<Self::Tag, Self::Seen>,
        fence: &str,
        new: Option<&Self::New>,
    ) -> impl Future<Output = Result<Put<Self::Tag>, Self::Error>> + Send;

    /// Whether an error of `write` says for certain that nothing was written, nor will be: the request was denied, or
    /// never sent. If in doubt, `false`.
    fn is_definite(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// What a read has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T, S> {
    /// The object's tag; `None` where there is no object.
    pub tag: Option<T>,
    /// The text that a fenced write has stored with the content, as it is; `None` where there is none yet.
    pub fence: Option<String>,
    /// What else was read.
    pub seen: S,
}

/// What a store answers to a write on condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put<T> {
    /// Written. The object's new tag.
    Written(T),
    /// Not written: the object has another tag than the named one.
    Moved,
}

/// An object whose fence was raised: the only way to a fenced write.
///
/// It knows the newest tag, so a write is one request. It never writes over what it has not seen: if anybody else has
/// written since, with whatever token, its writes fail. Tasks that write under one lease share it (in a mutex).
pub struct Raised<O: Tagged> {
    object: O,
    token: FencingToken,
    session: u128,
    /// What the raise has found, with the tag that the next write is sent over.
    found: Found<O::Tag, O::Seen>,
    found_is_of: Option<WriteId>,
    /// The newest of this raise's writes that is known to be stored, and the newest that was sent.
    stored: u64,
    sent: u64,
}

/// Raises an object's fence to this token: the new holder's first act, before it reads anything.
///
/// From then on no write is stored that was sent before, by anybody: lower tokens are refused for good, and whatever
/// is still on its way meets another tag. So what [`Raised::found`] shows stays until this holder writes. A state that
/// was read *before* the raise may be changed by a late write, and nothing tells.
///
/// It takes a read and a write, which changes only the fence; more, if others write in between.
///
/// # Errors
/// [`FenceError`]; none of them has changed the content. [`FenceError::Stale`]: this holder was replaced already.
///
/// # Cancel safety
/// Safe: the fence may have been raised.
pub async fn raise<O: Tagged>(object: O, token: FencingToken) -> Result<Raised<O>, FenceError<O::Error>> {
    let session = SystemClock.random();
    let mut failed = None;
    for sent in 1..=u64::from(ROUNDS) {
        let found = match object.read().await {
            Ok(found) => found,
            Err(error) => return Err(FenceError::Store(failed.unwrap_or(error))),
        };
        let newest = newest::<O>(&found)?;
        let found_is_of = newest.as_ref().and_then(Fenced::content);
        if let Some(stored) = newest.as_ref().and_then(|newest| newest.of_session(session)) {
            // The answer of an earlier round was lost, or not to be believed.
            return Ok(Raised { object, token, session, found, found_is_of, stored, sent });
        }
        not_above(newest.as_ref(), token)?;
        if let Some(error) = failed {
            return Err(FenceError::Store(error));
        }
        if Broken::FenceRaiseOfOwnTokenIsNoWrite.on() && newest.is_some_and(|newest| newest.token() == token) {
            return Ok(Raised { object, token, session, found, found_is_of, stored: 0, sent: 0 });
        }
        let fence = Fenced::raise(WriteId::new(token, session, sent), found_is_of.clone()).to_string();
        match object.write(&found, &fence, None).await {
            Ok(Put::Written(tag)) => {
                let found = Found { tag: Some(moved::<O>(&found, tag)?), fence: Some(fence), ..found };
                return Ok(Raised { object, token, session, found, found_is_of, stored: sent, sent });
            }
            Ok(Put::Moved) => {}
            Err(error) if object.is_definite(&error) => return Err(FenceError::Store(error)),
            Err(error) => failed = Some(error),
        }
    }
    Err(FenceError::Contended { rounds: ROUNDS })
}

impl<O: Tagged> Raised<O> {
    /// What was there when the fence was raised: the state to begin from. Later writes do not change it.
    pub fn found(&self) -> &O::Seen {
        &self.found.seen
    }

    /// Which write has stored what was found, by whomever; `None`: not a fenced one. It is for whoever has a write in
    /// doubt: see [`FenceError::InDoubt`].
    pub fn found_is_of(&self) -> Option<&WriteId> {
        self.found_is_of.as_ref()
    }

    /// The token that the fence was raised to.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The tag that the next write is sent over.
    #[cfg_attr(not(feature = "azure-blob"), allow(dead_code, reason = "for reads under the same tag"))]
    pub(crate) fn tag(&self) -> Option<&O::Tag> {
        self.found.tag.as_ref()
    }

    /// The object.
    pub fn object(&self) -> &O {
        &self.object
    }

    /// Stores new content, unless anybody else has written since the raise.
    ///
    /// `Ok`: it is stored, and no earlier write of this raise can be stored over it any more.
    ///
    /// # A lost answer
    ///
    /// The object is read once, and shows whether this very write was stored, because every write has an id of its own.
    /// If it shows that it was, the answer is `Ok`; that it cannot be any more, the store's error with nothing written.
    /// Only if it may still be on its way, [`FenceError::InDoubt`].
    ///
    /// # Errors
    /// [`FenceError`], each with what to do. After [`FenceError::Stale`], stop.
    ///
    /// # Cancel safety
    /// A write whose future is dropped may be stored, or not. The object can still be used: its next write takes the
    /// dropped one into account.
    pub async fn write(&mut self, new: &O::New) -> Result<(), FenceError<O::Error>> {
        for _ in 0..ROUNDS {
            self.sent += 1;
            let this = WriteId::new(self.token, self.session, self.sent);
            let fence = Fenced::write(this.clone()).to_string();
            let failed = match self.object.write(&self.found, &fence, Some(new)).await {
                Ok(Put::Written(tag)) => {
                    self.found.tag = Some(moved::<O>(&self.found, tag)?);
                    self.stored = self.sent;
                    return Ok(());
                }
                Ok(Put::Moved) => None,
                Err(error) if self.object.is_definite(&error) => return Err(FenceError::Store(error)),
                Err(error) => Some(error),
            };
            let now = match self.object.read().await {
                Ok(now) => now,
                Err(error) => return Err(FenceError::InDoubt { error: failed.unwrap_or(error), write: this }),
            };
            let looked = self.take_in(now).map_err(|why| why.about(failed.is_some().then(|| this.clone())))?;
            match (looked, failed) {
                _ if self.stored == self.sent && !Broken::FenceWithoutWriteIds.on() => return Ok(()),
                (Looked::Moved, Some(error)) => return Err(FenceError::Store(error)),
                (Looked::AsBefore, Some(error)) => return Err(FenceError::InDoubt { error, write: this }),
                // An earlier write of ours, which was in doubt, has come first. Or the store said so out of turn.
                (_, None) => {}
            }
        }
        Err(FenceError::Contended { rounds: ROUNDS })
    }

    /// Reads again, and goes on only if nobody else has written since the raise. For effects that are no write to this
    /// object: it says that no successor *had* raised the fence, not that none does before the effect.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn check(&mut self) -> Result<(), FenceError<O::Error>> {
        let now = self.object.read().await.map_err(FenceError::Store)?;
        self.take_in(now).map(|_| ()).map_err(|why| why.about(None))
    }

    /// What a look at the object says of this raise's writes.
    fn take_in(&mut self, now: Found<O::Tag, O::Seen>) -> Result<Looked, Ended<O::Error>> {
        let newest = newest::<O>(&now).map_err(Ended::Other)?;
        let ours = newest.as_ref().and_then(|newest| newest.of_session(self.session));
        match ours {
            // One of those in doubt: they were all sent over the same tag, so only one of them is ever stored.
            Some(number) if number > self.stored => {
                (self.stored, self.found.tag) = (number, now.tag);
                Ok(Looked::Moved)
            }
            Some(_) if now.tag == self.found.tag => Ok(Looked::AsBefore),
            _ => {
                not_above(newest.as_ref(), self.token).map_err(Ended::Stale)?;
                Err(Ended::Overtaken)
            }
        }
    }
}

impl<O: Tagged> fmt::Debug for Raised<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raised").field("token", &self.token).finish_non_exhaustive()
    }
}

impl<O: Tagged> Tagged for &O {
    type Tag = O::Tag;
    type Seen = O::Seen;
    type New = O::New;
    type Error = O::Error;

    fn read(&self) -> impl Future<Output = Result<Found<Self::Tag, Self::Seen>, Self::Error>> + Send {
        (**self).read()
    }

    fn write(
        &self,
        over: &Found<Self::Tag, Self::Seen>,
        fence: &str,
        new: Option<&Self::New>,
    ) -> impl Future<Output = Result<Put<Self::Tag>, Self::Error>> + Send {
        (**self).write(over, fence, new)
    }

    fn is_definite(&self, error: &Self::Error) -> bool {
        (**self).is_definite(error)
    }
}

/// What a look says while nobody else has written.
enum Looked {
    /// A write of ours that was in doubt is stored. What was sent over the tag before it never will be.
    Moved,
    AsBefore,
}

/// Why there is nothing to go on from.
enum Ended<E: std::error::Error + 'static> {
    Stale(Stale),
    Overtaken,
    Other(FenceError<E>),
}

impl<E: std::error::Error + 'static> Ended<E> {
    /// With the write whose answer was lost.
    fn about(self, lost: Option<WriteId>) -> FenceError<E> {
        match (self, lost) {
            (Self::Stale(stale), None) => FenceError::Stale { stale },
            (Self::Stale(stale), Some(write)) => FenceError::StaleInDoubt { stale, write },
            (Self::Overtaken, in_doubt) => FenceError::Overtaken { in_doubt },
            (Self::Other(why), _) => why,
        }
    }
}

/// The last fenced write, as the stored text names it.
fn newest<O: Tagged>(found: &Found<O::Tag, O::Seen>) -> Result<Option<Fenced>, FenceError<O::Error>> {
    let Some(text) = &found.fence else { return Ok(None) };
    Fenced::parse(text).ok_or_else(|| FenceError::NotAFence { found: text.clone() })
}

/// I7: what has seen a higher token is not written.
fn not_above(newest: Option<&Fenced>, token: FencingToken) -> Result<(), Stale> {
    match newest.map(Fenced::token) {
        Some(highest) if highest > token && !Broken::FenceAdmitsLower.on() => Err(Stale { token, highest }),
        _ => Ok(()),
    }
}

/// The new tag; an error, if it is the old one: then a write that was sent before is not refused.
fn moved<O: Tagged>(over: &Found<O::Tag, O::Seen>, tag: O::Tag) -> Result<O::Tag, FenceError<O::Error>> {
    let same = over.tag.as_ref() == Some(&tag) && !Broken::FenceTakesTheSameTag.on();
    if same { Err(FenceError::TagNotMoved) } else { Ok(tag) }
}
