#![forbid(unsafe_code)]
//! Leases on managed cloud stores.
