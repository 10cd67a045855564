//! Listings: which names a prefix finds, what they show, and their pages.

use std::collections::BTreeMap;

use super::bench::{Bench, ask, data, freed, record_of};
use super::{Case, Checked, Stop, cases, ensure};
use crate::types::{Name, Record, Vacate, View};

pub(super) fn cases() -> Vec<Case> {
    cases![
        waits: false,
        a_listing_shows_what_a_read_shows,
        a_listing_finds_exactly_the_names_that_start_with_the_prefix,
        wildcards_in_a_prefix_mean_themselves,
        a_prefix_that_no_name_has_finds_nothing,
        a_large_listing_comes_in_pages_and_shows_each_name_once,
    ]
}

async fn a_listing_shows_what_a_read_shows(b: Bench) -> Checked {
    let held = b.full_claim("held", 5);
    b.granted(&held).await?;
    b.send(&ask(&held.name, 5)).await?;
    let free = b.full_claim("free", 6);
    b.granted(&free).await?;
    b.accepts(&b.release_of(&free), &freed(&record_of(&free))).await?;
    let closed = b.full_claim("closed", 7);
    b.granted(&closed).await?;
    b.send(&Vacate { close: Some(b.close(data(b"outcome"))), ..b.release_of(&closed) }).await?;
    let burnt = b.claim("burnt", 8);
    b.accepts(&b.burn_of(&burnt), &Record { token: 8, ..Record::new() }).await?;
    let listed = list(&b, &b.space).await?.0;
    ensure!(listed.len() == 4, "4 records were written, and {} are listed", listed.len());
    for (name, view) in &listed {
        let read = b.read(name).await?;
        b.compare(&format!("the listing of {name:?}"), view, read.record.as_ref())?;
        ensure!(view.standing == read.standing, "{name:?} is listed as {view:?} and read as {read:?}");
    }
    Ok(())
}

async fn a_listing_finds_exactly_the_names_that_start_with_the_prefix(b: Bench) -> Checked {
    let tails = [
        "p",
        "P",
        "pa",
        "pA",
        "p/",
        "p/a",
        "p//a",
        "p/../a",
        "p ",
        "p a",
        "q",
        "é",
        "e\u{301}",
        "éa",
        "Éa",
        "p\u{10ffff}",
        "p\u{10ffff}a",
        "p\u{d7ff}a",
        "p\u{e000}a",
        "pz",
        "p~",
        "p.",
        "p%2f",
        "日本",
        "日木",
        " p",
        "p\\",
        "p\\a",
    ];
    write_all(&b, &tails).await?;
    let prefixes = tails.into_iter().chain(["", "p\u{10ffff}\u{10ffff}", "日", "P/", "p/.", "x"]);
    for prefix in prefixes {
        finds(&b, &tails, prefix).await?;
    }
    Ok(())
}

async fn wildcards_in_a_prefix_mean_themselves(b: Bench) -> Checked {
    let tails = [
        "a%b", "axb", "a_b", "a*b", "a?b", "a[b", "a[b]c", "ab", "abc", "a\\b", "a\\%b", "a^b", "a.b", "a-b", "a'b",
        "a\"b", "a$b", "a(b", "a{b",
    ];
    write_all(&b, &tails).await?;
    for prefix in
        ["a%", "a_", "a*", "a?", "a[", "a[b]", "a\\", "a\\%", "a^", "a.", "a'", "a\"", "a$", "a(", "a{", "%", "_", "*"]
    {
        finds(&b, &tails, prefix).await?;
    }
    Ok(())
}

async fn a_prefix_that_no_name_has_finds_nothing(b: Bench) -> Checked {
    let (listed, _) = list(&b, &b.space).await?;
    ensure!(listed.is_empty(), "nothing was written, and {} records are listed", listed.len());
    let claim = b.claim("a", 5);
    b.granted(&claim).await?;
    let (listed, _) = list(&b, &format!("{}b", claim.name)).await?;
    ensure!(listed.is_empty(), "a prefix that is longer than the name finds it");
    Ok(())
}

async fn a_large_listing_comes_in_pages_and_shows_each_name_once(b: Bench) -> Checked {
    let tails: Vec<_> = (0..b.facts.crowd).map(|index| format!("{index}")).collect();
    write_all(&b, &tails).await?;
    let (listed, pages) = list(&b, &b.space).await?;
    ensure!(listed.len() == tails.len(), "{} of {} records are listed", listed.len(), tails.len());
    for tail in &tails {
        ensure!(listed.contains_key(&b.name(tail)), "{:?} is not listed", b.name(tail));
    }
    if pages < 2 {
        let why = format!("the store shows {} records in one page; see Options::crowd", tails.len());
        return Err(Stop::NotApplicable(why));
    }
    Ok(())
}

async fn write_all(b: &Bench, tails: &[impl AsRef<str>]) -> Checked {
    for (index, tail) in tails.iter().enumerate() {
        b.granted(&b.claim(tail.as_ref(), 5 + index as u64)).await?;
    }
    Ok(())
}

async fn finds(b: &Bench, tails: &[&str], prefix: &str) -> Checked {
    let listed = list(b, &format!("{}{prefix}", b.space)).await?.0;
    for (index, tail) in tails.iter().enumerate() {
        match (listed.get(&b.name(tail)), tail.starts_with(prefix)) {
            (Some(view), true) => {
                let token = 5 + index as u64;
                ensure!(view.token() == token, "{tail:?} is listed with token {}, not {token}", view.token());
            }
            (None, true) => ensure!(false, "prefix {prefix:?} does not find {tail:?}"),
            (Some(_), false) => ensure!(false, "prefix {prefix:?} finds {tail:?}"),
            (None, false) => {}
        }
    }
    let wanted = tails.iter().filter(|tail| tail.starts_with(prefix)).count();
    ensure!(listed.len() == wanted, "prefix {prefix:?} finds {} names, not {wanted}", listed.len());
    Ok(())
}

/// All pages, and how many there were.
async fn list(b: &Bench, prefix: &str) -> Result<(BTreeMap<Name, View>, usize), Stop> {
    let (mut listed, mut page, mut pages) = (BTreeMap::new(), None, 0);
    loop {
        let found = b.call("list", || b.store.list(prefix, page.clone())).await?.value;
        pages += 1;
        for lease in found.leases {
            let twice = listed.insert(lease.name.clone(), lease.view).is_some();
            ensure!(!twice, "{:?} is listed twice", lease.name);
        }
        let Some(next) = found.next else { return Ok((listed, pages)) };
        ensure!(page.as_ref() != Some(&next), "a page is followed by itself");
        page = Some(next);
    }
}
