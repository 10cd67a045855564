//! What a store shows: reads, names and texts kept exactly, its time, its isolated twin.

use std::sync::Arc;
use std::time::Duration;

use super::bench::{Bench, ask, data, failed, freed, label, record_of, renewal, revoke};
use super::{Case, Checked, Stop, cases, ensure};
use crate::store::Store;
use crate::time::{Clock, SystemClock};
use crate::types::{Claim, MAX_DATA, Name};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        the_description_is_usable_and_constant,
        reads_show_absent_held_and_free_records_and_change_nothing,
        names_that_differ_in_any_byte_are_different_leases,
        a_label_is_kept_exactly,
        a_payload_is_kept_exactly,
        answers_carry_the_stores_time_if_it_has_one,
        an_isolated_store_is_the_same_store_on_another_runtime,
    ]
}

async fn the_description_is_usable_and_constant(b: Bench) -> Checked {
    let about = b.store.describe();
    ensure!(about == b.facts.about, "the description has changed: {about:?}");
    ensure!(!about.kind.is_empty() && !about.identity.is_empty(), "kind or identity is empty");
    ensure!(about.ttl.start() <= about.ttl.end(), "no term lies within {:?}", about.ttl);
    ensure!(*about.ttl.start() >= Duration::from_millis(1), "a term is at least 1 ms, not {:?}", about.ttl);
    ensure!(*about.ttl.end() <= Duration::from_secs(86_400), "a term is at most a day, not {:?}", about.ttl);
    ensure!(about.renew_batch >= 1, "a store takes at least one renewal a call");
    ensure!(about.linearizable, "nothing is safe on a store that is not linearizable");
    Ok(())
}

async fn reads_show_absent_held_and_free_records_and_change_nothing(b: Bench) -> Checked {
    let claim = b.full_claim("a", 5);
    b.shows(&claim.name, None).await?;
    b.shows(&claim.name, None).await?;
    let held = b.granted(&claim).await?;
    b.shows(&claim.name, Some(&held)).await?;
    b.shows(&claim.name, Some(&held)).await?;
    b.accepts(&b.release_of(&claim), &freed(&held)).await?;
    b.shows(&claim.name, Some(&freed(&held))).await
}

async fn names_that_differ_in_any_byte_are_different_leases(b: Bench) -> Checked {
    let names = hostile_names(&b);
    debug_assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
    for (index, name) in names.iter().enumerate() {
        let claim = Claim { name: name.clone(), data: data(name.as_str().as_bytes()), ..b.claim("", 5 + index as u64) };
        b.accepts(&claim, &record_of(&claim)).await?;
    }
    for (index, name) in names.iter().enumerate() {
        let shown = b.read(name).await?.record.map(|record| (record.token, record.data));
        let written = Some((5 + index as u64, data(name.as_str().as_bytes())));
        ensure!(shown == written, "the lease {name:?} shows what was written under another name");
    }
    Ok(())
}

async fn a_label_is_kept_exactly(b: Bench) -> Checked {
    let long = "é".repeat(64);
    let texts = ["", " ", "a\nb\r\n", "\t\0", " x ", "äöü 日本 🦀", "a\u{308}", "\\\"'`;--", "%41", "null", "0", &long];
    for (index, text) in texts.into_iter().enumerate() {
        let claim = Claim { holder: label(text), ..b.claim(&format!("{index}"), 5) };
        b.accepts(&claim, &record_of(&claim)).await?;
        let mut body = ask(&claim.name, 5);
        body.step_down.by = label(text);
        b.accepts(&body, &b.asked(&record_of(&claim), &body)).await?;
    }
    Ok(())
}

async fn a_payload_is_kept_exactly(b: Bench) -> Checked {
    let every: Vec<u8> = (0..=255).collect();
    let largest: Vec<u8> = (0..MAX_DATA).map(|index| (index * 7 % 251) as u8).collect();
    let payloads = [&b""[..], b"\0", b"line\r\nbreak\n", "日本 🦀".as_bytes(), b"\xff\xfe", &every, &largest];
    for (index, bytes) in payloads.into_iter().enumerate() {
        let claim = Claim { data: data(bytes), ..b.claim(&format!("{index}"), 5) };
        b.accepts(&claim, &record_of(&claim)).await?;
        let shown = b.read(&claim.name).await?.record.and_then(|record| record.data);
        let same = shown.as_ref().is_some_and(|shown| shown.as_bytes() == bytes);
        ensure!(same, "a payload of {} bytes came back as {shown:?}", bytes.len());
    }
    Ok(())
}

async fn answers_carry_the_stores_time_if_it_has_one(b: Bench) -> Checked {
    let claim = b.claim("a", 5);
    let started = SystemClock.stamp();
    let mut dates = Vec::new();
    dates.push(("an absent record's read", b.call("read", || b.store.read(&claim.name)).await?.date_ms));
    dates.push(("a refused release", b.send_timed(&b.release_of(&claim)).await?.date_ms));
    dates.push(("a refused renewal", b.send_timed(&renewal(&claim, 2)).await?.date_ms));
    dates.push(("a refused ask", b.send_timed(&ask(&claim.name, 5)).await?.date_ms));
    dates.push(("a refused revocation", b.send_timed(&revoke(&claim.name, 5)).await?.date_ms));
    dates.push(("a granted claim", b.send_timed(&claim).await?.date_ms));
    dates.push(("a refused claim", b.send_timed(&b.claim("a", 6)).await?.date_ms));
    dates.push(("a renewal", b.send_timed(&renewal(&claim, 2)).await?.date_ms));
    dates.push(("an ask", b.send_timed(&ask(&claim.name, 5)).await?.date_ms));
    dates.push(("a read", b.call("read", || b.store.read(&claim.name)).await?.date_ms));
    dates.push(("a listing", b.call("list", || b.store.list(&b.space, None)).await?.date_ms));
    dates.push(("a release", b.send_timed(&b.release_of(&claim)).await?.date_ms));
    let took_ms = SystemClock.stamp().steady_since(&started) / 1_000_000;
    if !b.facts.about.has_store_time {
        let dated = dates.iter().find(|(_, date)| date.is_some());
        ensure!(dated.is_none(), "the store has no time, yet {dated:?} carries one");
        return Ok(());
    }
    near_each_other(&dates, took_ms)
}

/// Machines of a fleet may differ, and a date is in whole seconds.
const FLEET_MS: u64 = 2_000;

fn near_each_other(dates: &[(&str, Option<u64>)], took_ms: u64) -> Checked {
    let mut before: Option<(&str, u64)> = None;
    for (what, date) in dates {
        let Some(date) = *date else { return failed(format!("{what} carries no store time")) };
        if let Some((earlier, then)) = before {
            ensure!(date + FLEET_MS >= then, "{what} carries {date}, which is before {earlier} with {then}");
            ensure!(date <= then + took_ms + FLEET_MS, "{what} carries {date}, too long after {earlier} with {then}");
        }
        before = Some((what, date));
    }
    Ok(())
}

async fn an_isolated_store_is_the_same_store_on_another_runtime(b: Bench) -> Checked {
    let Some(isolated) = b.store.isolated() else {
        return Err(Stop::NotApplicable("the store has no connections that it could keep apart".into()));
    };
    ensure!(isolated.describe() == b.facts.about, "the isolated store describes another one");
    let claim = b.full_claim("a", 5);
    let twin = Bench { store: Arc::clone(&isolated), ..b.clone() };
    let (there, body) = (twin.clone(), claim.clone());
    elsewhere(async move { there.accepts(&body, &record_of(&body)).await }).await?;
    b.shows(&claim.name, Some(&record_of(&claim))).await?;
    b.accepts(&b.release_of(&claim), &freed(&record_of(&claim))).await?;
    let free = freed(&record_of(&claim));
    elsewhere(async move { twin.shows(&claim.name, Some(&free)).await }).await
}

/// Runs on a thread with a runtime of its own, as a keeper thread does.
async fn elsewhere(work: impl Future<Output = Checked> + Send + 'static) -> Checked {
    let run = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Stop::Void(format!("no second runtime: {error}"))),
    };
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|error| failed(format!("it panicked: {error}")))
}

/// Names that differ only in what stores, URLs, file systems and collations like to change. Some have it before
/// the run's own prefix.
fn hostile_names(b: &Bench) -> Vec<Name> {
    let tails = [
        "a",
        "A",
        "a ",
        " a",
        "a  ",
        "a.",
        "a..",
        ".",
        "..",
        "./a",
        "../a",
        "a/..",
        "a/../b",
        "a/b",
        "a//b",
        "a/b/",
        "a/",
        "/a",
        "//",
        "a%2f",
        "a%2F",
        "a%2fb",
        "a%252fb",
        "%",
        "a%",
        "a+b",
        "a b",
        "a%20b",
        "a\\b",
        "a\\",
        "a'b",
        "a\"b",
        "a`b",
        "a;b",
        "a#b",
        "a?b",
        "a&b=c",
        "a=b",
        "a:b",
        "a*b",
        "a_b",
        "a-b",
        "a|b",
        "a<b>",
        "a[b]",
        "a{b}",
        "a$b",
        "$(a)",
        "~",
        "a,b",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ı",
        "i",
        "I",
        "İ",
        "ﬁ",
        "fi",
        "日本",
        "日木",
        "🦀",
        "a\u{200b}",
        "a\u{a0}",
        "\u{feff}a",
        "a\u{2028}",
        "\u{c5}",
        "\u{212b}",
        "null",
        "NULL",
        "0",
        "00",
        "-0",
        "1e0",
        "true",
    ];
    let mut names: Vec<_> = tails.into_iter().map(|tail| b.name(tail)).collect();
    let room = Name::MAX_BYTES - b.space.len();
    names.push(b.name(&"x".repeat(room)));
    names.push(b.name(&"x".repeat(room - 1)));
    names.push(b.name(&format!("{}y", "x".repeat(room - 1))));
    names.push(b.name(&"é".repeat(room / 2)));
    for head in [" ", "/", "//", "../", "./", ".", "%2f", "\\", "é", "\u{feff}"] {
        names.extend(Name::new(format!("{head}{}a", b.space)));
    }
    names
}
