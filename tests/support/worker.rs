//! A test binary's second process: it can be frozen like one that the system has suspended, and it tells what it does.
#![allow(clippy::disallowed_methods, reason = "a real process runs in real time")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

const ROLE: &str = "LEASEHOLD_TEST_ROLE";
/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that runs the test `worker_process` of the same binary. It ends with this value.
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    pub fn start<V: AsRef<OsStr>>(role: &str, variables: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test binary"))
            .args(["--exact", "worker_process", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .envs(variables)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The test harness talks too, at first on the same line.
                if let Some((_, said)) = line.split_once('@') {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for it to say this, and returns the rest of that line. What it has said before is left behind.
    pub fn says(&self, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("the worker never said `{what}`"));
            if let Some(rest) = line.strip_prefix(what) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Stops all of its threads, wherever they are. Returns when they are stopped.
    pub fn freeze(&self) {
        kill(self.pid(), Signal::SIGSTOP).expect("it is ours");
        let stopped = waitpid(self.pid(), Some(WaitPidFlag::WUNTRACED)).expect("it is ours");
        assert_eq!(stopped, WaitStatus::Stopped(self.pid(), Signal::SIGSTOP));
    }

    /// Lets it go on where it was.
    pub fn thaw(&self) {
        kill(self.pid(), Signal::SIGCONT).expect("it is ours");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().expect("a process id"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What this process is to do, if it is a worker.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A line to the parent, at once: a frozen or killed process flushes nothing.
pub fn tell(what: &str, value: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@{what} {value}\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}
