//! The examples with several regions, on a double of global tables.

mod support;

use std::process::Command;

use std::time::Duration;
use support::emulator::Emulator;
use support::example::built;
use support::global_table::{GlobalTable, Replication};

const REGIONS: [&str; 3] = ["eu-central-1", "us-east-1", "ap-northeast-1"];

#[test]
fn another_region_of_a_strong_table_takes_over_and_the_old_ones_late_write_is_refused() {
    let table = GlobalTable::start(&REGIONS, Replication::Strong { write: Duration::from_millis(20) });
    let said = play("multi_region_strong", "LEASEHOLD_STRONG_REGIONS", &table.regions());
    in_this_order(&said, &["is killed", "has taken over", "late write is REFUSED", "goes on"]);
}

#[test]
fn a_home_that_is_moved_is_taken_over_and_the_old_ones_late_write_is_refused() {
    let table = GlobalTable::start(&REGIONS, Replication::Eventual { lag: Duration::from_millis(300) });
    let said = play("multi_region_home", "LEASEHOLD_EVENTUAL_REGIONS", &table.regions());
    in_this_order(&said, &["is killed", "is the home now", "has taken over", "late write is REFUSED", "goes on"]);
}

#[test]
fn a_majority_of_three_regions_outlives_one_and_the_old_ones_late_write_is_refused() {
    let emulators = REGIONS.map(|region| (region, Emulator::start()));
    let regions = emulators.each_ref().map(|(region, emulator)| format!("{region}=http://{}", emulator.addr()));
    let said = play("majority_three_regions", "LEASEHOLD_MAJORITY_REGIONS", &regions.join(","));
    in_this_order(&said, &["is killed", "has taken over", "late write is REFUSED", "goes on"]);
}

#[test]
fn without_its_regions_an_example_says_how_to_get_them() {
    let run = Command::new(built("multi_region_strong")).env_remove("LEASEHOLD_STRONG_REGIONS").output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && said.contains("localstack/up regions"), "{said}");
}

/// The example itself fails unless tokens rise and the late write is refused.
fn play(example: &str, variable: &str, regions: &str) -> String {
    let run = Command::new(built(example)).env(variable, regions).output().expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    said
}

fn in_this_order(said: &str, events: &[&str]) {
    let found: Vec<_> = events.iter().map(|event| said.find(event)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{said}");
}
