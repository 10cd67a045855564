//! The quickstart says what the README says it does.

use std::process::Command;

#[test]
fn the_frozen_workers_late_write_is_refused_and_the_other_has_the_higher_token() {
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--example", "quickstart"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("it does not say {text:?}:\n{said}"));
    let order = [
        at("alice  acquired the lease with token 1"),
        at("alice  FREEZES"),
        at("bob    took over with the higher token "),
        at("alice  REFUSED: stale fencing token 1: the resource has seen "),
        at("is_held() = false"),
        at("bob    ends and releases; the balance is still 101"),
    ];
    assert!(order.is_sorted(), "{said}");
}
