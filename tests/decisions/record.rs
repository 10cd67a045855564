//! Which verb a record accepts, and what it leaves, to the last field.

use leasehold::protocol::record::{Outcome, Stored, ask, claim, renew, revoke, revoke_refused, vacate};
use leasehold::{
    Ask, Claim, Close, Closed, Data, Expect, Label, MemberSet, Name, Record, Renew, Revoke, Revoked, StepDown,
    Unreadable, Vacate, Version, View,
};

use super::{grant, record};

fn name() -> Name {
    Name::new("job").unwrap()
}

fn data(text: &str) -> Option<Data> {
    Some(Data::new(text.as_bytes()).unwrap())
}

fn label(text: &str) -> Option<Label> {
    Some(Label::new(text).unwrap())
}

fn step_down(token: u64) -> StepDown {
    StepDown { token, grace_ms: 5, by: label("operator") }
}

/// Token 7 under grant 1, with everything that a held record can have.
fn full() -> Record {
    let mut full = record(7, Some(1));
    full.version = Some(4);
    full.holder = label("holder");
    full.expires_at_ms = Some(5000);
    full.asked = Some(step_down(7));
    full.set = Some(MemberSet(9));
    full.data = data("kept");
    full
}

/// What its closing release leaves of that.
fn closed() -> Record {
    let mut closed = freed(full());
    closed.closed = Some(Closed { for_ms: Some(30), until_ms: Some(6000), by: Some(7) });
    closed
}

/// A release removes these and nothing else.
fn freed(mut record: Record) -> Record {
    (record.grant, record.expires_at_ms, record.asked) = (None, None, None);
    record
}

fn but(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
    change(&mut record);
    record
}

fn stored(record: Record) -> Stored {
    Stored::Record(record)
}

fn unreadable() -> Stored {
    Stored::Unreadable(Unreadable::Session)
}

fn a_claim(token: u64, expect: Expect) -> Claim {
    Claim {
        name: name(),
        token,
        grant: grant(2),
        ttl_ms: 800,
        expires_at_ms: Some(9000),
        holder: label("taker"),
        data: None,
        set: None,
        expect,
    }
}

/// All that a claim writes, and nothing of what was there.
fn claimed(token: u64) -> Outcome {
    let record = but(record(token, Some(2)), |record| {
        (record.ttl_ms, record.expires_at_ms, record.holder) = (Some(800), Some(9000), label("taker"));
    });
    Outcome::Write(record)
}

#[test]
fn a_claim_of_what_is_vacant_needs_a_token_above() {
    let of = |stored: &Stored, token| claim(stored, &a_claim(token, Expect::Vacant));
    assert_eq!(of(&Stored::Absent, 1), claimed(1));
    assert_eq!(of(&stored(freed(full())), 8), claimed(8));
    assert_eq!(of(&stored(freed(full())), 7), Outcome::Refuse);
    assert_eq!(of(&stored(freed(full())), 6), Outcome::Refuse);
    assert_eq!(of(&stored(closed()), 8), Outcome::Refuse);
    assert_eq!(of(&stored(full()), 8), Outcome::Refuse);
    assert_eq!(of(&unreadable(), 8), Outcome::Refuse);
}

#[test]
fn a_claim_of_what_has_expired_needs_exactly_the_write_that_was_watched() {
    let of = |stored: &Stored, seen: &Record| claim(stored, &a_claim(8, Expect::Expired(Version::of(seen))));
    assert_eq!(of(&stored(full()), &full()), claimed(8));
    assert_eq!(of(&stored(closed()), &closed()), claimed(8), "also one that was closed");
    let others = [
        but(full(), |other| other.version = Some(5)),
        but(full(), |other| other.grant = Some(grant(3))),
        but(full(), |other| other.token = 6),
        closed(),
    ];
    for other in others {
        assert_eq!(of(&stored(full()), &other), Outcome::Refuse, "{other:?}");
    }
    assert_eq!(of(&Stored::Absent, &full()), Outcome::Refuse);
    assert_eq!(of(&unreadable(), &full()), Outcome::Refuse);
    assert_eq!(of(&stored(closed()), &but(closed(), |other| other.token = 6)), Outcome::Refuse);
    // An absent part is compared as absent.
    let burnt = but(record(5, None), |burnt| burnt.closed = closed().closed);
    assert_eq!(of(&stored(burnt.clone()), &burnt), claimed(8));
    assert_eq!(of(&stored(burnt.clone()), &but(burnt, |other| other.version = Some(1))), Outcome::Refuse);
}

#[test]
fn a_claim_of_what_was_handed_over_needs_that_grant() {
    let of = |stored: &Stored, from| claim(stored, &a_claim(8, Expect::Handed(grant(from))));
    assert_eq!(of(&stored(full()), 1), claimed(8));
    assert_eq!(of(&stored(full()), 3), Outcome::Refuse);
    assert_eq!(of(&stored(freed(full())), 1), Outcome::Refuse);
    assert_eq!(of(&Stored::Absent, 1), Outcome::Refuse);
}

#[test]
fn the_same_claim_again_is_granted_while_the_record_carries_it() {
    let again = |grant_, token| {
        let there = but(full(), |there| (there.grant, there.token) = (Some(grant(grant_)), token));
        claim(&stored(there), &a_claim(8, Expect::Vacant))
    };
    assert_eq!(again(2, 8), Outcome::Already);
    assert_eq!(again(3, 8), Outcome::Refuse);
    assert_eq!(again(2, 7), Outcome::Refuse);
}

fn a_renewal(bits: u128, version: u64) -> Renew {
    Renew {
        name: name(),
        token: 7,
        grant: grant(bits),
        version,
        ttl_ms: 333,
        expires_at_ms: None,
        holder: label("another"),
        data: None,
        set: None,
    }
}

#[test]
fn a_renewal_needs_its_grant_and_no_version_above_its_own_and_changes_only_what_it_is_for() {
    let renewed = |version| {
        let left = but(full(), |left| (left.version, left.expires_at_ms) = (Some(version), None));
        Outcome::Write(left)
    };
    assert_eq!(renew(&stored(full()), &a_renewal(1, 5)), renewed(5));
    assert_eq!(renew(&stored(full()), &a_renewal(1, 4)), renewed(4));
    assert_eq!(renew(&stored(full()), &a_renewal(1, 3)), Outcome::Refuse);
    assert_eq!(renew(&stored(full()), &a_renewal(2, 5)), Outcome::Refuse);
    assert_eq!(renew(&stored(freed(full())), &a_renewal(1, 5)), Outcome::Refuse);
    assert_eq!(renew(&Stored::Absent, &a_renewal(1, 5)), Outcome::Refuse);
    assert_eq!(renew(&unreadable(), &a_renewal(1, 5)), Outcome::Refuse);

    let more = Renew { expires_at_ms: Some(6000), data: data("newer"), ..a_renewal(1, 5) };
    let left = but(full(), |left| {
        (left.version, left.expires_at_ms, left.data) = (Some(5), Some(6000), data("newer"));
    });
    assert_eq!(renew(&stored(full()), &more), Outcome::Write(left));
}

fn a_vacate(token: u64, bits: u128, burn: bool) -> Vacate {
    Vacate { name: name(), token, grant: grant(bits), burn, close: None, now_ms: None }
}

#[test]
fn a_release_needs_its_grant_and_leaves_the_record() {
    let of = |stored: &Stored, bits| vacate(stored, &a_vacate(7, bits, false));
    assert_eq!(of(&stored(full()), 1), Outcome::Write(freed(full())));
    assert_eq!(of(&stored(full()), 2), Outcome::Refuse);
    assert_eq!(of(&stored(freed(full())), 1), Outcome::Refuse);
    assert_eq!(of(&Stored::Absent, 1), Outcome::Refuse);
    assert_eq!(of(&unreadable(), 1), Outcome::Refuse);
    // Also where the token is not the grant's any more.
    let raised = but(full(), |raised| raised.token = 9);
    assert_eq!(of(&stored(raised.clone()), 1), Outcome::Write(freed(raised)));
}

#[test]
fn a_clean_up_burns_its_token_and_takes_nothing_from_another() {
    let of = |stored: &Stored, token, bits| vacate(stored, &a_vacate(token, bits, true));
    assert_eq!(of(&Stored::Absent, 8, 2), Outcome::Write(record(8, None)));
    let burnt = |record: Record| Outcome::Write(but(freed(record), |burnt| burnt.token = 8));
    assert_eq!(of(&stored(full()), 8, 1), burnt(full()), "its own grant");
    assert_eq!(of(&stored(freed(full())), 8, 2), burnt(full()));
    assert_eq!(of(&stored(closed()), 8, 2), burnt(closed()), "what is closed stays closed");
    assert_eq!(of(&stored(freed(full())), 7, 2), Outcome::Refuse);
    assert_eq!(of(&stored(full()), 8, 2), Outcome::Refuse);
    assert_eq!(of(&unreadable(), 8, 2), Outcome::Refuse);
}

#[test]
fn a_closing_release_leaves_its_outcome_and_no_older_payload() {
    let of = |outcome| {
        let close = Close { for_ms: 30, until_ms: Some(6000), data: outcome };
        vacate(&stored(full()), &Vacate { close: Some(close), ..a_vacate(7, 1, false) })
    };
    assert_eq!(of(data("done")), Outcome::Write(but(closed(), |left| left.data = data("done"))));
    assert_eq!(of(None), Outcome::Write(but(closed(), |left| left.data = None)));
}

fn a_revoke(token: u64, force: bool) -> Revoke {
    Revoke { name: name(), token, fresh: grant(5), force }
}

#[test]
fn a_revocation_needs_the_named_token_and_takes_only_the_grant() {
    let revoked = but(full(), |left| (left.grant, left.revoked) = (Some(grant(5)), true));
    let of = |stored: &Stored, token| revoke(stored, &a_revoke(token, false));
    assert_eq!(of(&stored(full()), 7), Outcome::Write(revoked.clone()));
    assert_eq!(of(&stored(full()), 8), Outcome::Refuse);
    assert_eq!(of(&stored(freed(full())), 7), Outcome::Refuse);
    assert_eq!(of(&Stored::Absent, 7), Outcome::Refuse);
    assert_eq!(of(&stored(revoked.clone()), 7), Outcome::Already, "the same body");
    let by_another = but(revoked.clone(), |left| left.grant = Some(grant(6)));
    assert_eq!(of(&stored(by_another), 7), Outcome::Refuse);
    assert_eq!(of(&stored(revoked), 8), Outcome::Refuse);
    // Its fresh grant alone does not make it a copy.
    let chance = but(full(), |left| left.grant = Some(grant(5)));
    assert!(matches!(of(&stored(chance), 7), Outcome::Write(_)));
}

#[test]
fn a_refused_revocation_says_when_the_named_grant_was_revoked_before() {
    let told = |record: Record, token| revoke_refused(&stored(record), &a_revoke(token, false));
    let revoked = but(full(), |left| left.revoked = true);
    assert_eq!(told(revoked.clone(), 7), Revoked::AlreadyRevoked);
    let refused = |record: Record| Revoked::Refused(View::of(record));
    assert_eq!(told(revoked.clone(), 8), refused(revoked.clone()));
    assert_eq!(told(full(), 7), refused(full()));
    assert_eq!(told(freed(revoked.clone()), 7), refused(freed(revoked)));
    assert_eq!(revoke_refused(&Stored::Absent, &a_revoke(7, false)), Revoked::Refused(View::absent()));
}

#[test]
fn force_frees_what_the_named_token_holds_revoked_or_not() {
    let left = but(freed(full()), |left| left.revoked = true);
    let of = |record: Record, token| revoke(&stored(record), &a_revoke(token, true));
    assert_eq!(of(full(), 7), Outcome::Write(left.clone()));
    assert_eq!(of(but(full(), |full| full.revoked = true), 7), Outcome::Write(left.clone()));
    assert_eq!(of(full(), 8), Outcome::Refuse);
    assert_eq!(of(left, 7), Outcome::Refuse);
}

#[test]
fn an_ask_needs_the_named_token_and_changes_nothing_else() {
    let asks = |token| Ask { name: name(), step_down: StepDown { by: label("again"), ..step_down(token) } };
    let left = but(full(), |left| left.asked = Some(asks(7).step_down));
    assert_eq!(ask(&stored(full()), &asks(7)), Outcome::Write(left));
    assert_eq!(ask(&stored(full()), &asks(8)), Outcome::Refuse);
    assert_eq!(ask(&stored(freed(full())), &asks(7)), Outcome::Refuse);
    assert_eq!(ask(&Stored::Absent, &asks(7)), Outcome::Refuse);
    assert_eq!(ask(&unreadable(), &asks(7)), Outcome::Refuse);
}

#[test]
fn what_is_shown_is_what_is_there() {
    assert_eq!(Stored::Absent.view(), View::absent());
    assert_eq!(stored(full()).view(), View::of(full()));
    assert_eq!(unreadable().view(), View::unreadable(Unreadable::Session));
}
