//! The values that every layer speaks of: names, tokens, records, the verbs and their answers.
//!
//! Nothing here decides, reads a clock or waits.

mod error;
mod grant;
mod handover;
mod held_by;
mod lost;
mod name;
mod proof;
mod record;
mod stale;
mod stamp;
mod token;
mod verbs;
mod view;

pub use error::{Error, ErrorKind, Operation, Written};
pub use grant::Grant;
pub use handover::Handover;
pub use held_by::HeldBy;
pub use lost::{Lost, LostReason};
pub use name::{Label, Name};
pub use proof::Proof;
pub use record::{Closed, Data, MAX_DATA, MAX_TTL_MS, MemberSet, Record, StepDown};
pub use stale::Stale;
pub use stamp::{Sample, Stamp};
pub use token::FencingToken;
pub use verbs::{
    Answer, Applied, Ask, Asked, Claim, Claimed, Close, Description, Expect, ExpiryJudge, ListPage, Listed, Page,
    Renew, Renewed, Revoke, Revoked, StoreError, StoreErrorKind, Timed, TokenFloor, Vacate, Vacated,
};
pub use view::{Standing, Unreadable, Version, View};
