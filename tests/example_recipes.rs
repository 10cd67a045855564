//! The examples of the recipes print what their first lines say.

use std::process::Command;

/// What an example prints, in order.
fn says(example: &str, in_order: &[&str]) -> String {
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--example", example])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    let mut rest = &said[..];
    for text in in_order {
        let at = rest.find(text).unwrap_or_else(|| panic!("it does not say {text:?} here:\n{said}"));
        rest = &rest[at + text.len()..];
    }
    said
}

#[test]
fn election_shows_a_leader_that_ends_and_another_with_a_higher_token() {
    let said = says(
        "election",
        &["alice leads at alice.internal:8080 with token 1", "alice ends", " leads at ", "with token 2"],
    );
    assert_eq!(said.matches("alice leads").count(), 1, "{said}");
}

#[test]
fn semaphore_shows_six_workers_on_two_licences_and_a_crash() {
    let said = says("semaphore", &["worker 0 has", "crashes", "all six have worked"]);
    assert!(said.contains("2 at work") && !said.contains("3 at work"), "{said}");
    assert_eq!(said.matches("at work").count(), 5, "{said}");
}

#[test]
fn acquire_all_shows_transfers_in_both_directions_and_a_try_that_gives_back() {
    let said = says("acquire_all", &["in the end they have [0, 0, 0]", "not both: account/1 is held by auditor"]);
    assert_eq!(said.matches(" pays ").count(), 6, "{said}");
}

#[test]
fn schedule_shows_each_tick_once() {
    let said = says("schedule", &[" runs tick ", " runs tick ", " runs tick ", "tick"]);
    let ticks: Vec<_> = said.lines().filter_map(|line| line.split_once("tick ")?.1.split(' ').next()).collect();
    let ran: Vec<_> = ticks.iter().filter(|tick| tick.parse::<u64>().is_ok()).collect();
    let distinct: std::collections::BTreeSet<_> = ran.iter().collect();
    assert!(ran.len() >= 3 && distinct.len() == ran.len(), "{said}");
}

#[test]
fn step_down_shows_the_old_process_finish_and_the_new_one_follow() {
    let order = [
        "old works on",
        "token 1",
        "old is asked to finish: Some(5s)",
        "has gone",
        "was not cut short",
        "new works on",
        "token 2",
    ];
    says("step_down", &order);
}
