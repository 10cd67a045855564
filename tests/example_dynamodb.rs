//! The DynamoDB example runs by environment alone.

mod support;

use std::process::Command;

use support::emulator::Emulator;

#[test]
fn the_example_finds_its_endpoint_in_the_environment_and_hands_a_lease_from_one_client_to_the_other() {
    let emulator = Emulator::start();
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--features", "__aws-config", "--example", "dynamodb"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("AWS_ENDPOINT_URL", format!("http://{}", emulator.addr()))
        .env("AWS_REGION", "eu-central-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .output()
        .expect("cargo is there");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    for text in ["first has example/report", "rival is told: held by first", "after the release rival has it"] {
        assert!(said.contains(text), "it does not say {text:?}:\n{said}");
    }
}
