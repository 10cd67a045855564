//! What can go wrong with a memory store, for the users' own tests (feature `testing`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::types::{Applied, StoreError, StoreErrorKind, Timed};

#[derive(Debug, Default)]
pub(super) struct Faults {
    away: AtomicBool,
    lose: AtomicU32,
    hang: AtomicU32,
}

/// Whether the answer of the call that has just begun will be lost.
pub(super) struct Lost(bool);

impl Faults {
    /// Fails, hangs or lets the call through.
    pub(super) async fn before(&self) -> Result<Lost, StoreError> {
        if take_one(&self.hang) {
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::Relaxed) {
            let text = "the memory store was set unavailable";
            return Err(StoreError::new(StoreErrorKind::Unavailable, Applied::No, text));
        }
        Ok(Lost(take_one(&self.lose)))
    }
}

impl Lost {
    pub(super) fn after<T>(self, answer: Timed<T>) -> Result<Timed<T>, StoreError> {
        if self.0 {
            let text = "the memory store was told to lose this answer";
            return Err(StoreError::new(StoreErrorKind::Unavailable, Applied::Unknown, text));
        }
        Ok(answer)
    }
}

fn take_one(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

#[cfg(any(test, feature = "testing"))]
mod testing {
    use std::sync::atomic::Ordering;

    use crate::backends::memory::{Entry, MemoryStore};
    use crate::protocol::record::Stored;
    use crate::types::{Error, FencingToken, Grant, Label, Name, Record, Unreadable};

    impl MemoryStore {
        /// Makes a rival the holder at once, whatever the record says, as if the lease had expired. Returns the
        /// rival's token, which is higher than the last one. The rival has the label "rival" and a term of 30 s, and
        /// never renews.
        ///
        /// `name` is the full name, with the client's prefix: `lease.name().as_str()`.
        ///
        /// # Errors
        /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a bad name.
        pub fn take_over(&self, name: impl AsRef<str>) -> Result<FencingToken, Error> {
            let name = Name::new(name)?;
            let token = self.token(&name) + 1;
            let record = Record {
                token,
                grant: Some(Grant::from_bits(self.shared.clock.random())),
                version: Some(1),
                holder: Label::new("rival").ok(),
                ttl_ms: Some(30_000),
                ..Record::new()
            };
            self.put(name, Stored::Record(record));
            Ok(FencingToken::of_checked(token))
        }

        /// Deletes the record of this full name, as somebody might by hand. Does nothing when there is none.
        pub fn delete(&self, name: impl AsRef<str>) {
            if let Ok(name) = Name::new(name) {
                self.shared.lock().remove(&name);
            }
        }

        /// Puts something under a full name that is not a readable record.
        ///
        /// # Errors
        /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a bad name.
        pub fn put_unreadable(&self, name: impl AsRef<str>, reason: Unreadable) -> Result<(), Error> {
            self.put(Name::new(name)?, Stored::Unreadable(reason));
            Ok(())
        }

        /// The store fails every call until it is available again; nothing is applied meanwhile.
        pub fn set_available(&self, available: bool) {
            self.shared.faults.away.store(!available, Ordering::Relaxed);
        }

        /// The next call is applied and its answer is lost.
        pub fn lose_next_answer(&self) {
            self.shared.faults.lose.fetch_add(1, Ordering::Relaxed);
        }

        /// The next call hangs for ever and is not applied.
        pub fn hang_next(&self) {
            self.shared.faults.hang.fetch_add(1, Ordering::Relaxed);
        }

        fn token(&self, name: &Name) -> u64 {
            match self.shared.lock().get(name) {
                Some(Entry { stored: Stored::Record(record), .. }) => record.token,
                _ => 0,
            }
        }

        fn put(&self, name: Name, stored: Stored) {
            let written = self.shared.clock.stamp();
            self.shared.lock().insert(name, Entry { stored, written });
        }
    }
}
