//! A fake with one blob, and a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::{Uuid, uuid};

use crate::support::azure::{Fake, Response, State};

pub(crate) const A: Uuid = uuid!("aaaaaaaa-0000-4000-8000-00000000000a");
pub(crate) const B: Uuid = uuid!("bbbbbbbb-0000-4000-8000-00000000000b");
pub(crate) const BLOB: &str = "b";

/// 2026-09-21 14:13:20, in milliseconds.
const BEGIN: u64 = 1_790_000_000_000;

pub(crate) struct Ground {
    pub(crate) fake: Fake,
    now: Arc<AtomicU64>,
}

impl Ground {
    /// A blob that was never leased.
    pub(crate) fn new() -> Self {
        let now = Arc::new(AtomicU64::new(BEGIN));
        let clock = Arc::clone(&now);
        let fake = Fake::on_time(move || clock.load(Ordering::SeqCst));
        assert_eq!(fake.put_blob(BLOB, None, &[("lh_token", "1")]).status, 201);
        Self { fake, now }
    }

    /// A has a lease of 15 seconds.
    pub(crate) fn leased() -> Self {
        let ground = Self::new();
        assert_eq!(ground.fake.acquire(BLOB, A, 15).status, 201);
        ground
    }

    pub(crate) fn wait(&self, milliseconds: u64) {
        self.now.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn state(&self) -> State {
        self.fake.peek(BLOB).unwrap().state
    }

    pub(crate) fn etag(&self) -> String {
        self.fake.peek(BLOB).unwrap().etag
    }
}

pub(crate) fn refusal(answer: &Response) -> (u16, &str) {
    (answer.status, answer.code().expect("the answer is a refusal"))
}
