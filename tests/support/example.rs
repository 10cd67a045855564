//! Examples as programs that a test starts.

use std::path::PathBuf;
use std::process::Command;

/// Builds the example as the tests are built, with the same features, so that it shares what they have compiled.
pub fn built(name: &str) -> PathBuf {
    let script = r#"
        . localstack/features.sh
        exec "$CARGO" build --locked --quiet --profile test --features "$STORES" --example "$0" \
            --message-format json-render-diagnostics
    "#;
    let build = Command::new("bash")
        .args(["-c", script, name])
        .env("CARGO", env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("bash is there");
    let said = String::from_utf8_lossy(&build.stdout);
    assert!(build.status.success(), "{name} does not build: {}", String::from_utf8_lossy(&build.stderr));
    let messages = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    executable.unwrap_or_else(|| panic!("cargo names no executable for {name}"))
}
