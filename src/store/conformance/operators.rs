//! What others may do to a grant: revoke it, force it free, ask its holder to finish.

use super::bench::{
    Answered, Bench, ask, closed_by, data, failed, force, freed, new_grant, record_of, renewal, revoke,
};
use super::{Case, Checked, Stop, cases, ensure};
use crate::types::{Ask, Claim, Name, Record, Revoke, StepDown, Vacate};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        a_revocation_swaps_the_grant_and_changes_nothing_else,
        a_repeated_revocation_is_answered_as_the_first,
        a_second_revocation_is_told_that_there_was_one,
        a_revocation_of_another_token_is_refused,
        a_revocation_of_an_absent_free_or_closed_record_is_refused,
        a_revoked_holder_cannot_renew,
        a_revoked_record_is_taken_over_and_no_longer_revoked,
        a_force_frees_the_record_at_once,
        a_force_of_a_revoked_record_is_accepted,
        a_force_of_another_token_is_refused,
        a_force_of_an_absent_free_or_closed_record_is_refused,
        a_forced_record_is_claimed_and_no_longer_revoked,
        an_ask_is_kept_and_changes_nothing_else,
        a_second_ask_replaces_the_first,
        an_ask_of_another_token_is_refused,
        an_ask_of_an_absent_free_or_closed_record_is_refused,
        an_ask_does_not_make_another_write_of_it,
    ]
}

async fn a_revocation_swaps_the_grant_and_changes_nothing_else(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let renewed = Record { version: Some(2), expires_at_ms: b.term_end(4), ..held };
    let mut renew = renewal(&claim, 2);
    renew.expires_at_ms = b.term_end(4);
    b.accepts(&renew, &renewed).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&renewed, &body)).await
}

async fn a_repeated_revocation_is_answered_as_the_first(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    if b.facts.has_native_leases() {
        return Err(Stop::NotApplicable("the service does not keep which revocation it was".into()));
    }
    b.accepts(&body, &revoked(&held, &body)).await
}

async fn a_second_revocation_is_told_that_there_was_one(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    match b.send(&revoke(&claim.name, 5)).await? {
        Answered::AlreadyRevoked => b.shows(&claim.name, Some(&revoked(&held, &body))).await,
        other => failed(format!("a second revocation was answered {other:?}")),
    }
}

async fn a_revocation_of_another_token_is_refused(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    b.refuses(&revoke(&claim.name, 4), Some(&held)).await?;
    b.refuses(&revoke(&claim.name, 6), Some(&held)).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    b.refuses(&revoke(&claim.name, 6), Some(&revoked(&held, &body))).await
}

async fn a_revocation_of_an_absent_free_or_closed_record_is_refused(b: Bench) -> Checked {
    for (name, there) in not_held(&b).await? {
        b.refuses(&revoke(&name, 5), there.as_ref()).await?;
    }
    Ok(())
}

async fn a_revoked_holder_cannot_renew(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    b.refuses(&renewal(&claim, 2), Some(&revoked(&held, &body))).await?;
    b.refuses(&b.full_claim("a", 6), Some(&revoked(&held, &body))).await
}

async fn a_revoked_record_is_taken_over_and_no_longer_revoked(b: Bench) -> Checked {
    let claim = b.mortal(b.claim("a", 5));
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    let rival = Claim { expect: b.dead(&claim.name).await?, ..b.claim("a", 6) };
    b.accepts(&rival, &record_of(&rival)).await
}

async fn a_force_frees_the_record_at_once(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let asked = ask(&claim.name, 5);
    b.accepts(&asked, &b.asked(&held, &asked)).await?;
    let left = Record { revoked: true, ..freed(&held) };
    b.accepts(&force(&claim.name, 5), &left).await?;
    b.refuses(&renewal(&claim, 2), Some(&left)).await?;
    if b.facts.has_native_leases() {
        b.refuses(&claim, Some(&left)).await?;
        // The service still knows the id of a broken lease, and forgets that it was broken.
        return b.accepts(&b.release_of(&claim), &freed(&held)).await;
    }
    b.refuses(&b.release_of(&claim), Some(&left)).await?;
    b.refuses(&claim, Some(&left)).await
}

async fn a_force_of_a_revoked_record_is_accepted(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = revoke(&claim.name, 5);
    b.accepts(&body, &revoked(&held, &body)).await?;
    b.accepts(&force(&claim.name, 5), &Record { revoked: true, ..freed(&held) }).await
}

async fn a_force_of_another_token_is_refused(b: Bench) -> Checked {
    let held = b.granted(&b.full_claim("a", 5)).await?;
    b.refuses(&force(&b.name("a"), 4), Some(&held)).await?;
    b.refuses(&force(&b.name("a"), 6), Some(&held)).await
}

async fn a_force_of_an_absent_free_or_closed_record_is_refused(b: Bench) -> Checked {
    for (name, there) in not_held(&b).await? {
        b.refuses(&force(&name, 5), there.as_ref()).await?;
    }
    Ok(())
}

async fn a_forced_record_is_claimed_and_no_longer_revoked(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let left = Record { revoked: true, ..freed(&held) };
    b.accepts(&force(&claim.name, 5), &left).await?;
    b.refuses(&b.claim("a", 5), Some(&left)).await?;
    let next = b.claim("a", 6);
    b.accepts(&next, &record_of(&next)).await
}

async fn an_ask_is_kept_and_changes_nothing_else(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let body = ask(&claim.name, 5);
    b.accepts(&body, &b.asked(&held, &body)).await
}

async fn a_second_ask_replaces_the_first(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    b.send(&ask(&claim.name, 5)).await?;
    // The second has no label, and the first one's must not stay.
    let body = Ask { name: claim.name.clone(), step_down: StepDown { token: 5, grace_ms: 0, by: None } };
    b.accepts(&body, &b.asked(&held, &body)).await
}

async fn an_ask_of_another_token_is_refused(b: Bench) -> Checked {
    let held = b.granted(&b.full_claim("a", 5)).await?;
    b.refuses(&ask(&b.name("a"), 4), Some(&held)).await?;
    b.refuses(&ask(&b.name("a"), 6), Some(&held)).await
}

async fn an_ask_of_an_absent_free_or_closed_record_is_refused(b: Bench) -> Checked {
    for (name, there) in not_held(&b).await? {
        b.refuses(&ask(&name, 5), there.as_ref()).await?;
    }
    Ok(())
}

async fn an_ask_does_not_make_another_write_of_it(b: Bench) -> Checked {
    let claim = b.mortal(b.claim("a", 5));
    b.granted(&claim).await?;
    // Who has watched the record up to its end must be able to take it over.
    let expect = b.dead(&claim.name).await?;
    let answer = b.send(&ask(&claim.name, 5)).await?;
    ensure!(matches!(answer, Answered::Accepted), "an ask was answered {answer:?}");
    let rival = Claim { expect, ..b.claim("a", 6) };
    b.accepts(&rival, &record_of(&rival)).await
}

fn revoked(held: &Record, body: &Revoke) -> Record {
    Record { grant: Some(body.fresh), revoked: true, ..held.clone() }
}

/// An absent, a free and a closed record, all but the first with token 5.
async fn not_held(b: &Bench) -> Result<Vec<(Name, Option<Record>)>, Stop> {
    let claim = b.full_claim("free", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    let claim = Claim { grant: new_grant(), ..b.full_claim("closed", 5) };
    let held = b.granted(&claim).await?;
    let release = Vacate { close: Some(b.close(data(b"outcome"))), ..b.release_of(&claim) };
    let closed = Record { closed: closed_by(&release), data: data(b"outcome"), ..freed(&held) };
    b.accepts(&release, &closed).await?;
    Ok(vec![(b.name("absent"), None), (b.name("free"), Some(free)), (b.name("closed"), Some(closed))])
}
