//! Claims: what each expectation accepts, what an accepted claim leaves, and its late copies.

use super::bench::{Bench, ask, closed_by, data, freed, label, new_grant, record_of, renewal, revoke};
use super::{Case, Checked, Stop, cases};
use crate::types::{Claim, Close, Expect, FencingToken, Grant, Record, Vacate, Version};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        a_claim_of_an_absent_record_is_granted_and_writes_all_it_has,
        a_claim_of_a_free_record_is_granted_with_a_higher_token,
        a_vacant_claim_of_a_held_record_is_refused_and_shows_the_holder,
        a_vacant_claim_of_a_closed_record_is_refused,
        a_claim_with_an_equal_or_lower_token_is_refused,
        a_takeover_of_exactly_the_expected_write_is_granted,
        a_takeover_that_expects_another_token_grant_or_version_is_refused,
        a_takeover_compares_absent_parts_as_absent,
        a_takeover_of_a_write_that_has_been_renewed_or_released_is_refused,
        a_takeover_of_an_absent_record_is_refused_and_creates_nothing,
        a_takeover_opens_a_closed_record,
        a_takeover_of_a_closed_record_with_another_token_is_refused,
        a_takeover_with_an_equal_or_lower_token_is_refused,
        a_handed_grant_is_taken_up_once,
        a_handed_grant_that_the_record_does_not_carry_is_refused,
        a_handed_grant_with_an_equal_or_lower_token_is_refused,
        a_repeated_claim_is_granted_and_changes_nothing_while_the_record_carries_it,
        a_repeated_claim_is_refused_after_its_release,
        a_repeated_claim_is_refused_after_a_takeover,
        a_repeated_claim_is_refused_after_its_revocation,
        a_takeover_removes_what_it_does_not_bring,
        a_takeover_of_a_closed_record_removes_what_it_does_not_bring,
        a_claim_of_a_free_record_removes_what_it_does_not_bring,
        the_largest_token_is_kept_exactly_and_never_passed,
    ]
}

async fn a_claim_of_an_absent_record_is_granted_and_writes_all_it_has(b: Bench) -> Checked {
    let claim = Claim { set: b.set(u64::MAX - 1), ..b.full_claim("a", 5) };
    b.shows(&claim.name, None).await?;
    b.accepts(&claim, &record_of(&claim)).await
}

async fn a_claim_of_a_free_record_is_granted_with_a_higher_token(b: Bench) -> Checked {
    let first = b.full_claim("a", 5);
    let held = b.granted(&first).await?;
    b.accepts(&b.release_of(&first), &freed(&held)).await?;
    let next = b.full_claim("a", 6);
    b.accepts(&next, &record_of(&next)).await
}

async fn a_vacant_claim_of_a_held_record_is_refused_and_shows_the_holder(b: Bench) -> Checked {
    let held = b.granted(&b.full_claim("a", 5)).await?;
    b.refuses(&b.full_claim("a", 6), Some(&held)).await
}

async fn a_vacant_claim_of_a_closed_record_is_refused(b: Bench) -> Checked {
    let (_, closed) = closed(&b, "a", b.close(data(b"outcome"))).await?;
    b.refuses(&b.claim("a", 9), Some(&closed)).await
}

async fn a_claim_with_an_equal_or_lower_token_is_refused(b: Bench) -> Checked {
    let first = b.claim("a", 500);
    let free = freed(&b.granted(&first).await?);
    b.accepts(&b.release_of(&first), &free).await?;
    for token in [500, 499, 1] {
        b.refuses(&b.claim("a", token), Some(&free)).await?;
    }
    Ok(())
}

async fn a_takeover_of_exactly_the_expected_write_is_granted(b: Bench) -> Checked {
    let first = b.mortal(b.full_claim("a", 5));
    b.granted(&first).await?;
    let rival = takeover(&b, b.full_claim("a", 6)).await?;
    b.accepts(&rival, &record_of(&rival)).await
}

async fn a_takeover_that_expects_another_token_grant_or_version_is_refused(b: Bench) -> Checked {
    let first = b.mortal(b.claim("a", 5));
    let held = b.granted(&first).await?;
    writes_are_named(&b)?;
    b.dead(&first.name).await?;
    let (grant, version) = (Some(first.grant), Some(1));
    let others = [
        (4, grant, version),
        (6, grant, version),
        (5, Some(new_grant()), version),
        (5, grant, Some(2)),
        (5, grant, Some(0)),
    ];
    for (token, grant, version) in others {
        b.refuses(&expecting(&b, 9, token, grant, version), Some(&held)).await?;
    }
    Ok(())
}

async fn a_takeover_compares_absent_parts_as_absent(b: Bench) -> Checked {
    writes_are_named(&b)?;
    let held = b.granted(&b.mortal(b.claim("a", 5))).await?;
    b.dead(&b.name("a")).await?;
    for (grant, version) in [(None, Some(1)), (held.grant, None), (None, None)] {
        b.refuses(&expecting(&b, 9, 5, grant, version), Some(&held)).await?;
    }
    // A closing burn of nothing leaves a closed record that never had a grant or a version.
    let given_up = b.claim("b", 5);
    let burn = Vacate { close: Some(b.mortal_close(None)), ..b.burn_of(&given_up) };
    let closed = Record { token: 5, closed: closed_by(&burn), ..Record::new() };
    b.accepts(&burn, &closed).await?;
    b.dead(&given_up.name).await?;
    for (grant, version) in [(None, Some(1)), (Some(new_grant()), None), (None, Some(0))] {
        let rival = Claim { name: b.name("b"), ..expecting(&b, 9, 5, grant, version) };
        b.refuses(&rival, Some(&closed)).await?;
    }
    let rival = Claim { name: b.name("b"), ..expecting(&b, 9, 5, None, None) };
    b.accepts(&rival, &record_of(&rival)).await
}

async fn a_takeover_of_a_write_that_has_been_renewed_or_released_is_refused(b: Bench) -> Checked {
    let first = b.mortal(b.claim("a", 5));
    let held = b.granted(&first).await?;
    let rival = takeover(&b, b.claim("a", 6)).await?;
    let renewed = Record { version: Some(2), ..held };
    b.accepts(&renewal(&first, 2), &renewed).await?;
    b.refuses(&rival, Some(&renewed)).await?;
    let rival = takeover(&b, b.claim("a", 7)).await?;
    b.accepts(&b.release_of(&first), &freed(&renewed)).await?;
    b.refuses(&rival, Some(&freed(&renewed))).await
}

async fn a_takeover_of_an_absent_record_is_refused_and_creates_nothing(b: Bench) -> Checked {
    // A version that this store has really shown, of another name.
    b.granted(&b.mortal(b.claim("a", 5))).await?;
    let expect = b.dead(&b.name("a")).await?;
    b.refuses(&Claim { expect, ..b.claim("b", 9) }, None).await
}

async fn a_takeover_opens_a_closed_record(b: Bench) -> Checked {
    closed(&b, "a", b.mortal_close(data(b"outcome"))).await?;
    let rival = takeover(&b, b.full_claim("a", 6)).await?;
    b.accepts(&rival, &record_of(&rival)).await
}

async fn a_takeover_of_a_closed_record_with_another_token_is_refused(b: Bench) -> Checked {
    writes_are_named(&b)?;
    let (_, there) = closed(&b, "a", b.mortal_close(None)).await?;
    b.dead(&b.name("a")).await?;
    for (token, version) in [(4, Some(1)), (6, Some(1)), (5, Some(2)), (5, None)] {
        b.refuses(&expecting(&b, 9, token, None, version), Some(&there)).await?;
    }
    Ok(())
}

async fn a_takeover_with_an_equal_or_lower_token_is_refused(b: Bench) -> Checked {
    let held = b.granted(&b.mortal(b.claim("a", 5))).await?;
    for token in [5, 4] {
        let rival = takeover(&b, b.claim("a", token)).await?;
        b.refuses(&rival, Some(&held)).await?;
    }
    let (_, there) = closed(&b, "b", b.mortal_close(None)).await?;
    for token in [5, 4] {
        let rival = takeover(&b, b.claim("b", token)).await?;
        b.refuses(&rival, Some(&there)).await?;
    }
    Ok(())
}

async fn a_handed_grant_is_taken_up_once(b: Bench) -> Checked {
    let first = b.full_claim("a", 5);
    let held = b.granted(&first).await?;
    b.accepts(&renewal(&first, 2), &Record { version: Some(2), expires_at_ms: None, ..held }).await?;
    let next = Claim { expect: Expect::Handed(first.grant), ..b.full_claim("a", 6) };
    b.accepts(&next, &record_of(&next)).await?;
    let twice = Claim { expect: Expect::Handed(first.grant), ..b.full_claim("a", 7) };
    b.refuses(&twice, Some(&record_of(&next))).await?;
    b.refuses(&renewal(&first, 3), Some(&record_of(&next))).await
}

async fn a_handed_grant_that_the_record_does_not_carry_is_refused(b: Bench) -> Checked {
    let first = b.claim("a", 5);
    let mut next = Claim { expect: Expect::Handed(first.grant), ..b.claim("a", 9) };
    b.refuses(&next, None).await?;
    let held = b.granted(&first).await?;
    next.expect = Expect::Handed(new_grant());
    b.refuses(&next, Some(&held)).await?;
    b.accepts(&b.release_of(&first), &freed(&held)).await?;
    next.expect = Expect::Handed(first.grant);
    b.refuses(&next, Some(&freed(&held))).await?;
    let (gone, there) = closed(&b, "b", b.close(None)).await?;
    let next = Claim { expect: Expect::Handed(gone.grant), ..b.claim("b", 9) };
    b.refuses(&next, Some(&there)).await
}

async fn a_handed_grant_with_an_equal_or_lower_token_is_refused(b: Bench) -> Checked {
    let first = b.claim("a", 5);
    let held = b.granted(&first).await?;
    for token in [5, 4] {
        let next = Claim { expect: Expect::Handed(first.grant), ..b.claim("a", token) };
        b.refuses(&next, Some(&held)).await?;
    }
    Ok(())
}

async fn a_repeated_claim_is_granted_and_changes_nothing_while_the_record_carries_it(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    b.accepts(&claim, &held).await?;
    let renewed = Record { version: Some(3), data: data(b"newer"), expires_at_ms: b.term_end(9), ..held };
    let mut body = renewal(&claim, 3);
    (body.data, body.expires_at_ms) = (renewed.data.clone(), renewed.expires_at_ms);
    b.accepts(&body, &renewed).await?;
    b.accepts(&claim, &renewed).await?;
    let resumed = Claim { expect: Expect::Handed(claim.grant), ..b.full_claim("a", 6) };
    b.accepts(&resumed, &record_of(&resumed)).await?;
    b.accepts(&resumed, &record_of(&resumed)).await
}

async fn a_repeated_claim_is_refused_after_its_release(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    b.refuses(&claim, Some(&free)).await
}

async fn a_repeated_claim_is_refused_after_a_takeover(b: Bench) -> Checked {
    let claim = b.mortal(b.full_claim("a", 5));
    b.granted(&claim).await?;
    let rival = takeover(&b, b.full_claim("a", 6)).await?;
    b.granted(&rival).await?;
    b.refuses(&claim, Some(&record_of(&rival))).await?;
    b.accepts(&b.release_of(&rival), &freed(&record_of(&rival))).await?;
    b.refuses(&claim, Some(&freed(&record_of(&rival)))).await
}

async fn a_repeated_claim_is_refused_after_its_revocation(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    let revoked = Record { grant: Some(body.fresh), revoked: true, ..held };
    b.accepts(&body, &revoked).await?;
    b.refuses(&claim, Some(&revoked)).await
}

async fn a_takeover_removes_what_it_does_not_bring(b: Bench) -> Checked {
    let rich = Claim { set: b.set(3), ..b.mortal(b.full_claim("a", 5)) };
    let held = b.granted(&rich).await?;
    let asked = ask(&rich.name, 5);
    let held = b.asked(&held, &asked);
    b.accepts(&asked, &held).await?;
    if !held.revoked {
        let body = revoke(&rich.name, 5);
        b.accepts(&body, &Record { grant: Some(body.fresh), revoked: true, ..held }).await?;
    }
    let bare = takeover(&b, b.claim("a", 6)).await?;
    b.accepts(&bare, &record_of(&bare)).await
}

async fn a_takeover_of_a_closed_record_removes_what_it_does_not_bring(b: Bench) -> Checked {
    closed(&b, "a", b.mortal_close(data(b"outcome"))).await?;
    let bare = takeover(&b, b.claim("a", 6)).await?;
    b.accepts(&bare, &record_of(&bare)).await?;
    b.accepts(&b.release_of(&bare), &freed(&record_of(&bare))).await
}

async fn a_claim_of_a_free_record_removes_what_it_does_not_bring(b: Bench) -> Checked {
    let rich = Claim { set: b.set(3), ..b.full_claim("a", 5) };
    let held = b.granted(&rich).await?;
    b.accepts(&b.release_of(&rich), &freed(&held)).await?;
    let bare = Claim { holder: label("newcomer"), ..b.claim("a", 6) };
    b.accepts(&bare, &record_of(&bare)).await
}

async fn the_largest_token_is_kept_exactly_and_never_passed(b: Bench) -> Checked {
    let below = b.claim("a", FencingToken::MAX - 1);
    let held = b.granted(&below).await?;
    b.accepts(&b.release_of(&below), &freed(&held)).await?;
    let last = b.claim("a", FencingToken::MAX);
    b.accepts(&last, &record_of(&last)).await?;
    let free = freed(&record_of(&last));
    b.accepts(&b.release_of(&last), &free).await?;
    b.refuses(&b.claim("a", FencingToken::MAX), Some(&free)).await?;
    b.refuses(&b.claim("a", 1), Some(&free)).await
}

/// A claim with token 5 that was released closing, and the record that it leaves.
async fn closed(b: &Bench, tail: &str, close: Close) -> Result<(Claim, Record), Stop> {
    let claim = b.full_claim(tail, 5);
    let held = b.granted(&claim).await?;
    let release = Vacate { close: Some(close.clone()), ..b.release_of(&claim) };
    let left = Record { closed: closed_by(&release), data: close.data, ..freed(&held) };
    b.accepts(&release, &left).await?;
    Ok((claim, left))
}

/// The claim as a takeover of what is there, once that may be taken over.
async fn takeover(b: &Bench, claim: Claim) -> Result<Claim, Stop> {
    let expect = b.dead(&claim.name).await?;
    Ok(Claim { expect, ..claim })
}

fn expecting(b: &Bench, token: u64, stored: u64, grant: Option<Grant>, version: Option<u64>) -> Claim {
    Claim { expect: Expect::Expired(Version::of_write(stored, grant, version)), ..b.claim("a", token) }
}

fn writes_are_named(b: &Bench) -> Checked {
    if b.facts.names_writes {
        return Ok(());
    }
    Err(Stop::NotApplicable("the store names its writes by tags".into()))
}
