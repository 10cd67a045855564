//! Releases, plain and closing, and burns: the clean-up of claims that were given up.

use super::bench::{Bench, ask, closed_by, data, freed, new_grant, record_of, renewal, revoke};
use super::{Case, Checked, cases};
use crate::types::{Claim, Record, Vacate};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        a_release_frees_the_record_and_keeps_token_version_and_payload,
        a_release_removes_what_was_asked,
        a_release_with_another_grant_is_refused,
        a_release_of_an_absent_record_is_refused_and_creates_nothing,
        a_second_release_is_refused,
        a_closing_release_closes_the_record_and_replaces_the_payload,
        a_closing_release_without_a_payload_removes_the_stored_one,
        a_closing_release_with_another_grant_is_refused,
        a_release_after_a_revocation_is_refused_or_frees_the_record,
        a_burn_of_an_absent_record_leaves_a_readable_free_record_with_its_token,
        a_burn_of_a_free_record_with_a_lower_token_raises_the_token_only,
        a_burn_of_a_free_record_with_an_equal_or_higher_token_is_refused,
        a_burn_of_my_own_grant_frees_the_record,
        a_burn_of_a_record_that_another_holds_is_refused,
        a_burn_of_a_closed_record_keeps_it_closed_with_its_payload,
        a_late_copy_of_a_burnt_claim_is_refused,
        a_repeated_burn_is_refused_and_changes_nothing,
        a_closing_burn_closes_the_record,
        a_closing_burn_without_a_payload_removes_the_stored_one,
    ]
}

async fn a_release_frees_the_record_and_keeps_token_version_and_payload(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let renewed = Record { version: Some(2), expires_at_ms: None, ..held };
    b.accepts(&renewal(&claim, 2), &renewed).await?;
    b.accepts(&b.release_of(&claim), &freed(&renewed)).await?;
    let claim = b.full_claim("b", 5);
    let held = b.granted(&claim).await?;
    b.accepts(&b.release_of(&claim), &freed(&held)).await
}

async fn a_release_removes_what_was_asked(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = ask(&claim.name, 5);
    b.accepts(&body, &b.asked(&held, &body)).await?;
    b.accepts(&b.release_of(&claim), &freed(&held)).await
}

async fn a_release_with_another_grant_is_refused(b: Bench) -> Checked {
    let held = b.granted(&b.full_claim("a", 5)).await?;
    for token in [4, 5, 6] {
        b.refuses(&b.release_of(&b.claim("a", token)), Some(&held)).await?;
    }
    Ok(())
}

async fn a_release_of_an_absent_record_is_refused_and_creates_nothing(b: Bench) -> Checked {
    b.refuses(&b.release_of(&b.claim("a", 5)), None).await
}

async fn a_second_release_is_refused(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    b.refuses(&b.release_of(&claim), Some(&free)).await
}

async fn a_closing_release_closes_the_record_and_replaces_the_payload(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let release = closing(&b, b.release_of(&claim), b"outcome");
    let closed = Record { closed: closed_by(&release), data: data(b"outcome"), ..freed(&held) };
    b.accepts(&release, &closed).await?;
    b.refuses(&release, Some(&closed)).await?;
    // Without a moment of the store's clock, as a client does that does not use it.
    let claim = b.claim("b", 5);
    let held = b.granted(&claim).await?;
    let mut release = closing(&b, b.release_of(&claim), b"");
    release.close.iter_mut().for_each(|close| close.until_ms = None);
    b.accepts(&release, &Record { closed: closed_by(&release), data: data(b""), ..freed(&held) }).await
}

async fn a_closing_release_without_a_payload_removes_the_stored_one(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let release = Vacate { close: Some(b.close(None)), ..b.release_of(&claim) };
    b.accepts(&release, &Record { closed: closed_by(&release), data: None, ..freed(&held) }).await
}

async fn a_closing_release_with_another_grant_is_refused(b: Bench) -> Checked {
    let stranger = b.claim("a", 5);
    b.refuses(&closing(&b, b.release_of(&stranger), b"theirs"), None).await?;
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    b.refuses(&closing(&b, b.release_of(&stranger), b"theirs"), Some(&held)).await?;
    b.accepts(&b.release_of(&claim), &freed(&held)).await?;
    b.refuses(&closing(&b, b.release_of(&claim), b"late"), Some(&freed(&held))).await
}

async fn a_release_after_a_revocation_is_refused_or_frees_the_record(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    let revoked = Record { grant: Some(body.fresh), revoked: true, ..held.clone() };
    b.accepts(&body, &revoked).await?;
    if b.facts.has_native_leases() {
        // The lease has kept its id, so its holder can still give it back early.
        return b.accepts(&b.release_of(&claim), &freed(&held)).await;
    }
    b.refuses(&b.release_of(&claim), Some(&revoked)).await?;
    b.refuses(&b.burn_of(&claim), Some(&revoked)).await
}

async fn a_burn_of_an_absent_record_leaves_a_readable_free_record_with_its_token(b: Bench) -> Checked {
    let given_up = b.full_claim("a", 5);
    b.accepts(&b.burn_of(&given_up), &Record { token: 5, ..Record::new() }).await?;
    let next = b.full_claim("a", 6);
    b.accepts(&next, &record_of(&next)).await
}

async fn a_burn_of_a_free_record_with_a_lower_token_raises_the_token_only(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    b.accepts(&b.burn_of(&b.claim("a", 9)), &Record { token: 9, ..free.clone() }).await
}

async fn a_burn_of_a_free_record_with_an_equal_or_higher_token_is_refused(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    for token in [5, 4, 1] {
        b.refuses(&b.burn_of(&b.claim("a", token)), Some(&free)).await?;
    }
    Ok(())
}

async fn a_burn_of_my_own_grant_frees_the_record(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = ask(&claim.name, 5);
    b.accepts(&body, &b.asked(&held, &body)).await?;
    b.accepts(&b.burn_of(&claim), &freed(&held)).await
}

async fn a_burn_of_a_record_that_another_holds_is_refused(b: Bench) -> Checked {
    let held = b.granted(&b.full_claim("a", 5)).await?;
    for token in [4, 5, 6] {
        b.refuses(&b.burn_of(&b.claim("a", token)), Some(&held)).await?;
    }
    Ok(())
}

async fn a_burn_of_a_closed_record_keeps_it_closed_with_its_payload(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let release = closing(&b, b.release_of(&claim), b"outcome");
    let closed = Record { closed: closed_by(&release), data: data(b"outcome"), ..freed(&held) };
    b.accepts(&release, &closed).await?;
    b.refuses(&b.burn_of(&b.claim("a", 5)), Some(&closed)).await?;
    let burnt = Record { token: 8, ..closed };
    b.accepts(&b.burn_of(&b.claim("a", 8)), &burnt).await?;
    b.refuses(&b.claim("a", 9), Some(&burnt)).await
}

async fn a_late_copy_of_a_burnt_claim_is_refused(b: Bench) -> Checked {
    let early = b.full_claim("absent", 5);
    let burnt = Record { token: 5, ..Record::new() };
    b.accepts(&b.burn_of(&early), &burnt).await?;
    b.refuses(&early, Some(&burnt)).await?;
    let first = b.full_claim("free", 5);
    let free = freed(&b.granted(&first).await?);
    b.accepts(&b.release_of(&first), &free).await?;
    let early = b.full_claim("free", 7);
    b.accepts(&b.burn_of(&early), &Record { token: 7, ..free.clone() }).await?;
    b.refuses(&early, Some(&Record { token: 7, ..free })).await?;
    let applied = b.full_claim("held", 5);
    let free = freed(&b.granted(&applied).await?);
    b.accepts(&b.burn_of(&applied), &free).await?;
    b.refuses(&applied, Some(&free)).await
}

async fn a_repeated_burn_is_refused_and_changes_nothing(b: Bench) -> Checked {
    let given_up = b.claim("a", 5);
    let burnt = Record { token: 5, ..Record::new() };
    b.accepts(&b.burn_of(&given_up), &burnt).await?;
    b.refuses(&b.burn_of(&given_up), Some(&burnt)).await
}

async fn a_closing_burn_closes_the_record(b: Bench) -> Checked {
    // Absent, held by me, and free.
    let claim = b.claim("absent", 5);
    let burn = closing(&b, b.burn_of(&claim), b"outcome");
    let closed = Record { token: 5, closed: closed_by(&burn), data: data(b"outcome"), ..Record::new() };
    b.accepts(&burn, &closed).await?;
    b.refuses(&b.claim("absent", 9), Some(&closed)).await?;
    let claim = b.full_claim("held", 5);
    let held = b.granted(&claim).await?;
    let burn = closing(&b, b.burn_of(&claim), b"outcome");
    b.accepts(&burn, &Record { closed: closed_by(&burn), data: data(b"outcome"), ..freed(&held) }).await?;
    let claim = b.full_claim("free", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    let burn = closing(&b, b.burn_of(&b.claim("free", 8)), b"outcome");
    b.accepts(&burn, &Record { token: 8, closed: closed_by(&burn), data: data(b"outcome"), ..free }).await
}

async fn a_closing_burn_without_a_payload_removes_the_stored_one(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let burn = Vacate { close: Some(b.close(None)), ..b.burn_of(&claim) };
    b.accepts(&burn, &Record { closed: closed_by(&burn), data: None, ..freed(&held) }).await?;
    let stranger = Claim { grant: new_grant(), ..claim };
    let closed = b.read(&stranger.name).await?.record;
    b.refuses(&b.burn_of(&stranger), closed.as_ref()).await
}

fn closing(b: &Bench, vacate: Vacate, outcome: &[u8]) -> Vacate {
    Vacate { close: Some(b.close(data(outcome))), ..vacate }
}
