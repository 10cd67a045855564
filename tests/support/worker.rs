//! A test binary's second process: it can be frozen like one that the system has suspended, and it tells what it does.
#![allow(clippy::disallowed_methods, reason = "a real process runs in real time")]

use std::ffi::OsStr;
use std::process::Command;

#[path = "../../examples/order_matching/process.rs"]
mod process;

pub use self::process::tell;

const ROLE: &str = "LEASEHOLD_TEST_ROLE";

/// A process that runs the test `worker_process` of the same binary. It ends with this value.
pub struct Worker(process::Process);

impl Worker {
    pub fn start<V: AsRef<OsStr>>(role: &str, variables: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test binary"));
        command.args(["--exact", "worker_process", "--nocapture", "--test-threads=1"]).env(ROLE, role).envs(variables);
        Self(process::Process::start(&mut command).expect("the process starts"))
    }

    /// Waits for it to say this, and returns the rest of that line. What it has said before is left behind.
    pub fn says(&self, what: &str) -> String {
        let told = self.0.until(what).unwrap_or_else(|error| panic!("{error}"));
        told.last().expect("that line").clone()
    }

    /// Stops all of its threads, wherever they are. Returns when they are stopped.
    pub fn freeze(&self) {
        self.0.freeze().expect("it is ours");
    }

    /// Lets it go on where it was.
    pub fn thaw(&self) {
        self.0.thaw().expect("it is ours");
    }
}

/// What this process is to do, if it is a worker.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}
