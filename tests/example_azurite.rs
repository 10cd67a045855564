//! The Azure Blob example runs by environment alone.

mod support;

use std::process::{Command, Output};

use support::azurite::{ACCOUNT, KEY, SAS, container};

#[test]
fn the_example_hands_a_lease_from_one_client_to_the_other_by_account_and_key_or_by_a_signature() {
    let container = container("example");
    let by_key = [("AZURE_STORAGE_ACCOUNT", ACCOUNT), ("AZURE_STORAGE_KEY", KEY)];
    says_what_it_does(&run(&container, &by_key)); // creates the container
    says_what_it_does(&run(&container, &[("AZURE_STORAGE_SAS_TOKEN", SAS)]));
    says_what_it_does(&run(&format!("{container}?{SAS}"), &[]));
}

fn says_what_it_does(run: &Output) {
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    for text in ["first has example/report", "rival is told: held by first", "after the release rival has it"] {
        assert!(said.contains(text), "it does not say {text:?}:\n{said}");
    }
}

fn run(container: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--quiet", "--locked", "--features", "azure-blob", "--example", "azure_blob"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"] {
        command.env_remove(name);
    }
    command.env("AZURE_STORAGE_CONTAINER_URL", container).envs(variables.iter().copied());
    command.output().expect("cargo is there")
}
