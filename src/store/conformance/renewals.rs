//! Renewals: whose, in which order, and what they change.

use super::bench::{
    Answered, Bench, ask, data, failed, freed, label, may_pass, new_grant, record_of, renew_one, renewal,
};
use super::{Case, Checked, Stop, cases, ensure};
use crate::types::{Claim, Record, Renew, Renewed, StepDown, Vacate};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        a_renewal_with_the_stored_grant_is_accepted,
        a_renewal_without_an_end_removes_the_stored_one,
        a_renewal_without_a_payload_keeps_the_stored_one,
        a_renewal_with_a_payload_replaces_the_stored_one,
        an_older_renewal_that_comes_late_is_refused_and_changes_nothing,
        a_repeated_renewal_is_accepted_and_versions_may_skip,
        a_renewal_with_another_grant_is_refused,
        a_renewal_of_an_absent_record_is_refused_and_creates_nothing,
        a_renewal_of_a_free_or_closed_record_is_refused,
        a_renewal_never_changes_the_term_or_the_holder,
        a_renewal_keeps_and_brings_back_what_was_asked,
        a_batch_of_renewals_is_answered_one_by_one_in_order,
        an_empty_batch_of_renewals_has_no_answers,
    ]
}

async fn a_renewal_with_the_stored_grant_is_accepted(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let mut record = b.granted(&claim).await?;
    for version in 2..5 {
        (record.version, record.expires_at_ms) = (Some(version), b.term_end(version));
        let body = Renew { expires_at_ms: b.term_end(version), ..renewal(&claim, version) };
        b.accepts(&body, &record).await?;
    }
    Ok(())
}

async fn a_renewal_without_an_end_removes_the_stored_one(b: Bench) -> Checked {
    if !b.facts.keeps_ends {
        return Err(Stop::NotApplicable("the store does not keep the end of a term".into()));
    }
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let bare = Record { version: Some(2), expires_at_ms: None, ..held };
    b.accepts(&renewal(&claim, 2), &bare).await?;
    let back = Renew { expires_at_ms: b.term_end(7), ..renewal(&claim, 3) };
    b.accepts(&back, &Record { version: Some(3), expires_at_ms: b.term_end(7), ..bare }).await
}

async fn a_renewal_without_a_payload_keeps_the_stored_one(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    b.accepts(&renewal(&claim, 2), &Record { version: Some(2), expires_at_ms: None, ..held }).await
}

async fn a_renewal_with_a_payload_replaces_the_stored_one(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    for (version, bytes) in [(2, &b"first"[..]), (3, b"second, longer"), (4, b"")] {
        let body = Renew { data: data(bytes), ..renewal(&claim, version) };
        b.accepts(&body, &Record { version: Some(version), data: data(bytes), ..held.clone() }).await?;
    }
    Ok(())
}

async fn an_older_renewal_that_comes_late_is_refused_and_changes_nothing(b: Bench) -> Checked {
    if !b.facts.names_writes {
        return Err(Stop::NotApplicable("the store keeps no versions".into()));
    }
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let newer = Renew { expires_at_ms: b.term_end(9), data: data(b"newer"), ..renewal(&claim, 11) };
    let record = Record { version: Some(11), expires_at_ms: b.term_end(9), data: data(b"newer"), ..held };
    b.accepts(&newer, &record).await?;
    for version in [10, 9, 2] {
        let late = Renew { expires_at_ms: b.term_end(5), data: data(b"older"), ..renewal(&claim, version) };
        b.refuses(&late, Some(&record)).await?;
    }
    Ok(())
}

async fn a_repeated_renewal_is_accepted_and_versions_may_skip(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    let renewed = Record { version: Some(9), ..held };
    b.accepts(&renewal(&claim, 9), &renewed).await?;
    b.accepts(&renewal(&claim, 9), &renewed).await
}

async fn a_renewal_with_another_grant_is_refused(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let held = b.granted(&claim).await?;
    let stranger = Renew { grant: new_grant(), data: data(b"theirs"), ..renewal(&claim, 2) };
    b.refuses(&stranger, Some(&held)).await
}

async fn a_renewal_of_an_absent_record_is_refused_and_creates_nothing(b: Bench) -> Checked {
    b.refuses(&renewal(&b.claim("a", 5), 2), None).await
}

async fn a_renewal_of_a_free_or_closed_record_is_refused(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    let free = freed(&b.granted(&claim).await?);
    b.accepts(&b.release_of(&claim), &free).await?;
    b.refuses(&renewal(&claim, 2), Some(&free)).await?;
    let claim = b.full_claim("b", 5);
    b.granted(&claim).await?;
    let release = Vacate { close: Some(b.close(data(b"outcome"))), ..b.release_of(&claim) };
    ensure!(matches!(b.send(&release).await?, Answered::Accepted), "a closing release was not accepted");
    let closed = b.read(&claim.name).await?.record;
    ensure!(closed.as_ref().is_some_and(|record| record.closed.is_some()), "a closing release did not close");
    b.refuses(&renewal(&claim, 2), closed.as_ref()).await
}

async fn a_renewal_never_changes_the_term_or_the_holder(b: Bench) -> Checked {
    let claim = Claim { set: b.set(4), ..b.full_claim("a", 5) };
    let held = b.granted(&claim).await?;
    let shortest = b.facts.short_ms.min(b.facts.long_ms / 2);
    let body = Renew { ttl_ms: shortest, holder: label("renamed"), ..renewal(&claim, 2) };
    b.accepts(&body, &Record { version: Some(2), expires_at_ms: None, ..held }).await
}

async fn a_renewal_keeps_and_brings_back_what_was_asked(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let held = b.granted(&claim).await?;
    ensure!(renew_all(&b, &[renewal(&claim, 2)]).await? == [Some(None)], "a renewal brought an ask that nobody made");
    if b.facts.has_native_leases() {
        return Err(Stop::NotApplicable("an ask breaks the lease, and then there is no renewal".into()));
    }
    let body = ask(&claim.name, 5);
    let asked = Some(body.step_down.clone());
    b.accepts(&body, &Record { version: Some(2), asked: asked.clone(), ..held.clone() }).await?;
    for version in 3..5 {
        let brought = renew_all(&b, &[renewal(&claim, version)]).await?;
        ensure!(brought == [Some(asked.clone())], "a renewal after an ask brought {brought:?}");
        let left = Record { version: Some(version), asked: asked.clone(), ..held.clone() };
        b.shows(&claim.name, Some(&left)).await?;
    }
    Ok(())
}

async fn a_batch_of_renewals_is_answered_one_by_one_in_order(b: Bench) -> Checked {
    let size = b.facts.about.renew_batch.min(24);
    if size < 2 {
        return Err(Stop::NotApplicable("the store takes one renewal a call".into()));
    }
    let claims: Vec<_> = (0..size).map(|index| b.claim(&format!("{index}"), 5 + index as u64)).collect();
    let mut bodies = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        // Of four: mine, mine and asked, somebody else's, absent.
        if index % 4 != 3 {
            b.granted(claim).await?;
        }
        if index % 4 == 1 {
            b.send(&ask(&claim.name, claim.token)).await?;
        }
        let grant = if index % 4 == 2 { new_grant() } else { claim.grant };
        bodies.push(Renew { grant, data: data(&[index as u8]), ..renewal(claim, 2) });
    }
    for (index, (answer, claim)) in renew_all(&b, &bodies).await?.iter().zip(&claims).enumerate() {
        let asked = (index % 4 == 1).then(|| ask(&claim.name, claim.token).step_down);
        let expected = (index % 4 < 2).then_some(asked.clone());
        ensure!(*answer == expected, "renewal {index} of {size} was answered {answer:?}, not {expected:?}");
        let renewed = Record { version: Some(2), data: data(&[index as u8]), asked, ..record_of(claim) };
        match index % 4 {
            0 | 1 => b.shows(&claim.name, Some(&renewed)).await?,
            2 => b.shows(&claim.name, Some(&record_of(claim))).await?,
            _ => b.shows(&claim.name, None).await?,
        }
    }
    Ok(())
}

async fn an_empty_batch_of_renewals_has_no_answers(b: Bench) -> Checked {
    let answers = b.store.renew(&[]).await;
    ensure!(answers.is_empty(), "no renewals were answered {} times", answers.len());
    Ok(())
}

/// What each renewal brought, `None` for one that was refused; a refusal's view must be of its own record.
async fn renew_all(b: &Bench, bodies: &[Renew]) -> Result<Vec<Option<Option<StepDown>>>, Stop> {
    let answers = b.store.renew(bodies).await;
    ensure!(answers.len() == bodies.len(), "{} renewals had {} answers", bodies.len(), answers.len());
    let mut brought = Vec::new();
    for (body, answer) in bodies.iter().zip(answers) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if may_pass(&error) => b.call("renew", || renew_one(&b.store, body)).await?,
            Err(error) => return failed(format!("a renewal had no answer: {error}")),
        };
        brought.push(match answer.value {
            Renewed::Renewed(asked) => Some(asked),
            Renewed::Refused(view) => {
                let there = b.read(&body.name).await?.record;
                b.compare("a refused renewal of a batch", &view, there.as_ref())?;
                None
            }
        });
    }
    Ok(brought)
}
