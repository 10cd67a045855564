//! Which module may use which, read from the source text of `src/`.
//!
//! The arrows keep the decisions pure (`protocol` has no clock, no I/O and no chance) and the stores
//! replaceable (`backends` and `lease` never meet). clippy.toml bans the same clocks after name
//! resolution; this test holds where a file writes `allow` over it.

mod references;

use std::fs;
use std::path::{Path, PathBuf};

use references::{Reference, home_of, references_in};

/// A module and what it may use besides itself. `lib.rs` may use everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("time", &["types"]),
    ("protocol", &["types"]),
    ("store", &["types", "time", "protocol"]),
    ("backends", &["types", "time", "protocol", "store", "fence"]),
    ("lease", &["types", "time", "protocol", "store"]),
    ("recipes", &["lease", "types", "time"]),
    ("fence", &["types", "time", "protocol"]),
    ("testing", &["types", "time", "store"]),
];

/// What unit tests inside `src/` may use on top of their module's own arrows.
const FOR_TESTS: &[&str] = &["testing"];

/// Clocks, chance and sleeping: a path that contains one of these belongs into `src/time`.
const TIME_ONLY: &[&[&str]] = &[
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["std", "time", "UNIX_EPOCH"],
    &["std", "time", "*"],
    &["std", "time", "self"],
    &["std", "time", references::END],
    &["time", "Instant"],
    &["SystemTime"],
    &["tokio", "time"],
    &["thread", "sleep"],
    &["nix"],
    &["new_v4"],
    &["rand"],
    &["fastrand"],
    &["getrandom"],
];

const LONGEST_FILE: usize = 500;

#[test]
fn modules_use_only_what_the_arrows_allow() {
    assert_clean(arrow_faults);
}

#[test]
fn clocks_chance_and_sleep_stay_in_time() {
    assert_clean(time_faults);
}

#[test]
fn no_source_file_has_outgrown_one_idea() {
    assert_clean(length_faults);
}

#[test]
fn each_forbidden_arrow_is_reported() {
    for (module, allowed) in ARROWS {
        for (target, _) in ARROWS.iter().filter(|(target, _)| target != module) {
            let text = format!("use crate::{target}::Thing;");
            let faults = arrow_faults(&format!("{module}/x.rs"), &text);
            assert_eq!(faults.is_empty(), allowed.contains(target), "{module} -> {target}: {faults:?}");
        }
    }
}

#[test]
fn forbidden_arrow_is_reported_however_it_is_written() {
    for text in [
        "use crate::lease::Lease;",
        "pub(crate) use crate::lease;",
        "use crate::{types::Name, lease::{Lease, Held}};",
        "use crate::{\n    types,\n    lease,\n};",
        "use ::std::fmt; use crate :: lease :: Lease;",
        "fn f() -> crate::lease::Lease { todo() }",
        "fn f(x: Vec<crate::lease::Lease>) {}",
        "impl<T: Into<u8>> From<crate::lease::Lost> for T {}",
        "use super::super::lease::Lease;",
        "mod inner { use super::super::super::lease::Lease; }",
        "mod inner { mod deep { fn f() { super::super::super::super::lease::go() } } }",
        "macro_rules! m { () => { $crate::lease::go() } }",
        "#[cfg(test)] mod tests { use crate::lease::Lease; }",
        "use crate::{self as all, lease};",
        "use crate::r#lease::Lease;",
        "const QUOTE: char = '\"'; use crate::lease::Lease; const OTHER: char = '\"';",
        "fn f<'a>(x: &'a str) { crate::lease::go('a') }",
    ] {
        let faults = arrow_faults("backends/memory.rs", text);
        assert!(faults.iter().any(|fault| fault.contains("lease")), "not reported: {text}");
    }
}

#[test]
fn detour_over_the_crate_root_is_reported() {
    for text in ["use crate::Lease;", "use crate::*;", "use crate as all;", "use crate::nowhere::X;"] {
        assert_eq!(arrow_faults("protocol/hold.rs", text).len(), 1, "not reported once: {text}");
    }
}

#[test]
fn module_without_arrows_is_reported() {
    assert_eq!(arrow_faults("extras.rs", "").len(), 1);
    assert_eq!(arrow_faults("extras/mod.rs", "").len(), 1);
}

#[test]
fn code_that_crosses_no_arrow_passes() {
    for text in [
        "use crate::types::Name; use crate::{store::Store, time, protocol::{self, hold}};",
        "use crate::backends::expressions; use super::item; use super::super::types::Name;",
        "mod tests { use super::super::item; use super::lease; }",
        "//! [`crate::lease`]\n/// See crate::lease::Lease.\n/* crate::lease /* nested */ crate::lease */",
        "const A: &str = \"crate::lease \\\" crate::lease\"; const B: &str = r#\"crate::lease \"\"#;",
        "macro_rules! m { () => { $crate::Leases::new() } }",
        "pub(crate) fn f() {} pub(in crate::backends) fn g() {} crate::shout!();",
    ] {
        assert_eq!(arrow_faults("backends/memory.rs", text), [""; 0], "{text}");
    }
    assert_eq!(arrow_faults("lib.rs", "pub use crate::lease::Lease; pub use types::Name;"), [""; 0]);
}

#[test]
fn only_test_code_may_use_testing() {
    let inside = "#[cfg(test)]\nmod tests { use crate::testing::TestClock; fn f() { { } } }";
    assert_eq!(arrow_faults("lease/keeper.rs", inside), [""; 0]);
    assert_eq!(arrow_faults("lease/tests.rs", "use crate::testing::TestClock;"), [""; 0]);
    assert_eq!(arrow_faults("lease/keeper.rs", "#[cfg(test)] use crate::testing::TestClock;"), [""; 0]);

    for outside in [
        "use crate::testing::TestClock;",
        "#[cfg(feature = \"testing\")] use crate::testing::TestClock;",
        "#[cfg(not(test))] use crate::testing::TestClock;",
        "#[cfg(test)] mod tests { fn f() {} } use crate::testing::TestClock;",
        "#[cfg(test)] use crate::types::Name; use crate::testing::TestClock;",
        "#[cfg(test)] mod tests; use crate::testing::TestClock;",
    ] {
        assert_eq!(arrow_faults("lease/keeper.rs", outside).len(), 1, "not reported: {outside}");
    }
}

#[test]
fn each_clock_is_reported_outside_time() {
    for text in [
        "use std::time::Instant;",
        "use std::time::{Duration, Instant};",
        "use std::{fmt, time::{Duration, SystemTime}};",
        "use std::time::*;",
        "use std::time;",
        "use std::time::{self, Duration};",
        "fn f() { let x = std::time::SystemTime::now(); }",
        "fn f(at: SystemTime) {}",
        "use tokio::time::sleep;",
        "use tokio::{sync::Notify, time};",
        "async fn f() { tokio::time::advance(d).await }",
        "#[cfg(test)] mod tests { use tokio::time::Duration; }",
        "fn f() { std::thread::sleep(d) }",
        "use std::thread; fn f() { thread::sleep(d) }",
        "use nix::time::{clock_gettime, ClockId};",
        "fn f() { uuid::Uuid::new_v4() }",
        "fn f() { Uuid::new_v4().to_string() }",
        "fn f() { fastrand::u64(..) }",
    ] {
        assert!(!time_faults("lease/keeper.rs", text).is_empty(), "not reported: {text}");
        assert_eq!(time_faults("time.rs", text), [""; 0]);
        assert_eq!(time_faults("time/system.rs", text), [""; 0]);
    }
}

#[test]
fn durations_and_our_own_time_are_not_clocks() {
    for text in [
        "use std::time::Duration; use core::time::Duration as D;",
        "use crate::time::{Clock, sleep}; fn f() { clock.sleep(d); self.time.now() }",
        "#[tokio::test(start_paused = true)] async fn f() {}",
        "/// Unlike std::time::Instant this does not tick.\nfn f() { \"tokio::time\" }",
        "mod timer { use std::{thread, sync::Arc}; }",
    ] {
        assert_eq!(time_faults("lease/keeper.rs", text), [""; 0], "{text}");
    }
}

#[test]
fn long_file_is_reported() {
    assert_eq!(length_faults("lease/mod.rs", &"\n".repeat(LONGEST_FILE)), [""; 0]);
    assert_eq!(length_faults("lease/mod.rs", &"\n".repeat(LONGEST_FILE + 1)).len(), 1);
}

// The rules: each takes a file's path below src/ and its text, and answers with what is wrong.

fn arrow_faults(file: &str, text: &str) -> Vec<String> {
    let home = home_of(file);
    let Some(home) = home.first().map(String::as_str) else {
        return Vec::new();
    };
    let Some((_, allowed)) = ARROWS.iter().find(|(module, _)| *module == home) else {
        return vec![format!("{file}: module `{home}` has no arrows in tests/layering")];
    };
    let may_use = |target: &str, in_test: bool| {
        target == home || allowed.contains(&target) || in_test && FOR_TESTS.contains(&target)
    };
    let mut faults = Vec::new();
    for path in references_in(file, text) {
        let Some(target) = path.target_in_crate() else {
            continue;
        };
        let known = ARROWS.iter().any(|(module, _)| *module == target);
        if known && !may_use(target, path.in_test) {
            faults.push(format!("{file}:{}: `{path}`: {home} may not use {target}", path.line));
        } else if !known && !path.by_macro {
            faults.push(format!("{file}:{}: `{path}` goes over the crate root: name the module", path.line));
        }
    }
    faults
}

fn time_faults(file: &str, text: &str) -> Vec<String> {
    if home_of(file).first().is_some_and(|home| home == "time") {
        return Vec::new();
    }
    let is_clock =
        |path: &Reference| path.target_in_crate().is_none() && TIME_ONLY.iter().any(|banned| path.contains(banned));
    let clocks = references_in(file, text).into_iter().filter(is_clock);
    clocks.map(|path| format!("{file}:{}: `{path}` belongs into src/time", path.line)).collect()
}

fn length_faults(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let fault = format!("{file}: {lines} lines, more than {LONGEST_FILE}");
    if lines > LONGEST_FILE { vec![fault] } else { Vec::new() }
}

fn assert_clean(rule: fn(&str, &str) -> Vec<String>) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = source_files(&src);
    assert!(files.contains(&src.join("lib.rs")), "looked in the wrong place: {}", src.display());
    let mut faults = Vec::new();
    for file in files {
        let below = file.strip_prefix(&src).unwrap().to_str().unwrap();
        faults.extend(rule(below, &fs::read_to_string(&file).unwrap()));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
