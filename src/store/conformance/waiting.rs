//! Cases that wait for a term to end: who judges that it is over, and from when it counts.

use super::bench::{Bench, ask, data, failed, record_of, renewal, revoke};
use super::{Case, Checked, Stop, cases, ensure};
use crate::time::{Clock, SystemClock};
use crate::types::{Claim, Close, Expect, Name, Stamp, Standing, Vacate, Version};

/// What a service may be late by in saying that a term is over.
const GRACE_MS: u64 = 60_000;

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: true,
        a_term_that_is_over_is_told_by_who_judges_and_by_nobody_else,
        a_term_that_is_over_still_needs_a_takeover,
        a_renewal_begins_a_new_term,
        an_ask_does_not_prolong_the_term,
        a_revocation_does_not_prolong_the_term,
        a_closed_record_opens_when_its_time_is_over,
    ]
}

async fn a_term_that_is_over_is_told_by_who_judges_and_by_nobody_else(b: Bench) -> Checked {
    let (claim, sent) = short_lease(&b, "a").await?;
    if b.facts.judges() {
        expires_no_earlier(&b, &claim.name, &sent).await?;
    } else {
        b.sleep_ms(b.facts.short_ms * 3 / 2).await;
        let standing = b.read(&claim.name).await?.standing;
        ensure!(matches!(standing, Standing::Held(_)), "clients judge here, and the store says {standing:?}");
    }
    Ok(())
}

async fn a_term_that_is_over_still_needs_a_takeover(b: Bench) -> Checked {
    let (claim, _) = short_lease(&b, "a").await?;
    b.sleep_ms(b.facts.short_ms * 5 / 4).await;
    let expect = b.dead(&claim.name).await?;
    b.refuses(&b.claim("a", 6), Some(&record_of(&claim))).await?;
    let rival = Claim { expect, ..b.claim("a", 6) };
    b.accepts(&rival, &record_of(&rival)).await
}

async fn a_renewal_begins_a_new_term(b: Bench) -> Checked {
    judged_by_the_store(&b)?;
    let (claim, _) = short_lease(&b, "a").await?;
    b.sleep_ms(b.facts.short_ms / 2).await;
    let sent = SystemClock.stamp();
    b.send(&renewal(&claim, 2)).await?;
    expires_no_earlier(&b, &claim.name, &sent).await?;
    Ok(())
}

async fn an_ask_does_not_prolong_the_term(b: Bench) -> Checked {
    judged_by_the_store(&b)?;
    let (claim, _) = short_lease(&b, "a").await?;
    b.sleep_ms(b.facts.short_ms / 2).await;
    let sent = SystemClock.stamp();
    b.send(&ask(&claim.name, 5)).await?;
    expires_before_a_term_from(&b, &claim.name, &sent, "ask").await
}

async fn a_revocation_does_not_prolong_the_term(b: Bench) -> Checked {
    judged_by_the_store(&b)?;
    let (claim, _) = short_lease(&b, "a").await?;
    b.sleep_ms(b.facts.short_ms / 2).await;
    let sent = SystemClock.stamp();
    b.send(&revoke(&claim.name, 5)).await?;
    expires_before_a_term_from(&b, &claim.name, &sent, "revocation").await
}

async fn a_closed_record_opens_when_its_time_is_over(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    b.granted(&claim).await?;
    let close = Close { for_ms: b.facts.short_ms, until_ms: None, data: data(b"outcome") };
    let release = Vacate { close: Some(close), ..b.release_of(&claim) };
    let sent = SystemClock.stamp();
    b.send(&release).await?;
    let expect = if b.facts.judges() && !b.facts.has_native_leases() {
        Expect::Expired(expires_no_earlier(&b, &claim.name, &sent).await?)
    } else {
        b.sleep_ms(b.facts.short_ms * 3 / 2).await;
        b.dead(&claim.name).await?
    };
    let shown = b.read(&claim.name).await?.record;
    b.refuses(&b.claim("a", 6), shown.as_ref()).await?;
    let next = Claim { expect, ..b.claim("a", 6) };
    b.accepts(&next, &record_of(&next)).await
}

fn judged_by_the_store(b: &Bench) -> Checked {
    if b.facts.judges() {
        return Ok(());
    }
    Err(Stop::NotApplicable("the store's clients judge that a term is over".into()))
}

/// A lease of a short term, and the moment before its claim was sent.
async fn short_lease(b: &Bench, tail: &str) -> Result<(Claim, Stamp), Stop> {
    let claim = Claim { ttl_ms: b.facts.short_ms, ..b.claim(tail, 5) };
    let sent = SystemClock.stamp();
    b.granted(&claim).await?;
    Ok((claim, sent))
}

/// The store must say "held" until a term after `sent`, and "expired" some time after.
async fn expires_no_earlier(b: &Bench, name: &Name, sent: &Stamp) -> Result<Version, Stop> {
    let mut held = 0;
    loop {
        let standing = b.read(name).await?.standing;
        let since_ms = SystemClock.stamp().steady_since(sent) / 1_000_000;
        match standing {
            Standing::Held(_) if since_ms > b.facts.short_ms * 2 + GRACE_MS => {
                return failed(format!("{since_ms} ms after the last renewal it is still shown as held"));
            }
            Standing::Held(_) => held += 1,
            // One per cent, because the store's clock may be faster than this one.
            Standing::Expired(_) if since_ms < b.facts.short_ms - b.facts.short_ms / 100 => {
                return failed(format!("a term of {} ms is over after {since_ms} ms", b.facts.short_ms));
            }
            Standing::Expired(_) if held == 0 => {
                return Err(Stop::Void("the first answer came when the term was already over".into()));
            }
            Standing::Expired(version) => return Ok(version),
            other => return failed(format!("a lease is shown as {other:?}")),
        }
        b.sleep_ms(b.facts.short_ms / 20 + 1).await;
    }
}

/// The lease, half of whose term is over at `sent`, must be shown as expired before a whole term has passed since.
async fn expires_before_a_term_from(b: &Bench, name: &Name, sent: &Stamp, what: &str) -> Checked {
    let short_ms = b.facts.short_ms;
    let mut last_held_ms = 0;
    loop {
        let asked_ms = SystemClock.stamp().shortest_since(sent) / 1_000_000;
        let standing = b.read(name).await?.standing;
        let answered_ms = SystemClock.stamp().steady_since(sent) / 1_000_000;
        let over = match standing {
            Standing::Expired(_) if answered_ms < short_ms => return Ok(()),
            Standing::Expired(_) => true,
            Standing::Vacant if b.facts.has_native_leases() && answered_ms < short_ms => return Ok(()),
            Standing::Vacant if b.facts.has_native_leases() => true,
            Standing::Held(_) => {
                last_held_ms = asked_ms;
                false
            }
            other => return failed(format!("a lease is shown as {other:?}")),
        };
        ensure!(last_held_ms < short_ms * 3 / 4, "{last_held_ms} ms after the {what} it is still shown as held");
        if over {
            return Err(Stop::Void("the answers came too late to tell".into()));
        }
        b.sleep_ms(short_ms / 20 + 1).await;
    }
}
