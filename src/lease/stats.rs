//! Counters for health checks and metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::types::{LostReason, StoreErrorKind};

/// What a client has done and holds; see [`Leases::stats`](crate::Leases::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Leases held now.
    pub held: usize,
    /// Calls waiting for a lease now.
    pub waiting: usize,
    /// Clean-ups that are owed now.
    pub owed: usize,
    /// Leases lost so far, by reason: `"deadline"`, `"taken"`, `"deleted"`, `"revoked"`, `"clock_suspect"`,
    /// `"at_most"`, `"keeper_gone"`, `"shutdown"`.
    pub lost: BTreeMap<&'static str, u64>,
    /// Requests sent so far, by operation: `"claim"`, `"read"`, `"renew"`, `"release"`, `"burn"`, `"revoke"`,
    /// `"ask"`, `"list"`.
    pub requests: BTreeMap<&'static str, u64>,
    /// Requests that have failed so far, by what the failure asks for: `"throttled"`, `"unavailable"`, `"timed_out"`,
    /// `"contended"` (another's write was in the way), `"denied"`, `"misconfigured"`, `"invalid"`. A refusal ("held by
    /// another") is an answer and not counted.
    pub failures: BTreeMap<&'static str, u64>,
    /// The least time that any held lease would still be held without another answer.
    pub smallest_remaining: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Claim,
    Read,
    Renew,
    Release,
    Burn,
    Revoke,
    Ask,
    List,
}

impl Verb {
    const ALL: [Verb; 8] =
        [Self::Claim, Self::Read, Self::Renew, Self::Release, Self::Burn, Self::Revoke, Self::Ask, Self::List];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Read => "read",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Burn => "burn",
            Self::Revoke => "revoke",
            Self::Ask => "ask",
            Self::List => "list",
        }
    }
}

/// Requests by operation.
#[derive(Debug, Default)]
pub(super) struct Requests([AtomicU64; 8]);

impl Requests {
    pub(super) fn count_more(&self, verb: Verb, more: u64) {
        self.0[verb as usize].fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> BTreeMap<&'static str, u64> {
        Verb::ALL.into_iter().map(|verb| (verb.as_str(), self.0[verb as usize].load(Ordering::Relaxed))).collect()
    }
}

/// Failed requests by kind.
#[derive(Debug, Default)]
pub(super) struct Failures([AtomicU64; 7]);

const KINDS: [&str; 7] = ["throttled", "unavailable", "timed_out", "contended", "denied", "misconfigured", "invalid"];

impl Failures {
    pub(super) fn count(&self, kind: StoreErrorKind) {
        let index = match kind {
            StoreErrorKind::Throttled => 0,
            StoreErrorKind::Unavailable => 1,
            StoreErrorKind::TimedOut => 2,
            StoreErrorKind::Contended => 3,
            StoreErrorKind::Denied => 4,
            StoreErrorKind::Misconfigured => 5,
            StoreErrorKind::Invalid => 6,
        };
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> BTreeMap<&'static str, u64> {
        KINDS.into_iter().zip(&self.0).map(|(kind, count)| (kind, count.load(Ordering::Relaxed))).collect()
    }
}

/// Losses by reason.
#[derive(Debug, Default)]
pub(super) struct Losses([AtomicU64; 8]);

const REASONS: [&str; 8] =
    ["deadline", "taken", "deleted", "revoked", "clock_suspect", "at_most", "keeper_gone", "shutdown"];

impl Losses {
    pub(super) fn count(&self, reason: &LostReason) {
        let index = match reason {
            LostReason::Deadline => 0,
            LostReason::Taken { .. } => 1,
            LostReason::Deleted => 2,
            LostReason::Revoked => 3,
            LostReason::ClockSuspect => 4,
            LostReason::AtMost => 5,
            LostReason::KeeperGone | LostReason::NotRenewed => 6,
            LostReason::Shutdown => 7,
        };
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> BTreeMap<&'static str, u64> {
        REASONS.into_iter().zip(&self.0).map(|(reason, count)| (reason, count.load(Ordering::Relaxed))).collect()
    }
}
