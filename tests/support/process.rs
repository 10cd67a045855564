//! Processes that are not the test's children, or are no test binaries: found, frozen, ended.
#![allow(clippy::disallowed_methods, reason = "a process runs in real time")]

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Those with this variable in their environment, like `NAME=value`.
pub fn with_variable(variable: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux").filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|known| known == variable.as_bytes()).then_some(pid)
    });
    processes.collect()
}

/// Stops all of its threads, wherever they are. Returns when they are stopped.
pub fn freeze(pid: u32) {
    signal(pid, Signal::SIGSTOP);
    while state(pid) != Some('T') {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets it go on where it was.
pub fn thaw(pid: u32) {
    signal(pid, Signal::SIGCONT);
}

/// Ends it at once, as a crash does.
pub fn end(pid: u32) {
    signal(pid, Signal::SIGKILL);
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().expect("a process id")), signal).expect("it is there");
}

/// The letter after the name, which is in parentheses and may hold anything.
fn state(pid: u32) -> Option<char> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.chars().next()
}
