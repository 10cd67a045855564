//! The fence at an object: whatever the order of two holders' requests, and whichever answers are lost, no lower token
//! is accepted after a higher (I7), nothing is written over unseen, and what a writer is told is true.
#![allow(unreachable_pub, reason = "the modules of a test share what they have")]

mod controls;
mod holder;
mod object;
mod orders;
mod single;
mod walk;
