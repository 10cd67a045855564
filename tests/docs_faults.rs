//! Every fault of docs/faults.md is guarded by a test that is there.

use std::fs;
use std::path::{Path, PathBuf};

/// The letters of the faults, and how many there are of each. There is no E.
const FAULTS: [(char, usize); 7] = [('A', 7), ('B', 7), ('C', 10), ('D', 10), ('F', 5), ('G', 7), ('H', 4)];

#[test]
fn every_fault_is_in_the_table_and_names_a_test_that_is_there() {
    let text = fs::read_to_string(docs().join("faults.md")).unwrap();
    let wrong = wrong_with(&text);
    assert!(wrong.is_empty(), "docs/faults.md:\n{}", wrong.join("\n"));
}

/// The control: without it a pattern that matches nothing would pass.
#[test]
fn a_fault_that_is_missing_and_a_test_that_is_not_there_are_found() {
    let text = fs::read_to_string(docs().join("faults.md")).unwrap();
    let without = |line: &str| text.lines().filter(|other| !other.starts_with(line)).collect::<Vec<_>>().join("\n");
    let renamed = "a_refused_contender_that_goes_away_writes_nothing";
    assert_eq!(wrong_with(&without("| D9 ")), ["D9 is missing"]);
    let wrong = wrong_with(&text.replace(renamed, "a_test_that_nobody_wrote"));
    assert_eq!(wrong.len(), 2, "{wrong:#?}");
    // A function that is no test guards nothing.
    let wrong = wrong_with(&text.replacen("(../tests/faults_crowds.rs)", "(../tests/faults_gone.rs)", 1));
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let wrong = wrong_with(&text.replacen("a_clean_release_is_taken_by_another_process_within_one_poll", "waiter", 1));
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn wrong_with(text: &str) -> Vec<String> {
    let rows: Vec<_> = text.lines().filter_map(row).collect();
    let expected =
        FAULTS.iter().flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")));
    let missing = expected.filter(|fault| rows.iter().filter(|(code, _)| code == fault).count() != 1);
    let mut wrong: Vec<_> = missing.map(|fault| format!("{fault} is missing")).collect();
    for (fault, tests) in rows {
        if tests.is_empty() {
            wrong.push(format!("{fault} names no test"));
        }
        let gone = tests.into_iter().filter(|(name, file)| !is_test(name, &docs().join(file)));
        wrong.extend(gone.map(|(name, file)| format!("{fault}: no test {name} in {file}")));
    }
    wrong
}

/// The fault's code, and the tests that guard it with their files.
fn row(line: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let fault = line.strip_prefix("| ")?.split(' ').next()?;
    let is_code = fault.len() > 1 && fault.starts_with(char::is_uppercase) && fault[1..].parse::<usize>().is_ok();
    let tests = line.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        Some((name, rest.split_once(')')?.0))
    });
    is_code.then(|| (fault, tests.collect()))
}

fn is_test(name: &str, file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let declared = lines.iter().position(|line| line.contains(&format!("fn {name}(")));
    let attribute = |line: &&str| line.starts_with("#[test") || line.starts_with("#[tokio::test");
    declared.is_some_and(|at| lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(attribute))
}
