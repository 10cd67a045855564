//! The example with two clouds, on two DynamoDB emulators and Azurite.

mod support;

use std::process::Command;

use support::azurite::{ACCOUNT, KEY, endpoint};
use support::emulator::Emulator;
use support::example::built;

#[test]
fn a_majority_of_two_clouds_outlives_a_region_and_the_old_ones_late_write_is_refused() {
    let emulators = ["eu-central-1", "us-east-1"].map(|region| (region, Emulator::start()));
    let regions = emulators.each_ref().map(|(region, emulator)| format!("{region}=http://{}", emulator.addr()));
    let run = Command::new(built("majority_two_clouds"))
        .env("LEASEHOLD_MAJORITY_REGIONS", regions.join(","))
        .env("LEASEHOLD_AZURITE_ENDPOINT", endpoint())
        .env("LEASEHOLD_AZURITE_ACCOUNT", ACCOUNT)
        .env("LEASEHOLD_AZURITE_KEY", KEY)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    // The example itself fails unless tokens rise and the late write is refused.
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("late write is REFUSED"), "{said}");
}
