//! Worlds in which the list of members is changed, and those that do not keep what is asked of the operator.

use crate::Witness;
use crate::change::{Procedure, Since};
use crate::world::{Left, Setup, THREE};

/// One of three is replaced.
const ONE_NEW: &[usize] = &[3, 1, 0];
/// Two of three are.
const TWO_NEW: &[usize] = &[0, 3, 4];

const KEPT: Procedure = Procedure { waits: true, goes_on: None, wiped: None };

pub(crate) fn small() -> Vec<Setup> {
    vec![replaced(), two_replaced(), closed_and_replaced(), wiped(), kept_out_by_the_list(), kept_out_by_the_marks()]
}

/// The client of the old list watches for longer.
pub(crate) fn kept_out_longer() -> Setup {
    kept_out_by_the_list().with(|s| (s.ttl, s.ticks) = (2, 3))
}

fn changed(title: &'static str, new: &'static [usize], procedure: Procedure) -> Setup {
    Setup::new(title).with(|s| {
        s.shows = &[Witness::ListChanged, Witness::GrantedToTheNewList];
        s.lists = [THREE, new];
        s.change = Some(procedure);
        s.ttl = 1;
        s.ticks = 1;
        s.left = Left { moves: 1, ..Left::default() };
    })
}

/// Requests of the old client come late, before, between and after what the administrator does.
pub(crate) fn replaced() -> Setup {
    changed("one of three members is replaced", ONE_NEW, KEPT).with(|s| {
        s.release = true;
        s.left = Left { moves: 2, stumbles: 1, ..s.left };
    })
}

/// The lists have one store in common, and a contender's token was higher than it had to be.
pub(crate) fn two_replaced() -> Setup {
    changed("two of three members are replaced", TWO_NEW, KEPT).with(|s| {
        s.ahead = [1, 0];
        s.left = Left { moves: 2, stumbles: 1, ..s.left };
    })
}

/// What was closed stays closed.
pub(crate) fn closed_and_replaced() -> Setup {
    changed("one of three members is replaced, and the record is closed", ONE_NEW, KEPT).with(|s| {
        s.closing = true;
        s.closed_for = Some(2);
        s.left = Left { moves: 2, stumbles: 1, ..s.left };
    })
}

/// A member has forgotten everything, and is brought back.
pub(crate) fn wiped() -> Setup {
    changed("a wiped member is brought back", THREE, Procedure { wiped: Some(2), ..KEPT }).with(|s| {
        s.release = true;
        s.left = Left { moves: 2, stumbles: 1, wipes: 1, ..s.left };
    })
}

/// A client that was not stopped, and begins when the record was brought over.
pub(crate) fn kept_out_by_the_list() -> Setup {
    let procedure = Procedure { goes_on: Some(Since::Brought), ..KEPT };
    changed("a client of the old list, kept out by the list in the record", ONE_NEW, procedure).with(|s| {
        s.predecessor = true;
        s.reads_apart = [true, false];
        s.left = Left { give_ups: 1, ..s.left };
    })
}

/// The same where there is no record, and it begins when the members were marked.
pub(crate) fn kept_out_by_the_marks() -> Setup {
    let procedure = Procedure { goes_on: Some(Since::Marked), ..KEPT };
    changed("a client of the old list, kept out by the marks", ONE_NEW, procedure).with(|s| {
        s.ttl = 2;
        s.ticks = 2;
        s.reads_apart = [true, false];
        s.left = Left { give_ups: 1, ..s.left };
    })
}

/// A holder that is frozen believes until its term is over.
pub(crate) fn not_waited() -> Setup {
    changed("the operator does not wait", ONE_NEW, Procedure { waits: false, ..KEPT }).with(|s| {
        s.ttl = 2;
        s.excepts_i4 = true;
    })
}

/// Waiting does not help: it has renewed its lease meanwhile.
pub(crate) fn not_stopped() -> Setup {
    changed("a holder is not stopped", ONE_NEW, Procedure { goes_on: Some(Since::Ever), ..KEPT }).with(|s| {
        s.ttl = 2;
        s.ticks = 3;
        s.renewals = 1;
        s.excepts_i4 = true;
    })
}

/// Nor does a lease that is given to the new list much later: a claim was on its way when the record was brought.
pub(crate) fn not_stopped_and_waited_twice() -> Setup {
    changed("a contender is not stopped", ONE_NEW, Procedure { goes_on: Some(Since::Ever), ..KEPT }).with(|s| {
        s.ticks = 2;
        s.rival_from = 2;
        s.ahead = [2, 0];
    })
}
