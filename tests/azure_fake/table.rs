//! The table: each lease operation and each kind of write, in each state of the lease. One test a cell.
//!
//! A cell says the answer, the state right after it, and when that state ends. Ends show that a term begins anew, or
//! that an operation has not touched it.

use State::{Available, Breaking, Broken, Expired, Leased};

use crate::ground::{A, B, BLOB, Ground};
use crate::support::azure::{Fake, Response, State};

/// The columns. A's lease of 15 s has 5 s to go; A's lease was broken with a period of 10 s, of which 4 are left.
#[derive(Clone, Copy, Debug)]
enum Column {
    Free,
    LeasedToA,
    BreakingA,
    BrokenA,
    ExpiredA,
}

#[derive(Debug)]
struct Cell {
    status: u16,
    code: Option<&'static str>,
    then: State,
    /// After so many seconds the state is another.
    ends: Option<(u64, State)>,
}

macro_rules! row {
    ($row:ident, $act:expr; $($name:ident: $column:ident => $status:literal $($code:literal)?, $then:expr $(, $ends:literal $end:expr)?;)*) => {
        mod $row {
            use super::*;

            $(#[test]
            fn $name() {
                let code = [$($code)?].first().copied();
                let ends = [$(($ends, $end))?].first().copied();
                check(Column::$column, $act, &Cell { status: $status, code, then: $then, ends });
            })*
        }
    };
}

row! { acquire_proposing_a, |fake| fake.acquire(BLOB, A, 15);
    free_blob_is_leased_to_a: Free => 201, Leased(A), 15 Expired(A);
    lease_of_a_has_a_new_term: LeasedToA => 201, Leased(A), 15 Expired(A);
    breaking_lease_is_not_acquired: BreakingA => 409 "LeaseIsBreakingAndCannotBeAcquired", Breaking(A), 4 Broken(A);
    broken_lease_is_leased_to_a: BrokenA => 201, Leased(A), 15 Expired(A);
    expired_lease_is_leased_to_a: ExpiredA => 201, Leased(A), 15 Expired(A);
}

row! { acquire_proposing_b, |fake| fake.acquire(BLOB, B, 15);
    free_blob_is_leased_to_b: Free => 201, Leased(B), 15 Expired(B);
    lease_of_a_is_not_acquired: LeasedToA => 409 "LeaseAlreadyPresent", Leased(A), 5 Expired(A);
    breaking_lease_is_not_acquired: BreakingA => 409 "LeaseAlreadyPresent", Breaking(A), 4 Broken(A);
    broken_lease_is_leased_to_b: BrokenA => 201, Leased(B), 15 Expired(B);
    expired_lease_is_leased_to_b: ExpiredA => 201, Leased(B), 15 Expired(B);
}

row! { renew_a, |fake| fake.renew(BLOB, A);
    free_blob_has_nothing_to_renew: Free => 409 "LeaseIdMismatchWithLeaseOperation", Available;
    lease_of_a_has_a_new_term: LeasedToA => 200, Leased(A), 15 Expired(A);
    breaking_lease_is_not_renewed: BreakingA => 409 "LeaseIsBrokenAndCannotBeRenewed", Breaking(A), 4 Broken(A);
    broken_lease_is_not_renewed: BrokenA => 409 "LeaseIsBrokenAndCannotBeRenewed", Broken(A);
    expired_lease_of_an_unwritten_blob_is_leased_to_a_again: ExpiredA => 200, Leased(A), 15 Expired(A);
}

row! { renew_b, |fake| fake.renew(BLOB, B);
    free_blob_has_nothing_to_renew: Free => 409 "LeaseIdMismatchWithLeaseOperation", Available;
    lease_of_a_is_not_renewed_by_b: LeasedToA => 409 "LeaseIdMismatchWithLeaseOperation", Leased(A), 5 Expired(A);
    breaking_lease_is_not_renewed_by_b: BreakingA => 409 "LeaseIdMismatchWithLeaseOperation", Breaking(A), 4 Broken(A);
    broken_lease_is_not_renewed_by_b: BrokenA => 409 "LeaseIdMismatchWithLeaseOperation", Broken(A);
    expired_lease_is_not_renewed_by_b: ExpiredA => 409 "LeaseIdMismatchWithLeaseOperation", Expired(A);
}

row! { release_a, |fake| fake.release(BLOB, A);
    free_blob_has_nothing_to_release: Free => 409 "LeaseIdMismatchWithLeaseOperation", Available;
    lease_of_a_is_released: LeasedToA => 200, Available;
    breaking_lease_is_released: BreakingA => 200, Available;
    broken_lease_is_released: BrokenA => 200, Available;
    expired_lease_is_released: ExpiredA => 200, Available;
}

row! { release_b, |fake| fake.release(BLOB, B);
    free_blob_has_nothing_to_release: Free => 409 "LeaseIdMismatchWithLeaseOperation", Available;
    lease_of_a_is_not_released_by_b: LeasedToA => 409 "LeaseIdMismatchWithLeaseOperation", Leased(A), 5 Expired(A);
    breaking_lease_is_not_released_by_b: BreakingA => 409 "LeaseIdMismatchWithLeaseOperation", Breaking(A), 4 Broken(A);
    broken_lease_is_not_released_by_b: BrokenA => 409 "LeaseIdMismatchWithLeaseOperation", Broken(A);
    expired_lease_is_not_released_by_b: ExpiredA => 409 "LeaseIdMismatchWithLeaseOperation", Expired(A);
}

row! { break_with_period_zero, |fake| fake.break_lease(BLOB, Some(0));
    free_blob_has_nothing_to_break: Free => 409 "LeaseNotPresentWithLeaseOperation", Available;
    lease_of_a_is_broken_at_once: LeasedToA => 202, Broken(A);
    breaking_lease_is_broken_at_once: BreakingA => 202, Broken(A);
    broken_lease_stays_broken: BrokenA => 202, Broken(A);
    expired_lease_is_broken: ExpiredA => 202, Broken(A);
}

row! { break_with_a_period, |fake| fake.break_lease(BLOB, Some(3));
    free_blob_has_nothing_to_break: Free => 409 "LeaseNotPresentWithLeaseOperation", Available;
    lease_of_a_is_breaking: LeasedToA => 202, Breaking(A), 3 Broken(A);
    breaking_lease_breaks_sooner: BreakingA => 202, Breaking(A), 3 Broken(A);
    broken_lease_stays_broken: BrokenA => 202, Broken(A);
    expired_lease_is_broken: ExpiredA => 202, Broken(A);
}

row! { write_with_a, |fake| fake.set_metadata(BLOB, Some(A), &[("lh_token", "2")]);
    free_blob_is_not_written: Free => 412 "LeaseNotPresentWithBlobOperation", Available;
    lease_of_a_writes_and_is_not_extended: LeasedToA => 200, Leased(A), 5 Expired(A);
    breaking_lease_writes: BreakingA => 200, Breaking(A), 4 Broken(A);
    broken_lease_does_not_write: BrokenA => 412 "LeaseLost", Broken(A);
    expired_lease_does_not_write: ExpiredA => 412 "LeaseLost", Expired(A);
}

row! { write_with_b, |fake| fake.set_metadata(BLOB, Some(B), &[("lh_token", "2")]);
    free_blob_is_not_written: Free => 412 "LeaseNotPresentWithBlobOperation", Available;
    lease_of_a_keeps_b_from_writing: LeasedToA => 412 "LeaseIdMismatchWithBlobOperation", Leased(A), 5 Expired(A);
    breaking_lease_keeps_b_from_writing: BreakingA => 412 "LeaseIdMismatchWithBlobOperation", Breaking(A), 4 Broken(A);
    broken_lease_keeps_b_from_writing: BrokenA => 412 "LeaseIdMismatchWithBlobOperation", Broken(A);
    expired_lease_keeps_b_from_writing: ExpiredA => 412 "LeaseIdMismatchWithBlobOperation", Expired(A);
}

row! { write_without_a_lease_id, |fake| fake.set_metadata(BLOB, None, &[("lh_token", "2")]);
    free_blob_is_written: Free => 200, Available;
    lease_of_a_keeps_everybody_else_from_writing: LeasedToA => 412 "LeaseIdMissing", Leased(A), 5 Expired(A);
    breaking_lease_keeps_everybody_else_from_writing: BreakingA => 412 "LeaseIdMissing", Breaking(A), 4 Broken(A);
    broken_lease_is_forgotten_by_a_write: BrokenA => 200, Available;
    expired_lease_is_forgotten_by_a_write: ExpiredA => 200, Available;
}

fn check(column: Column, act: impl Fn(&Fake) -> Response, cell: &Cell) {
    let ground = stand_in(column);
    let before = ground.fake.peek(BLOB).unwrap();
    let answer = act(&ground.fake);
    assert_eq!((answer.status, answer.code()), (cell.status, cell.code), "{column:?}");
    assert_eq!(ground.state(), cell.then, "{column:?}: the state after it");

    // Set Metadata answers 200 and writes; lease operations write nothing.
    let after = ground.fake.peek(BLOB).unwrap();
    let writes = after.metadata["lh_token"] == "2";
    assert_eq!(after.etag != before.etag, writes, "{column:?}: the ETag moves with a write, and only then");
    let head = ground.fake.head_blob(BLOB);
    assert_eq!(answer.header("etag").unwrap_or(&after.etag), after.etag, "{column:?}: the answer's ETag");
    assert_eq!(head.header("x-ms-lease-state"), Some(cell.then.word()), "{column:?}: the header of the state");

    let Some((seconds, end)) = cell.ends else {
        ground.wait(3_600_000);
        assert_eq!(ground.state(), cell.then, "{column:?}: the state stays");
        return;
    };
    ground.wait(seconds * 1000 - 1);
    assert_eq!(ground.state(), cell.then, "{column:?}: a moment before {seconds} s");
    ground.wait(1);
    assert_eq!(ground.state(), end, "{column:?}: after {seconds} s");
}

fn stand_in(column: Column) -> Ground {
    let ground = match column {
        Column::Free => Ground::new(),
        _ => Ground::leased(),
    };
    let (begins, expected) = match column {
        Column::Free => (0, Available),
        Column::LeasedToA => (10, Leased(A)),
        Column::BreakingA => (6, Breaking(A)),
        Column::BrokenA => (11, Broken(A)),
        Column::ExpiredA => (16, Expired(A)),
    };
    if matches!(column, Column::BreakingA | Column::BrokenA) {
        assert_eq!(ground.fake.break_lease(BLOB, Some(10)).status, 202);
    }
    ground.wait(begins * 1000);
    assert_eq!(ground.state(), expected, "the column");
    ground
}
