//! Rules that can be broken on purpose, one at a time, to see that a test notices.
//!
//! Without the private feature `__broken` every check below is the constant `false`.

/// A rule and the way in which it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the documentation; docs/protocol.md lists them with their invariants
pub enum Broken {
    KappaZero = 1,
    ExpiresAtFromEarlyEnd,
    TermCountedFromAnswer,
    TakerOneTickEarly,
    CountNotRestarted,
    ExpiresAtBeforeStamp,
    RenewalKeepsOldExpiresAt,
    RenewalShortensTtl,
    RenewalBodySentAgain,
    RenewalWithoutVersionOrder,
    RenewalUnconditional,
    TokenNotAbove,
    CleanupByName,
    NoDateCheck,
    TakeoverByCounterOnly,
    CleanupWithoutBurn,
    CleanupOfGranted,
    AskBumpsVersion,
    ResumeAsRenewal,
    ClosedIdentityWithoutToken,
    BurnClearsClosed,
    LateEndTooEarly,
    RenewalAfterLoss,
    ClosingNotMineIsSuccess,
    ClosingJudgedByToken,
    ClosingKeepsPayload,
    ClaimKeepsData,
    AzureAcquireWithoutIfMatch,
    AzureWriteWithoutIfMatch,
    AzureHandoverWithoutRenewal,
    AzureBreakAtOnce,
    AzureAnyLeaseId,
    AzureCleanupWithoutBurn,
    FenceAdmitsLower,
    FenceTakesTheSameTag,
    FenceWithoutWriteIds,
    FenceRaiseOfOwnTokenIsNoWrite,
    MajorityClosingOkOnAnswers,
    MajorityOutcomeByToken,
    MajorityClosingWithoutBurn,
    MajorityResumeWithoutGate,
    MajorityRejoinCounts,
    MajorityCleanUpWhileHeld,
    MajorityCountsOverCalls,
    MajorityRenewalOnMinority,
    TakerTrustsWallClock,
    HolderTrustsWallClock,
    WallClockEndsTerm,
    TermWithoutRho,
    WatchWithoutRho,
    LookIsNotNamed,
    LookNeedsNoRecord,
    MajorityVoteOnMinority,
    MajorityPayloadUntilAccepted,
    MajorityWatchedFromTheRequest,
    MajorityHintNotCompared,
    MajorityMarkNotChecked,
    MajorityListNotCompared,
    MajorityMoveReadsMinority,
    MajorityMoveNotAboveOld,
    MajorityMoveWritesMajority,
    MajorityMoveForgetsClosing,
    MajorityMoveForgetsWhatWasBegun,
    MajorityMoveKeepsAnyClosing,
    MajorityWishForAnyGrant,
    MajorityWishOfTheLastAnswer,
    MajorityIsTwo,
}

impl Broken {
    /// Those of the fence at an object.
    pub const FENCE: [Broken; 4] = [
        Self::FenceAdmitsLower,
        Self::FenceTakesTheSameTag,
        Self::FenceWithoutWriteIds,
        Self::FenceRaiseOfOwnTokenIsNoWrite,
    ];

    /// Those of the Azure Blob store.
    pub const AZURE: [Broken; 6] = [
        Self::AzureAcquireWithoutIfMatch,
        Self::AzureWriteWithoutIfMatch,
        Self::AzureHandoverWithoutRenewal,
        Self::AzureBreakAtOnce,
        Self::AzureAnyLeaseId,
        Self::AzureCleanupWithoutBurn,
    ];

    /// Those of a majority of stores.
    pub const MAJORITY: [Broken; 23] = [
        Self::MajorityClosingOkOnAnswers,
        Self::MajorityOutcomeByToken,
        Self::MajorityClosingWithoutBurn,
        Self::MajorityResumeWithoutGate,
        Self::MajorityRejoinCounts,
        Self::MajorityCleanUpWhileHeld,
        Self::MajorityCountsOverCalls,
        Self::MajorityRenewalOnMinority,
        Self::MajorityVoteOnMinority,
        Self::MajorityPayloadUntilAccepted,
        Self::MajorityWatchedFromTheRequest,
        Self::MajorityHintNotCompared,
        Self::MajorityMarkNotChecked,
        Self::MajorityListNotCompared,
        Self::MajorityMoveReadsMinority,
        Self::MajorityMoveNotAboveOld,
        Self::MajorityMoveWritesMajority,
        Self::MajorityMoveForgetsClosing,
        Self::MajorityMoveForgetsWhatWasBegun,
        Self::MajorityMoveKeepsAnyClosing,
        Self::MajorityWishForAnyGrant,
        Self::MajorityWishOfTheLastAnswer,
        Self::MajorityIsTwo,
    ];

    /// Those of clocks that somebody sets, of rates within rho, and of a look before a claim.
    pub const ASSUMED: [Broken; 7] = [
        Self::TakerTrustsWallClock,
        Self::HolderTrustsWallClock,
        Self::WallClockEndsTerm,
        Self::TermWithoutRho,
        Self::WatchWithoutRho,
        Self::LookIsNotNamed,
        Self::LookNeedsNoRecord,
    ];

    /// All others.
    pub const ALL: [Broken; 27] = [
        Self::KappaZero,
        Self::ExpiresAtFromEarlyEnd,
        Self::TermCountedFromAnswer,
        Self::TakerOneTickEarly,
        Self::CountNotRestarted,
        Self::ExpiresAtBeforeStamp,
        Self::RenewalKeepsOldExpiresAt,
        Self::RenewalShortensTtl,
        Self::RenewalBodySentAgain,
        Self::RenewalWithoutVersionOrder,
        Self::RenewalUnconditional,
        Self::TokenNotAbove,
        Self::CleanupByName,
        Self::NoDateCheck,
        Self::TakeoverByCounterOnly,
        Self::CleanupWithoutBurn,
        Self::CleanupOfGranted,
        Self::AskBumpsVersion,
        Self::ResumeAsRenewal,
        Self::ClosedIdentityWithoutToken,
        Self::BurnClearsClosed,
        Self::LateEndTooEarly,
        Self::RenewalAfterLoss,
        Self::ClosingNotMineIsSuccess,
        Self::ClosingJudgedByToken,
        Self::ClosingKeepsPayload,
        Self::ClaimKeepsData,
    ];

    /// Whether this rule is broken now.
    #[cfg(not(feature = "__broken"))]
    #[inline(always)]
    pub const fn on(self) -> bool {
        false
    }

    /// Whether this rule is broken now.
    #[cfg(feature = "__broken")]
    pub fn on(self) -> bool {
        switch::NOW.load(std::sync::atomic::Ordering::Relaxed) == self as u8
    }

    /// Breaks this rule in the whole process until the guard is dropped. One at a time: waits for the last one.
    #[cfg(feature = "__broken")]
    pub fn switch_on(self) -> switch::Guard {
        switch::Guard::new(self as u8)
    }
}

/// The process-wide switch.
#[cfg(feature = "__broken")]
pub mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub(super) static NOW: AtomicU8 = AtomicU8::new(0);
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// Keeps a rule broken.
    #[derive(Debug)]
    pub struct Guard(#[allow(dead_code)] MutexGuard<'static, ()>);

    impl Guard {
        pub(super) fn new(rule: u8) -> Self {
            let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            NOW.store(rule, Ordering::Relaxed);
            Self(alone)
        }

        /// Keeps every rule whole, and others from breaking one meanwhile.
        pub fn nothing_broken() -> Self {
            Self::new(0)
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            NOW.store(0, Ordering::Relaxed);
        }
    }
}
