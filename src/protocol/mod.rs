//! The decisions of leasehold as plain values: no clock, no await, no I/O, no chance.
//!
//! `record` says which verb a record accepts; the other machines are the client: `acquire` (one per call), `hold`
//! (one per grant), `release` and `cleanup` (one per debt), fed by `observer` and `store_time`; `look` is for claims that a
//! payload decides. Each takes an event and the moment, and answers what to do next. Every constant comes in `rules`, so that the model checker
//! runs these same lines with small numbers. `docs/protocol.md` has the rules and the invariants I1 to I10.
//!
//! Open to this repository's own tests; not part of the library's stable interface.

pub mod acquire;
pub mod broken;
pub mod cleanup;
pub mod expiry;
pub mod hold;
pub mod look;
pub mod majority;
pub mod observer;
pub mod payload;
pub mod record;
pub mod release;
pub mod retry;
pub mod rules;
pub mod store_time;
pub mod tokens;
